"""Versions of replaced messages. They make a conversation a tree, of which lists, memory and search show one path.

A new version of a message begins a branch, the first message branch 0. A branch is shown up to `shown_to`: whole, or up
to the message that the next branch of the path replaces, or not at all. So another path is shown by changing branches,
not messages.
"""

import sqlite3
from typing import Any

from svc.errors import ApiError
from svc.ids import fields_as_json
from svc.tables import refusals

_WHOLE = 2**63 - 1


def current(conn: sqlite3.Connection, account_id: str, conversation_id: str) -> int:
    """Return the branch of the conversation's next message."""
    query = "SELECT branch FROM branches WHERE account_id = ? AND conversation_id = ? AND shown_to = ?"
    row = conn.execute(query, (account_id, conversation_id, _WHOLE)).fetchone()
    return row[0] if row else 0


def begin(tx: sqlite3.Connection, account_id: str, conversation_id: str, replaced_id: str, version_id: str) -> int:
    """Begin and show a branch with a new version of a message, which the caller adds; return the branch.

    Raises ApiError `not_found`, and `quota_exceeded` after 1,000 versions.
    """
    values = {"account_id": account_id, "conversation_id": conversation_id, "whole": _WHOLE}
    statement = """
        INSERT OR IGNORE INTO branches (account_id, conversation_id, branch, last, shown_to)
        SELECT account_id, conversation_id, 0, max(number), :whole
        FROM messages WHERE account_id = :account_id AND conversation_id = :conversation_id
    """
    tx.execute(statement, values)
    full = ApiError("quota_exceeded", "This conversation has 1,000 replaced messages. Begin a new one.")
    with refusals(branch_range=full):
        statement = """
            INSERT INTO branches (account_id, conversation_id, branch, parent, first_id, replaces_id, shown_to)
            SELECT account_id, conversation_id,
                (SELECT max(branch) + 1 FROM branches WHERE account_id = :account_id
                    AND conversation_id = :conversation_id),
                iif(first_id IS id, parent, branch), :version_id, iif(first_id IS id, replaces_id, id), 0
            FROM messages JOIN branches USING (account_id, conversation_id, branch)
            WHERE account_id = :account_id AND conversation_id = :conversation_id AND id = :replaced_id
            RETURNING branch
        """
        row = tx.execute(statement, {**values, "replaced_id": replaced_id, "version_id": version_id}).fetchone()
    if row is None:
        raise ApiError("not_found", "There is no such message in this conversation.")
    branch: int = row[0]
    _show(tx, account_id, conversation_id, branch)
    return branch


def show(tx: sqlite3.Connection, account_id: str, conversation_id: str, number: int, branch: int) -> None:
    """Show the path that ends in the newest message after the message `number` of `branch`, or in that message."""
    following: dict[int, int] = {}
    query = """
        SELECT branches.branch, parent, last, number FROM branches LEFT JOIN messages ON id = replaces_id
        WHERE branches.account_id = ? AND branches.conversation_id = ? ORDER BY branches.branch
    """
    for row in tx.execute(query, (account_id, conversation_id)):
        leaves_after = row["parent"] in following and (row["parent"] != branch or row["number"] > number)
        if row["branch"] == branch or leaves_after:
            following[row["branch"]] = row["last"]
    if following:
        _show(tx, account_id, conversation_id, max(following, key=following.__getitem__))


def prune(tx: sqlite3.Connection, account_id: str, conversation_id: str) -> None:
    """Remove branches whose first message was deleted, and show the newest message if its branch is gone."""
    statement = """
        DELETE FROM branches WHERE account_id = ? AND conversation_id = ? AND branch > 0
            AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.account_id = branches.account_id AND id = first_id)
    """
    tx.execute(statement, (account_id, conversation_id))
    statement = """
        UPDATE branches SET last = ifnull((
            SELECT max(number) FROM messages WHERE messages.account_id = branches.account_id
                AND messages.conversation_id = branches.conversation_id AND messages.branch = branches.branch), 0)
        WHERE account_id = ? AND conversation_id = ?
    """
    tx.execute(statement, (account_id, conversation_id))
    query = "SELECT branch, shown_to FROM branches WHERE account_id = ? AND conversation_id = ? ORDER BY last DESC"
    left = tx.execute(query, (account_id, conversation_id)).fetchall()
    if left and not any(row["shown_to"] == _WHOLE for row in left):
        _show(tx, account_id, conversation_id, left[0]["branch"])


def as_json(row: sqlite3.Row) -> dict[str, Any]:
    """Return a branch for the export: `current` is the one that is shown to its end."""
    names = "conversation_id branch parent first_id replaces_id"
    return {**fields_as_json(dict(row), names), "current": row["shown_to"] == _WHOLE}


def _show(tx: sqlite3.Connection, account_id: str, conversation_id: str, branch: int) -> None:
    values = {"account_id": account_id, "conversation_id": conversation_id, "branch": branch, "whole": _WHOLE}
    statement = """
        UPDATE branches SET shown_to = 0
        WHERE account_id = :account_id AND conversation_id = :conversation_id AND shown_to > 0
    """
    tx.execute(statement, values)
    statement = """
        WITH RECURSIVE path (place, ends) AS (
            SELECT :branch, :whole
            UNION ALL SELECT parent, number - 1
            FROM path JOIN branches ON branches.branch = place JOIN messages ON id = replaces_id
            WHERE branches.account_id = :account_id AND branches.conversation_id = :conversation_id)
        UPDATE branches SET shown_to = ends FROM path
        WHERE account_id = :account_id AND conversation_id = :conversation_id AND branch = place
    """
    tx.execute(statement, values)


def versions_of(conn: sqlite3.Connection, account_id: str, conversation_id: str) -> dict[str, list[str]]:
    """Return the ids of all versions, oldest first, of each message of the conversation that has several."""
    query = """
        SELECT first_id, replaces_id FROM branches WHERE account_id = ? AND conversation_id = ? AND branch > 0
        ORDER BY branch
    """
    versions: dict[str, list[str]] = {}
    for first_id, replaces_id in conn.execute(query, (account_id, conversation_id)):
        versions.setdefault(replaces_id, [replaces_id]).append(first_id)
    return {message_id: group for group in versions.values() for message_id in group}
