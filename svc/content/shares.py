"""Shared conversations: frozen copies that anybody reads who has the link, and their deletion in slices.

frozen -> the questions and answers up to a message, without data of the account -> add: one transaction, with the
pictures of the answers -> the token of the link, of which only the hash is stored -> by_token
"""

import hashlib
import re
import sqlite3
from functools import partial
from typing import Annotated, Any, NamedTuple

import orjson

from svc import audit, quota
from svc.content import answers, history
from svc.content.history import Message
from svc.errors import ApiError
from svc.ids import fields_as_json, new_id, timestamp
from svc.shapes import ABSENT, Absent, integer, nullable, record, string
from svc.tables import Table, delete_found, json_of, refusals

TOKEN_BYTES = 16
_MOST_BYTES = 4_000_000
_MOST_PICTURES = 100
_DAY_SECONDS = 24 * 3600
_PICTURE = re.compile(r"\]\(/artifacts/(art_\w+)/content\)")
_COLUMNS = "id conversation_id title created_at expires_at"
TABLE = Table("shares", json_of(_COLUMNS), "share", "shr", listed=_COLUMNS.replace(" ", ", "), texts=("messages",))
_DAYS = nullable(integer(1, 365)).about("After so many days the link ends. Missing: 7 days. Null: it never ends.", 7)


@record("CreateShareRequest", example={"expires_days": 7})
class NewShare(NamedTuple):
    expires_days: Annotated[int | Absent | None, _DAYS] = ABSENT
    message_id: Annotated[
        str | None, nullable(string).about("The last message of the copy. Null: the newest one.", None)
    ] = None


class Frozen(NamedTuple):
    """The messages of a copy, as JSON, and the ids of the pictures of its answers."""

    messages: str
    picture_ids: list[str]


def frozen(conn: sqlite3.Connection, account_id: str, conversation_id: str, message_id: str | None) -> Frozen:
    """Return a copy of the current branch up to a message, without instructions and answers in progress.

    It has no memory passages, reasoning, results of tools, passages of files, or names of own model servers. Raises
    ApiError `not_found` for the message, and `PAYLOAD_TOO_LARGE`.
    """
    copy: list[dict[str, Any]] = []
    last, number, size = history.last_of(conn, account_id, conversation_id, message_id), 0, 0
    while number < last and size <= _MOST_BYTES:
        messages = history.messages_after(conn, account_id, conversation_id, number, current=True)
        number, size = messages[-1].number, size + sum(len(message.content.encode()) for message in messages)
        shown = [one for one in messages if one.number <= last and one.role != "system"]
        copy += [_shared(conn, one) for one in shown if one.status != history.IN_PROGRESS]
    made = [name for message in copy for name in message.get("pictures", ())]
    pictures = [row["id"] for row in _pictures(conn, account_id, made)]
    for message in copy:
        if "pictures" in message:
            message["pictures"] = [name for name in message["pictures"] if name in pictures]
    text = orjson.dumps(copy)
    if len(text) > _MOST_BYTES:
        refusal = f"A share may have {_MOST_BYTES:,} bytes. Share the conversation up to an earlier message."
        raise ApiError("PAYLOAD_TOO_LARGE", refusal, param="message_id")
    return Frozen(text.decode(), pictures)


def _pictures(conn: sqlite3.Connection, account_id: str, ids: list[str]) -> list[sqlite3.Row]:
    query = """
        SELECT id, content_id, content_type, size FROM artifacts
        WHERE account_id = ? AND id IN (SELECT value FROM json_each(?))
            AND content_type IN ('image/png', 'image/jpeg', 'image/webp', 'image/gif') LIMIT ?
    """
    return conn.execute(query, (account_id, orjson.dumps(ids).decode(), _MOST_PICTURES)).fetchall()


def _shared(conn: sqlite3.Connection, message: Message) -> dict[str, Any]:
    found = {"role": message.role, "content": message.content, "created_at": timestamp(message.created_at)}
    if message.role != "assistant":
        return found
    answer = answers.by_message(conn, message.account_id, [message.id]).get(message.id)
    results = [step.get("tool_result") or {} for step in answer["steps"]] if answer else []
    made = [result["result"].get("id") for result in results if isinstance(result.get("result"), dict)]
    pictures = [one for one in made if isinstance(one, str) and one.startswith("art_")]
    sources = [
        {name: source.get(name) for name in ("number", "url", "title")}
        for source in (answer["sources"] if answer else ())
        if source["kind"] == "web" and f"[{source['number']}]" in message.content
    ]
    return {
        **found,
        "model": message.model and message.model.rpartition("/")[2],
        "status": message.status,
        "pictures": list(dict.fromkeys([*pictures, *_PICTURE.findall(message.content)])),
        "sources": sources,
    }


def add(
    tx: sqlite3.Connection,
    account_id: str,
    conversation_id: str,
    copy: Frozen,
    token: str,
    expires_days: int | Absent | None,
    now_seconds: float,
) -> dict[str, Any]:
    """Store a share and return it. Raises ApiError `not_found` without the conversation, and `quota_exceeded`."""
    query = "SELECT title FROM conversations WHERE account_id = ? AND id = ?"
    conversation = tx.execute(query, (account_id, conversation_id)).fetchone()
    if conversation is None:
        raise ApiError("not_found", "There is no such conversation.")
    pictures = _pictures(tx, account_id, copy.picture_ids)
    size = sum(picture["size"] + quota.ROW_BYTES for picture in pictures)
    quota.check_room(tx, account_id, size + quota.ROW_BYTES + len(copy.messages.encode()))
    share_id, days = new_id("shr", now_seconds), 7 if expires_days is ABSENT else expires_days
    columns = {
        "id": share_id,
        "account_id": account_id,
        "conversation_id": conversation_id,
        "token_hash": _hash(token),
        "title": conversation["title"],
        "messages": copy.messages,
        "created_at": now_seconds,
        "expires_at": None if days is None else now_seconds + days * _DAY_SECONDS,
    }
    with refusals(shares_count=ApiError("quota_exceeded", "This account has 1,000 shares. Delete some first.")):
        share = TABLE.insert(tx, columns)
    statement = """
        INSERT INTO share_pictures (account_id, share_id, artifact_id, content_id, content_type, size)
        VALUES (?, ?, ?, ?, ?, ?)
    """
    tx.executemany(statement, ((account_id, share_id, *picture) for picture in pictures))
    audit.add(tx, now_seconds, account_id, "share.add", account_id, {"id": share_id, "expires_days": days})
    return share


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def by_token(conn: sqlite3.Connection, token: str, now_seconds: float) -> sqlite3.Row:
    """Return the share of a link, without messages. Raises ApiError `not_found`, also for expired ones."""
    query = """
        SELECT shares.id, account_id, title, shares.created_at, expires_at, group_name
        FROM shares JOIN accounts ON accounts.id = account_id
        WHERE token_hash = ? AND (expires_at IS NULL OR expires_at > ?) AND deleting_at IS NULL AND suspended_at IS NULL
    """
    row: sqlite3.Row | None = conn.execute(query, (_hash(token), now_seconds)).fetchone()
    if row is None:
        raise gone()
    return row


def gone() -> ApiError:
    return ApiError("not_found", "There is no such share. Its link may have expired, or its owner has ended it.")


def as_read(conn: sqlite3.Connection, share: sqlite3.Row) -> dict[str, Any]:
    """Return what everybody may read of a share. Raises ApiError `not_found` if it was just deleted."""
    query = "SELECT messages FROM shares WHERE account_id = ? AND id = ?"
    row = conn.execute(query, (share["account_id"], share["id"])).fetchone()
    if row is None:
        raise gone()
    return {**fields_as_json(dict(share), "title created_at expires_at"), "messages": orjson.Fragment(row["messages"])}


def picture(conn: sqlite3.Connection, share: sqlite3.Row, artifact_id: str) -> sqlite3.Row:
    """Return a picture of a share. Raises ApiError `not_found`."""
    query = "SELECT * FROM share_pictures WHERE account_id = ? AND share_id = ? AND artifact_id = ?"
    row: sqlite3.Row | None = conn.execute(query, (share["account_id"], share["id"], artifact_id)).fetchone()
    if row is None:
        raise ApiError("not_found", "This share has no such picture.")
    return row


def end(tx: sqlite3.Connection, account_id: str, share_id: str, now_seconds: float) -> None:
    """End the link of a share, before its deletion. Raises ApiError `not_found`."""
    TABLE.update(tx, account_id, share_id, {"expires_at": 0})
    audit.add(tx, now_seconds, account_id, "share.delete", account_id, {"id": share_id})


_OF_ACCOUNT = "SELECT account_id, number FROM shares WHERE account_id = ?"
delete_some = partial(delete_found, f"{_OF_ACCOUNT} LIMIT 1", TABLE.delete_row)
delete_of_conversation = partial(delete_found, f"{_OF_ACCOUNT} AND conversation_id = ? LIMIT 1", TABLE.delete_row)
delete_share = partial(delete_found, f"{_OF_ACCOUNT} AND id = ? LIMIT 1", TABLE.delete_row)
_EXPIRED = "SELECT account_id, number FROM shares WHERE expires_at <= ? LIMIT 1"
delete_expired = partial(delete_found, _EXPIRED, TABLE.delete_row)
