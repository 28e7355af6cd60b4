"""One-time links in the database: stored as a hash, for one purpose, bounded, used once."""

import sqlite3
from collections.abc import Iterator

import pytest

from svc.auth import accounts, links
from svc.errors import ApiError
from tests.billing.test_wallet import empty_database

NOW = 1_790_000_000.0


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    conn = empty_database()
    accounts.add_account(conn, "ada@example.com", None, None, NOW)
    yield conn
    conn.close()


def ada(conn: sqlite3.Connection) -> str:
    account = accounts.account_by_email(conn, "ada@example.com")
    assert account is not None
    return account.id


def add(conn: sqlite3.Connection, token: str, purpose: str = "reset", now: float = NOW) -> bool:
    return links.add_link(conn, ada(conn), purpose, token, by_mail=True, now_seconds=now)


def test_link_token_has_43_characters_and_only_its_hash_is_stored(conn: sqlite3.Connection) -> None:
    tokens = {links.new_link_token(verified=verified) for verified in (True, False) for _ in range(50)}
    assert len(tokens) == 100 and all(len(token) == 43 and token.isalnum() and token.isascii() for token in tokens)
    token = tokens.pop()
    add(conn, token)
    assert token not in "\n".join(conn.iterdump())
    assert links.find_link(conn, ["reset"], token, NOW) == links.Link(ada(conn), "reset", True, None, 1)


def test_using_a_link_deletes_all_links_of_its_purpose(conn: sqlite3.Connection) -> None:
    for token, purpose in (("a", "reset"), ("b", "reset"), ("c", "verify")):
        add(conn, token, purpose)
    for purpose, token in (("verify", "a"), ("reset", "c"), ("reset", "d")):
        with pytest.raises(ApiError):
            links.use_link(conn, [purpose], token, NOW)
    links.use_link(conn, ["reset"], "a", NOW)
    with pytest.raises(ApiError):
        links.use_link(conn, ["reset"], "b", NOW)
    assert links.use_link(conn, ["verify"], "c", NOW).account_id == ada(conn)


@pytest.mark.parametrize(("purpose", "seconds"), [("reset", 3600), ("verify", 86_400)])
def test_link_expires(conn: sqlite3.Connection, purpose: str, seconds: int) -> None:
    add(conn, "a", purpose)
    assert links.find_link(conn, [purpose], "a", NOW + seconds - 1)
    with pytest.raises(ApiError) as refused:
        links.find_link(conn, [purpose], "a", NOW + seconds)
    assert refused.value.code == "invalid_token"


def test_account_has_at_most_20_valid_links(conn: sqlite3.Connection) -> None:
    assert [add(conn, str(number)) for number in range(21)] == [True] * 20 + [False]
    assert links.find_link(conn, ["reset"], "0", NOW)
    assert add(conn, "later", now=NOW + 3600)
    assert conn.execute("SELECT count(*) FROM links").fetchone()[0] == 1
