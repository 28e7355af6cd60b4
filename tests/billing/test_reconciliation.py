"""Refunds, disputes and payments that the operator books: the printed command is right and books once."""

import contextlib
import io
import re
import shlex
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from svc import cli
from svc.auth import accounts
from svc.billing import invariants, payments, wallet
from svc.billing.stripe import PaymentEvent
from svc.schema import command_connection, connect
from tests.support.cases import each
from tests.support.pages import REFERENCE

NOW = 1_790_000_000.0
COMPLETED, REFUNDED, DISPUTED = "checkout.session.completed", "charge.refunded", "charge.dispute.created"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database of ada, who has paid 25 dollars for chk_1."""
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path))
    path = tmp_path / "service.db"
    with command_connection(path) as tx:
        account = accounts.add_account(tx, "ada@example.com", None, None, NOW)
        accounts.add_account(tx, "bob@example.com", None, None, NOW)
        payments.add_checkout(tx, account.id, "chk_1", 25_000_000, NOW)
        payments.set_session(tx, account.id, "chk_1", "cs_1")
    receive(path, "evt_paid", COMPLETED, amount_cents=2500, session_id="cs_1", checkout_id="chk_1")
    return path


def receive(database: Path, event_id: str, kind: str, **fields: Any) -> payments.Receipt:
    given = {
        "session_id": f"obj_{event_id}",
        "checkout_id": None,
        "amount_cents": None,
        "currency": "usd",
        "paid": True,
    }
    with command_connection(database) as tx:
        return payments.receive(tx, PaymentEvent(event_id, kind, **{**given, "payment_intent": "pi_1", **fields}), NOW)


class Finished(NamedTuple):
    status: int
    out: str
    err: str


def run(line: str) -> Finished:
    """Run a printed line as a shell splits it, in this process: a process for each would take most of the time."""
    program, *arguments = shlex.split(line)
    assert program == "svc"
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        return Finished(cli.main(arguments), out.getvalue(), err.getvalue())


def output(*arguments: str) -> tuple[int, str]:
    return run(shlex.join(["svc", *arguments]))[:2]


def printed_commands() -> list[str]:
    """The commands that `svc payments` prints, each on its own line."""
    return re.findall(r"^    (svc .*)$", output("payments")[1], re.MULTILINE)


def balance(database: Path, email: str = "ada@example.com") -> int:
    with contextlib.closing(connect(database, query_only=True)) as conn:
        account = accounts.account_by_email(conn, email)
        assert account is not None
        return wallet.balances(conn, account.id)["wallet_balance_micros"]


def assert_everything_matches() -> None:
    assert output("payments") == (0, "every checkout and every event match\n")
    assert output("check")[0] == 0, output("check")


@pytest.mark.parametrize("kind", [REFUNDED, DISPUTED])
def test_the_command_of_svc_payments_books_a_refund_once(database: Path, kind: str) -> None:
    receive(database, "evt_r", kind, returned_cents=500)
    (command,) = printed_commands()
    assert run(command).status == 0
    assert balance(database) == 20_000_000
    assert_everything_matches()
    again = run(command)
    assert (again.status, again.out, balance(database)) == (1, "", 20_000_000)
    assert "$5.00 was returned by the processor; $5.00 of that is booked" in again.err


def test_the_command_in_the_log_books_the_same_refund(database: Path) -> None:
    todo = receive(database, "evt_r", REFUNDED, returned_cents=750).todo
    assert todo is not None and [todo] == printed_commands()
    assert run(todo).status == 0
    assert_everything_matches()


def test_documented_commands_are_accepted(database: Path) -> None:
    receive(database, "evt_r", REFUNDED, returned_cents=500)
    receive(
        database,
        "evt_x",
        COMPLETED,
        amount_cents=2500,
        checkout_id="chk_lost",
        session_id="cs_x",
        payment_intent="pi_2",
    )
    for pattern in (r"`(svc debit EMAIL \S+ --refund-of chk_\S+)`", r"`(svc credit EMAIL \S+ --payment evt_\S+)`"):
        (command,) = set(re.findall(pattern, REFERENCE))
        line = command.replace("EMAIL", "ada@example.com").replace("chk_...", "chk_1").replace("evt_...", "evt_x")
        assert run(line).status == 0, line
    assert_everything_matches()


def test_partial_refunds_are_booked_separately_or_together(database: Path) -> None:
    commands = [receive(database, f"evt_{number}", REFUNDED, returned_cents=200).todo or "" for number in range(4)]
    assert len(set(commands)) == 1 and " 2.00 " in commands[0]
    for micros in (23_000_000, 21_000_000):
        assert run(commands[0]).status == 0 and balance(database) == micros
    (rest,) = printed_commands()
    assert " 4.00 " in rest and run(rest).status == 0
    assert run(commands[0]).status == 1 and balance(database) == 17_000_000
    assert_everything_matches()
    with contextlib.closing(connect(database, query_only=True)) as conn:
        rows = conn.execute("SELECT reference, description FROM ledger WHERE kind = 'debit' ORDER BY seq").fetchall()
    assert [tuple(row) for row in rows] == [(f"refund:chk_1:{number}", "Refund of chk_1") for number in (1, 2, 3)]


def test_booked_refunds_never_exceed_the_payment(database: Path) -> None:
    receive(database, "evt_r", REFUNDED, returned_cents=2000)
    receive(database, "evt_d", DISPUTED, returned_cents=2500)
    (command,) = printed_commands()
    assert " 25.00 " in command
    assert run("svc credit ada@example.com 100").status == 0
    assert run("svc debit ada@example.com 25.01 --refund-of chk_1").status == 1
    assert run(command).status == 0
    assert run("svc debit ada@example.com 0.01 --refund-of chk_1").status == 1
    assert balance(database) == 100_000_000
    assert_everything_matches()


def test_refund_can_be_booked_once_before_its_event(database: Path) -> None:
    command = "svc debit ada@example.com 5 --refund-of chk_1"
    assert [run(command).status for _ in range(2)] == [0, 1]
    assert_everything_matches()
    assert receive(database, "evt_r", REFUNDED, returned_cents=500).todo is None
    assert_everything_matches()
    receive(database, "evt_s", REFUNDED, returned_cents=100)
    assert " 1.00 " in printed_commands()[0]


def test_refund_books_at_most_the_wallet_balance(database: Path) -> None:
    assert run("svc debit ada@example.com 15.000001").status == 0
    receive(database, "evt_r", REFUNDED, returned_cents=2500)
    (command,) = printed_commands()
    assert " 9.999999 " in command and run(command).status == 0
    status, listed = output("payments")
    assert status == 1 and "$15.000001" in listed and "The wallet is empty" in listed
    assert output("check")[0] == 0


@each(
    ("line", "reason"),
    [
        ("svc debit bob@example.com 5 --refund-of chk_1", "a payment of another account"),
        ("svc debit ada@example.com 5 --refund-of chk_2", "there is no payment or refund chk_2"),
        ("svc debit ada@example.com 5 --refund-of chk_1:1", "there is no payment or refund chk_1:1"),
        ("svc debit ada@example.com 5 --refund-of evt_paid", "there is no payment or refund evt_paid"),
        ("svc credit ada@example.com 25 --payment evt_paid", "is not an uncredited payment"),
        ("svc credit ada@example.com 25 --payment evt_none", "is not an uncredited payment"),
    ],
)
def test_booking_of_an_unknown_payment_is_refused_with_the_reason(database: Path, line: str, reason: str) -> None:
    refused = run(line)
    assert refused.status == 1 and reason in refused.err and refused.err.count("\n") == 1
    assert balance(database) == 25_000_000


def test_refund_of_a_deleted_account_needs_no_booking(database: Path) -> None:
    assert run("svc user delete ada@example.com").status == 0
    todo = receive(database, "evt_r", REFUNDED, returned_cents=500).todo
    assert todo is not None and todo.startswith("Nothing to book: the account is deleted")
    status, listed = output("payments")
    assert status == 0 and "1 of deleted accounts with $5.00 returned: nothing to book" in listed
    refused = run("svc debit bob@example.com 5 --refund-of chk_1")
    assert refused.status == 1 and "the account is deleted" in refused.err
    assert re.search(r"of deleted accounts +1 +-\$5\.00", output("report", "--month", "2026-09")[1])
    assert output("check")[0] == 0


def test_payment_of_an_unknown_checkout_is_listed_until_credited_or_refunded(database: Path) -> None:
    fields = {"session_id": "cs_x", "checkout_id": "chk_lost", "payment_intent": "pi_2", "amount_cents": 2550}
    receive(database, "evt_x", COMPLETED, **fields)
    listed = output("payments")[1]
    assert "cs_x $25.50: paid, and not credited: unknown checkout" in listed
    (command,) = printed_commands()
    assert command == "svc credit EMAIL 25.50 --payment evt_x"
    receive(database, "evt_r", REFUNDED, payment_intent="pi_2", returned_cents=550)
    assert printed_commands() == ["svc credit EMAIL 20.00 --payment evt_x"], (
        "what went back is not credited, nor booked"
    )
    receive(database, "evt_s", REFUNDED, payment_intent="pi_2", returned_cents=2000)
    assert_everything_matches()


def test_manually_credited_payment_is_credited_once_and_refundable(database: Path) -> None:
    receive(
        database,
        "evt_x",
        COMPLETED,
        session_id="cs_x",
        checkout_id="chk_lost",
        payment_intent="pi_2",
        amount_cents=2550,
    )
    command = printed_commands()[0].replace("EMAIL", "bob@example.com")
    assert run(command).status == 0
    again = run(command)
    assert again.status == 1 and "the payment evt_x is credited already" in again.err
    assert balance(database, "bob@example.com") == 25_500_000
    assert_everything_matches()
    receive(database, "evt_r", REFUNDED, payment_intent="pi_2", returned_cents=550)
    (refund,) = printed_commands()
    assert "EMAIL" not in refund and run(refund).status == 0 and run(refund).status == 1
    assert balance(database, "bob@example.com") == 20_000_000
    assert_everything_matches()


@pytest.mark.parametrize("kind", [REFUNDED, DISPUTED])
def test_refunds_and_disputes_of_unknown_payments_can_be_booked(database: Path, kind: str) -> None:
    receipt = receive(database, "evt_r", kind, payment_intent="pi_lost", returned_cents=500)
    status, listed = output("payments")
    assert status == 1
    assert f"obj_evt_r $5.00: not booked: {kind} of an unknown payment (pi_lost)" in listed
    assert printed_commands() == [receipt.todo] == ["svc debit EMAIL 5.00 --refund-of evt_r"]
    command = receipt.todo.replace("EMAIL", "ada@example.com")
    assert [run(command).status for _ in range(2)] == [0, 1]
    assert_everything_matches()


@pytest.mark.parametrize("returned", [{"currency": "eur", "returned_cents": 500}, {"returned_cents": None}])
def test_refund_without_dollars_is_listed_until_booked(database: Path, returned: dict[str, Any]) -> None:
    assert receive(database, "evt_r", REFUNDED, **returned).todo is None
    (command,) = printed_commands()
    assert run(command.replace("DOLLARS", "5.40")).status == 0
    assert_everything_matches()


@each("what", ["charge.refund.updated", "refund.created", "charge.dispute.closed"])
def test_other_events_of_a_refund_need_no_booking(database: Path, what: str) -> None:
    assert receive(database, "evt_r", what, returned_cents=500).todo is None
    assert_everything_matches()


@each(
    ("reference", "micros"),
    [
        ("refund:chk_1:1", -25_000_001),
        ("refund:chk_1:1", 1),
        ("refund:chk_9:1", -1),
        ("payment:evt_paid", 1),
        ("payment:e", 1),
    ],
)
def test_raw_sql_cannot_book_too_much_or_unknown_payments(database: Path, reference: str, micros: int) -> None:
    with command_connection(database) as tx:
        account = accounts.account_by_email(tx, "ada@example.com")
        assert account is not None
        wallet.book(tx, account.id, 50_000_000, description="", now_seconds=NOW)
        with pytest.raises(sqlite3.IntegrityError, match=r"refund_not_due|payment_not_credited"):
            wallet.book(tx, account.id, micros, description="", reference=reference, now_seconds=NOW)


def test_event_id_is_quoted_for_the_shell(database: Path) -> None:
    odd = "evt_$(touch x);"
    receive(database, odd, REFUNDED, payment_intent="pi_lost", returned_cents=500)
    assert shlex.split(printed_commands()[0])[-1] == odd


CORRUPTIONS = {
    "25000001 micros are booked, and 25000000 were paid": "UPDATE ledger SET amount_micros = -25000001 WHERE seq = 2",
    "books a refund of chk_9, which is no payment": "UPDATE ledger SET reference = 'refund:chk_9:1' WHERE seq = 2",
    "books a refund of chk_1, which is no payment of its account": "UPDATE checkouts SET account_id = 'bob'",
    "credits payment:evt_paid, which is no payment": "UPDATE ledger SET reference = 'payment:evt_paid' WHERE seq = 1",
}


@pytest.mark.parametrize("finding", CORRUPTIONS)
def test_svc_check_finds_bookings_without_a_payment(database: Path, finding: str) -> None:
    receive(database, "evt_r", REFUNDED, returned_cents=500)
    assert run(printed_commands()[0]).status == 0
    with contextlib.closing(sqlite3.connect(database)) as conn:
        for (name,) in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            conn.execute(f"DROP TRIGGER {name}")
        conn.row_factory = sqlite3.Row
        assert invariants.broken_payments(conn) == []
        conn.execute("PRAGMA ignore_check_constraints = ON")
        conn.execute(CORRUPTIONS[finding])
        assert any(finding in line for line in invariants.broken_payments(conn)), invariants.broken_payments(conn)
