"""`svc credit` and `svc debit`: exact, bounded, beside a running server."""

from contextlib import closing
from pathlib import Path

import pytest

from svc import cli
from svc.auth import accounts
from svc.billing import wallet
from svc.schema import command_connection, connect
from tests.conftest import Service

EMAIL = "ada@example.com"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path))
    path = tmp_path / "service.db"
    with command_connection(path) as tx:
        accounts.add_account(tx, EMAIL, None, None, 1_790_000_000.0)
    return path


def test_credit_and_debit_book_exact_dollars_and_print_the_wallet(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


@pytest.mark.parametrize(
    "dollars", ["-5", "0", "0.000000", "1e3", "1,000", "NaN", "5.0000001", "", "\u0665", "ten", "9999999999"]
)
@pytest.mark.parametrize("command", ["credit", "debit"])
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


def test_a_wallet_over_its_bound_and_an_unknown_account_are_refused(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
