"""PDFs for a model whose server has the format of chat completions: it gets their texts.

make_call() -> make() -> UnreadPdfs -> a helper process for each PDF -> text parts in the request
            -> make() again: the hold counts the texts
"""

import asyncio
import binascii
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from svc.builtin.documents import replace_by_text
from svc.errors import ApiError, invalid_value
from svc.inference.images import Pdf, UnreadPdfs, replace_part
from svc.inference.media_engines import storage
from svc.server.interface import Refusal
from svc.server.limits import MIB
from svc.server.sse import Interrupt
from svc.server.web import Request

T = TypeVar("T")
MOST_PDFS = 5
_MOST_TEXT_BYTES = MIB
_NOT_READ = f"[A PDF that was not read: a request may have {MOST_PDFS}.]"
_INCOMPLETE = "[Parts of this PDF could not be read.]"
NO_PDF_TEXT = Refusal(
    "no_text",
    "messages[0].content[1].file: This PDF is protected by a password. Remove the password first.",
    "messages[0].content[1].file",
    "A PDF for a chat model server is empty, damaged, protected or without text.",
)


async def make_call(request: Request, account_id: str, make: Callable[[bool], T], heavy: bool) -> T:
    """Return what `make` returns, which runs off the event loop if the request is `heavy`.

    If it raises UnreadPdfs, the texts of these PDFs replace them in the request, and it is called again. Raises
    ApiError.
    """
    offload = request.state.offload
    try:
        return await offload.run(account_id, make, heavy) if heavy else make(heavy)
    except UnreadPdfs as unread:
        pdfs = unread.pdfs
    with request.state.open_texts.taken(account_id), Interrupt().over(request.context, request.state.drain):
        await _read_all(request, account_id, pdfs)
    return await offload.run(account_id, make, True)  # a small PDF may have a long text


async def _read_all(request: Request, account_id: str, pdfs: list[Pdf]) -> None:
    own = [pdf for pdf in pdfs if not pdf.in_result]
    if len(own) > MOST_PDFS:
        param = own[MOST_PDFS].param
        raise invalid_value(f"{param}: a request may have {MOST_PDFS} PDFs for this model. Send fewer.", param)
    results = [pdf for pdf in pdfs if pdf.in_result]
    skipped = max(len(pdfs) - MOST_PDFS, 0)  # the oldest: a coding agent sends all results again with each request
    for pdf in results[:skipped]:
        _replace(pdf, _NOT_READ)
    bodies, context = request.state.bodies, request.context
    for pdf in own + results[skipped:]:
        with request.state.media.spool() as file, storage():
            text = await _text_of(request, account_id, pdf, file)
        counted_bytes = context.counted_body[0] if context.counted_body else 0
        bodies.count(context, counted_bytes + len(text))
        _replace(pdf, text)


async def _text_of(request: Request, account_id: str, pdf: Pdf, file: BinaryIO) -> str:
    """Return the text of a PDF, or the reason for none in the result of a tool. Raises ApiError."""
    try:
        await asyncio.to_thread(_decode, pdf.content, file)
        truncated = await replace_by_text(request.state.process_pools["documents"], file, account_id)
        text = await asyncio.to_thread(_read, file)
    except ApiError as error:
        if error.status >= 500:
            raise
        if pdf.in_result:
            return f"[{error}]"
        code, hint = error.code, ""
        if code == "unsupported_media_type":  # the extra `documents` is missing
            code, hint = "unsupported_value", " Send its text, or choose another model."
        raise ApiError(code, f"{pdf.param}: {error}{hint}", param=pdf.param) from None
    return f"{text}\n\n{_INCOMPLETE}" if truncated else text


def _decode(content: str, file: BinaryIO) -> None:
    """Write the PDF into `file`. In chunks, because binascii holds the GIL."""
    try:
        for start in range(0, len(content), MIB):
            file.write(binascii.a2b_base64(content[start : start + MIB], strict_mode=True))
    except ValueError:
        raise ApiError("invalid_value", "This PDF is not in standard base64.") from None


def _read(file: BinaryIO) -> str:
    file.seek(0)
    text = file.read(_MOST_TEXT_BYTES + 1)
    if len(text) > _MOST_TEXT_BYTES:
        raise ApiError("invalid_value", "The text of this PDF is over 1 MiB. Send a part of it.")
    return text.decode()


def _replace(pdf: Pdf, text: str) -> None:
    part = pdf.part
    parts = (f"File: {pdf.name}", part.get("context") if part["type"] == "document" else None, text)
    kind = "input_text" if part["type"] == "input_file" else "text"
    replace_part(part, kind, "\n\n".join(filter(None, parts)))
