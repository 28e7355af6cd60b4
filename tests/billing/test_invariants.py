"""The rules of `svc check`: each finds rows that break it, in a database without triggers."""

import sqlite3

import pytest

from svc.billing import invariants
from tests.billing.test_wallet import conn, money

__all__ = ["conn", "money"]

CORRUPTIONS = {
    "adds up to": "UPDATE wallets SET balance_micros = balance_micros + 1",
    "it should be": "UPDATE ledger SET balance_after_micros = 7",
    "balance 10000000 and held 10000001 micros are out of bounds": "UPDATE holds SET amount_micros = 10000001",
    "balance 0 and held -1 micros are out of bounds": "INSERT INTO holds VALUES ('h2', 'bob', -1, 1, NULL, '2026-09')",
    "balance -1 and held 0 micros are out of bounds": "UPDATE wallets SET balance_micros = -1 WHERE account_id = 'bob'",
    "has no wallet": "DELETE FROM wallets WHERE account_id = 'bob'",
    "rows up to": "UPDATE ledger SET seq = 3",
    "is not pro": "UPDATE accounts SET tier = 'free'",
    "without its credit": "UPDATE ledger SET reference = 'other'",
    "is not paid": "UPDATE checkouts SET state = 'open', paid_at = NULL",
    "without an event": "DELETE FROM payment_events",
    "credited a checkout that is not": "UPDATE checkouts SET state = 'open', paid_at = NULL WHERE id = 'chk_a'",
}


@pytest.mark.parametrize("finding", CORRUPTIONS)
def test_rules_find_changes_made_without_triggers(money: sqlite3.Connection, finding: str) -> None:
    for (name,) in money.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        money.execute(f"DROP TRIGGER {name}")
    money.execute("PRAGMA ignore_check_constraints = ON")
    money.execute("PRAGMA foreign_keys = OFF")
    assert invariants.broken(money) == []
    money.execute(CORRUPTIONS[finding])
    assert any(finding in line for line in invariants.broken(money))
