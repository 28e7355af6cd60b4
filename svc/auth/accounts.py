"""Accounts and their settings."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import orjson

from svc import quota
from svc.auth import given
from svc.auth.emails import lookalike_key
from svc.errors import ApiError, invalid_value
from svc.groups import AUTO, Groups
from svc.ids import fields_as_json, new_id
from svc.shapes import Shape, or_null, text
from svc.tables import refusals

PASSWORD_LENGTH = (8, 1024)
SEEN_SECONDS = 3600
MODEL_ID_LENGTH = 364  # a provider's name of 63 characters, a slash, and its own name of 300

_PASSWORD = text(PASSWORD_LENGTH[1], least=PASSWORD_LENGTH[0])
PASSWORD = _PASSWORD.about("8 to 1024 characters.", examples=["correct horse battery"]).named("NewPassword")
_NAME = text(200, controls=False)
_PERSON_NAME = Shape[str | None](
    lambda value, param: None if value is None else _NAME.check(value, param).strip() or None,
    _NAME.expected,
    or_null({**_NAME.schema, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$", "examples": ["Ada"]}),
)
_NAME_RULE = "The person's name. Blank or null means no name; control characters are refused."
PERSON_NAME = _PERSON_NAME.about(_NAME_RULE).named("PersonName")


TITLES = ("always", "free", "never")
# The fields of Account, in order.
_SELECT = """
    SELECT id, email, name, tier, default_model, created_at, email_verified_at, memory_enabled, instructions,
        password_hash IS NOT NULL, admin, suspended_at, last_seen_at, group_name, group_chosen, group_claimed,
        generate_titles, language
    FROM accounts WHERE deleting_at IS NULL
"""


class Account(NamedTuple):
    """An account without its password hash; times are Unix seconds."""

    id: str
    email: str
    name: str | None
    tier: str
    default_model: str | None
    created_at: float
    email_verified_at: float | None
    memory_enabled: bool
    instructions: str | None
    has_password: bool
    admin: bool
    suspended_at: float | None
    last_seen_at: float | None
    group: str | None
    group_chosen: int  # 1: by an administrator
    group_claimed: str | None
    generate_titles: str  # by which models: a word of TITLES
    language: str | None  # of svc/languages.py; None: that of each request

    @property
    def email_verified(self) -> bool:
        return self.email_verified_at is not None

    @property
    def status(self) -> str:
        return "active" if self.suspended_at is None else "suspended"

    def check_active(self) -> "Account":
        """Return the account. Raises ApiError `account_suspended`."""
        if self.suspended_at is not None:
            raise ApiError("account_suspended")
        return self

    def as_json(self, auth: str) -> dict[str, Any]:
        """Return the object of `GET /user/me`; `auth` is `session` or `api_key`."""
        stored = fields_as_json(self._asdict(), "id email name tier created_at admin group has_password")
        return {**stored, "email_verified": self.email_verified, "status": self.status, "auth": auth}


def _account(row: sqlite3.Row) -> Account:
    return Account._make((*row[:7], bool(row[7]), row[8], bool(row[9]), bool(row[10]), *row[11:]))


def _found(conn: sqlite3.Connection, condition: str, value: str) -> Account | None:
    row = conn.execute(f"{_SELECT} AND {condition} = ?", (value,)).fetchone()
    return None if row is None else _account(row)


def add_account(
    tx: sqlite3.Connection,
    email: str,
    name: str | None,
    password_hash: str | None,
    now_seconds: float,
    *,
    local: bool = False,
) -> Account:
    """Store a new account. In local posture the first one is an administrator. Raises ApiError `email_taken`."""
    account_id, taken = new_id("user", now_seconds), ApiError("email_taken", param="email")
    if _is_reserved(tx, email, account_id, now_seconds):
        raise taken
    with refusals(UNIQUE=taken):
        statement = """
            INSERT INTO accounts (id, email, email_key, name, password_hash, created_at, admin)
            VALUES (?, ?, ?, ?, ?, ?, ? AND NOT EXISTS (SELECT 1 FROM accounts WHERE deleting_at IS NULL))
        """
        tx.execute(statement, (account_id, email, lookalike_key(email), name, password_hash, now_seconds, local))
    return existing_account(tx, account_id)


def account_by_id(conn: sqlite3.Connection, account_id: str) -> Account | None:
    return _found(conn, "id", account_id)


def existing_account(conn: sqlite3.Connection, account_id: str) -> Account:
    """Return the account with this id. Raises ApiError `not_found`."""
    account = account_by_id(conn, account_id)
    if account is None:
        raise ApiError("not_found", "There is no such account.")
    return account


def account_by_email(conn: sqlite3.Connection, email: str) -> Account | None:
    """Return the account with this address, or with one that looks like it."""
    return _found(conn, "email_key", lookalike_key(email))


def password_hash(conn: sqlite3.Connection, account_id: str) -> str | None:
    row = conn.execute("SELECT password_hash FROM accounts WHERE id = ?", (account_id,)).fetchone()
    return None if row is None else row["password_hash"]


def login_by_email(conn: sqlite3.Connection, email: str) -> tuple[Account | None, str | None]:
    account = account_by_email(conn, email)
    return account, None if account is None else password_hash(conn, account.id)


def all_accounts(conn: sqlite3.Connection) -> list[Account]:
    return [_account(row) for row in conn.execute(f"{_SELECT} ORDER BY id")]


def ended_accounts(conn: sqlite3.Connection, ids: Iterable[str]) -> list[tuple[str, str]]:
    """Return those of the `ids` that cannot be used, each with the reason: `account_deleted` or `account_suspended`."""
    query = """
        SELECT value, iif(accounts.id IS NULL, 'account_deleted', 'account_suspended')
        FROM json_each(?) LEFT JOIN accounts ON accounts.id = value AND deleting_at IS NULL
        WHERE accounts.id IS NULL OR suspended_at IS NOT NULL
    """
    return [(row[0], row[1]) for row in conn.execute(query, (orjson.dumps(list(ids)).decode(),))]


def update_account(tx: sqlite3.Connection, account_id: str, changes: dict[str, Any]) -> Account:
    """Set columns and return the account. Raises ApiError `invalid_api_key` if it is deleted, `quota_exceeded`."""
    if changes.get("instructions") and (before := account_by_id(tx, account_id)):
        more_bytes = len(changes["instructions"].encode()) - len((before.instructions or "").encode())
        quota.check_room(tx, account_id, more_bytes)
    if changes:
        _set(tx, account_id, changes)
    account = account_by_id(tx, account_id)
    if account is None:
        raise ApiError("invalid_api_key")
    return account


def _set(tx: sqlite3.Connection, account_id: str, columns: dict[str, Any], only_if: str = "true", **more: Any) -> bool:
    """Set columns of an account. Return False if it is deleted, or if the SQL `only_if` (`more`) is not true."""
    assigned = ", ".join(f"{column} = :{column}" for column in columns)
    statement = f"UPDATE accounts SET {assigned} WHERE id = :id AND deleting_at IS NULL AND {only_if}"  # noqa: S608 - our names
    return tx.execute(statement, {**columns, **more, "id": account_id}).rowcount == 1


def check_admin_remains(tx: sqlite3.Connection, account_id: str, *, or_nobody: bool = False) -> None:
    """Raise ApiError `last_admin` for the only active administrator; with `or_nobody`, only if others have accounts."""
    active = "admin AND suspended_at IS NULL AND deleting_at IS NULL"
    query = f"""
        SELECT 1 FROM accounts WHERE id = ?1 AND {active}
            AND NOT EXISTS (SELECT 1 FROM accounts WHERE id <> ?1 AND {active})
            AND (NOT ?2 OR EXISTS (SELECT 1 FROM accounts WHERE id <> ?1 AND deleting_at IS NULL))
    """  # noqa: S608 - our own words
    if tx.execute(query, (account_id, or_nobody)).fetchone():
        raise ApiError("last_admin")


def mark_seen(tx: sqlite3.Connection, account_id: str, now_seconds: float) -> None:
    """Store when the account was last used, once in an hour."""
    is_due = "ifnull(last_seen_at, 0) <= :before"
    _set(tx, account_id, {"last_seen_at": now_seconds}, is_due, before=now_seconds - SEEN_SECONDS)


def replace_password(tx: sqlite3.Connection, account_id: str, before: str | None, password_hash: str) -> bool:
    """Set another password hash; return False if the account's hash is not `before` any more."""
    return _set(tx, account_id, {"password_hash": password_hash}, "password_hash IS :before", before=before)


def set_email(
    tx: sqlite3.Connection, account_id: str, email: str, verified_at: float | None, now_seconds: float
) -> None:
    """Give the account another address. Raises ApiError `email_taken`."""
    taken = ApiError("email_taken")
    if _is_reserved(tx, email, account_id, now_seconds):
        raise taken
    columns = {"email": email, "email_key": lookalike_key(email), "email_verified_at": verified_at}
    given.remember(tx, account_id, lookalike_key(email))
    with refusals(UNIQUE=taken):
        _set(tx, account_id, columns)


def is_taken(conn: sqlite3.Connection, email: str, account_id: str, now_seconds: float) -> bool:
    """Return whether another account has this address, or may get it back."""
    other = account_by_email(conn, email)
    return (other is not None and other.id != account_id) or _is_reserved(conn, email, account_id, now_seconds)


def _is_reserved(conn: sqlite3.Connection, email: str, account_id: str, now_seconds: float) -> bool:
    """Return whether another account could get this address back, by a link of svc/auth/links.py."""
    query = "SELECT 1 FROM links WHERE email_key = ? AND purpose = 'undo' AND expires_at > ? AND account_id <> ?"
    return conn.execute(query, (lookalike_key(email), now_seconds, account_id)).fetchone() is not None


def verify_email(tx: sqlite3.Connection, account_id: str, now_seconds: float) -> bool:
    """Mark the account's address as verified; return False if it was already."""
    return _set(tx, account_id, {"email_verified_at": now_seconds}, "email_verified_at IS NULL")


def set_group(tx: sqlite3.Connection, account_id: str, choice: str | None, groups: Groups | None) -> None:
    """Set the group: a name, None for no group, or AUTO for that of the verified address. Raises `invalid_value`."""
    if choice not in (None, AUTO, *(groups.by_name if groups else ())):
        raise invalid_value(f"There is no group {choice!r} in the catalog.", "group")
    _set(tx, account_id, {"group_name": None if choice == AUTO else choice, "group_chosen": choice != AUTO})
    join_group(tx, account_id, groups)


def join_group(tx: sqlite3.Connection, account_id: str, groups: Groups | None) -> Account | None:
    """Put the account into its due group. Return it."""
    account = account_by_id(tx, account_id)
    if account is None or due_group(account, groups) == account.group:
        return account
    return update_account(tx, account_id, {"group_name": due_group(account, groups)})


def due_group(account: Account, groups: Groups | None) -> str | None:
    """Return the group that an administrator chose, else that of the identity provider's claims, else that of the
    verified address.
    """
    if groups is None or account.group_chosen:
        return account.group
    if account.group_claimed in groups.by_name:
        return account.group_claimed
    return groups.matching(account.email) if account.email_verified else None


def note_sign_in(
    tx: sqlite3.Connection, account_id: str, claims: Sequence[str] | None, groups: Groups | None, now_seconds: float
) -> None:
    """Store a sign-in with an identity provider, and join the group of its claims, None if it is not asked for them."""
    columns: dict[str, Any] = {"signed_in_at": now_seconds}
    if claims is not None and groups is not None:
        columns["group_claimed"] = groups.claimed(claims)
    _set(tx, account_id, columns)
    join_group(tx, account_id, groups)


def has_signed_in_since(conn: sqlite3.Connection, account_id: str, seconds: float) -> bool:
    """Return whether the account has signed in with an identity provider since then, or never does."""
    query = "SELECT 1 FROM accounts WHERE id = ? AND signed_in_at < ?"
    return conn.execute(query, (account_id, seconds)).fetchone() is None


def groups_in_use(conn: sqlite3.Connection) -> dict[str, int]:
    query = "SELECT group_name, count(*) FROM accounts WHERE group_name IS NOT NULL AND deleting_at IS NULL GROUP BY 1"
    return dict(conn.execute(query).fetchall())


def allowance_of(conn: sqlite3.Connection, account_id: str) -> tuple[str, int] | None:
    """Return the last month with an allowance ("" if none) and its micros, or None if the account is deleted."""
    query = (
        "SELECT ifnull(allowance_month, ''), allowance_given_micros FROM accounts WHERE id = ? AND deleting_at IS NULL"
    )
    row: tuple[str, int] | None = conn.execute(query, (account_id,)).fetchone()
    return row


def set_allowance(tx: sqlite3.Connection, account_id: str, month: str, micros: int) -> None:
    """Note that the account has got its allowance of a month, such as 2026-11."""
    _set(tx, account_id, {"allowance_month": month, "allowance_given_micros": micros})


def mark_deleting(tx: sqlite3.Connection, account_id: str, now_seconds: float) -> None:
    """Hide an account from all queries and free its address, while its rows are being deleted."""
    personal = "email email_key name password_hash default_model instructions suspended_at last_seen_at group_name"
    personal += " group_claimed signed_in_at language"
    _set(tx, account_id, {**dict.fromkeys(personal.split()), "admin": False, "deleting_at": now_seconds})


def accounts_being_deleted(conn: sqlite3.Connection) -> list[str]:
    return [row[0] for row in conn.execute("SELECT id FROM accounts WHERE deleting_at IS NOT NULL")]


def delete_account(tx: sqlite3.Connection, account_id: str) -> bool:
    """Delete an account with all rows that refer to it; return False if there is none."""
    return tx.execute("DELETE FROM accounts WHERE id = ?", (account_id,)).rowcount == 1
