"""`svc status` beside a running service and without one; `svc version`."""

import asyncio
import dataclasses

import pytest

from svc import audit, cli
from svc.billing import wallet
from svc.config import Config
from svc.money import dollars
from svc.version import VERSION
from tests.conftest import Clocks, Service, serving
from tests.support.model_server import ModelServer


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


async def test_reload_replaces_the_keys_of_the_catalog(
    config: Config, clocks: Clocks, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_DATA_DIR", str(config.data_dir))
    path, body = (
        config.data_dir.parent / "catalog.toml",
        {"model": "lab/ok", "messages": [{"role": "user", "content": "hi"}]},
    )
    async with ModelServer() as models:
        provider = f"name = 'lab'\nbase_url = '{models.base_url}'\nmodels = [{{id = 'ok'}}]\napi_key ="
        path.write_text(f"[[providers]]\n{provider} 'old-key'")
        async with serving(dataclasses.replace(config, catalog=path), clocks) as service:
            headers = await service.bearer()
            for key in ("old-key", "new-key"):
                assert (
                    await service.client.post("/v1/chat/completions", json=body, headers=headers)
                ).status_code == 200
                assert models.requests[-1].headers["authorization"] == f"Bearer {key}"
                path.write_text(f"[[providers]]\n{provider} 'new-key'")
                assert await asyncio.to_thread(cli.main, ["reload"]) == 0
            audited = await service.state["db"].read(audit.TABLE.page, None, 20, None)
            assert [(row["actor"], row["action"], row["details"]) for row in audited.items] == [
                ("operator", "reload", {"errors": 0, "notes": 0})
            ] * 2
    assert "were read again" in capsys.readouterr().out
    assert cli.main(["reload"]) == 1 and "no server is running" in capsys.readouterr().err


async def test_request_prints_the_log_lines_and_ledger_rows_of_one_request(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_DATA_DIR", str(service.config.data_dir))
    headers = await service.bearer()
    account_id = (await service.client.get("/user/me", headers=headers)).json()["id"]
    await service.state["db"].write(wallet.book, account_id, 5_000_000, description="", now_seconds=1.0)
    body = {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "What is 2 + 3?"}]}
    for request_id in ("req_mine", "req_mine2", "req_other"):
        paid = await service.client.post(
            "/v1/chat/completions", json=body, headers={**headers, "x-request-id": request_id}
        )
        assert paid.status_code == 200
    cost_micros = int(paid.headers["x-service-cost-micros"])

    async def told(request_id: str) -> tuple[int, list[str]]:
        status = await asyncio.to_thread(cli.main, ["request", request_id])
        return status, capsys.readouterr().out.splitlines()

    async with asyncio.timeout(10):
        while len((found := await told("req_mine"))[1]) < 2:  # a thread writes the log
            await asyncio.sleep(0.01)
    status, (log, ledger) = found
    assert status == 0 and log.startswith("log     {") and '"request_id":"req_mine"' in log
    assert ledger.startswith("ledger  ") and dollars(-cost_micros) in ledger and account_id in ledger
    status, lines = await told("req_unknown")
    assert status == 1 and lines[0].startswith("nothing is known about req_unknown.")


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
