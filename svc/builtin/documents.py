"""The text of PDFs, read in helper processes (pdf.py) with pypdf, which the extra `documents` installs."""

import asyncio
import os
import sys
from importlib.util import find_spec
from typing import BinaryIO

import orjson

from svc.builtin.pdf import TEXT_BYTES
from svc.builtin.processes import ProcessPool
from svc.errors import ApiError, UpstreamFault


async def replace_by_text(pool: ProcessPool, file: BinaryIO, account_id: str) -> bool:
    """Replace the PDF in `file` by its text, and return whether a limit cut the text.

    Raises ApiError `unsupported_media_type` without the extra, `no_text`, and `overloaded`.
    """
    if find_spec("pypdf") is None:
        hint = "Its operator can install the extra 'documents': pip install '.[documents]'."
        raise ApiError("unsupported_media_type", f"This server cannot read PDFs. {hint}")
    size = os.fstat(file.fileno()).st_size
    if not size:
        raise ApiError("no_text", "This PDF is empty.")
    try:
        answer = orjson.loads(await pool.run({"path": sys.path}, file, account_id=account_id))
    except UpstreamFault:  # the helper process was killed at a limit of time or memory
        answer = {"truncated": True}
    if "encrypted" in answer:
        raise ApiError("no_text", "This PDF is protected by a password. Remove the password first.")
    if not await asyncio.to_thread(_keep_text, file, size):
        if "broken" in answer:
            raise ApiError("no_text", "This PDF is damaged. Open it with another program, and save it again.")
        if "unmapped" in answer:
            raise ApiError(
                "no_text", "The fonts of this PDF do not say which characters they show. Use its pages as images."
            )
        if answer["truncated"]:
            raise ApiError("no_text", "No text was found in this PDF within 30 seconds and 256 MiB.")
        raise ApiError("no_text", "No text was found in this PDF. If it is a scan, use its pages as images.")
    return bool(answer["truncated"])


def _keep_text(file: BinaryIO, size: int) -> int:
    text = os.pread(file.fileno(), TEXT_BYTES, size).decode("utf-8", "ignore").strip()
    file.seek(0)
    file.truncate()
    return file.write(text.encode())
