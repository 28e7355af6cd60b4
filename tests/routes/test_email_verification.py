"""The first verification by an identity deletes earlier identities and unfinished sign-ins."""

import sqlite3
from collections.abc import Iterator

import pytest

from svc.auth import accounts, identities, oauth_flows
from svc.routes.email_verification import delete_keys_and_providers, verify_email
from tests.billing.test_wallet import empty_database

NOW = 1_790_000_000.0
MINE = ("https://mine.example", "7")


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    conn = empty_database()
    yield conn
    conn.close()


def account(conn: sqlite3.Connection, default_model: str | None) -> str:
    """An account with two identities, a provider `lab`, a sign-in under way, and that default model."""
    account_id = accounts.add_account(conn, "ada@example.com", None, None, NOW).id
    for issuer, subject in (("https://evil.example", "1"), MINE):
        identities.add_identity(conn, account_id, issuer, subject, None, NOW)
    oauth_flows.begin(conn, "s", "browser", "evil", account_id, NOW)
    conn.execute(
        "INSERT INTO providers (id, account_id, name, base_url, created_at) VALUES ('prov_1', ?, 'lab', 'http://lab/v1', 1)",
        (account_id,),
    )
    accounts.update_account(conn, account_id, {"default_model": default_model})
    return account_id


@pytest.mark.parametrize(
    ("before", "after"),
    [("lab/m", None), ("lab/deep/m", None), ("builtin/echo", "builtin/echo"), ("laboratory/m",) * 2, (None, None)],
)
def test_verification_keeps_its_identity_and_clears_a_default_model_of_an_own_provider(
    conn: sqlite3.Connection, before: str | None, after: str | None
) -> None:
    account_id = account(conn, before)
    verify_email(conn, account_id, NOW, by_identity=MINE)
    assert identities.account_of(conn, *MINE) == account_id
    assert identities.account_of(conn, "https://evil.example", "1") is None
    assert oauth_flows.end(conn, "s", "browser", NOW) is None
    verified = accounts.account_by_id(conn, account_id)
    assert verified is not None and verified.email_verified and verified.default_model == after


def test_a_second_verification_changes_nothing(conn: sqlite3.Connection) -> None:
    account_id = account(conn, "lab/m")
    verify_email(conn, account_id, NOW)
    identities.add_identity(conn, account_id, *MINE, None, NOW)
    accounts.update_account(conn, account_id, {"default_model": "lab/m"})
    verify_email(conn, account_id, NOW + 1)
    verified = accounts.account_by_id(conn, account_id)
    assert verified is not None and (verified.default_model, verified.email_verified_at) == ("lab/m", NOW)
    assert identities.account_of(conn, *MINE) == account_id


def test_deleting_the_providers_clears_the_default_model(conn: sqlite3.Connection) -> None:
    account_id = account(conn, "lab/m")
    delete_keys_and_providers(conn, account_id)
    left = accounts.account_by_id(conn, account_id)
    assert left is not None and left.default_model is None
    assert conn.execute("SELECT count(*) FROM providers").fetchone()[0] == 0
