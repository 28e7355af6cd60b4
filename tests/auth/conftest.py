"""The database of the tests that call a module of svc/auth directly."""

import sqlite3
from collections.abc import Iterator

import pytest

from tests.billing.test_wallet import empty_database


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    conn = empty_database()
    yield conn
    conn.close()
