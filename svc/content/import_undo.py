"""The undo of an import: everything that it has made is deleted, and the settings are restored."""

import contextlib
import sqlite3
import time
from typing import Any

import orjson

from svc.content import artifacts, branches, conversations, history, imports, project_files, projects, prompts
from svc.content.imports import Import
from svc.errors import ApiError
from svc.tables import Table

_UNDO_SECONDS = 24 * 3600
_SOME_SECONDS = 0.005
_TABLES: dict[str, Table[Any]] = {"artifact": artifacts.TABLE, "project": projects.TABLE, "prompt": prompts.TABLE}


def check_undo(conn: sqlite3.Connection, account_id: str, import_id: str, now_seconds: float) -> Import:
    """Return an import that can be undone. Raises ApiError `not_found`, and `already_ended` after 24 hours."""
    found = imports.TABLE.by_id(conn, account_id, import_id)
    if now_seconds - found.created_at > _UNDO_SECONDS and found.status != "undone":
        raise ApiError("already_ended", "An import can be undone for 24 hours. Delete its conversations one by one.")
    return found


def keep_settings(tx: sqlite3.Connection, account_id: str, import_id: str, settings: dict[str, Any]) -> None:
    """Keep the settings that an import replaces, so that undo can restore them."""
    imports.change(tx, account_id, import_id, {"settings": orjson.dumps(settings).decode()})


def end_undo(tx: sqlite3.Connection, account_id: str, import_id: str) -> dict[str, Any]:
    """Note that an import is undone, and return the settings to restore."""
    before = imports.TABLE.by_id(tx, account_id, import_id).settings
    imports.change(tx, account_id, import_id, {"status": "undone", "settings": None})
    settings: dict[str, Any] = orjson.loads(before) if before else {}
    return settings


def undo_some(tx: sqlite3.Connection, account_id: str, import_id: str) -> tuple[bool, set[str]]:
    """Delete some of what was imported, for 5 ms. Return whether there may be more, and the conversations that changed.

    A conversation that an earlier import has made ends again where it ended then.
    """
    ends, changed, more = time.monotonic() + _SOME_SECONDS, set[str](), True
    while more and time.monotonic() < ends:
        more, conversation_id = _undo_one(tx, account_id, import_id)
        changed.add(conversation_id)
    return more, changed


def _undo_one(tx: sqlite3.Connection, account_id: str, import_id: str) -> tuple[bool, str]:
    for kind in ("conversation", "message", "project_file", "artifact", "project", "prompt"):
        if item := imports.next_item(tx, account_id, import_id, kind):
            break
    else:
        return False, ""
    item_id, conversation_id = item
    if kind == "conversation":
        conversations.delete_conversation(tx, account_id, item_id)
        return True, item_id
    if kind == "message":
        first = imports.first_message(tx, account_id, import_id, conversation_id)
        history.delete_from(tx, account_id, conversation_id, first)
        branches.prune(tx, account_id, conversation_id)
        conversations.remove_lost_summary(tx, account_id, conversation_id)
        return True, conversation_id
    if kind == "project_file":
        with contextlib.suppress(ApiError):  # it was removed
            project_files.remove_file(tx, account_id, conversation_id, item_id)
        imports.forget_item(tx, account_id, kind, item_id, conversation_id)
        return True, ""
    with contextlib.suppress(ApiError):  # it was deleted
        _TABLES[kind].delete(tx, account_id, item_id)
    imports.forget_item(tx, account_id, kind, item_id)
    return True, ""
