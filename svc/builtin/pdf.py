"""The text of a PDF, read by pypdf in a helper process, because files of users may be hostile (see documents.py).

a PDF in a file -> the text of its pages behind it -> JSON that says whether text is missing, and why
"""

import io
import json
import sys
from typing import Any, BinaryIO

CPU_SECONDS = 30
MEMORY_BYTES = 256 * 1024 * 1024
TEXT_BYTES = 4 * 1024 * 1024
_MOST_PAGES = 2_000


def write_text(file: BinaryIO) -> dict[str, Any]:
    from pypdf import PdfReader

    reader, bytes_left = PdfReader(io.BytesIO(file.read())), TEXT_BYTES
    if reader.is_encrypted and not reader.decrypt(""):
        return {"encrypted": True}
    truncated = False
    for number, page in enumerate(reader.pages):
        if number == _MOST_PAGES or bytes_left <= 0:
            return {"truncated": True}
        try:
            text = page.extract_text()
        except MemoryError:
            raise
        except Exception:  # a broken page
            truncated = True
            continue
        written = f"{text.strip()}\n\n".replace("\0", "").encode("utf-8", "replace")
        file.write(written[:bytes_left])
        bytes_left -= len(written)
    return {"truncated": truncated or bytes_left < 0}


def answer(order: dict[str, Any]) -> bytes:
    sys.path += order["path"]
    with open(order["file"], "r+b", buffering=0, closefd=False) as file:
        file.seek(0)
        try:
            found = write_text(file)
        except MemoryError:
            found = {"truncated": True}
        except Exception:  # no PDF, or a broken one
            found = {"truncated": True, "broken": True}
    return json.dumps(found).encode()
