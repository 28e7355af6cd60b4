"""SIGHUP reads certificates and catalog again and ends nothing. (The process itself: test_signals_process.py.)"""

import asyncio
import signal
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from app import create_app
from svc.certificates import tls_files
from tests.support.agent_runs import Account, add_accounts
from tests.support.model_server import ModelServer
from tests.support.people import command
from tests.support.served import served
from tests.support.server import hang_up
from tests.support.waiting import until

if TYPE_CHECKING:  # with this name the module would have slow tests only
    from tests.support.server import RunningServer

CHAT = "/v1/chat/completions"
PROXY = {"SVC_TLS": "proxy", "SVC_TRUSTED_PROXIES": "127.0.0.1"}


async def is_alive(server: "RunningServer") -> bool:
    async with server.client(headers={"x-forwarded-proto": "https"}) as client:
        return (await client.get("/healthz")).status_code == 200


@pytest.mark.parametrize("mode", ["auto", "proxy", "files"])
def test_sighup_does_not_stop_the_server(tmp_path: Path, mode: str) -> None:
    env = {"auto": {}, "proxy": PROXY, "files": files(tmp_path)}[mode]
    lines = []

    async def play(server: "RunningServer") -> None:
        for _ in range(5):
            server.send_signal(signal.SIGHUP)
            await asyncio.sleep(0)
        assert await is_alive(server)
        lines.extend(server.log_lines())

    assert served(tmp_path, env, play, create_app).status == 0
    assert [line for line in lines if line["level"] != "info"] == []


def files(folder: Path) -> dict[str, str]:
    made = tls_files(folder, ["127.0.0.1"], time.time())
    (folder / "data").mkdir()
    (folder / "tls").rename(folder / "data" / "tls")  # where the tests' client finds the CA
    paths = {"SVC_TLS_CERT": made.cert.name, "SVC_TLS_KEY": made.key.name}
    return {"SVC_TLS": "files", **{name: str(folder / "data" / "tls" / path) for name, path in paths.items()}}


def catalog(base_url: str, price_micros: int, model: str = "drip-100ms") -> str:
    return (
        f'[[providers]]\nname = "fake"\nbase_url = "{base_url}"\n[[providers.models]]\nid = "{model}"\n'
        f"input_micros_per_million_tokens = 0\noutput_micros_per_million_tokens = {price_micros}\n"
    )


async def reloaded(server: "RunningServer", times: int) -> str:
    """Sends SIGHUP; the message of the log line that follows, the `times`-th of its kind."""
    server.send_signal(signal.SIGHUP)
    async with asyncio.timeout(10):
        while len(lines := [line for line in server.log_lines() if line["event"] == "catalog"]) < times:
            await asyncio.sleep(0.02)
    assert len(lines) == times
    return str(lines[-1]["message"])


def test_sighup_reloads_the_catalog_and_keeps_prices_of_open_calls(tmp_path: Path) -> None:
    path = tmp_path / "catalog.toml"
    forwarded = {"x-forwarded-proto": "https"}
    path.write_text(catalog("http://127.0.0.1:1/v1", 1_000_000_000))

    async def play(server: "RunningServer") -> None:
        async with ModelServer() as models:
            path.write_text(catalog(models.base_url, 1_000_000_000))
            assert await reloaded(server, 1) == "the catalog was read again"
            (account,) = add_accounts(server, 1, micros=50_000_000)
            async with server.client(headers={**account.headers, **forwarded}) as client:
                ask = {"model": "fake/drip-100ms", "messages": [{"role": "user", "content": "hi"}], "stream": True}
                async with client.stream("POST", CHAT, json=ask) as stream:
                    blocks = stream.aiter_lines()
                    await anext(blocks)
                    path.write_text(catalog(models.base_url, 2_000_000_000) + '[[providers.models]]\nid = "new"\n')
                    assert await reloaded(server, 2) == "the catalog was read again"
                    assert [line async for line in blocks][-2] == "data: [DONE]"
                assert await prices(client) == {"fake/drip-100ms": 2_000_000_000, "fake/new": 0}
                assert await spent(client, account) == 5_000
                assert (await client.post(CHAT, json={**ask, "stream": False})).status_code == 200
                assert await spent(client, account) == 15_000
                path.write_text(catalog(models.base_url, -1))
                assert "is not replaced" in await reloaded(server, 3) and str(path) in await reloaded(server, 4)
                path.unlink()
                assert "cannot be read" in await reloaded(server, 5)
                assert await prices(client) == {"fake/drip-100ms": 2_000_000_000, "fake/new": 0}
                levels = [line["level"] for line in server.log_lines() if line["event"] == "catalog"]
                assert levels == ["info", "info", "warning", "warning", "warning"]

    assert served(tmp_path, {**PROXY, "SVC_CATALOG": str(path)}, play, create_app).status == 0


@pytest.mark.parametrize("mode", ["auto", "files"])
def test_svc_reload_reads_the_catalog_and_exits_1_if_it_is_wrong(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "catalog.toml"
    path.write_text("default_model = 'builtin/echo'")
    env = files(tmp_path) if mode == "files" else {}

    async def play(server: "RunningServer") -> None:
        (account,) = add_accounts(server, 1)
        async with server.client(headers=account.headers) as client:
            for text, status, told in (
                ("default_model = 'builtin/echo'\n[access]\nmodels = ['builtin/echo']", 0, "were read again"),
                ("[access]\nmodels = 'all'", 1, f"svc: not replaced: the catalog {path}: access.models must be a list"),
                ("# nothing\n", 1, f"svc: not replaced: the catalog {path} is empty: list providers in it"),
            ):
                path.write_text(text)
                ended = await asyncio.to_thread(command, server, "reload")
                assert (ended.returncode, told in ended.stdout + ended.stderr) == (status, True), ended
                assert len((ended.stdout + ended.stderr).splitlines()) == 1
                listed = (await client.get("/v1/models")).json()["data"]
                assert [model["id"] for model in listed] == ["builtin/echo", "echo"], "the old one stays"
            if mode == "files":
                Path(env["SVC_TLS_CERT"]).write_text("no certificate")
                ended = await asyncio.to_thread(command, server, "reload")
                assert ended.returncode == 1 and len(ended.stderr.splitlines()) == 2
                assert await is_alive(server)

    assert served(tmp_path, {**env, "SVC_CATALOG": str(path)}, play, create_app).status == 0


async def prices(client: httpx.AsyncClient) -> dict[str, int]:
    listed = (await client.get("/v1/models")).json()["data"]
    return {
        one["id"]: one["pricing"]["output_micros_per_million_tokens"] for one in listed if one["owned_by"] == "fake"
    }


async def spent(client: httpx.AsyncClient, account: Account) -> int:
    return 50_000_000 - int((await client.get("/billing/account")).json()["wallet_balance_micros"])


def test_sighup_reloads_certificate_files(tmp_path: Path) -> None:
    pairs = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        pairs.append(tls_files(tmp_path / name, ["127.0.0.1"], time.time()).ca.parent)
    live = tmp_path / "live"
    live.mkdir()
    env = {"SVC_TLS": "files", "SVC_TLS_CERT": str(live / "cert.pem"), "SVC_TLS_KEY": str(live / "key.pem")}

    def put(folder: Path, *names: str) -> None:
        for name in names:
            (live / name).write_bytes((folder / name).read_bytes())

    async def trusted(server: "RunningServer", folder: Path) -> bool:
        try:
            context = ssl.create_default_context(cafile=folder / "ca.pem")
            _, writer = await asyncio.open_connection(server.host, server.port, ssl=context)
        except ssl.SSLError:
            return False
        await hang_up(writer)
        return True

    async def play(server: "RunningServer") -> None:
        assert await trusted(server, pairs[0])
        put(pairs[1], "cert.pem")
        server.send_signal(signal.SIGHUP)
        await until(lambda: [line for line in server.log_lines() if line["event"] == "library"])
        assert await trusted(server, pairs[0]), "a certificate without its key changes nothing"
        put(pairs[1], "key.pem")
        server.send_signal(signal.SIGHUP)
        async with asyncio.timeout(20):
            while not await trusted(server, pairs[1]):
                await asyncio.sleep(0.05)
        assert not await trusted(server, pairs[0])
        assert [line["logger"] for line in server.log_lines() if line["event"] == "library"] == ["svc.server.serve"]

    put(pairs[0], "cert.pem", "key.pem")
    assert served(tmp_path, env, play, create_app).status == 0
