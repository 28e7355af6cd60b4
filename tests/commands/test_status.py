"""`svc status` beside a running service and without one; `svc version`."""

import asyncio

import pytest

from svc import cli
from svc.billing import wallet
from svc.version import VERSION
from tests.conftest import Service


async def test_status_prints_open_answers_queues_and_sums(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    account_id = (await service.sign_up())["user"]["id"]
    await service.state["db"].write(wallet.book, account_id, 7_000_001, description="", now_seconds=1.0)
    await service.state["db"].write(wallet.hold, account_id, "hold_1", 250_000, 1.0)
    monkeypatch.setenv("SVC_DATA_DIR", str(service.config.data_dir))
    assert await asyncio.to_thread(cli.main, ["status"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.startswith(f"svc {VERSION}, process ") and first.endswith("since 2026-09-21T14:13:20.000Z")
    told = {line[:24].strip(): line[24:] for line in lines}
    assert told["held for calls"] == "$0.25 in 1 holds" and told["owed to accounts"] == "$7.000001 in 1 wallets"
    assert told["open answers"] == told["agent runs"] == told["waiting for the writer"] == "0"


def test_status_without_a_server_is_an_error_and_writes_nothing(
    tmp_path: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_DATA_DIR", f"{tmp_path}/none")
    assert cli.main(["status"]) == 1
    assert capsys.readouterr().err == f"svc: no server is running on the data folder {tmp_path}/none\n"


def test_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version"]) == 0
    assert capsys.readouterr().out == f"{VERSION}\n"
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"{VERSION}\n"
