"""Saved prompts: those of an account, and those that administrators share with a group or with everyone."""

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Annotated, Any, NamedTuple

from svc import audit, quota
from svc.errors import ApiError
from svc.groups import NAME as GROUP_NAME
from svc.ids import fields_as_json, new_id
from svc.shapes import ABSENT, Absent, given, label, list_of, nullable, record, shape_of, text
from svc.tables import Table, refusals

MOST = 500  # of an account, as in schema.sql
MOST_SHARED = 100  # of a group
NAME_LENGTH, TEXT_LENGTH = 100, 8_000  # characters, as in schema.sql
_NAME = label(NAME_LENGTH).about("Unique among the prompts of the account, or of the group.")
_TEXT = text(TEXT_LENGTH, blank=False).about(
    "With `{{name}}` for each value that is asked for before the prompt is used."
)


@record("CreatePromptRequest", example={"name": "Translate", "text": "Translate into {{language}}:"})
class NewPrompt(NamedTuple):
    name: Annotated[str, _NAME]
    text: Annotated[str, _TEXT]


@record("UpdatePromptRequest", "Missing fields do not change.", example={"name": "Translation"})
class PromptChanges(NamedTuple):
    name: Annotated[str | Absent, _NAME] = ABSENT
    text: Annotated[str | Absent, _TEXT] = ABSENT


@record("ImportPromptsRequest", example={"prompts": [{"name": "Shorten", "text": "Make this shorter:"}]})
class PromptImport(NamedTuple):
    prompts: Annotated[list[NewPrompt], list_of(shape_of(NewPrompt), least=1, most=MOST)]


@record(
    "SharedPromptsRequest",
    example={"group": None, "prompts": [{"name": "Tone", "text": "Rewrite this as our handbook says:"}]},
)
class SharedPrompts(NamedTuple):
    prompts: Annotated[list[NewPrompt], list_of(shape_of(NewPrompt), most=MOST_SHARED)]
    group: Annotated[str | None, nullable(GROUP_NAME).about("A group of the catalog. Null: everyone.")] = None


class Prompt(NamedTuple):
    """A row of `prompts`; times are Unix seconds."""

    id: str
    account_id: str
    name: str
    text: str
    created_at: float
    updated_at: float

    def as_json(self) -> dict[str, Any]:
        return fields_as_json(self._asdict(), "id name text created_at updated_at")


TABLE = Table("prompts", lambda row: Prompt(**row), "prompt", "prm")


def _refusals() -> AbstractContextManager[None]:
    full = ApiError("quota_exceeded", f"There are {MOST} prompts, the maximum. Delete some first.")
    taken = ApiError("name_taken", "There is a prompt with this name. Choose another one.", param="name")
    return refusals(prompts_count=full, UNIQUE=taken)


def add_prompt(tx: sqlite3.Connection, account_id: str, new: NewPrompt, now_seconds: float) -> Prompt:
    """Store a prompt and return it. Raises ApiError `name_taken`, `quota_exceeded`."""
    quota.check_row(tx, account_id, *new)
    times = {"created_at": now_seconds, "updated_at": now_seconds}
    with _refusals():
        return TABLE.insert(tx, {"id": new_id("prm", now_seconds), "account_id": account_id, **new._asdict(), **times})


def has_prompt(conn: sqlite3.Connection, account_id: str, name: str, text: str) -> bool:
    """Return whether the account has a prompt with this name and this text."""
    query = "SELECT 1 FROM prompts WHERE account_id = ? AND name = ? AND text = ?"
    return conn.execute(query, (account_id, name, text)).fetchone() is not None


def change_prompt(
    tx: sqlite3.Connection, account_id: str, prompt_id: str, sent: PromptChanges, now_seconds: float
) -> Prompt:
    """Set the fields that were sent and return the prompt. Raises ApiError `not_found`, and what `add_prompt` does."""
    before, changes = TABLE.by_id(tx, account_id, prompt_id), given(sent)
    if not changes:
        return before
    more_bytes = sum(len(value.encode()) - len(getattr(before, name).encode()) for name, value in changes.items())
    quota.check_room(tx, account_id, more_bytes)
    with _refusals():
        return TABLE.update(tx, account_id, prompt_id, {**changes, "updated_at": now_seconds})


def import_prompts(
    tx: sqlite3.Connection, account_id: str, prompts: Sequence[NewPrompt], now_seconds: float
) -> dict[str, Any]:
    """Store all prompts but those whose name the account has. Raises ApiError `quota_exceeded`: then none is stored."""
    skipped = []
    for prompt in prompts:
        try:
            add_prompt(tx, account_id, prompt, now_seconds)
        except ApiError as error:
            if error.code != "name_taken":
                raise
            skipped.append(prompt.name)
    return {"imported": len(prompts) - len(skipped), "skipped": skipped}


def shared(conn: sqlite3.Connection, group: str | None) -> list[dict[str, Any]]:
    """Return the prompts for everyone and those of the group, "" for none, by name. With None: of all groups."""
    query = """
        SELECT nullif(group_name, '') AS "group", name, text FROM shared_prompts
        WHERE group_name IN ('', ?1) OR ?1 IS NULL ORDER BY name, group_name
    """
    return [dict(row) for row in conn.execute(query, (group,))]


def share(tx: sqlite3.Connection, actor: str, new: SharedPrompts, now_seconds: float) -> None:
    """Replace the prompts of a group, or those for everyone. Raises ApiError `name_taken`."""
    group = new.group or ""
    tx.execute("DELETE FROM shared_prompts WHERE group_name = ?", (group,))
    with _refusals():
        tx.executemany("INSERT INTO shared_prompts VALUES (?, ?, ?)", [(group, *one) for one in new.prompts])
    audit.add(tx, now_seconds, actor, "prompts.share", group or None, {"prompts": [one.name for one in new.prompts]})
