"""Accounts in the database: one for each address and all similar ones, and no password hash in an Account."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.auth import accounts
from svc.errors import ApiError
from tests.support.cases import each

NOW = 1_790_000_000.0


def test_account_object_has_no_password_hash(conn: sqlite3.Connection) -> None:
    account = accounts.add_account(conn, "ada@example.com", "Ada", "$argon2id$secret", NOW)
    assert account == accounts.account_by_id(conn, account.id) and account.has_password
    assert "secret" not in repr(account) and "secret" not in str(account.as_json("session"))
    assert accounts.password_hash(conn, account.id) == "$argon2id$secret"
    with pytest.raises(AttributeError):
        account.tier = "pro"  # type: ignore[misc]


@each(
    ("first", "second"),
    [
        ("ada@example.com", "ADA@EXAMPLE.COM"),
        ("straße@example.com", "STRASSE@example.com"),
        ("kate@example.com", "\u212aate@example.com"),
        ("ﬁona@example.com", "fiona@example.com"),
    ],
)
def test_similar_address_makes_no_second_account(conn: sqlite3.Connection, first: str, second: str) -> None:
    account = accounts.add_account(conn, first, None, None, NOW)
    with pytest.raises(ApiError) as refused:
        accounts.add_account(conn, second, None, None, NOW)
    assert refused.value.code == "email_taken" and "reset the password" in str(refused.value)
    assert accounts.account_by_email(conn, second) == account


def test_verification_time_is_stored_once(conn: sqlite3.Connection) -> None:
    account = accounts.add_account(conn, "ada@example.com", None, None, NOW)
    assert not account.email_verified
    assert [accounts.verify_email(conn, account.id, NOW + seconds) for seconds in (1, 2)] == [True, False]
    verified = accounts.account_by_id(conn, account.id)
    assert verified is not None and verified.email_verified_at == NOW + 1


def test_ended_accounts_are_those_without_an_active_row(conn: sqlite3.Connection) -> None:
    ids = [accounts.add_account(conn, f"{number}@example.com", None, None, NOW).id for number in range(5)]
    accounts.delete_account(conn, ids[2])
    accounts.update_account(conn, ids[1], {"suspended_at": NOW})
    ended = dict(accounts.ended_accounts(conn, [*ids, "user_x", "'"]))
    deleted = dict.fromkeys((ids[2], "user_x", "'"), "account_deleted")
    assert ended == {ids[1]: "account_suspended", **deleted}
    assert accounts.ended_accounts(conn, []) == []


def test_account_being_deleted_has_no_personal_data_and_refuses_changes(conn: sqlite3.Connection) -> None:
    account_id = accounts.add_account(conn, "ada@example.com", "Ada", "hash", NOW).id
    accounts.mark_deleting(conn, account_id, NOW)
    accounts.mark_deleting(conn, account_id, NOW + 1)
    with pytest.raises(ApiError) as refused:
        accounts.update_account(conn, account_id, {"name": "Ada", "password_hash": "hash"})
    assert refused.value.code == "invalid_api_key"
    assert not accounts.verify_email(conn, account_id, NOW)
    stored = conn.execute(
        "SELECT email, email_key, name, password_hash, email_verified_at, deleting_at FROM accounts"
    ).fetchone()
    assert tuple(stored) == (None, None, None, None, None, NOW)
    assert accounts.accounts_being_deleted(conn) == [account_id] and accounts.all_accounts(conn) == []


@given(st.text(st.characters(exclude_categories=())) | st.none() | st.integers())
def test_name_is_one_bounded_line_or_none_or_refused(value: object) -> None:
    try:
        name = accounts.PERSON_NAME.check(value, "name")
    except ApiError as error:
        assert error.code == "invalid_value"
        return
    assert name is None or (0 < len(name) <= 200 and name == name.strip() and "\n" not in name)
