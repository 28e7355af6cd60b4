"""The text of a PDF, read by pypdf. It is a separate process, because files of users may be hostile (see documents.py).

an order as a JSON line on stdin -> the PDF at the beginning of a file -> the text of its pages behind it -> JSON on
stdout
"""

import io
import json
import sys
from typing import Any, BinaryIO

CPU_SECONDS = 30
MEMORY_BYTES = 256 * 1024 * 1024


def write_text(file: BinaryIO, size: int, most_pages: int, most_bytes: int) -> dict[str, Any]:
    """Write the text behind the PDF, which has `size` bytes. The answer says whether text is missing, and why."""
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(file.read(size)))
    if reader.is_encrypted and not reader.decrypt(""):
        return {"truncated": False, "encrypted": True}
    truncated = False
    for number, page in enumerate(reader.pages):
        if number == most_pages or most_bytes <= 0:
            return {"truncated": True}
        try:
            text = page.extract_text()
        except MemoryError:
            return {"truncated": True}
        except Exception:  # a broken page
            truncated = True
            continue
        written = f"{text.strip()}\n\n".replace("\0", "").encode("utf-8", "replace")
        file.write(written[:most_bytes])
        most_bytes -= len(written)
    return {"truncated": truncated or most_bytes < 0}


def answer(order: dict[str, Any]) -> bytes:
    sys.path += order.pop("path")
    with open(order.pop("file"), "r+b", buffering=0, closefd=False) as file:
        file.seek(0)
        try:
            found = write_text(file, **order)
        except MemoryError:
            found = {"truncated": True}
        except Exception:  # no PDF, or a broken one
            found = {"truncated": False}
    return json.dumps(found).encode()
