"""The models of all GGUF files, through HTTP: which are listed, their prices and names, the default, and the memory."""

import asyncio
import dataclasses
import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from svc.config import Config
from svc.errors import StartError
from svc.inference.local import models as local_models
from tests.conftest import Clocks, Service, serving
from tests.inference.local.test_files import head
from tests.inference.local.test_model import chat, key_of, model_of, put, said
from tests.support.fake_llama import COMMAND, gguf
from tests.support.loop_clock import advance_loop
from tests.support.waiting import until


@pytest.fixture
def config(config: Config) -> Config:
    return dataclasses.replace(config, local_helper=COMMAND)


@pytest.fixture
def folder(config: Config) -> Path:
    """Where files are expected without `[local] folder`; the data folder has to be made by the start."""
    return config.data_dir / "models"


async def listed(service: Service, key: dict[str, str]) -> dict[str, Any]:
    answer = await service.client.get("/v1/models", headers=key)
    return {one["id"]: one for one in answer.json()["data"] if one["owned_by"] == "local"}


def logged(tmp_path: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    return [line for line in lines if line["event"] == "local_models"]


async def test_new_and_removed_files_show_without_a_restart(service: Service, folder: Path) -> None:
    key = await key_of(service)
    assert await listed(service, key) == {}
    folder.mkdir()
    await put(service, folder, "one")
    (entry,) = (await listed(service, key)).values()
    prices = {"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 0}
    assert entry["state"] == "unloaded" and entry["pricing"] == prices and entry["context_length"] == 8192
    assert (entry["kind"], entry["capabilities"], entry["byok"]) == ("chat", ["tools"], False)
    (folder / "one.gguf").unlink()
    await service.state["local_models"].scan()
    assert await listed(service, key) == {}


async def test_folder_is_looked_at_again_and_again(service: Service, folder: Path) -> None:
    folder.mkdir()
    for count, name in enumerate(("one", "two"), 1):
        (folder / f"{name}.gguf").write_bytes(gguf())
        advance_loop(5)
        await until(lambda count=count: len(service.state["local_models"].listing()) == count)


async def test_first_local_model_by_name_is_the_default(service: Service, folder: Path) -> None:
    key = await key_of(service)
    folder.mkdir()
    await put(service, folder, "b")
    await put(service, folder, "a")
    answer = await service.client.post(
        "/v1/chat/completions", json={"messages": [{"role": "user", "content": "hello"}]}, headers=key
    )
    assert answer.json()["model"] == "local/a"
    settings = await service.client.get("/user/settings", headers=await service.bearer())
    assert settings.json()["chat_model"] == "local/a"
    for name in "ab":
        (folder / f"{name}.gguf").unlink()
    await service.state["local_models"].scan()
    answer = await service.client.post(
        "/v1/chat/completions", json={"messages": [{"role": "user", "content": "hello"}]}, headers=key
    )
    assert answer.json()["model"] == "builtin/assistant"


async def test_default_model_is_one_that_the_group_may_use(config: Config, clocks: Clocks, folder: Path) -> None:
    catalog = "[access]\nmodels = ['builtin/*', 'local/b']\n"
    async with serving(config, clocks, catalog) as service:
        key = await key_of(service)
        folder.mkdir()
        for name, expected in (("a", "builtin/assistant"), ("b", "local/b")):
            await put(service, folder, name)
            body = {"messages": [{"role": "user", "content": "hello"}]}
            answer = await service.client.post("/v1/chat/completions", json=body, headers=key)
            assert answer.json()["model"] == expected


CATALOG = """
default_model = "builtin/echo"

[local]
folder = "{folder}"
context_length = 2048

[[local.models]]
file = "One.gguf"
id = "small"
aliases = ["tiny"]
context_length = 512
input_micros_per_million_tokens = 7
output_micros_per_million_tokens = 8
"""


async def test_catalog_gives_names_prices_and_lengths(config: Config, clocks: Clocks, tmp_path: Path) -> None:
    (tmp_path / "gguf").mkdir()
    (tmp_path / "gguf" / "one.gguf").write_bytes(gguf())
    for name, length in (("two", 4096), ("three", 1024)):
        length_in_head = head(("llama.context_length", 4, struct.pack("<I", length)))
        (tmp_path / "gguf" / f"{name}.gguf").write_bytes(length_in_head)
    async with serving(config, clocks, CATALOG.format(folder=tmp_path / "gguf")) as service:
        found = await listed(service, await key_of(service))
        assert sorted(found) == ["local/small", "local/three", "local/two", "tiny"]
        assert found["tiny"]["alias_of"] == "local/small" and found["local/small"]["context_length"] == 512
        assert found["local/small"]["pricing"]["output_micros_per_million_tokens"] == 8
        assert found["local/two"]["context_length"] == 2048 and found["local/three"]["context_length"] == 1024
        settings = await service.client.get("/user/settings", headers=await service.bearer())
        assert settings.json()["chat_model"] == "builtin/echo"


@pytest.mark.parametrize(
    "text",
    [
        "[local]\nparallel = 0",
        "[local]\nother = 1",
        "[local]\nidle_seconds = 'x'",
        "[[local.models]]\nid = 'x'",
        "[[local.models]]\nfile = 'x.bin'",
        "[[local.models]]\nfile = 'a/x.gguf'",
        "[[local.models]]\nfile = 'x.gguf'\nkind = 'image'",
        "[[local.models]]\nfile = 'x.gguf'\n[[local.models]]\nfile = 'X.gguf'",
        "[[local.models]]\nfile = 'x.gguf'\n[[local.models]]\nfile = 'y.gguf'\nid = 'x'",
        "[[local.models]]\nfile = 'x.gguf'\nfallback = 'nothing'\n\n[[local.models]]\nfile = 'y.gguf'\nwrong = 1",
    ],
)
async def test_wrong_settings_refuse_the_start(config: Config, clocks: Clocks, text: str) -> None:
    with pytest.raises(StartError, match=r"local|used twice"):
        async with serving(config, clocks, text):
            pass


async def test_default_model_may_be_a_file_that_is_not_there_yet(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks, "default_model = 'local/later'") as service:
        key = await key_of(service)
        refused = await service.client.post(
            "/v1/chat/completions", json={"messages": [{"role": "user", "content": "hello"}]}, headers=key
        )
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")


async def test_reload_uses_changed_settings(config: Config, clocks: Clocks, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.gguf").write_bytes(gguf())
    async with serving(config, clocks, f"[local]\nfolder = '{tmp_path}/first'") as service:
        key = await key_of(service)
        assert list(await listed(service, key)) == ["local/first"]
        (config.data_dir.parent / "catalog.toml").write_text(f"[local]\nfolder = '{tmp_path}/second'")
        assert await service.state["reload"]() == {"errors": [], "notes": []}
        assert list(await listed(service, key)) == ["local/second"]


async def test_reload_with_an_invalid_catalog_ends_failures_too(config: Config, clocks: Clocks, tmp_path: Path) -> None:
    (tmp_path / "one.gguf").write_bytes(gguf("refuse it"))
    async with serving(config, clocks, f"[local]\nfolder = '{tmp_path}'") as service:
        key = await key_of(service)
        body = {"model": "local/one", "messages": [{"role": "user", "content": "hi"}]}
        assert (await service.client.post("/v1/chat/completions", json=body, headers=key)).status_code >= 500
        assert (await listed(service, key))["local/one"]["state"] == "failed"
        (config.data_dir.parent / "catalog.toml").write_text("[local]\nfolder = 7")
        assert len((await service.state["reload"]())["errors"]) == 1
        assert (await listed(service, key))["local/one"]["state"] == "unloaded"


async def test_full_memory_unloads_the_model_that_was_idle_longest(
    config: Config, clocks: Clocks, tmp_path: Path
) -> None:
    catalog = f"[local]\nfolder = '{tmp_path}'\nmemory_bytes = {250 * 1024**2}"
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.gguf").write_bytes(gguf())
        os.truncate(tmp_path / f"{name}.gguf", 100 * 1024**2)  # more than the fake helper itself needs
    async with serving(config, clocks, catalog) as service:
        key = await key_of(service)
        for name in ("a", "b"):
            assert said(await chat(service, key, "hello", name)) == "hello"
            clocks.advance(1)
        assert said(await chat(service, key, "hello", "c")) == "hello"
        assert [model_of(service, name).state for name in "abc"] == ["unloaded", "ready", "ready"]
        go = tmp_path / "go"
        asking = [asyncio.create_task(chat(service, key, f"wait {go}", name)) for name in ("b", "c")]
        await until(lambda: all(model_of(service, name).calls for name in "bc"))
        refused = await chat(service, key, "hello", "a")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
        go.touch()
        await asyncio.gather(*asking)
        assert said(await chat(service, key, "hello", "a")) == "hello"


async def test_file_that_is_no_gguf_is_named_once_in_the_log(service: Service, folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (folder / "bad.gguf").write_bytes(b"<html>")
    for _ in range(3):
        await service.state["local_models"].scan()
    (folder / "other.gguf").write_bytes(gguf())
    await service.state["local_models"].scan()
    assert list(await listed(service, await key_of(service))) == ["local/other"]
    await until(lambda: logged(tmp_path))
    assert [line["message"] for line in logged(tmp_path)] == ["bad.gguf is no GGUF file and is not listed"]


async def test_without_the_extra_one_line_says_what_to_install(
    config: Config, clocks: Clocks, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_models, "is_installed", lambda config: False)
    async with serving(config, clocks):
        pass
    folder.mkdir()
    (folder / "one.gguf").write_bytes(gguf())
    async with serving(config, clocks) as service:
        assert await listed(service, await key_of(service)) == {}
    (line,) = logged(tmp_path)
    assert line["level"] == "warning" and "one.gguf" in line["message"] and "svc[local]" in line["message"]


async def test_name_local_belongs_to_the_operator_while_there_are_files(service: Service, folder: Path) -> None:
    headers = await service.bearer()
    folder.mkdir()
    await put(service, folder, "one")
    body = {"name": "local", "base_url": "https://api.example.com/v1"}
    refused = await service.client.post("/user/providers", json=body, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "name_taken")
