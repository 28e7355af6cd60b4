"""The first proof by an identity elsewhere: it stays linked, what was linked before goes, what is under way ends."""

import sqlite3
from collections.abc import Iterator

import pytest

from svc.auth import accounts, identities, oauth_flows
from svc.routes.first_proof import delete_keys_and_providers, prove
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
def test_the_proving_identity_stays_and_only_an_own_providers_model_is_no_default_any_more(
    conn: sqlite3.Connection, before: str | None, after: str | None
) -> None:
    account_id = account(conn, before)
    prove(conn, account_id, NOW, by_identity=MINE)
    assert identities.account_of(conn, *MINE) == account_id
    assert identities.account_of(conn, "https://evil.example", "1") is None
    assert oauth_flows.end(conn, "s", "browser", NOW) is None
    proved = accounts.account_by_id(conn, account_id)
    assert proved is not None and proved.email_verified and proved.default_model == after


def test_a_second_proof_changes_nothing(conn: sqlite3.Connection) -> None:
    account_id = account(conn, "lab/m")
    prove(conn, account_id, NOW)
    identities.add_identity(conn, account_id, *MINE, None, NOW)
    accounts.update_account(conn, account_id, {"default_model": "lab/m"})
    prove(conn, account_id, NOW + 1)
    proved = accounts.account_by_id(conn, account_id)
    assert proved is not None and (proved.default_model, proved.email_proved_at) == ("lab/m", NOW)
    assert identities.account_of(conn, *MINE) == account_id


def test_deleting_the_providers_leaves_no_default_model_behind(conn: sqlite3.Connection) -> None:
    account_id = account(conn, "lab/m")
    delete_keys_and_providers(conn, account_id)
    left = accounts.account_by_id(conn, account_id)
    assert left is not None and left.default_model is None
    assert conn.execute("SELECT count(*) FROM providers").fetchone()[0] == 0
