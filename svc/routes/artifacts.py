"""The caller's artifacts, and their contents as files that are inert in a browser."""

import asyncio
import binascii
import re
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from svc.content import artifacts, contents, projects
from svc.content.artifacts import Artifact, ArtifactChanges, NewArtifact
from svc.content.content_links import content_url
from svc.content.contents import CONTENT_BYTES, PIECE_BYTES
from svc.db import Database
from svc.errors import ApiError
from svc.routes.schemas.content import ARTIFACT, ARTIFACT_LIST
from svc.routes.schemas.refusals import NO_ROOM, PROJECT_NOT_FOUND
from svc.server.bodies import read_chunks
from svc.server.body_budget import MIB
from svc.server.gate import LINK, Caller
from svc.server.interface import Answer, Body, Content, Refusal, describes, header, parameter, path_id
from svc.server.state import State
from svc.server.web import listing, no_content, page_after, page_limit, reply
from svc.shapes import given, one_of, string

_NO_CONTENT = Refusal("missing_field", "content (text) or content_base64 is required.", "content")
_ARTIFACT_ID = path_id("artifact_id", "The artifact's id.", "art_01m3250v3vn4qvxnatpwzmywwn")
_TOO_LARGE = Refusal(
    "PAYLOAD_TOO_LARGE",
    when="The content is over 32 MiB, or the account would have more than 10,000 artifacts.",
)
_NOT_FOUND = Refusal("not_found", "There is no such artifact.", when="The account has no such artifact.")
_FILE = Content(string.about("The file itself, of any type.", format="binary"))
_ANY_FILE = {"application/octet-stream": _FILE, "*/*": _FILE}
_ETAG = {
    "etag": header(
        "Of this content, for If-None-Match and If-Range.",
        string,
        '"b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"',
    )
}
_FILE_HEADERS = {
    **_ETAG,
    "content-disposition": header(
        "A download, unless it is an image or audio.", string, "attachment; filename=\"note.md\"; filename*=UTF-8''note.md"
    ),
    "cross-origin-resource-policy": header(
        "No page elsewhere shows it, but by a link made for that.", one_of("same-origin", "cross-origin"), "same-origin"
    ),
    "accept-ranges": header("Ranges of bytes can be asked for.", one_of("bytes"), "bytes"),
    "content-security-policy": header("Keeps the file inert in a browser.", one_of("sandbox"), "sandbox"),
}

_BODY_BYTES = 44 * MIB  # holds 32 MiB in base64 and the other fields
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))", re.IGNORECASE)


@describes(
    "Artifacts",
    "createArtifact",
    "Create an artifact",
    "The body may have 44 MiB.",
    body=artifacts.NEW_ARTIFACT,
    examples={
        "text": ("Of text", {"name": "note.md", "content_type": "text/markdown", "content": "hello world"}),
        "bytes": ("Of bytes", {"name": "note.txt", "content_type": "text/plain", "content_base64": "aGVsbG8gd29ybGQ="}),
    },
    most_bytes=_BODY_BYTES,
    answers={201: Answer("The artifact.", ARTIFACT)},
    errors=[_NO_CONTENT, PROJECT_NOT_FOUND, _TOO_LARGE, NO_ROOM],
)
async def create_artifact(request: Request[State], caller: Caller, body: NewArtifact) -> Response:
    state = request.state
    text, decode, usual_type = _content_field(body)
    if body.project_id is not None:  # before a content of many megabytes is written for nothing
        state.db.look_up(projects.project_by_id, caller.id, body.project_id, "project_id")
    artifact = await artifacts.add_artifact(
        state.db,
        caller.id,
        await _apart_if_big(text, decode),
        name=body.name,
        content_type=body.content_type or usual_type,
        project_id=body.project_id,
        run_id=None,
        now_seconds=state.clock(),
    )
    return reply(_as_json(state, artifact), 201)


def _as_json(state: State, artifact: Artifact) -> dict[str, Any]:
    key, base_url = state.derived_keys["content"], state.config.base_url
    return {**artifact.as_json(), "content_url": content_url(key, base_url, artifact.account_id, artifact.id, state.clock())}


def _content_field(body: NewArtifact) -> tuple[str, Callable[[str], bytes], str]:
    """Return the text that holds the content, the function that makes bytes of it, and its type if none is named."""
    if body.content is not None and body.content_base64 is not None:
        raise ApiError("invalid_value", "Send content or content_base64, not both.", param="content_base64")
    if body.content is not None:
        return body.content, str.encode, "text/plain; charset=utf-8"
    if body.content_base64 is not None:
        return body.content_base64, _decoded, "application/octet-stream"
    raise ApiError("missing_field", "content (text) or content_base64 is required.", param="content")


def _decoded(text: str) -> bytes:
    # Piece by piece, because binascii does not let the event loop run meanwhile. Padding may stand at the end alone.
    wrong = ApiError("invalid_value", "content_base64 must be standard base64 with its padding.", param="content_base64")
    if len(text) % 4 or 0 <= text.find("=") < len(text) - 2:
        raise wrong
    try:
        return b"".join(binascii.a2b_base64(text[start : start + MIB], strict_mode=True) for start in range(0, len(text), MIB))
    except ValueError:
        raise wrong from None


async def _apart_if_big(text: str, decode: Callable[[str], bytes]) -> bytes:
    return await asyncio.to_thread(decode, text) if len(text) > MIB else decode(text)


@describes(
    "Artifacts",
    "listArtifacts",
    "List the artifacts",
    parameters=[
        parameter("project_id", "query", "Only those of this project.", string),
        parameter("run_id", "query", "Only those of this run.", string),
    ],
    answers={200: Answer("A page of artifacts.", ARTIFACT_LIST)},
    errors=[PROJECT_NOT_FOUND],
    paged=True,
)
async def list_artifacts(request: Request[State], caller: Caller) -> Response:
    """Newest first, without contents, `?project_id= ?run_id= ?limit= ?after=`."""
    db, limit, query = request.state.db, page_limit(request), request.query_params
    project_id = query.get("project_id")
    if project_id is not None:
        await db.read(projects.project_by_id, caller.id, project_id, "project_id")
    page = await db.read(artifacts.artifacts_page, caller.id, limit, page_after(request), project_id, query.get("run_id"))
    return listing(page, partial(_as_json, request.state))


@describes(
    "Artifacts",
    "getArtifact",
    "Show one artifact",
    parameters=[_ARTIFACT_ID],
    answers={200: Answer("The artifact.", ARTIFACT)},
    errors=[_NOT_FOUND],
)
async def show_artifact(request: Request[State], caller: Caller) -> Response:
    artifact = await request.state.db.read(artifacts.artifact_by_id, caller.id, request.path_params["artifact_id"])
    return reply(_as_json(request.state, artifact))


@describes(
    "Artifacts",
    "updateArtifact",
    "Change an artifact",
    body=artifacts.ARTIFACT_CHANGES,
    parameters=[_ARTIFACT_ID],
    answers={200: Answer("The artifact as it is now.", ARTIFACT, {**ARTIFACT.example, "name": "notes.md"})},
    errors=[_NOT_FOUND, PROJECT_NOT_FOUND],
)
async def change_artifact(request: Request[State], caller: Caller, body: ArtifactChanges) -> Response:
    """An absent field stays; `project_id: null` removes it from its project."""
    state, artifact_id = request.state, request.path_params["artifact_id"]
    artifact = await state.db.write(artifacts.change_artifact, caller.id, artifact_id, given(body), state.clock())
    return reply(_as_json(state, artifact))


@describes(
    "Artifacts",
    "deleteArtifact",
    "Delete an artifact",
    parameters=[_ARTIFACT_ID],
    answers={204: Answer("The artifact is gone.")},
    errors=[_NOT_FOUND],
)
async def delete_artifact(request: Request[State], caller: Caller) -> Response:
    """204."""
    await request.state.db.write_as("alone", artifacts.delete_artifact, caller.id, request.path_params["artifact_id"])
    return no_content()


@describes(
    "Artifacts",
    "replaceArtifactContent",
    "Replace the content",
    "The raw body, at most 32 MiB, becomes the content, its `Content-Type` the type; without one the old type stays.",
    body=Body(
        string.about("The file itself, of any type.", format="binary"),
        most_bytes=CONTENT_BYTES,
        media_type="application/octet-stream",
    ),
    parameters=[_ARTIFACT_ID],
    answers={200: Answer("The artifact as it is now.", ARTIFACT)},
    errors=[
        Refusal(
            "invalid_value",
            "content_type must be a media type such as text/markdown, of at most 200 characters.",
            "content_type",
            when="`Content-Type` is no media type, or the request has a `Content-Range`.",
        ),
        _NOT_FOUND,
        _TOO_LARGE,
        NO_ROOM,
    ],
)
async def replace_content(request: Request[State], caller: Caller) -> Response:
    """The raw body becomes the content, its `Content-Type` the type -> 200 with the artifact."""
    state = request.state
    if "content-range" in request.headers:  # RFC 9110 14.5: taken for the whole, a part would destroy the rest
        raise ApiError("invalid_value", "Send the whole content, without Content-Range.", param="content-range")
    artifact_id, content_type = request.path_params["artifact_id"], request.headers.get("content-type")
    state.db.look_up(artifacts.check_replacing, caller.id, artifact_id, content_type)
    artifact = await artifacts.replace_content(
        state.db,
        caller.id,
        artifact_id,
        await read_chunks(request, CONTENT_BYTES),
        content_type=content_type,
        now_seconds=state.clock(),
    )
    return reply(_as_json(state, artifact))


@describes(
    "Artifacts",
    "getArtifactContent",
    "Read the content",
    "With one `Range`, or conditionally.",
    parameters=[
        _ARTIFACT_ID,
        parameter("Range", "header", "One range of bytes.", string, "bytes=0-4"),
        parameter("If-None-Match", "header", "An etag that the caller has already.", string),
    ],
    answers={
        200: Answer("The content, under its own type.", contents=_ANY_FILE, headers=_FILE_HEADERS),
        206: Answer(
            "The range of it.",
            contents=_ANY_FILE,
            headers={**_FILE_HEADERS, "content-range": header("Which bytes of how many.", string, "bytes 0-4/11")},
        ),
        304: Answer("The caller has it already.", headers=_ETAG),
    },
    errors=[
        _NOT_FOUND,
        Refusal(
            "invalid_value",
            "The content has 11 bytes; the range begins beyond them.",
            "range",
            when="The range begins beyond the content.",
            status="416",
            headers={"content-range": header("The true size.", string, "bytes */11")},
        ),
    ],
)
async def show_content(request: Request[State], caller: Caller) -> Response:
    """The content: whole (200), one range of it (206, 416), or that the caller has it already (304); RFC 9110 13 and 14."""
    db, artifact_id = request.state.db, request.path_params["artifact_id"]
    while True:
        artifact = await db.read(artifacts.artifact_by_id, caller.id, artifact_id)
        headers = _validators(artifact)
        if _is_known(request, headers["etag"]):
            return Response(status_code=304, headers=headers)
        headers |= _file_headers(artifact, caller.auth == LINK)
        if request.method == "HEAD":
            return Response(headers={**headers, "content-length": str(artifact.size)})
        asked = _range(request, headers["etag"], artifact.size)
        start, end = asked or (0, artifact.size)
        headers["content-length"] = str(end - start)
        if asked:
            headers["content-range"] = f"bytes {start}-{end - 1}/{artifact.size}"
        pieces = _pieces(db, caller.id, artifact, start, end)
        try:
            # Before the head is sent: so only a content of several pieces can be replaced in the middle, which cuts the answer.
            first = await anext(pieces, b"")
        except contents.ContentReplaced:
            continue
        return StreamingResponse(_chain(first, pieces), 206 if asked else 200, headers)


def _validators(artifact: Artifact) -> dict[str, str]:
    return {"etag": f'"{artifact.sha256.hex()}"', "cache-control": "private, no-cache"}


def _is_known(request: Request[State], etag: str) -> bool:
    tags = [tag.strip().removeprefix("W/") for tag in ",".join(request.headers.getlist("if-none-match")).split(",")]
    return etag in tags or "*" in tags


def _file_headers(artifact: Artifact, by_link: bool) -> dict[str, str]:
    """What keeps the file inert: it runs no script and is a download, unless it can only be looked at or heard."""
    return {
        "content-type": artifact.content_type,
        "content-disposition": f"{_disposition(artifact.content_type)}; {_file_name(artifact.name)}",
        "content-security-policy": "sandbox",
        # A link is made for pages elsewhere.
        "cross-origin-resource-policy": "cross-origin" if by_link else "same-origin",
        "accept-ranges": "bytes",
    }


def _disposition(content_type: str) -> str:
    kind, _, subtype = content_type.partition(";")[0].strip().lower().partition("/")
    # Any image type in XML, not SVG alone, is a document that may hold scripts.
    return "inline" if kind in ("image", "audio") and "svg" not in subtype and "xml" not in subtype else "attachment"


def _file_name(name: str) -> str:
    """The parameters of RFC 6266: a plain name for old clients, the true one in UTF-8; neither can leave its folder or header.

    Marks of direction would let `gpj.exe` look like `exe.jpg`; `.` and `..` are folders.
    """
    shown = _DIRECTION.sub("", re.sub(r"[/\\]", "_", name))
    if not shown.strip(". "):
        shown = f"file{shown}"
    plain = re.sub(r"[^A-Za-z0-9 ._()+-]", "_", shown)
    return f"filename=\"{plain}\"; filename*=UTF-8''{quote(shown, safe='')}"


def _range(request: Request[State], etag: str, size: int) -> tuple[int, int] | None:
    """The range of bytes that the request asks for, its end exclusive. Raises ApiError with status 416 beyond the content.

    None is the whole: for several ranges, another unit, a range that makes no sense or is for another content (If-Range).
    """
    match = _RANGE.fullmatch(request.headers.get("range", ""))
    if match is None or request.headers.get("if-range", etag) != etag:
        return None
    first, last, suffix = match.groups()
    if suffix is not None:
        start, end = max(size - int(suffix), 0), size
        if size == 0 and int(suffix):
            return None  # RFC 9110 14.1.2: satisfiable, but an empty 206 cannot be written
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    if start >= size:
        raise ApiError(
            "invalid_value",
            f"The content has {size} bytes; the range begins beyond them.",
            param="range",
            status=416,
            headers={"content-range": f"bytes */{size}"},
        )
    return start, end


async def _pieces(db: Database, account_id: str, artifact: Artifact, start: int, end: int) -> AsyncGenerator[bytes, None]:
    for number in range(start // PIECE_BYTES, -(-end // PIECE_BYTES)):
        piece = await db.read(contents.content_piece, account_id, artifact.id, artifact.sha256, number)
        begin = number * PIECE_BYTES
        yield piece[max(start - begin, 0) : end - begin]


async def _chain(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async for piece in rest:
        yield piece
