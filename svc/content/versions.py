"""Versions of replaced messages. They make a conversation a tree, of which lists, memory and search show one path.

A new version of a message begins a branch, the first message branch 0. A branch is shown up to `shown_to`: whole, or up to the
message that the next branch of the path replaces, or not at all. So another path is shown by changing branches, not messages.
"""

import sqlite3
from collections.abc import Iterable

import orjson

from svc.errors import ApiError

_WHOLE = 2**63 - 1


def current(conn: sqlite3.Connection, account_id: str, conversation_id: str) -> int:
    """Return the branch of the conversation's next message."""
    row = conn.execute(
        "SELECT branch FROM branches WHERE account_id = ? AND conversation_id = ? AND shown_to = ?",
        (account_id, conversation_id, _WHOLE),
    ).fetchone()
    return row[0] if row else 0


def begin(tx: sqlite3.Connection, account_id: str, conversation_id: str, replaced: int) -> int:
    """Begin and show a branch for a new version of the message with the number `replaced`, and return it.

    The caller adds the version in the same transaction. Raises ApiError `quota_exceeded` after 1,000 versions.
    """
    values = {"account_id": account_id, "conversation_id": conversation_id, "replaced": replaced, "whole": _WHOLE}
    tx.execute(
        """
        INSERT OR IGNORE INTO branches (account_id, conversation_id, branch, first, last, shown_to)
        SELECT account_id, conversation_id, 0, 0, max(number), :whole
        FROM messages WHERE account_id = :account_id AND conversation_id = :conversation_id
        """,
        values,
    )
    try:
        row = tx.execute(
            """
            INSERT INTO branches (account_id, conversation_id, branch, parent, replaces, shown_to)
            SELECT account_id, conversation_id,
                (SELECT max(branch) + 1 FROM branches WHERE account_id = :account_id AND conversation_id = :conversation_id),
                iif(first = number, parent, branch), iif(first = number, replaces, number), 0
            FROM messages JOIN branches USING (account_id, conversation_id, branch)
            WHERE account_id = :account_id AND conversation_id = :conversation_id AND number = :replaced
            RETURNING branch
            """,
            values,
        ).fetchone()
    except sqlite3.IntegrityError:
        reason = "This conversation has 1,000 replaced messages. Begin a new conversation."
        raise ApiError("quota_exceeded", reason, param="x-service-replaces") from None
    _show(tx, account_id, conversation_id, row["branch"])
    branch: int = row["branch"]
    return branch


def show(tx: sqlite3.Connection, account_id: str, conversation_id: str, number: int, branch: int) -> None:
    """Show the path that ends in the newest message after the message `number` of `branch`, or in that message."""
    following: dict[int, int] = {}
    for row in tx.execute(
        "SELECT branch, parent, replaces, last FROM branches WHERE account_id = ? AND conversation_id = ? ORDER BY branch",
        (account_id, conversation_id),
    ):
        leaves_after = row["parent"] in following and (row["parent"] != branch or row["replaces"] > number)
        if row["branch"] == branch or leaves_after:
            following[row["branch"]] = row["last"]
    if following:
        _show(tx, account_id, conversation_id, max(following, key=following.__getitem__))


def _show(tx: sqlite3.Connection, account_id: str, conversation_id: str, branch: int) -> None:
    values = {"account_id": account_id, "conversation_id": conversation_id, "branch": branch, "whole": _WHOLE}
    tx.execute(
        "UPDATE branches SET shown_to = 0 WHERE account_id = :account_id AND conversation_id = :conversation_id AND shown_to > 0",
        values,
    )
    tx.execute(
        """
        WITH RECURSIVE path (place, ends) AS (
            SELECT :branch, :whole
            UNION ALL SELECT parent, replaces - 1 FROM path JOIN branches ON branch = place
            WHERE account_id = :account_id AND conversation_id = :conversation_id AND parent IS NOT NULL)
        UPDATE branches SET shown_to = ends FROM path
        WHERE account_id = :account_id AND conversation_id = :conversation_id AND branch = place
        """,
        values,
    )


def versions_of(conn: sqlite3.Connection, account_id: str, conversation_id: str, numbers: Iterable[int]) -> dict[int, list[str]]:
    """Return the ids of all versions, oldest first, of those messages among `numbers` that have several."""
    versions: dict[int, list[int]] = {}
    for first, replaces in conn.execute(
        "SELECT first, replaces FROM branches WHERE account_id = ? AND conversation_id = ? AND branch > 0 ORDER BY branch",
        (account_id, conversation_id),
    ):
        versions.setdefault(replaces, [replaces]).append(first)
    groups = {number: group for group in versions.values() for number in group}
    wanted = {number: groups[number] for number in numbers if number in groups}
    ids = dict(
        conn.execute(
            "SELECT number, id FROM messages WHERE account_id = ? AND number IN (SELECT value FROM json_each(?))",
            (account_id, orjson.dumps([number for group in wanted.values() for number in group]).decode()),
        ).fetchall()
        if wanted
        else ()
    )
    return {number: [ids[version] for version in group] for number, group in wanted.items()}
