"""Projects: instructions and a cap on planner steps, under which conversations, runs and artifacts are filed (contract 8)."""

import sqlite3
import unicodedata
from collections.abc import Mapping
from typing import Any

from svc.db import Page, page
from svc.errors import ApiError
from svc.ids import new_id, timestamp

NAME_LENGTH = 200
INSTRUCTIONS_LENGTH = 100_000
MOST_STEPS = 20


def check_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a project that `body` has, checked. Raises ApiError `missing_field` or `invalid_value`."""
    checks = {"name": _check_name, "instructions": _check_instructions, "max_planner_steps": _check_steps}
    return {field: check(body[field]) for field, check in checks.items() if field in body}


def _check_name(value: Any) -> str:
    if value is None:
        raise ApiError("missing_field", "name is required: what the project is called.", param="name")
    if not isinstance(value, str) or not value.strip() or len(value) > NAME_LENGTH or _has_controls(value):
        raise ApiError(
            "invalid_value",
            f"name must be a string of 1 to {NAME_LENGTH} characters, not blank, without control characters.",
            param="name",
        )
    return value


def _has_controls(text: str) -> bool:
    return any(unicodedata.category(character) in ("Cc", "Cs") for character in text)


def _check_instructions(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > INSTRUCTIONS_LENGTH:
        raise ApiError(
            "invalid_value", f"instructions must be a string of at most {INSTRUCTIONS_LENGTH} characters.", param="instructions"
        )
    return value


def _check_steps(value: Any) -> int | None:
    if value is not None and (type(value) is not int or not 1 <= value <= MOST_STEPS):  # a bool is an int
        raise ApiError(
            "invalid_value",
            f"max_planner_steps must be a whole number from 1 to {MOST_STEPS}, or null.",
            param="max_planner_steps",
        )
    return value


def check_project_id(value: Any) -> str | None:
    """`value` as a reference to a project, None for none. Raises ApiError `invalid_value`; whether it exists is not looked up."""
    if value is not None and not isinstance(value, str):
        raise ApiError("invalid_value", "project_id must be the id of a project, or null.", param="project_id")
    return value


def shown(row: Mapping[str, Any] | sqlite3.Row) -> dict[str, Any]:
    """A project's row as the API shows it."""
    return {
        "id": row["id"],
        "name": row["name"],
        "instructions": row["instructions"],
        "max_planner_steps": row["max_planner_steps"],
        "created_at": timestamp(row["created_at"]),
        "updated_at": timestamp(row["updated_at"]),
    }


def add_project(tx: sqlite3.Connection, account_id: str, fields: Mapping[str, Any], now_seconds: float) -> sqlite3.Row:
    """Stores a project out of checked `fields` and returns its row. Raises ApiError `invalid_api_key` if the account is gone."""
    try:
        row: sqlite3.Row = tx.execute(
            """
            INSERT INTO projects (id, account_id, name, instructions, max_planner_steps, created_at, updated_at)
            VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING *
            """,
            (
                new_id("proj", now_seconds),
                account_id,
                fields["name"],
                fields.get("instructions", ""),
                fields.get("max_planner_steps"),
                now_seconds,
                now_seconds,
            ),
        ).fetchone()
    except sqlite3.IntegrityError:
        raise ApiError("invalid_api_key") from None
    return row


def project_by_id(conn: sqlite3.Connection, account_id: str, project_id: str, param: str | None = None) -> sqlite3.Row:
    """One project of the account. Raises ApiError `not_found`; `param` names the field of the request that referred to it."""
    row: sqlite3.Row | None = conn.execute(
        "SELECT * FROM projects WHERE account_id = ? AND id = ?", (account_id, project_id)
    ).fetchone()
    if row is None:
        raise ApiError("not_found", "There is no such project.", param=param)
    return row


def projects_page(conn: sqlite3.Connection, account_id: str, limit: int, after: str | None) -> Page[sqlite3.Row]:
    """A page of the account's projects, as svc/db.py's `page`."""
    return page(conn, "projects", account_id, limit, after)


def change_project(
    tx: sqlite3.Connection, account_id: str, project_id: str, changes: Mapping[str, Any], now_seconds: float
) -> sqlite3.Row:
    """Sets checked fields and returns the row. Raises ApiError `not_found`."""
    row = project_by_id(tx, account_id, project_id)
    if not changes:
        return row
    tx.execute(
        """
        UPDATE projects SET name = :name, instructions = :instructions, max_planner_steps = :max_planner_steps, updated_at = :now
        WHERE account_id = :account_id AND id = :id
        """,
        {**dict(row), **changes, "now": now_seconds},
    )
    return project_by_id(tx, account_id, project_id)


def delete_project(tx: sqlite3.Connection, account_id: str, project_id: str) -> None:
    """Deletes a project; what was filed under it stays, without a project. Raises ApiError `not_found`."""
    if tx.execute("DELETE FROM projects WHERE account_id = ? AND id = ?", (account_id, project_id)).rowcount == 0:
        raise ApiError("not_found", "There is no such project.")
