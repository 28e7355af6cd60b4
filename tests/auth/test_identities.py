"""Linked identities: each signs in to one account, and the last way to sign in cannot be removed."""

import sqlite3

import pytest

from svc.auth import accounts, identities
from svc.errors import ApiError

NOW = 1_790_000_000.0


def test_an_identity_signs_in_to_one_account(conn: sqlite3.Connection) -> None:
    ada, bob = (accounts.add_account(conn, f"{name}@example.com", None, None, NOW).id for name in ("ada", "bob"))
    identities.add_identity(conn, ada, "https://issuer", "7", None, NOW)
    with pytest.raises(ApiError):
        identities.add_identity(conn, bob, "https://issuer", "7", None, NOW)
    assert identities.account_of(conn, "https://issuer", "7") == ada
    assert identities.account_of(conn, "https://other", "7") is None


def test_delete_identities_keeps_one_and_those_of_others(conn: sqlite3.Connection) -> None:
    ada, bob = (accounts.add_account(conn, f"{name}@example.com", None, None, NOW).id for name in ("ada", "bob"))
    for number, who in enumerate((ada, ada, ada, bob)):
        identities.add_identity(conn, who, "https://issuer", str(number), None, NOW)
    identities.delete_identities(conn, ada, but=("https://issuer", "1"))
    assert [row["subject"] for row in conn.execute("SELECT subject FROM identities ORDER BY subject")] == ["1", "3"]
    identities.delete_identities(conn, ada, but=None)
    assert (
        identities.account_of(conn, "https://issuer", "1") is None
        and identities.account_of(conn, "https://issuer", "3") == bob
    )


def test_last_identity_needs_a_password_to_be_unlinked(conn: sqlite3.Connection) -> None:
    ada = accounts.add_account(conn, "ada@example.com", None, None, NOW).id
    identities.add_identity(conn, ada, "https://issuer", "7", None, NOW)
    (identity,) = identities.TABLE.page(conn, ada, 10, None).items
    conn.execute("SAVEPOINT job")
    with pytest.raises(ApiError) as refused:
        identities.delete_identity(conn, ada, identity["id"], has_password=False)
    conn.execute("ROLLBACK TO job")
    assert refused.value.code == "last_identity"
    identities.delete_identity(conn, ada, identity["id"], has_password=True)
    assert identities.TABLE.page(conn, ada, 10, None).items == []
