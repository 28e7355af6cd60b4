"""The text of an artifact: of a text file as it is, of a PDF by a helper process."""

import codecs
import re
from contextlib import ExitStack, aclosing
from typing import BinaryIO

from starlette.responses import Response

from svc.builtin.documents import TEXT_BYTES
from svc.content import artifacts, contents
from svc.inference.media_engines import storage
from svc.routes.artifacts import content_chunks
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
    "Show the text",
    "The file is a PDF, or its type is text, JSON, XML or YAML, or it is in UTF-8 without NUL. The limit is 4 MiB of text. A PDF "
    "is read up to page 2,000, for at most 30 seconds, with 256 MiB of memory.",
    answers={
        200: Answer(
            "The text in UTF-8.",
            contents={"text/plain": Content(string, {"text": "hello world"})},
            headers={"x-text-truncated": _TRUNCATED},
        )
    },
    errors=[_NO_TEXT_FILE, Refusal("no_text", when="The PDF has no text, for example because it is a scan.")],
)
async def get_artifact_text(request: Request, caller: Caller) -> Response:
    state = request.state
    with ExitStack() as held:
        held.enter_context(state.open_texts.taken(caller.id))
        file = held.enter_context(state.media.spool())
        with storage(), attended(request.context, state.drain, caller.id, Interrupt()):
            truncated = await _write_text(request, caller, file)
        headers = {"content-type": "text/plain; charset=utf-8", "x-text-truncated": str(truncated).lower()}
        return from_file(request, caller, file, headers, held.pop_all())


async def _write_text(request: Request, caller: Caller, file: BinaryIO) -> bool:
    """Write the text into `file`, and return whether a limit cut it. Raises ApiError."""
    db, artifact_id = request.state.db, request.path_params["artifact_id"]
    encoding, errors = "utf-8-sig", "strict"
    while True:
        file.seek(0)
        file.truncate()
        artifact = await db.read(artifacts.TABLE.by_id, caller.id, artifact_id)
        media_type = artifact.content_type.partition(";")[0].strip().lower()
        is_text, truncated = bool(_TEXT.match(media_type)), artifact.size > TEXT_BYTES
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        try:
            first = await db.read(contents.content_chunk, caller.id, artifact_id, artifact.sha256, 0) if artifact.size else b""
            if media_type == "application/pdf" or (first.startswith(b"%PDF-") and not is_text):
                async for chunk in content_chunks(db, caller.id, artifact, 0, artifact.size):
                    file.write(chunk)
                return await request.state.documents.replace_by_text(file, caller.id)
            async with aclosing(content_chunks(db, caller.id, artifact, 0, min(artifact.size, TEXT_BYTES))) as chunks:
                async for chunk in chunks:
                    if b"\0" in chunk and not is_text:
                        raise _NO_TEXT_FILE.error()
                    file.write(decoder.decode(chunk).encode())
            file.write(decoder.decode(b"", final=not truncated).encode())
            return truncated
        except UnicodeDecodeError:
            if not is_text:
                raise _NO_TEXT_FILE.error() from None
            encoding, errors = "cp1252", "replace"  # as browsers read it
        except contents.ContentReplaced:
            continue
