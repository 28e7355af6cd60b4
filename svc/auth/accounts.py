"""Accounts: who exists, and what they have set."""

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from svc.auth.emails import LONGEST, check_email, lookalike_key
from svc.errors import ApiError
from svc.ids import new_id, timestamp
from svc.shapes import Component, Shape, or_null, text

PASSWORD_LENGTH = (8, 1024)
MODEL_ID_LENGTH = 364  # a provider's name of 63 characters, a slash, and its own name of 300

# What neither side of an e-mail may hold: controls, what shows nothing or turns the direction, and other forms of @.
_HIDDEN = "\\u0000-\\u0020\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufe6b\\ufeff\\uff20"
_ATOM = f'[^\\s@<>()\\[\\]\\\\,;:".{_HIDDEN}]+'
_WORD = _ATOM.replace("[^", "[^\\-\\u3002")
_DOMAIN_LABEL = f"{_WORD}(?:-+{_WORD})*"
EMAIL = Shape(
    check_email,
    "an address such as ada@example.com",
    Component(
        "schemas",
        "Email",
        {
            "type": "string",
            "description": "One account per e-mail, whatever its case. Characters that show nothing or turn the direction, a "
            "second @ in compatibility form, and an address literal are refused.",
            "minLength": 3,
            "maxLength": LONGEST,
            "pattern": f"^{_ATOM}(?:\\.{_ATOM})*@{_DOMAIN_LABEL}(?:[.\\u3002]{_DOMAIN_LABEL})*$",
            "examples": ["ada@example.com"],
        },
    ),
)
_NEW_PASSWORD = text(PASSWORD_LENGTH[1], least=PASSWORD_LENGTH[0])
PASSWORD = Shape(
    _NEW_PASSWORD.check,
    _NEW_PASSWORD.expected,
    Component(
        "schemas",
        "NewPassword",
        {"description": "8 to 1024 characters.", **_NEW_PASSWORD.schema, "examples": ["correct horse battery"]},
    ),
)
_NAME = text(200, controls=False)
PERSON_NAME = Shape[str | None](
    lambda value, param: None if value is None else _NAME.check(value, param).strip() or None,
    _NAME.expected,
    Component(
        "schemas",
        "PersonName",
        or_null(
            {
                "type": "string",
                "description": "How the person is called. Blank or null is no name; control characters are refused.",
                "maxLength": 200,
                "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
                "examples": ["Ada"],
            }
        ),
    ),
)


# What is read of an account, in the order of its fields. (`RETURNING password_hash IS NOT NULL` is always 1 in SQLite 3.40.)
COLUMNS = """
    accounts.id, email, accounts.name, tier, default_model, accounts.created_at, email_verified_at, memory_enabled, password_hash
"""


class Account(NamedTuple):
    """An account as it is now, without its password hash; times are Unix seconds."""

    id: str
    email: str
    name: str | None
    tier: str
    default_model: str | None
    created_at: float
    email_verified_at: float | None
    memory_enabled: bool
    has_password: bool

    @property
    def email_verified(self) -> bool:
        return self.email_verified_at is not None

    def as_json(self, auth: str) -> dict[str, Any]:
        """As `GET /user/me` shows it; `auth` is `session` or `api_key`."""
        return {
            "id": self.id,
            "email": self.email,
            "email_verified": self.email_verified,
            "name": self.name,
            "tier": self.tier,
            "created_at": timestamp(self.created_at),
            "auth": auth,
        }


def account_of(row: sqlite3.Row) -> Account:
    """The account in a row that begins with COLUMNS."""
    return Account._make((*row[:7], bool(row[7]), row[8] is not None))


def add_account(tx: sqlite3.Connection, email: str, name: str | None, password_hash: str | None, now_seconds: float) -> Account:
    """Stores a new account. Raises ApiError `email_taken`."""
    try:
        row = tx.execute(
            f"""
            INSERT INTO accounts (id, email, email_key, name, password_hash, created_at)
            VALUES (?, ?, ?, ?, ?, ?)
            RETURNING {COLUMNS}
            """,  # noqa: S608 - our own words
            (new_id("user", now_seconds), email, lookalike_key(email), name, password_hash, now_seconds),
        ).fetchone()
    except sqlite3.IntegrityError:
        raise ApiError("email_taken", param="email") from None
    return account_of(row)


def account_by_id(conn: sqlite3.Connection, account_id: str) -> Account | None:
    row = conn.execute(f"SELECT {COLUMNS} FROM accounts WHERE id = ? AND deleting_at IS NULL", (account_id,)).fetchone()  # noqa: S608
    return None if row is None else account_of(row)


def account_by_email(conn: sqlite3.Connection, email: str) -> Account | None:
    """The account with this e-mail or one that looks like it."""
    row = conn.execute(f"SELECT {COLUMNS} FROM accounts WHERE email_key = ?", (lookalike_key(email),)).fetchone()  # noqa: S608
    return None if row is None else account_of(row)


def password_hash(conn: sqlite3.Connection, account_id: str) -> str | None:
    """The stored hash; None for an account without a password, and for none."""
    row = conn.execute("SELECT password_hash FROM accounts WHERE id = ?", (account_id,)).fetchone()
    return None if row is None else row["password_hash"]


def login_by_email(conn: sqlite3.Connection, email: str) -> tuple[Account | None, str | None]:
    """The account that an e-mail signs in to, with its password's hash; None where there is none."""
    account = account_by_email(conn, email)
    return account, None if account is None else password_hash(conn, account.id)


def all_accounts(conn: sqlite3.Connection) -> list[Account]:
    rows = conn.execute(f"SELECT {COLUMNS} FROM accounts WHERE deleting_at IS NULL ORDER BY id")  # noqa: S608
    return [account_of(row) for row in rows]


def missing_accounts(conn: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Those of the ids that no account has."""
    rows = conn.execute(
        "SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE id = value AND deleting_at IS NULL)",
        (orjson.dumps(list(ids)).decode(),),
    )
    return [row[0] for row in rows]


def update_account(tx: sqlite3.Connection, account_id: str, changes: dict[str, Any]) -> Account:
    """Set the given columns (`name`, `default_model`, `memory_enabled`).

    Raises ApiError `invalid_api_key` if the account is deleted.
    """
    for column, value in changes.items():
        tx.execute(
            f"UPDATE accounts SET {column} = ? WHERE id = ? AND deleting_at IS NULL",  # noqa: S608 - our own names
            (value, account_id),
        )
    account = account_by_id(tx, account_id)
    if account is None:
        raise ApiError("invalid_api_key")
    return account


def set_password(tx: sqlite3.Connection, account_id: str, password_hash: str) -> None:
    tx.execute("UPDATE accounts SET password_hash = ? WHERE id = ? AND deleting_at IS NULL", (password_hash, account_id))


def verify_email(tx: sqlite3.Connection, account_id: str, now_seconds: float) -> bool:
    """Mark the account's e-mail as verified, so that identities with the same e-mail may join; return False if it was before."""
    query = "UPDATE accounts SET email_verified_at = ? WHERE id = ? AND email_verified_at IS NULL AND deleting_at IS NULL"
    return tx.execute(query, (now_seconds, account_id)).rowcount == 1


def mark_deleting(tx: sqlite3.Connection, account_id: str, now_seconds: float) -> None:
    """Hide an account from all queries and free its e-mail, while its rows are being deleted."""
    tx.execute(
        """
        UPDATE accounts
        SET deleting_at = ?, email = NULL, email_key = NULL, name = NULL, password_hash = NULL, default_model = NULL
        WHERE id = ? AND deleting_at IS NULL
        """,
        (now_seconds, account_id),
    )


def accounts_being_deleted(conn: sqlite3.Connection) -> list[str]:
    return [row[0] for row in conn.execute("SELECT id FROM accounts WHERE deleting_at IS NOT NULL")]


def delete_account(tx: sqlite3.Connection, account_id: str) -> bool:
    """Deletes an account with everything personal; False if there is none."""
    return tx.execute("DELETE FROM accounts WHERE id = ?", (account_id,)).rowcount == 1
