"""`svc check` finds broken rules of money and schema, and changes nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from svc import cli
from svc.agents import run_records
from svc.auth import accounts, tokens
from svc.billing import wallet
from svc.billing.usage import add_call
from svc.schema import command_connection
from svc.secrets import open_folder

EMAIL = "ada@example.com"
NOW = 1_790_000_000.0


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path))
    path = tmp_path / "service.db"
    with command_connection(path) as tx:
        accounts.add_account(tx, EMAIL, None, None, NOW)
    return path


def account_id(database: Path) -> str:
    with closing(sqlite3.connect(database)) as conn:
        return str(conn.execute("SELECT id FROM accounts").fetchone()[0])


def spend(database: Path, micros: int, key_id: str | None) -> None:
    """Book a paid call as the service does."""
    with command_connection(database) as tx:
        owner = tx.execute("SELECT id FROM accounts").fetchone()[0]
        wallet.hold(tx, owner, f"hold_{micros}", micros, NOW)
        counts = {"model": "m", "input_tokens": 1, "output_tokens": 2}
        wallet.settle(tx, owner, f"hold_{micros}", micros, **counts, request_id="req_1", key_id=key_id, now_seconds=NOW)
        add_call(tx, (owner, key_id, "m", "2026-09-21", ""), 1, 2, micros)


def without_triggers(database: Path, *statements: str) -> None:
    """Change rows without the triggers."""
    with closing(sqlite3.connect(database, isolation_level=None)) as conn:
        triggers = conn.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            conn.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            conn.execute(statement)
        for _, sql in triggers:
            conn.execute(sql)


def findings(capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert cli.main(["check"]) == 1
    *lines, count = capsys.readouterr().out.splitlines()
    assert count == f"{len(lines)} findings"
    return lines


def test_check_prints_ok_and_changes_nothing(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["credit", EMAIL, "10"])
    cli.main(["debit", EMAIL, "1"])
    before = database.read_bytes()
    capsys.readouterr()
    assert cli.main(["check"]) == 0
    assert capsys.readouterr().out == "ok: 1 wallets and 2 ledger rows add up\n"
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        (
            "INSERT INTO holds SELECT 'h', account_id, balance_micros + 1, 1, NULL, '2026-09' FROM wallets",
            "held 10000001 micros are out of bounds",
        ),
        ("UPDATE ledger SET amount_micros = amount_micros + 1", "it should be"),
    ],
)
def test_check_finds_unexplained_money(
    database: Path, capsys: pytest.CaptureFixture[str], statement: str, finding: str
) -> None:
    cli.main(["credit", EMAIL, "10"])
    without_triggers(database, statement)
    assert any(finding in line for line in findings(capsys))


def test_check_finds_a_broken_ledger_and_an_orphan(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["credit", EMAIL, "10"])
    without_triggers(
        database, "UPDATE wallets SET balance_micros = 11000000", "INSERT INTO wallets (account_id) VALUES ('nobody')"
    )
    orphan, broken = findings(capsys)
    assert "it refers to a missing row" in orphan
    assert "the balance is 11000000 micros, its ledger adds up to 10000000" in broken


def test_check_finds_a_share_without_its_picture(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    owner = account_id(database)
    conversation = "INSERT INTO conversations (id, account_id, created_at, updated_at) VALUES ('c', ?, 1, 1)"
    share = """
        INSERT INTO shares (id, account_id, conversation_id, token_hash, messages, created_at)
        VALUES ('s', ?, 'c', zeroblob(32), '[]', 1)
    """
    with command_connection(database) as tx:
        for statement in (conversation, share):
            tx.execute(statement, (owner,))
    assert cli.main(["check"]) == 0
    without_triggers(
        database, f"INSERT INTO share_pictures VALUES ('{owner}', 's', 'art_1', 'content_gone', 'image/png', 1)"
    )
    [orphan] = findings(capsys)
    assert orphan.startswith("table share_pictures") and "it refers to a missing row" in orphan


def test_check_finds_a_row_that_breaks_a_constraint(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without_triggers(database, "PRAGMA ignore_check_constraints = ON", "UPDATE wallets SET balance_micros = -5")
    assert any("CHECK constraint failed" in line for line in findings(capsys))


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ("DROP TRIGGER ledger_continues", "schema: the trigger ledger_continues is missing"),
        ("DROP INDEX ledger_by_account", "schema: the index ledger_by_account is missing"),
        ("CREATE TABLE mine (a)", "schema: the table mine was added"),
        (
            "CREATE TRIGGER gift AFTER INSERT ON accounts BEGIN SELECT 1; END",
            "schema: the trigger gift was added",
        ),
        ("ALTER TABLE holds ADD COLUMN note TEXT", "schema: the table holds was changed: with the new column note"),
        (
            "ALTER TABLE api_keys DROP COLUMN last_used_at",
            "schema: the table api_keys was changed: without last_used_at",
        ),
    ],
)
def test_check_finds_a_changed_schema(
    database: Path, capsys: pytest.CaptureFixture[str], change: str, finding: str
) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as conn:
        conn.execute(change)
    assert findings(capsys) == [finding]


def test_check_finds_a_disabled_trigger(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(database, isolation_level=None)) as conn:
        conn.execute("DROP TRIGGER ledger_stays")
        conn.execute("CREATE TRIGGER ledger_stays BEFORE UPDATE ON ledger BEGIN SELECT 1; END")
    assert findings(capsys) == ["schema: the trigger ledger_stays was changed"]


def test_check_finds_usage_without_a_debit(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["credit", EMAIL, "10"])
    spend(database, 700, None)
    assert cli.main(["check"]) == 0
    without_triggers(database, "UPDATE usage_days SET cost_micros = 699")
    month, account = findings(capsys)
    assert month == (
        "month 2026-09, model m: the ledger has debits of 700 micros, the usage of all accounts and groups costs 699"
    )
    assert "the ledger has debits of 700 micros, the usage costs 699" in account


def test_check_finds_a_wrong_sum_of_a_key(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["credit", EMAIL, "10"])
    with command_connection(database) as tx:
        key_id = tokens.add_key(
            tx, tx.execute("SELECT id FROM accounts").fetchone()[0], "k", tokens.new_key_token(), NOW
        )["id"]
    spend(database, 700, key_id)
    assert cli.main(["check"]) == 0
    without_triggers(database, "UPDATE api_keys SET spent_micros = 1")
    assert findings(capsys) == [f"key {key_id}: its spent_micros is 1, the ledger has debits of 700 micros"]


def test_check_finds_a_pro_account_that_never_paid(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["credit", EMAIL, "4.99"])
    without_triggers(database, "UPDATE accounts SET tier = 'pro'")
    (line,) = findings(capsys)
    assert line == f"account {account_id(database)} is pro and has never paid 5 dollars at once"


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            "amount_micros = amount_micros - 1, balance_after_micros = balance_after_micros - 1 WHERE seq = 2",
            "no earlier row",
        ),
        ("balance_after_micros = balance_after_micros + 5 WHERE seq = 1", "no earlier row ended at"),
        ("description = 'for Ada' WHERE seq = 1", "still has data of the person"),
        ("request_id = 'req_1' WHERE seq = 3", "still has data of the person"),
    ],
)
def test_check_covers_the_rows_of_deleted_accounts(
    database: Path, capsys: pytest.CaptureFixture[str], change: str, finding: str
) -> None:
    cli.main(["credit", EMAIL, "10"])
    cli.main(["debit", EMAIL, "4"])
    cli.main(["debit", EMAIL, "5"])
    assert cli.main(["user", "delete", EMAIL]) == 0
    assert cli.main(["check"]) == 0
    without_triggers(database, f"UPDATE ledger SET {change}")
    assert any(finding in line for line in findings(capsys))


def test_open_run_without_a_server_is_only_a_note(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with command_connection(database) as tx:
        tx.execute(
            "INSERT INTO runs (id, account_id, goal, model, max_steps, created_at) VALUES ('run_1', ?, 'g', 'm', 6, ?)",
            (account_id(database), NOW),
        )
    folder = open_folder(database.parent)
    assert cli.main(["check"]) == 0 and "note" not in capsys.readouterr().out
    folder.close()
    assert cli.main(["check"]) == 0
    note, ok = capsys.readouterr().out.splitlines()
    assert note.startswith("note: 1 agent runs were open") and ok.startswith("ok: ")
    with command_connection(database) as tx:
        run_records.end_interrupted_runs(tx, NOW)
    assert cli.main(["check"]) == 0 and "note" not in capsys.readouterr().out


def test_check_refuses_a_foreign_database_and_makes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path / "data"))
    assert cli.main(["check"]) == 1
    assert "there is no database" in capsys.readouterr().err and not (tmp_path / "data").exists()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "service.db").write_bytes(b"junk")
    assert cli.main(["check"]) == 1
    assert (tmp_path / "data" / "service.db").read_bytes() == b"junk"
