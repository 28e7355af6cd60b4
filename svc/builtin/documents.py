"""The text of PDFs, read in helper processes (pdf.py) with pypdf, which the extra `documents` installs."""

import asyncio
import os
import sys
from importlib.util import find_spec
from typing import BinaryIO

import orjson

from svc.builtin.processes import ProcessPool
from svc.errors import ApiError, UpstreamFault

TEXT_BYTES = 4 * 1024 * 1024
_MOST_PAGES = 2_000


async def replace_by_text(pool: ProcessPool, file: BinaryIO, account_id: str) -> bool:
    """Replace the PDF in `file` by its text, and return whether a limit cut the text.

    Raises ApiError `unsupported_media_type` without the extra, `no_text`, and `overloaded`.
    """
    if find_spec("pypdf") is None:
        message = (
            "This server cannot read PDFs. Its operator can install the extra 'documents': pip install '.[documents]'."
        )
        raise ApiError("unsupported_media_type", message)
    size = os.fstat(file.fileno()).st_size
    order = {"size": size, "most_pages": _MOST_PAGES, "most_bytes": TEXT_BYTES, "path": sys.path}
    try:
        answer = orjson.loads(await pool.run(order, file, account_id=account_id))
    except UpstreamFault:  # it was killed at a limit
        answer = {"truncated": True}
    if "encrypted" in answer:
        raise ApiError("no_text", "This PDF is protected by a password. Remove the password first.")
    if not await asyncio.to_thread(_keep_text, file, size):
        reason = " within 30 seconds and 256 MiB" if answer["truncated"] else ". It may consist of images"
        raise ApiError("no_text", f"No text was found in this PDF{reason}.")
    return bool(answer["truncated"])


def _keep_text(file: BinaryIO, size: int) -> int:
    text = os.pread(file.fileno(), TEXT_BYTES, size).decode("utf-8", "ignore").strip()
    file.seek(0)
    file.truncate()
    return file.write(text.encode())
