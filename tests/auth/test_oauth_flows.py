"""Unfinished sign-ins: bound to their browser, used once, deleted at the first verification of an address."""

import sqlite3

import pytest

from svc.auth import accounts, oauth_flows
from svc.errors import ApiError

NOW = 1_790_000_000.0


def test_flow_ends_once_in_its_browser_within_10_minutes(conn: sqlite3.Connection) -> None:
    for state in ("s", "t"):
        oauth_flows.begin(conn, state, "browser", "google", None, NOW)
    assert oauth_flows.end(conn, "s", "other", NOW) is None
    assert oauth_flows.end(conn, "s", "browser", NOW) == oauth_flows.BegunFlow("google", None)
    assert oauth_flows.end(conn, "s", "browser", NOW) is None
    assert oauth_flows.end(conn, "t", "browser", NOW + 600) is None


def test_code_is_used_once_in_its_browser_within_a_minute(conn: sqlite3.Connection) -> None:
    ada = accounts.add_account(conn, "ada@example.com", None, None, NOW).id
    for code in ("c", "d"):
        oauth_flows.add_code(conn, code, "browser", ada, NOW)
    with pytest.raises(ApiError):
        oauth_flows.use_code(conn, "c", "other", NOW)
    assert oauth_flows.use_code(conn, "c", "browser", NOW + 59) == ada
    for code in ("c", "d"):
        with pytest.raises(ApiError):
            oauth_flows.use_code(conn, code, "browser", NOW + 60)


def test_delete_flows_deletes_those_of_one_account(conn: sqlite3.Connection) -> None:
    ada, bob = (accounts.add_account(conn, f"{name}@example.com", None, None, NOW).id for name in ("ada", "bob"))
    for number, who in enumerate((ada, bob, None)):
        oauth_flows.begin(conn, f"s{number}", "browser", "google", who, NOW)
    oauth_flows.add_code(conn, "c", "browser", ada, NOW)
    oauth_flows.delete_flows(conn, ada)
    assert oauth_flows.end(conn, "s0", "browser", NOW) is None
    assert oauth_flows.end(conn, "s1", "browser", NOW) and oauth_flows.end(conn, "s2", "browser", NOW)
    with pytest.raises(ApiError):
        oauth_flows.use_code(conn, "c", "browser", NOW)
