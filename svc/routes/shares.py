"""Conversations that the caller shares by link, what everybody reads of them, and new conversations from them."""

import os
import sqlite3
from collections.abc import AsyncGenerator

from svc.content import artifact_contents, conversations, forks, shares
from svc.content.artifact_contents import CHUNK_BYTES, ContentReplaced
from svc.content.forks import NewFork
from svc.content.shares import NewShare
from svc.db import Database
from svc.errors import ApiError
from svc.groups import Group
from svc.ids import base64url
from svc.routes.conversations import CONVERSATION, describes
from svc.routes.schemas.common import NO_ROOM, TIMESTAMP, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Content, Refusal, header, paged, path_id
from svc.server.state import State
from svc.server.streamed import Download
from svc.server.web import Request, Response, read_page, reply
from svc.shapes import json_object, list_of, nullable, one_of, string

_NO_INDEX = {"x-robots-tag": "noindex"}
_SHOWN = {"x-robots-tag": header("Search engines leave it out.", one_of("noindex"))}
_EXPIRES = nullable(TIMESTAMP).about("When the link ends. Null: never.")
_SHARE = json_object(
    "Share",
    id=id_of("shr"),
    conversation_id=id_of("conv"),
    title=nullable(string).about("The conversation's title at that time.", "Trains"),
    created_at=TIMESTAMP,
    expires_at=_EXPIRES,
)
_NEW_SHARE = json_object(
    "NewShare",
    "",
    _SHARE,
    token=string.about("The secret of the link. Only its hash is stored.", "q3Vx0b1kTnqkX0mZl5c2Jw"),
    url=string.about("The link.", "https://127.0.0.1:8443/#/shared/q3Vx0b1kTnqkX0mZl5c2Jw", format="uri"),
)
_SOURCE = json_object("SharedSource", number=1, url="https://example.com/", title=nullable(string))
_MESSAGE = json_object(
    "SharedMessage",
    role=one_of("user", "assistant"),
    content="When does it leave?",
    created_at=TIMESTAMP,
    model=nullable(string).about("Of an answer: its model, without the provider.", "assistant").optional(),
    status=one_of("complete", "stopped", "interrupted", "failed").about("Of an answer.").optional(),
    pictures=list_of(string).about("Of an answer: the ids of its pictures.").optional(),
    sources=list_of(_SOURCE).about("Of an answer: the pages that it cites as `[1]`.").optional(),
)
_SHARED = json_object(
    "SharedConversation",
    title=nullable(string).about(example="Trains"),
    created_at=TIMESTAMP,
    expires_at=_EXPIRES,
    messages=list_of(_MESSAGE),
)
_TOKEN = path_id(
    "token",
    "The end of the link.",
    "q3Vx0b1kTnqkX0mZl5c2Jw",
    Refusal("not_found", str(shares.gone()), when="The token is unknown, the link has expired or was ended."),
)
_NO_MESSAGE = Refusal("not_found", "This conversation shows no such message.", "message_id")
_DISABLED = Refusal("sharing_disabled", when="The account's group, or `[access]`, does not have `sharing`.")
_PICTURE_HEADERS = {**_SHOWN, "content-security-policy": header("A browser runs no scripts of it.", one_of("sandbox"))}
_IMAGE = Content(string.about("The picture.", format="binary"))


def may_share(group: Group | None) -> bool:
    """Return whether accounts of the group may share. Without groups in the catalog, all accounts may."""
    return group is None or group.sharing


@describes(
    "Share a conversation by link",
    answer=Answer("The share with its link, which is not shown again.", _NEW_SHARE, 201),
    errors=[
        _DISABLED,
        _NO_MESSAGE,
        NO_ROOM,
        Refusal("PAYLOAD_TOO_LARGE", param="message_id", when="The copy has more than 4,000,000 bytes."),
    ],
)
async def create_share(request: Request, caller: Caller, conversation_id: str, body: NewShare) -> object:
    state = request.state
    if not may_share(caller.group):
        raise ApiError("sharing_disabled")
    await state.db.read(conversations.TABLE.by_id, caller.id, conversation_id)
    copy = await state.db.heavy_read(shares.frozen, caller.id, conversation_id, body.message_id)
    token = base64url(os.urandom(shares.TOKEN_BYTES))
    link = (token, body.expires_days, state.clock())
    made = await state.db.write_as("alone", shares.add, caller.id, conversation_id, copy, *link)
    return {**made, "token": token, "url": f"{state.config.base_url}/#/shared/{token}"}


@describes("List the shares", answer=paged("A page of shares, without their links.", "ShareList", _SHARE))
async def list_shares(request: Request, caller: Caller) -> object:
    return await read_page(request, shares.TABLE.page, caller.id)


@describes("End a share", answer=Answer("The link has ended, and the copy is deleted."))
async def delete_share(request: Request, caller: Caller, share_id: str) -> None:
    db = request.state.db
    await db.write(shares.end, caller.id, share_id, request.state.clock())
    while await db.write_as("alone", shares.delete_share, caller.id, share_id):
        pass


async def _share_of(state: State, token: str) -> sqlite3.Row:
    """Return the share of a link. Raises ApiError `not_found`, also if its owner may not share any more."""
    share = await state.db.read(shares.by_token, token, state.clock())
    groups = state.models.catalog.groups
    if groups is not None and not may_share(groups.of(share["group_name"])):
        raise shares.gone()
    return share


@describes(
    "Read a shared conversation",
    "Needs no token of an account.",
    parameters=[_TOKEN],
    answer=Answer("The copy.", _SHARED, headers=_SHOWN),
)
async def get_shared(request: Request, token: str) -> Response:
    share = await _share_of(request.state, token)
    return reply(await request.state.db.read(shares.as_read, share), headers=_NO_INDEX)


@describes(
    "Load a picture of a share",
    parameters=[
        _TOKEN,
        path_id("picture", "The id in `pictures`.", "art_01m3250v3vn4qvxnatpwzmywwn", _TOKEN.refusal),
    ],
    answer=Answer("The picture.", contents={"image/png": _IMAGE, "image/*": _IMAGE}, headers=_PICTURE_HEADERS),
)
async def get_shared_picture(request: Request, token: str, picture: str) -> Response:
    share = await _share_of(request.state, token)
    row = await request.state.db.read(shares.picture, share, picture)
    headers = {
        **_NO_INDEX,
        "content-type": row["content_type"],
        "content-length": str(row["size"]),
        "content-security-policy": "sandbox",
        "cache-control": "private, max-age=300",
    }
    if request.scope["method"] == "HEAD":
        return Response(headers=headers)
    chunks = _chunks(request.state.db, row)
    try:
        first = await anext(chunks, b"")
    except ContentReplaced:
        raise shares.gone() from None
    return Download(request.state.drain, chunks, headers, first=first)


async def _chunks(db: Database, row: sqlite3.Row) -> AsyncGenerator[bytes, None]:
    of = (row["account_id"], row["share_id"], row["artifact_id"])
    for number in range(-(-row["size"] // CHUNK_BYTES)):
        yield await db.read(artifact_contents.shared_chunk, *of, number)


@describes(
    "Continue in a new conversation",
    "It has the messages up to `message_id`, the title, the project and the settings of the conversation.",
    answer=Answer("The new conversation.", CONVERSATION, 201),
    errors=[_NO_MESSAGE, NO_ROOM, Refusal("already_active", when="The message is an answer in progress.")],
)
async def fork_conversation(request: Request, caller: Caller, conversation_id: str, body: NewFork) -> object:
    state = request.state
    return await forks.fork(state.db, caller.id, conversation_id, body.message_id, state.clock())
