"""A lost or replaced `master.key` stops the start, unless its loss is accepted once by the installation's id."""

import dataclasses
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from svc.config import Config
from svc.errors import StartError
from svc.inference import sealed_keys
from tests.conftest import Clocks, Service, bearer, serving

KEY = "sk-users-own-0123456789-secret"


async def add_provider(service: Service, name: str = "mine") -> dict[str, str]:
    """Give a new account a provider with a key; return the headers of its session."""
    headers = bearer((await service.sign_up(f"{name}@example.com"))["access_token"])
    body = {"name": name, "base_url": "http://127.0.0.1:9/v1", "api_key": KEY}
    assert (await service.client.post("/user/providers", json=body, headers=headers)).status_code == 201
    return headers


async def hints(service: Service, headers: dict[str, str]) -> list[str | None]:
    listed = (await service.client.get("/user/providers", headers=headers)).json()["data"]
    return [provider["api_key_hint"] for provider in listed]


def installation(config: Config) -> str:
    with closing(sqlite3.connect(config.data_dir / "service.db")) as conn:
        return str(conn.execute("SELECT id FROM installation").fetchone()[0])


def lose(key: Path) -> None:
    key.unlink()


def replace(key: Path) -> None:
    key.write_bytes(os.urandom(32))


async def refusal(config: Config, clocks: Clocks) -> str:
    with pytest.raises(StartError) as caught:
        async with serving(config, clocks):
            pass
    return str(caught.value)


@pytest.mark.parametrize(("change", "told"), [(lose, "is missing"), (replace, "is not the one")])
async def test_start_without_the_master_key_is_refused_and_changes_nothing(
    config: Config, clocks: Clocks, change: Callable[[Path], None], told: str
) -> None:
    key = config.data_dir / "master.key"
    async with serving(config, clocks) as service:
        headers = await add_provider(service)
        old = key.read_bytes()
    change(key)
    before = {path.name for path in config.data_dir.iterdir()}
    for _ in range(2):
        line = await refusal(config, clocks)
        assert told in line and "1 provider keys" in line and f"SVC_NEW_SECRETS={installation(config)}" in line
        assert line.count("\n") == 0
    assert {path.name for path in config.data_dir.iterdir()} == before
    key.write_bytes(old)
    async with serving(config, clocks) as service:
        assert await hints(service, headers) == ["…cret"]


@pytest.mark.parametrize("change", [lose, replace])
async def test_loss_is_accepted_once_by_the_installation_id(
    config: Config, clocks: Clocks, change: Callable[[Path], None]
) -> None:
    key = config.data_dir / "master.key"
    async with serving(config, clocks) as service:
        await add_provider(service)
    change(key)
    named = installation(config)
    wrong = dataclasses.replace(config, new_secrets="00000000" if named != "00000000" else "11111111")
    assert "SVC_NEW_SECRETS=" in await refusal(wrong, clocks)
    accepting = dataclasses.replace(config, new_secrets=named)
    async with serving(accepting, clocks) as service:
        assert service.state["db"].look_up(sealed_keys.count) == 0
        headers = await add_provider(service, "another")
        assert await hints(service, headers) == ["…cret"]
    change(key)
    assert f"SVC_NEW_SECRETS={installation(config)}" in await refusal(accepting, clocks), "the next loss has another id"
    assert installation(config) != named


async def test_new_master_key_is_accepted_if_nothing_is_encrypted(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks) as service:
        headers = await service.bearer()
    named = installation(config)
    (config.data_dir / "master.key").unlink()
    async with serving(config, clocks) as service:
        assert (await service.client.get("/user/me", headers=headers)).status_code == 401
    assert installation(config) == named and len((config.data_dir / "master.key").read_bytes()) == 32
    assert "every session has ended" in (config.data_dir.parent / "log").read_text()
