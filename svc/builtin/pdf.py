"""The text of a PDF, read by pypdf. It is a separate process, because files of users may be hostile (see documents.py).

an order as a JSON line on stdin -> the PDF at the beginning of a file -> the text of its pages behind it -> JSON on stdout
"""

import io
import json
import os
import resource
import sys
from typing import Any, BinaryIO

_CPU_SECONDS = 30
_MEMORY_BYTES = 256 * 1024 * 1024


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


def main() -> None:
    os.nice(15)  # the server goes first
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    order = json.loads(sys.stdin.buffer.readline())
    sys.path += order.pop("path")
    with open(order.pop("file"), "r+b", buffering=0, closefd=False) as file:
        file.seek(0)
        try:
            answer = write_text(file, **order)
        except MemoryError:
            answer = {"truncated": True}
        except Exception:  # no PDF, or a broken one
            answer = {"truncated": False}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
