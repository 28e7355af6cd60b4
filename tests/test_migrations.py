"""Migrations keep what an older database knows: rows of version 1, as that version wrote them, after the way to the newest."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from svc.auth import tokens
from svc.billing import payments, usage, wallet
from svc.commands.check import schema_findings
from svc.schema import connect, newest_schema, prepare

VERSION_1 = Path(__file__).parent / "schemas" / "1.sql"
DAY_SECONDS = 1_790_000_000.0  # 2026-09-21
ROWS = """
INSERT INTO accounts (id, email, email_key, created_at) VALUES ('a', 'ada@example.com', 'ada@example.com', 1),
    ('b', 'bob@example.com', 'bob@example.com', 1);
INSERT INTO password_resets VALUES (zeroblob(32), 'a', 1, 9e9);
INSERT INTO api_keys VALUES ('key_1', 'a', zeroblob(32), 'svc-v1-aaa', 'laptop', 1, NULL),
    ('key_2', 'a', CAST(printf('%032d', 1) AS BLOB), 'svc-v1-bbb', 'desk', 1, NULL);
INSERT INTO checkouts (id, account_id, amount_micros, session_id, created_at) VALUES ('chk_1', 'a', 10000000, 'cs_1', 1),
    ('chk_2', 'a', 5000000, 'cs_2', 1);
INSERT INTO support_conversations (id, account_id, subject, created_at, updated_at) VALUES ('sup_1', 'a', NULL, 1, 1);
INSERT INTO support_messages VALUES (1, 'msg_1', 'a', 'sup_1', 'user', 'größer', 1);
"""
# (account, key, model, micros): what a paid call debits and counts; a free one is counted alone.
CALLS = [
    ("a", "key_1", "paid/m", 700),
    ("a", "key_1", "paid/m", 11),
    ("a", "key_2", "paid/m", 5),
    ("a", None, "paid/m", 3),
    ("a", "key_gone", "paid/n", 2),
    ("a", "key_1", "free/m", 0),
    ("a", None, "free/m", 0),
    ("b", None, "free/m", 0),
]


def book(conn: sqlite3.Connection, seq: int, micros: int, **more: object) -> None:
    row = {"seq": seq, "id": f"led_{seq}", "account_id": "a", "amount_micros": micros, "created_at": DAY_SECONDS, **more}
    row |= {"kind": "credit" if micros > 0 else "debit", "description": ""}
    names = ", ".join(row)
    conn.execute(
        f"INSERT INTO ledger ({names}, balance_after_micros) VALUES ({', '.join(f':{name}' for name in row)},"
        " (SELECT balance_micros FROM wallets WHERE account_id = 'a') + :amount_micros)",
        row,
    )


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "service.db"
    prepare(path, VERSION_1.read_text(), ())
    with contextlib.closing(connect(path)) as conn:
        conn.executescript(ROWS)
        book(conn, 1, 10_000_000, reference="chk_1")
        conn.execute("UPDATE checkouts SET state = 'paid', paid_at = 2 WHERE id = 'chk_1'")
        conn.execute("INSERT INTO payment_events VALUES ('evt_1', 'checkout.session.completed', 'cs_1', 'chk_1', 1, NULL, 2)")
        conn.execute(
            "INSERT INTO payment_events VALUES ('evt_2', 'checkout.session.expired', 'cs_2', 'chk_2', 0, 'no payment', 2)"
        )
        seq = 1
        for account, key, model, micros in CALLS:
            if micros:
                seq += 1
                book(conn, seq, -micros, model=model, key_id=key, input_tokens=1, output_tokens=2, reference=f"hold_{seq}")
            conn.execute(
                """
                INSERT INTO usage_days VALUES (?, '2026-09-21', ?, 1, 1, 2, ?)
                ON CONFLICT DO UPDATE SET requests = requests + 1, input_tokens = input_tokens + 1,
                    output_tokens = output_tokens + 2, cost_micros = cost_micros + excluded.cost_micros
                """,
                (account, model, micros),
            )
    return path


def test_a_database_of_version_1_keeps_its_money_usage_links_and_payments_exactly(old: Path) -> None:
    prepare(old, *newest_schema())
    with contextlib.closing(connect(old)) as conn:
        assert [*schema_findings(conn), *wallet.verify(conn), *payments.verify(conn), *usage.verify(conn)] == []
        spent = {key.id: key.spent_micros for key in tokens.keys_after(conn, "a", None, 10)}
        assert spent == {"key_1": 711, "key_2": 5}
        by_model = {row["model"]: row for row in usage.usage_by_model(conn, "a", "2026-09-01").items}
        assert {model: (row["requests"], row["input_tokens"], row["cost_micros"]) for model, row in by_model.items()} == {
            "paid/m": (4, 4, 719),
            "paid/n": (1, 1, 2),
            "free/m": (2, 2, 0),
        }
        by_key = {
            row["key_id"]: (row["requests"], row["cost_micros"]) for row in usage.usage_by_key(conn, "a", "2026-09-01").items
        }
        assert by_key == {"key_1": (2, 711), "key_2": (1, 5), "key_gone": (1, 2), None: (3, 3)}, "no key is known of free calls"
        stored = {row["account_id"]: row["bytes"] for row in conn.execute("SELECT * FROM stored")}
        assert stored == {"a": 3 * 256 + len("laptop" + "desk") + 8, "b": 0}, "two keys and a support message"
        assert [tuple(row) for row in conn.execute("SELECT account_id, purpose, by_mail FROM links")] == [("a", "reset", 1)]
        events = conn.execute("SELECT id, checkout_id, credited, returned_micros FROM payment_events ORDER BY id").fetchall()
        assert [tuple(row) for row in events] == [("evt_1", "chk_1", 1, None), ("evt_2", "chk_2", 0, None)]
        with pytest.raises(sqlite3.IntegrityError):
            conn.execute("DELETE FROM checkouts WHERE id = 'chk_1'")
