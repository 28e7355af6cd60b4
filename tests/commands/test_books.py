"""`svc ledger`, `svc report` and `svc payments`: exact, as lines and as CSV."""

import asyncio
import contextlib
import csv
import io
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from svc import cli
from svc.auth import accounts
from svc.billing import payments, reconciliation, wallet
from svc.billing.stripe import PaymentEvent
from svc.billing.usage import add_call
from svc.schema import command_connection, connect
from tests.conftest import Service
from tests.support.cases import each

EMAIL = "ada@example.com"
AT = 1_790_000_000.0


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path))
    path = tmp_path / "service.db"
    with command_connection(path) as tx:
        accounts.add_account(tx, EMAIL, None, None, 1_790_000_000.0)
    return path


def test_credit_and_debit_book_exact_dollars_and_print_the_wallet(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["credit", EMAIL, "4.999999"]) == 0
    assert cli.main(["credit", EMAIL, "5", "--note", "Welcome"]) == 0
    assert cli.main(["debit", EMAIL.upper(), "9.99", "--note", "Refund of chk_1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "balance $4.999999 (4999999 micros), held $0.00, tier free",
        "balance $9.999999 (9999999 micros), held $0.00, tier pro",
        "balance $0.009999 (9999 micros), held $0.00, tier pro",
    ]
    with closing(connect(database, query_only=True)) as conn:
        rows = [tuple(row) for row in conn.execute("SELECT kind, amount_micros, description FROM ledger ORDER BY seq")]
    assert rows == [
        ("credit", 4_999_999, "Credit by the operator"),
        ("credit", 5_000_000, "Welcome"),
        ("debit", -9_990_000, "Refund of chk_1"),
    ]


@each("dollars", ["-5", "0", "0.000000", "1e3", "1,000", "NaN", "5.0000001", "", "\u0665", "ten", "9999999999"])
@each("command", ["credit", "debit"])
def test_wrong_amount_is_refused_with_one_line(
    database: Path, capsys: pytest.CaptureFixture[str], command: str, dollars: str
) -> None:
    assert cli.main([command, EMAIL, dollars]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("svc: ") and captured.err.count("\n") == 1 and captured.out == ""


def test_debit_refuses_more_than_is_available(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["credit", EMAIL, "10"])
    with command_connection(database) as tx:
        account = accounts.account_by_email(tx, EMAIL)
        assert account is not None
        wallet.hold(tx, account.id, "hold_1", 4_000_000, 1.0)
    assert cli.main(["debit", EMAIL, "6.000001"]) == 1
    assert "$10.00 (10000000 micros)" in capsys.readouterr().err
    assert cli.main(["debit", EMAIL, "6"]) == 0
    assert cli.main(["debit", EMAIL, "0.000001"]) == 1
    assert cli.main(["check"]) == 0


def test_a_wallet_over_its_bound_and_an_unknown_account_are_refused(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["credit", EMAIL, "999999999.999999"]) == 0
    assert cli.main(["credit", EMAIL, "0.000002"]) == 1
    assert "at most $1,000,000,000.00" in capsys.readouterr().err
    assert cli.main(["credit", "bob@example.com", "5"]) == 1


async def test_the_commands_work_beside_a_running_server(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session = await service.sign_up(EMAIL)
    headers = {"authorization": f"Bearer {session['access_token']}"}
    monkeypatch.setenv("SVC_DATA_DIR", str(service.config.data_dir))
    assert cli.main(["credit", EMAIL, "12.5"]) == 0
    account = (await service.client.get("/billing/account", headers=headers)).json()
    assert (account["wallet_balance_micros"], account["tier"]) == (12_500_000, "pro")
    assert cli.main(["check"]) == 0


@pytest.fixture
def account_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path))
    with command_connection(tmp_path / "service.db") as tx:
        account = accounts.add_account(tx, EMAIL, None, None, AT)
        wallet.book(tx, account.id, 5_000_000, description="Gift\x1b[2J", now_seconds=AT)
        wallet.hold(tx, account.id, "hold_1", 700, AT)
        details = {"model": "=1+1", "input_tokens": 1, "output_tokens": 2, "request_id": "r", "key_id": None}
        wallet.settle(tx, account.id, "hold_1", 700, **details, now_seconds=AT)  # type: ignore[arg-type]
    return account.id


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_ledger_is_printed_oldest_first(account_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ledger", EMAIL]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["2026-09-21T14:13:20.000Z", "$5.00", "$5.00", "Gift\ufffd[2J"]
    assert second.split()[1:3] == ["-$0.0007", "$4.9993"]
    assert cli.main(["ledger", account_id, "--csv"]) == 0
    told = rows(capsys.readouterr().out)
    assert [row["amount_micros"] for row in told] == ["5000000", "-700"]
    assert [row["cached_input_tokens"] for row in told] == ["", "0"]
    assert told[1]["model"] == "'=1+1", "no spreadsheet takes it for a formula"
    assert cli.main(["ledger", "nobody@example.com"]) == 1


def test_long_ledger_is_printed_without_gaps(
    tmp_path: Path, account_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with command_connection(tmp_path / "service.db") as tx:
        for number in range(2_010):  # pages have 1,000 rows
            wallet.book(tx, account_id, number + 1, description=str(number), now_seconds=AT)
    assert cli.main(["ledger", EMAIL, "--csv"]) == 0
    assert [row["amount_micros"] for row in rows(capsys.readouterr().out)] == [
        "5000000",
        "-700",
        *map(str, range(1, 2_011)),
    ]


def test_report_prints_lines_or_csv(account_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "--month", "2026-09"]) == 0
    out = capsys.readouterr().out
    assert "2026-09, in UTC" in out and "ada@example.com" in out and "$4.9993" in out
    assert cli.main(["report", "--month", "2026-09", "--csv"]) == 0
    told = {(row["part"], row["name"]): int(row["micros"]) for row in rows(capsys.readouterr().out)}
    assert told["income", "booked by hand"] == 5_000_000 and told["spent, by model", "'=1+1"] == 700
    assert told["owed at its end", "in wallets"] == 4_999_300
    assert cli.main(["report", "--month", "September"]) == 1
    assert cli.main(["report"]) == 0


def test_report_by_group_user_or_model_counts_the_usage(
    account_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with command_connection(tmp_path / "service.db") as tx:
        for model, micros, group in (("=1+1", 700, "lab"), ("free", 0, "")):
            add_call(tx, (account_id, None, model, "2026-09-21", group), 3, 4, micros)
    for by, names in (("group", ["lab", "(no group)"]), ("user", [EMAIL]), ("model", ["'=1+1", "free"])):
        assert cli.main(["report", "--month", "2026-09", "--by", by, "--csv"]) == 0
        told = rows(capsys.readouterr().out)
        assert [row["name"] for row in told] == names and {row["part"] for row in told} == {f"usage, by {by}"}
        assert sum(int(row["micros"]) for row in told) == 700 and sum(int(row["count"]) for row in told) == 2
    assert cli.main(["report", "--month", "2026-09", "--by", "group"]) == 0
    assert "(no group)" in capsys.readouterr().out
    days = ["--from", "2026-09-21", "--to", "2026-09-21"]
    assert cli.main(["report", "--by", "user,model", *days, "--csv"]) == 0
    told, _ = rows(capsys.readouterr().out)
    assert (told["name"], told["micros"]) == (f"{EMAIL}, =1+1", "700")
    assert cli.main(["report", "--by", "user,model", "--from", "2026-09-22", "--to", "2026-09-30", "--csv"]) == 0
    assert rows(capsys.readouterr().out) == []


def test_report_of_many_users_has_exact_totals_and_says_what_it_cuts(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list of 10,000 rows was cut, and its title counted the rest as nothing."""
    with command_connection(database) as tx:
        tx.execute("DELETE FROM accounts")
        for number in range(10_050):
            tx.execute(
                "INSERT INTO accounts (id, email, email_key, created_at) VALUES (?1, ?1, ?1, 1.0)", (f"u{number:05}",)
            )
            add_call(tx, (f"u{number:05}", None, "m", "2026-09-21", ""), 3, 4, 10_000)
    assert cli.main(["report", "--month", "2026-09", "--by", "user"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[2].endswith(" $100.50") and len(out) == 3 + 20 + 1
    assert out[-1] == "  and 10030 more with $100.30, see --csv"
    assert cli.main(["report", "--month", "2026-09", "--by", "user", "--csv"]) == 0
    told = rows(capsys.readouterr().out)
    assert len(told) == 10_050 and sum(int(row["micros"]) for row in told) == 100_500_000


@each(
    "options",
    [
        ["--by", "name"],
        ["--by", "user,user"],
        ["--from", "2026-09-01"],
        ["--by", "user", "--from", "2026-09-01", "--month", "2026-09"],
        ["--by", "user", "--from", "2026-09-31"],
        ["--by", "user", "--from", "2026-09-02", "--to", "2026-09-01"],
    ],
)
def test_wrong_options_of_a_report_are_refused(
    database: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert cli.main(["report", *options]) == 1
    assert capsys.readouterr().err.startswith("svc: ")


def event(event_id: str, kind: str, checkout_id: str, **more: Any) -> PaymentEvent:
    given = {"session_id": f"cs_{checkout_id}", "amount_cents": 500, "currency": "usd", "paid": True, **more}
    return PaymentEvent(event_id, kind, checkout_id=checkout_id, **given)


@pytest.fixture
def mixed(account_id: str, tmp_path: Path) -> str:
    """Checkouts that match, and one of each kind of mismatch."""
    completed, now = "checkout.session.completed", time.time()
    with command_connection(tmp_path / "service.db") as tx:
        for name in ("fine", "refunded", "booked", "amount", "unheard", "young"):
            payments.add_checkout(tx, account_id, f"chk_{name}", 5_000_000, now - (60 if name == "young" else 100_000))
            payments.set_session(tx, account_id, f"chk_{name}", f"cs_chk_{name}")
        for name in ("fine", "refunded", "booked"):
            payments.receive(tx, event(f"evt_{name}", completed, f"chk_{name}", payment_intent=f"pi_{name}"), now)
        payments.receive(tx, event("evt_amount", completed, "chk_amount", amount_cents=499), now)
        payments.receive(tx, event("evt_lost", completed, "chk_unknown"), now)
        for name in ("refunded", "booked"):
            back = {"payment_intent": f"pi_{name}", "returned_cents": 200}
            payments.receive(tx, event(f"evt_{name}_2", "charge.refunded", f"chk_{name}", **back), now)
        reconciliation.book_refund(tx, account_id, 2_000_000, "chk_booked", "Refund", now)
    return account_id


def test_mismatches_are_listed_with_a_command(mixed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["payments", "--csv"]) == 1
    told = {row["checkout"] or row["session"]: row for row in rows(capsys.readouterr().out)}
    assert set(told) == {"chk_amount", "cs_chk_unknown", "chk_refunded", "chk_unheard"}
    assert "other amount" in told["chk_amount"]["what"] and "unknown checkout" in told["cs_chk_unknown"]["what"]
    assert "no event" in told["chk_unheard"]["what"]
    command = told["chk_refunded"]["todo"]
    assert command == f"svc debit {mixed} 2.00 --refund-of chk_refunded"
    assert cli.main(command.split()[1:]) == 0
    capsys.readouterr()
    assert cli.main(["payments"]) == 1
    out = capsys.readouterr().out
    assert "chk_refunded" not in out and out.endswith("3 do not match\n")


def test_status_is_0_without_mismatches(account_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["payments"]) == 0
    assert capsys.readouterr().out == "every checkout and every event match\n"


@contextlib.asynccontextmanager
async def stripe(paid: str | None) -> AsyncIterator[str]:
    """A fake Stripe on loopback; `paid` is the status of every session, or None for an unknown one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"GET /v1/checkout/sessions/cs_chk_unheard HTTP/1.1\r\n") and b"Bearer sk_canary" in head
        body = orjson.dumps({"payment_status": paid} if paid else {"error": {"message": "sk_canary"}})
        writer.write(
            b"HTTP/1.1 %d X\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % (200 if paid else 404, len(body))
            + body
        )
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@each(("paid", "said"), [("paid", "Stripe has the money"), ("unpaid", None), (None, "cannot be asked")])
async def test_stripe_is_asked_about_checkouts_without_an_event(
    mixed: str, paid: str | None, said: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stripe(paid) as url:
        settings = {
            "PAYMENTS": "stripe",
            "STRIPE_SECRET_KEY": "sk_canary",
            "STRIPE_WEBHOOK_SECRET": "whsec_x",
            "STRIPE_API": url,
        }
        for name, value in settings.items():
            monkeypatch.setenv(f"SVC_{name}", value)
        assert await asyncio.to_thread(cli.main, ["payments"]) == 1
    out = capsys.readouterr().out
    assert ("chk_unheard" in out) == (said is not None) and (said or "") in out and "canary" not in out
