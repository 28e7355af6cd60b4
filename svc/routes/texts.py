"""The text of an artifact: of a text file as it is, of a PDF by a helper process."""

import codecs
import contextlib
import re
from typing import BinaryIO

from starlette.responses import Response

from svc.builtin.documents import TEXT_BYTES
from svc.content import artifacts, contents
from svc.content.artifacts import Artifact
from svc.db import Database
from svc.inference.media_engines import storage
from svc.routes.artifacts import ARTIFACT_ID, content_chunks
from svc.routes.media import from_file
from svc.server.gate import Caller
from svc.server.interface import Answer, Content, Refusal, Section, header
from svc.server.sse import Interrupt, attended
from svc.server.state import Request
from svc.shapes import one_of, string

describes = Section("Artifacts").describes
_TEXT = re.compile(r"text/.|.+[/+-](?:json|xml|yaml)$")
_NO_TEXT_FILE = Refusal(
    "unsupported_media_type",
    "This file is neither text nor a PDF.",
    when="The file is neither text nor a PDF, or it is a PDF and the server lacks the extra `documents`.",
)
_TRUNCATED = header("Whether a limit cut the text.", one_of("true", "false"), "false")


@describes(
    "getArtifactText",
    "Show the text",
    "The file is a PDF, or its type is text, JSON, XML or YAML, or it is in UTF-8 without NUL. The limit is 4 MiB of text. A PDF "
    "is read up to page 2,000, for at most 30 seconds, with 256 MiB of memory.",
    parameters=[ARTIFACT_ID],
    answers={
        200: Answer(
            "The text in UTF-8.",
            contents={"text/plain": Content(string, {"text": "hello world"})},
            headers={"x-text-truncated": _TRUNCATED},
        )
    },
    errors=[_NO_TEXT_FILE, Refusal("no_text", when="The PDF has no text, for example because it is a scan.")],
)
async def show_text(request: Request, caller: Caller) -> Response:
    state = request.state
    with contextlib.ExitStack() as held:
        held.enter_context(state.open_texts.taken(caller.id))
        file = held.enter_context(state.media.spool())
        with storage(), attended(request.receive, state.drain, caller.id, Interrupt()):
            truncated = await _write_text(request, caller, file)
        headers = {"content-type": "text/plain; charset=utf-8", "x-text-truncated": str(truncated).lower()}
        return from_file(file, headers, held.pop_all())


async def _write_text(request: Request, caller: Caller, file: BinaryIO) -> bool:
    """Write the text into `file`, and return whether a limit cut it. Raises ApiError."""
    state = request.state
    while True:
        _empty(file)
        artifact = await state.db.read(artifacts.artifact_by_id, caller.id, request.path_params["artifact_id"])
        media_type = artifact.content_type.partition(";")[0].strip().lower()
        is_text = bool(_TEXT.match(media_type))
        try:
            if media_type == "application/pdf" or (not is_text and await _begins_like_a_pdf(state.db, artifact)):
                async for chunk in content_chunks(state.db, caller.id, artifact, 0, artifact.size):
                    file.write(chunk)
                return await state.documents.replace_by_text(file, caller.id)
            try:
                return await _decode(state.db, artifact, file, "utf-8-sig", zeros=is_text)
            except UnicodeDecodeError:
                if not is_text:
                    raise _NO_TEXT_FILE.error() from None
            _empty(file)
            return await _decode(state.db, artifact, file, "cp1252")
        except contents.ContentReplaced:
            continue


def _empty(file: BinaryIO) -> None:
    file.seek(0)
    file.truncate()


async def _begins_like_a_pdf(db: Database, artifact: Artifact) -> bool:
    key = (artifact.account_id, artifact.id, artifact.sha256)
    return artifact.size > 0 and (await db.read(contents.content_chunk, *key, 0)).startswith(b"%PDF-")


async def _decode(db: Database, artifact: Artifact, file: BinaryIO, encoding: str, zeros: bool = True) -> bool:
    """Write a file's text. Raises UnicodeDecodeError, and ApiError for a file with NUL unless `zeros` are allowed."""
    decoder = codecs.getincrementaldecoder(encoding)("replace" if encoding == "cp1252" else "strict")
    async with contextlib.aclosing(
        content_chunks(db, artifact.account_id, artifact, 0, min(artifact.size, TEXT_BYTES))
    ) as chunks:
        async for chunk in chunks:
            if b"\0" in chunk and not zeros:
                raise _NO_TEXT_FILE.error()
            file.write(decoder.decode(chunk).encode())
    truncated = artifact.size > TEXT_BYTES
    file.write(decoder.decode(b"", final=not truncated).encode())
    return truncated
