"""The caller's artifacts: their contents, which a browser cannot run, and their texts.

The text of a text file is the file as it is. A helper process reads the text of a PDF.
"""

import asyncio
import binascii
import codecs
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, aclosing
from functools import partial
from typing import Any, BinaryIO
from urllib.parse import quote

from svc.builtin.documents import replace_by_text
from svc.builtin.pdf import TEXT_BYTES
from svc.content import artifact_contents, artifacts, projects
from svc.content.artifacts import PROMPT_LENGTH, Artifact, ArtifactChanges, Home, NewArtifact, content_url
from svc.content.encodings import encodings_of
from svc.db import Database
from svc.errors import ApiError, invalid_value
from svc.inference.media_engines import storage
from svc.routes.media import from_file
from svc.routes.projects import IN_PROJECT, project_filter
from svc.routes.schemas.common import CONTENT_URL, COUNT, ID, NO_ROOM, PROJECT_NOT_FOUND, SHA256, TIMES, id_of
from svc.server.bodies import read_chunks
from svc.server.guards import LINK, Caller
from svc.server.interface import Answer, Content, Operation, Parameter, Refusal, header, paged
from svc.server.limits import MIB
from svc.server.sse import Interrupt
from svc.server.state import State
from svc.server.streamed import Download
from svc.server.web import Request, Response, read_page
from svc.shapes import given, json_object, nullable, one_of, string

describes = partial(Operation, "Artifacts")
_ARTIFACT = json_object(
    "Artifact",
    "A file, without its content.",
    id=id_of("art"),
    name="note.md",
    content_type="text/markdown",
    size=COUNT.about("The size in bytes.", 11),
    sha256=string.about("The hash of the content, in hexadecimal.", SHA256, pattern="^[0-9a-f]{64}$"),
    project_id=nullable(ID).about("The project that it belongs to."),
    run_id=nullable(ID).about("The agent run that wrote it."),
    prompt=nullable(string).about(
        f"Of a generated image, its first {PROMPT_LENGTH:,} characters.", maxLength=PROMPT_LENGTH
    ),
    content_url=string.about(
        "A link to the content that works for an hour without a token.", CONTENT_URL, format="uri"
    ),
    **TIMES,
)
_NO_CONTENT = Refusal("missing_field", "content (text) or content_base64 is required.", "content")
_TOO_LARGE = Refusal("PAYLOAD_TOO_LARGE", when="The content is over 32 MiB, or the account has 10,000 artifacts.")
_FILE = string.about("The file, of any type.", format="binary")
_ANY_FILE = {"application/octet-stream": Content(_FILE), "*/*": Content(_FILE)}
_ETAG = {"etag": header("The version of the content, for If-None-Match and If-Range.", string, f'"{SHA256}"')}
_FILE_HEADERS = {
    **_ETAG,
    "content-disposition": header(
        "A download, except images and audio.", string, "attachment; filename=\"note.md\"; filename*=UTF-8''note.md"
    ),
    "cross-origin-resource-policy": header(
        "Other sites can embed the file only by its `content_url`.", one_of("same-origin", "cross-origin")
    ),
    "accept-ranges": header("Requests may ask for a range of bytes.", one_of("bytes")),
    "content-security-policy": header("A browser runs no scripts of the file.", one_of("sandbox")),
}

_OF_RUN = Parameter("run_id", "Only those of this run.", string)
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_UNKNOWN = "application/octet-stream"
_TEXT = re.compile(r"text/.|.+[/+-](?:json|xml|yaml)$")
_NO_TEXT_FILE = Refusal(
    "unsupported_media_type",
    "This file is neither text nor a PDF.",
    when="The file is neither text nor a PDF, or it is a PDF and the server lacks the extra `documents`.",
)
_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))", re.IGNORECASE)


@describes(
    "Create an artifact",
    "The body may have 44 MiB.",
    examples={
        "text": ("Text", {"name": "note.md", "content_type": "text/markdown", "content": "hello world"}),
        "bytes": ("Bytes", {"name": "note.txt", "content_type": "text/plain", "content_base64": "aGVsbG8gd29ybGQ="}),
    },
    most_bytes=44 * MIB,  # 32 MiB in base64 and the other fields
    answer=Answer("The artifact.", _ARTIFACT, 201),
    errors=[_NO_CONTENT, PROJECT_NOT_FOUND, _TOO_LARGE, NO_ROOM],
)
async def create_artifact(request: Request, caller: Caller, body: NewArtifact) -> object:
    state, name, project_id = request.state, body.name, body.project_id
    text, decode, kind = _content_field(body)
    if project_id is not None:  # checked before a content of many megabytes is stored
        state.db.look_up(projects.TABLE.by_id, caller.id, project_id, "project_id")
    content = await asyncio.to_thread(decode, text) if len(text) > MIB else decode(text)
    artifact = await artifacts.add_artifact(
        state.db, Home(caller.id, project_id), content, name=name, content_type=kind, now_seconds=state.clock()
    )
    return _as_json(state, artifact)


def _as_json(state: State, artifact: Artifact) -> dict[str, Any]:
    key, base_url = state.derived_keys["content"], state.config.base_url
    return {
        **artifact.as_json(),
        "content_url": content_url(key, base_url, artifact.account_id, artifact.id, state.clock()),
    }


def _content_field(body: NewArtifact) -> tuple[str, Callable[[str], bytes], str]:
    """Return the text of the content, the function that decodes it, and its type."""
    if body.content is not None and body.content_base64 is not None:
        raise invalid_value("Send content or content_base64, not both.", "content_base64")
    if body.content is not None:
        return body.content, str.encode, body.content_type or "text/plain; charset=utf-8"
    if body.content_base64 is not None:
        return body.content_base64, _decoded, body.content_type or "application/octet-stream"
    raise _NO_CONTENT.error()


def _decoded(text: str) -> bytes:
    # In chunks, because binascii holds the GIL. Padding is allowed only at the end.
    wrong = invalid_value("content_base64 must be standard base64 with its padding.", "content_base64")
    if len(text) % 4 or 0 <= text.find("=") < len(text) - 2:
        raise wrong
    try:
        return b"".join(
            binascii.a2b_base64(text[start : start + MIB], strict_mode=True) for start in range(0, len(text), MIB)
        )
    except ValueError:
        raise wrong from None


@describes(
    "List the artifacts",
    parameters=[IN_PROJECT, _OF_RUN],
    answer=paged("A page of artifacts.", "ArtifactList", _ARTIFACT),
)
async def list_artifacts(request: Request, caller: Caller) -> object:
    filters = {"project_id": await project_filter(request, caller), "run_id": _OF_RUN.of(request)}
    page = await read_page(request, artifacts.TABLE.page, caller.id, **filters)
    return page.of(partial(_as_json, request.state))


@describes("Show an artifact", answer=Answer("The artifact.", _ARTIFACT))
async def get_artifact(request: Request, caller: Caller, artifact_id: str) -> object:
    db = request.state.db
    return _as_json(request.state, await db.read(artifacts.TABLE.by_id, caller.id, artifact_id))


@describes("Change an artifact", answer=Answer("The changed artifact.", _ARTIFACT), errors=[PROJECT_NOT_FOUND])
async def update_artifact(request: Request, caller: Caller, artifact_id: str, body: ArtifactChanges) -> object:
    state = request.state
    artifact = await state.db.write(artifacts.change_artifact, caller.id, artifact_id, given(body), state.clock())
    return _as_json(state, artifact)


@describes("Delete an artifact", answer=Answer("The artifact is deleted."))
async def delete_artifact(request: Request, caller: Caller, artifact_id: str) -> None:
    await request.state.db.write_as("alone", artifacts.TABLE.delete, caller.id, artifact_id)


@describes(
    "Replace the content",
    "The body is the new content, at most 32 MiB. `Content-Type` sets the type; without it the type does not change.",
    body=_FILE,
    most_bytes=artifact_contents.CONTENT_BYTES,
    media_type="application/octet-stream",
    answer=Answer("The changed artifact.", _ARTIFACT),
    errors=[
        Refusal(
            "invalid_value",
            "content_type must be a media type such as text/markdown, of at most 200 characters.",
            "content_type",
            when="`Content-Type` is not a media type, or the request has a `Content-Range`.",
        ),
        _TOO_LARGE,
        NO_ROOM,
    ],
)
async def replace_artifact_content(request: Request, caller: Caller, artifact_id: str) -> object:
    state = request.state
    if "content-range" in request.headers:  # RFC 9110 14.5: a part must not replace the whole
        raise invalid_value("Send the whole content, without Content-Range.", "content-range")
    content_type = request.headers.get("content-type")
    state.db.look_up(artifacts.check_replacing, caller.id, artifact_id, content_type)
    chunks = await read_chunks(request, artifact_contents.CONTENT_BYTES)
    artifact = await artifacts.replace_content(
        state.db, caller.id, artifact_id, chunks, content_type=content_type, now_seconds=state.clock()
    )
    state.file_reading.wake()
    return _as_json(state, artifact)


@describes(
    "Download the content",
    "Supports one `Range` and conditional requests.",
    parameters=[
        Parameter("Range", "One range of bytes.", string, "bytes=0-4", where="header"),
        Parameter("If-None-Match", "The etag of the caller's copy.", string, where="header"),
    ],
    answer=Answer("The content, with its own type.", contents=_ANY_FILE, headers=_FILE_HEADERS),
    others=[
        Answer(
            "The range.",
            contents=_ANY_FILE,
            headers={**_FILE_HEADERS, "content-range": header("The range and the size.", string, "bytes 0-4/11")},
            status=206,
        ),
        Answer("The caller's copy is current.", headers=_ETAG, status=304),
    ],
    errors=[
        Refusal(
            "invalid_value",
            "The content has 11 bytes. The range begins after them.",
            "range",
            when="The range begins after the end of the content.",
            status="416",
            headers={"content-range": header("The size.", string, "bytes */11")},
        )
    ],
)
async def get_artifact_content(request: Request, caller: Caller, artifact_id: str) -> Response:
    """Send the content (200), one range of it (206, 416), or only 304 (RFC 9110 13 and 14)."""
    db = request.state.db
    while True:
        artifact = await db.read(artifacts.TABLE.by_id, caller.id, artifact_id)
        etag = f'"{artifact.sha256.hex()}"'
        headers = {"etag": etag, "cache-control": "private, no-cache"}
        known = ",".join(request.headers.getlist("if-none-match")).split(",")
        if {etag, "*"} & {tag.strip().removeprefix("W/") for tag in known}:
            return Response(status_code=304, headers=headers)
        headers |= _file_headers(artifact, caller.auth == LINK)
        if request.scope["method"] == "HEAD":
            return Response(headers={**headers, "content-length": str(artifact.size)})
        asked = _range(request, etag, artifact.size)
        start, end = asked or (0, artifact.size)
        headers["content-length"] = str(end - start)
        if asked:
            headers["content-range"] = f"bytes {start}-{end - 1}/{artifact.size}"
        chunks = content_chunks(db, artifact, start, end)
        try:
            # Before the head is sent, so that only the replacement of a longer content can cut the answer.
            first = await anext(chunks, b"")
        except artifact_contents.ContentReplaced:
            continue
        return Download(request.state.drain, chunks, headers, 206 if asked else 200, first)


def _file_headers(artifact: Artifact, by_link: bool) -> dict[str, str]:
    """Return headers that prevent a browser from running the file."""
    kind, _, subtype = artifact.content_type.partition(";")[0].strip().lower().partition("/")
    # Images in XML, such as SVG, may contain scripts.
    inline = kind in ("image", "audio") and "svg" not in subtype and "xml" not in subtype
    return {
        "content-type": artifact.content_type,
        "content-disposition": f"{'inline' if inline else 'attachment'}; {_file_name(artifact.name)}",
        "content-security-policy": "sandbox",
        # Links are for pages of other sites.
        "cross-origin-resource-policy": "cross-origin" if by_link else "same-origin",
        "accept-ranges": "bytes",
    }


def _file_name(name: str) -> str:
    """Return the parameters of RFC 6266: an ASCII name for old clients, and the name in UTF-8, without path separators.

    Direction marks are removed: they can make `gpj.exe` look like `exe.jpg`.
    """
    shown = _DIRECTION.sub("", re.sub(r"[/\\]", "_", name))
    if not shown.strip(". "):
        shown = f"file{shown}"
    plain = re.sub(r"[^A-Za-z0-9 ._()+-]", "_", shown)
    return f"filename=\"{plain}\"; filename*=UTF-8''{quote(shown, safe='')}"


def _range(request: Request, etag: str, size: int) -> tuple[int, int] | None:
    """Return start and end (exclusive) of the requested range. Raises ApiError with status 416 beyond the content.

    Return None for the whole content: without a range, for several ranges, another unit, or another content (If-Range).
    """
    match = _RANGE.fullmatch(request.headers.get("range", ""))
    if match is None or request.headers.get("if-range", etag) != etag:
        return None
    first, last, suffix = match.groups()
    start = int(first) if first else max(size - int(suffix), 0)
    end = min(int(last) + 1, size) if last else size
    # RFC 9110 14.1.2: a suffix of an empty content is satisfiable, but an empty 206 cannot be written.
    if (last and int(last) < start) or (size == 0 and suffix and int(suffix)):
        return None
    if start >= size:
        raise ApiError(
            "invalid_value",
            f"The content has {size} bytes. The range begins after them.",
            param="range",
            status=416,
            headers={"content-range": f"bytes */{size}"},
        )
    return start, end


async def content_chunks(db: Database, artifact: Artifact, start: int, end: int) -> AsyncGenerator[bytes, None]:
    for number in range(start // artifact_contents.CHUNK_BYTES, -(-end // artifact_contents.CHUNK_BYTES)):
        chunk = await db.read(
            artifact_contents.content_chunk, artifact.account_id, artifact.id, artifact.sha256, number
        )
        begin = number * artifact_contents.CHUNK_BYTES
        yield chunk[max(start - begin, 0) : end - begin]


@describes(
    "Show the text",
    answer=Answer(
        "The text in UTF-8.",
        contents={"text/plain": Content(string, {"text": "hello world"})},
        headers={"x-text-truncated": header("Whether a limit cut the text.", one_of("true", "false"), "false")},
    ),
    errors=[_NO_TEXT_FILE, Refusal("no_text", when="The PDF has no text, for example because it is a scan.")],
)
async def get_artifact_text(request: Request, caller: Caller, artifact_id: str) -> Response:
    with ExitStack() as held:
        held.enter_context(request.state.open_texts.taken(caller.id))
        file = held.enter_context(request.state.media.spool())
        with storage(), Interrupt().over(request.context, request.state.drain):
            truncated = await _write_text(request, caller, artifact_id, file)
        headers = {"content-type": "text/plain; charset=utf-8", "x-text-truncated": str(truncated).lower()}
        return from_file(request, file, headers, held.pop_all())


async def _write_text(request: Request, caller: Caller, artifact_id: str, file: BinaryIO) -> bool:
    """Write the text into `file`, and return whether a limit cut it."""
    db = request.state.db
    failed = 0  # encodings that cannot decode it
    while True:
        file.seek(0)
        file.truncate()
        artifact = await db.read(artifacts.TABLE.by_id, caller.id, artifact_id)
        media_type = artifact.content_type.partition(";")[0].strip().lower()
        is_text, truncated = bool(_TEXT.match(media_type)), artifact.size > TEXT_BYTES
        try:
            first = b""
            if artifact.size:
                first = await db.read(artifact_contents.content_chunk, caller.id, artifact_id, artifact.sha256, 0)
            if media_type == "application/pdf" or first.startswith(b"%PDF-"):
                async for chunk in content_chunks(db, artifact, 0, artifact.size):
                    file.write(chunk)
                return await replace_by_text(request.state.process_pools["documents"], file, caller.id)
            encoding, errors = encodings_of(artifact.content_type, first if is_text or media_type == _UNKNOWN else b"")[
                failed
            ]
            decoder = codecs.getincrementaldecoder(encoding)(errors)
            async with aclosing(content_chunks(db, artifact, 0, min(artifact.size, TEXT_BYTES))) as chunks:
                async for chunk in chunks:
                    text = decoder.decode(chunk)
                    if "\0" in text and not is_text:
                        raise _NO_TEXT_FILE.error()
                    file.write(text.encode())
            file.write(decoder.decode(b"", final=not truncated).encode())
            return truncated
        except UnicodeError:
            if not is_text:
                raise _NO_TEXT_FILE.error() from None
            failed += 1
        except artifact_contents.ContentReplaced:
            continue
