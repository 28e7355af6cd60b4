"""How much an account stores is counted by the schema, and what a caller sends is held to it."""

import sqlite3

import pytest

from svc import quota
from svc.content import projects
from svc.errors import ApiError
from tests.content.test_history import NOW, ada, bob, conn  # noqa: F401 - fixtures


def add_project(conn: sqlite3.Connection, account_id: str, instructions: str) -> str:  # noqa: F811
    values = projects.check_fields({"name": "Thesis", "instructions": instructions})
    return projects.add_project(conn, account_id, values, NOW).id


def test_what_is_stored_is_counted_for_its_account_alone_and_goes_with_it(
    conn: sqlite3.Connection,  # noqa: F811
    ada: str,  # noqa: F811
    bob: str,  # noqa: F811
) -> None:
    before, others = quota.stored(conn, ada).stored_bytes, quota.stored(conn, bob)
    made = add_project(conn, ada, "x" * 1_000)
    assert quota.stored(conn, ada).stored_bytes - before == 1_000 + len("Thesis") + 256
    assert quota.stored(conn, bob) == others
    projects.delete_project(conn, ada, made)
    assert quota.stored(conn, ada).stored_bytes == before


def test_more_than_there_is_room_for_is_refused_with_both_numbers(conn: sqlite3.Connection, ada: str) -> None:  # noqa: F811
    stored_bytes = quota.stored(conn, ada).stored_bytes
    quota.set_limit(conn, stored_bytes + 100)
    quota.check_room(conn, ada, 100)
    with pytest.raises(ApiError) as refusal:
        quota.check_room(conn, ada, 101)
    assert (refusal.value.code, refusal.value.status) == ("quota_exceeded", 413)
    assert f"{stored_bytes} of the {stored_bytes + 100} bytes" in str(refusal.value)


def test_what_is_over_a_lowered_limit_stays_and_may_shrink(conn: sqlite3.Connection, ada: str) -> None:  # noqa: F811
    made = add_project(conn, ada, "x" * 1_000)
    quota.set_limit(conn, 1)
    assert quota.stored(conn, ada).stored_bytes > quota.stored(conn, ada).limit_bytes == 1
    quota.check_room(conn, ada, 0)
    quota.check_room(conn, ada, -500)
    projects.delete_project(conn, ada, made)
