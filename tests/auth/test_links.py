"""One-time links in the database: stored as a hash, for one purpose, bounded, used once."""

import re
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


def ada(conn: sqlite3.Connection) -> accounts.Account:
    account = accounts.account_by_email(conn, "ada@example.com")
    assert account is not None
    return account


def add(conn: sqlite3.Connection, purpose: str = "reset", now: float = NOW) -> str:
    """Add a link and return its token; "" if there are too many."""
    email = "a@old.example" if purpose == "undo" else None
    return (links.add_link(conn, ada(conn), purpose, now, email) or ("", ""))[1]


def test_link_token_has_43_characters_and_only_its_hash_is_stored(conn: sqlite3.Connection) -> None:
    tokens = [add(conn) for _ in range(20)]
    assert len(set(tokens)) == 20 and all(re.fullmatch("[0-9A-Za-z]{42}u", token) for token in tokens)
    assert not any(token in "\n".join(conn.iterdump()) for token in tokens)
    assert links.find_link(conn, ["reset"], tokens[0], NOW) == links.Link(ada(conn).id, "reset", True, None, 1)


@pytest.mark.parametrize(("purpose", "email", "end"), [("reset", None, "p"), ("undo", "a@old.example", "u")])
def test_token_says_whether_the_address_was_verified(
    conn: sqlite3.Connection, purpose: str, email: str | None, end: str
) -> None:
    assert accounts.verify_email(conn, ada(conn).id, NOW)
    link = links.add_link(conn, ada(conn), purpose, NOW, email)
    assert link is not None and link[0] == (email or "ada@example.com") and link[1].endswith(end)


def test_using_a_link_deletes_all_links_of_its_purpose(conn: sqlite3.Connection) -> None:
    first, second, third = add(conn), add(conn), add(conn, "verify")
    for purpose, token in (("verify", first), ("reset", third), ("reset", "unknown")):
        with pytest.raises(ApiError):
            links.use_link(conn, [purpose], token, NOW)
    links.use_link(conn, ["reset"], first, NOW)
    with pytest.raises(ApiError):
        links.use_link(conn, ["reset"], second, NOW)
    assert links.use_link(conn, ["verify"], third, NOW).account_id == ada(conn).id


def test_an_undo_link_works_once_and_ends_the_later_ones(conn: sqlite3.Connection) -> None:
    first, second, third = (add(conn, "undo") for _ in range(3))
    for token in (second, first):
        assert links.use_link(conn, ["undo"], token, NOW).purpose == "undo"
        for used in (token, third):
            with pytest.raises(ApiError) as refused:
                links.use_link(conn, ["undo"], used, NOW)
            assert refused.value.code == "invalid_token"
    assert conn.execute("SELECT count(*) FROM links").fetchone()[0] == 0


@pytest.mark.parametrize(("purpose", "seconds"), [("reset", 3600), ("verify", 86_400)])
def test_link_expires(conn: sqlite3.Connection, purpose: str, seconds: int) -> None:
    token = add(conn, purpose)
    assert links.find_link(conn, [purpose], token, NOW + seconds - 1)
    with pytest.raises(ApiError) as refused:
        links.find_link(conn, [purpose], token, NOW + seconds)
    assert refused.value.code == "invalid_token"


def test_account_has_at_most_20_valid_links(conn: sqlite3.Connection) -> None:
    tokens = [add(conn) for _ in range(21)]
    assert all(tokens[:20]) and not tokens[20]
    assert links.find_link(conn, ["reset"], tokens[0], NOW)
    assert add(conn, now=NOW + 3600)
    assert conn.execute("SELECT count(*) FROM links").fetchone()[0] == 1
