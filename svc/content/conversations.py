"""Conversations store the chats of sessions. They belong to projects and are found by words of titles and messages."""

import sqlite3
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

import orjson

from svc import quota
from svc.content import branches, history, idempotency, shares
from svc.content.word_runs import CHUNKS, TITLES
from svc.content.words import indexed_words
from svc.errors import ApiError
from svc.ids import fields_as_json, new_id
from svc.shapes import (
    ABSENT,
    CONTROL_CHARACTERS,
    Absent,
    boolean,
    integer,
    label,
    list_of,
    nullable,
    number,
    record,
    shape_of,
    string,
    text,
)
from svc.tables import Table, delete_found, refusals, storable

TITLE_LENGTH = 200
_MADE_TITLE_LENGTH = 80
TEMPERATURE = nullable(number(0, 2)).about("Of session chats whose request has none. Null: the model's own.")
MAX_OUTPUT_TOKENS = nullable(integer(1, 2**31 - 1)).about(
    "The limit of session chats whose request has none. Null: the model's own."
)
_CURRENT = string.about(
    "A message of the conversation. Its branch is shown, up to the newest message that follows it. Ignored in a new "
    "conversation."
)
ALWAYS_ALLOW = list_of(text(64, least=1), most=64).about(
    "The tools that run in this conversation without a question to the person.", []
)
ARCHIVED = boolean.about(
    "Whether it is out of the list. Search and memory find it, and a question or a message takes it back.", False
)
_TITLE = nullable(label(TITLE_LENGTH)).about(
    "Not blank, without control characters. Null: taken from the first message."
)


SUMMARY_LENGTH = 20_000


@record("EditedSummary", example={"text": "They looked for a train to Zürich."})
class EditedSummary(NamedTuple):
    text: Annotated[str, text(SUMMARY_LENGTH, least=1, blank=False)]


_SUMMARY = nullable(shape_of(EditedSummary)).about(
    "The new text of the summary, which there must be; null removes it. Ignored in a new conversation."
)


@record("ConversationRequest", "Missing fields are null or false, or do not change.", example={"title": "Trains"})
class ConversationFields(NamedTuple):
    title: Annotated[str | Absent | None, _TITLE] = ABSENT
    project_id: Annotated[
        str | Absent | None, nullable(string).about("The project that it belongs to; null means none.")
    ] = ABSENT
    pinned: Annotated[bool | Absent, boolean.about("Whether it comes before all that are not pinned.")] = ABSENT
    archived: Annotated[bool | Absent, ARCHIVED] = ABSENT
    temperature: Annotated[float | Absent | None, TEMPERATURE] = ABSENT
    max_output_tokens: Annotated[int | Absent | None, MAX_OUTPUT_TOKENS] = ABSENT
    current_message_id: Annotated[str | Absent, _CURRENT] = ABSENT
    always_allow: Annotated[list[str] | Absent, ALWAYS_ALLOW] = ABSENT
    summary: Annotated[EditedSummary | Absent | None, _SUMMARY] = ABSENT


class Conversation(NamedTuple):
    """A row of `conversations`; times are Unix seconds."""

    number: int
    id: str
    account_id: str
    project_id: str | None
    title: str | None
    title_version: int
    pinned: bool
    temperature: float | None
    max_output_tokens: int | None
    created_at: float
    updated_at: float
    answering: bool
    always_allow: str  # a list of names, in JSON
    archived: bool
    summary: str | None = None  # of the messages that are no longer sent, up to the one with the id `summary_up_to_id`
    summary_up_to_id: str | None = None

    @property
    def title_place(self) -> int:
        return self.number * CHUNKS + self.title_version

    def as_json(self) -> dict[str, Any]:
        names = "id title project_id temperature max_output_tokens created_at updated_at"
        return {
            **fields_as_json(self._asdict(), names),
            "pinned": bool(self.pinned),
            "archived": bool(self.archived),
            "answering": bool(self.answering),
            "always_allow": orjson.loads(self.always_allow),
            "summary": self.summary and {"text": self.summary, "up_to_message_id": self.summary_up_to_id},
        }

    def chat_fields(self) -> dict[str, Any]:
        """Return the fields of a chat request that has none of them."""
        fields = {"temperature": self.temperature, "max_tokens": self.max_output_tokens}
        return {name: value for name, value in fields.items() if value is not None}


# Pinned ones, then the last used first.
TABLE = Table(
    "conversations",
    lambda row: Conversation(**row),
    "conversation",
    "conv",
    order=("pinned", "updated_at", "number"),
    places="deleted_conversations",
)


def title_of(said: str) -> str | None:
    """Return a title out of the beginning of a first message, or None if it is blank."""
    line = " ".join(CONTROL_CHARACTERS.sub("", " ".join(said[: TITLE_LENGTH * 10].split())).split())
    if len(line) > _MADE_TITLE_LENGTH:
        line = line[: _MADE_TITLE_LENGTH - 1].rstrip() + "…"
    return line or None


def add_conversation(
    tx: sqlite3.Connection, account_id: str, now_seconds: float, conversation_id: str | None = None, **fields: Any
) -> Conversation:
    """Store a conversation with checked `fields`, also times. With a `conversation_id`, the caller has reserved room.

    Raises ApiError `not_found` for the project, and `quota_exceeded`.
    """
    if conversation_id is None:
        quota.check_row(tx, account_id, fields.get("title"))
    columns = {"id": conversation_id or new_id("conv", now_seconds), "account_id": account_id, **_columns(fields)}
    with refusals(fields.get("project_id")):
        times = {"created_at": now_seconds, "updated_at": now_seconds}
        conversation = TABLE.insert(tx, {**times, **columns})
    _add_title(tx, conversation)
    return conversation


def _columns(fields: Mapping[str, Any]) -> dict[str, Any]:
    columns = {name: value for name, value in fields.items() if name != "current_message_id"}
    if "always_allow" in columns:
        columns["always_allow"] = orjson.dumps(sorted(set(columns["always_allow"]))).decode()
    if "summary" in columns:
        edited = columns["summary"]
        columns |= {"summary": edited.text} if edited else {"summary": None, "summary_up_to_id": None}
    return columns


def change_conversation(
    tx: sqlite3.Connection, account_id: str, conversation_id: str, changes: Mapping[str, Any], now_seconds: float
) -> Conversation:
    """Set the checked fields and return the conversation. Only a new title or project counts as use.

    `current_message_id` shows the branch of that message. Raises ApiError `not_found`, and `already_active` if another
    branch cannot be shown during an answer.
    """
    before = TABLE.by_id(tx, account_id, conversation_id)
    if not changes:
        return before
    if "current_message_id" in changes:
        shown_id, param = changes["current_message_id"], "current_message_id"
        current = history.message_by_id(tx, account_id, conversation_id, shown_id, param)
        if before.answering:
            raise history.already_answering()
        branches.show(tx, account_id, conversation_id, current.number, current.branch)
    columns = _columns(changes)
    if summary := columns.get("summary"):
        if before.summary is None:
            raise ApiError("not_found", "This conversation has no summary yet.", param="summary")
        quota.check_room(tx, account_id, len(summary.encode()) - len(before.summary.encode()))
    if not columns.keys().isdisjoint(("title", "project_id")):
        columns["updated_at"] = now_seconds
    renamed = columns.get("title", before.title) != before.title
    columns["title_version"] = (before.title_version + renamed) % CHUNKS
    with refusals(columns.get("project_id")):
        after = TABLE.update(tx, account_id, conversation_id, columns)
    if renamed:
        _remove_title(tx, before)
        _add_title(tx, after)
    return after


def set_summary(tx: sqlite3.Connection, account_id: str, conversation_id: str, summary: str, up_to: str) -> None:
    """Set the summary of the messages up to `up_to`. That is no use of it. Raises ApiError `not_found`."""
    columns = {"summary": storable(summary, SUMMARY_LENGTH), "summary_up_to_id": up_to}
    TABLE.update(tx, account_id, conversation_id, columns)


def remove_lost_summary(tx: sqlite3.Connection, account_id: str, conversation_id: str) -> None:
    """Remove a summary whose last message was deleted."""
    statement = """
        UPDATE conversations SET summary = NULL, summary_up_to_id = NULL WHERE account_id = ?1 AND id = ?2
            AND NOT EXISTS (SELECT 1 FROM messages WHERE account_id = ?1 AND id = summary_up_to_id)
    """
    tx.execute(statement, (account_id, conversation_id))


def add_message(
    tx: sqlite3.Connection, account_id: str, conversation_id: str, *, role: str, content: str, now_seconds: float
) -> history.Message:
    """Add a message, and a title if there is none. Raises ApiError `not_found` and `quota_exceeded`."""
    title = note_use(tx, account_id, conversation_id, content if role != "system" else "", now_seconds)
    quota.check_row(tx, account_id, title, content)
    return history.add_message(
        tx, account_id, conversation_id=conversation_id, role=role, content=content, now_seconds=now_seconds
    )


def note_use(
    tx: sqlite3.Connection, account_id: str, conversation_id: str, said: str, now_seconds: float, *, ends: bool = False
) -> str | None:
    """Store the time of the last use, and a title out of `said` if there is none; return a new title.

    The use takes the conversation out of the archive, unless it is the end of an answer.
    """
    before = TABLE.by_id(tx, account_id, conversation_id)
    title = title_of(said) if before.title is None else None
    columns = {"title": title or before.title, "updated_at": now_seconds, "archived": before.archived and ends}
    after = TABLE.update(tx, account_id, before.id, columns)
    if title is not None:
        _add_title(tx, after)
    return title


def replace_title(
    tx: sqlite3.Connection, account_id: str, conversation_id: str, before: str | None, title: str
) -> None:
    """Set a title in place of `before`, unless a person has changed it. Raises ApiError `not_found`, `quota_exceeded`.

    This is no use of the conversation.
    """
    conversation = TABLE.by_id(tx, account_id, conversation_id)
    if conversation.title != before or title == before:
        return
    quota.check_room(tx, account_id, len(title.encode()) - len((before or "").encode()))
    columns = {"title": title, "title_version": (conversation.title_version + 1) % CHUNKS}
    _remove_title(tx, conversation)
    _add_title(tx, TABLE.update(tx, account_id, conversation_id, columns))


def delete_conversation(tx: sqlite3.Connection, account_id: str, conversation_id: str) -> bool:
    """Delete shares, messages and kept answers for 5 ms, then the conversation; return whether there is more.

    Raises ApiError `not_found`.
    """
    conversation = TABLE.by_id(tx, account_id, conversation_id)
    if shares.delete_of_conversation(tx, account_id, conversation_id):
        return True
    if history.delete_some(tx, account_id, conversation_id=conversation_id):
        return True
    if idempotency.forget_some(tx, account_id, conversation_id):
        return True
    _remove_title(tx, conversation)
    TABLE.delete(tx, account_id, conversation_id)
    return False


_OLD = "SELECT account_id, id FROM conversations WHERE updated_at < ? AND NOT answering ORDER BY updated_at LIMIT 1"
delete_old = partial(delete_found, _OLD, delete_conversation)


def _add_title(tx: sqlite3.Connection, conversation: Conversation) -> None:
    if conversation.title is not None:
        TITLES.add(tx, conversation.account_id, conversation.title_place, indexed_words(conversation.title))


def _remove_title(tx: sqlite3.Connection, conversation: Conversation) -> None:
    if conversation.title is not None:
        place = conversation.title_place
        TITLES.remove(tx, conversation.account_id, place, place + 1, len(conversation.title))
