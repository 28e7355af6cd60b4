"""GGUF files for administrators: list, add by address with progress, remove; who may, and which addresses."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from svc.admin.users import set_admin_by_claim
from svc.commands import doctor
from svc.commands.doctor import examine
from svc.config import Config
from tests.conftest import Clocks, Service, bearer, serving
from tests.inference.local.test_model import chat, key_of, put
from tests.support.admins import ask, log_of
from tests.support.fake_llama import COMMAND, gguf
from tests.support.file_server import FileServer
from tests.support.waiting import until


@pytest.fixture
def config(config: Config) -> Config:
    return dataclasses.replace(config, local_helper=COMMAND)


@pytest.fixture
async def admin(service: Service) -> dict[str, str]:
    return await service.bearer()


@pytest.fixture
async def server() -> AsyncIterator[FileServer]:
    async with FileServer(gguf() + bytes(3 * 1024 * 1024)) as server:
        yield server


async def shown(service: Service, admin: dict[str, str]) -> Any:
    return (await ask(service, "GET", "/admin/models", admin)).json()


async def test_model_is_added_by_address_and_answers(
    service: Service, admin: dict[str, str], server: FileServer
) -> None:
    begun = await ask(service, "POST", "/admin/models", admin, url=f"{server.address}/redirect?/whole", name="one")
    assert begun.status_code == 202 and begun.json()["download"]["name"] == "one"
    await until(lambda: not service.state["downloads"].running)
    found = await shown(service, admin)
    assert found["installed"] and found["folder"].endswith("data/models")
    size = len(server.content)
    assert found["download"] == {
        **begun.json()["download"], "running": False, "bytes": size, "size_bytes": size, "error": None
    }  # fmt: skip
    assert [(one["id"], one["size_bytes"], one["state"]) for one in found["data"]] == [("local/one", size, "unloaded")]
    removed = await ask(service, "DELETE", "/admin/models/one", admin)
    assert removed.status_code == 204 and (await shown(service, admin))["data"] == []
    assert (await ask(service, "DELETE", "/admin/models/one", admin)).status_code == 404
    assert [entry for entry in await log_of(service, admin) if entry[0].startswith("model.")] == [
        ("model.remove", {"file": "one.gguf"}),
        ("model.add", {"file": "one.gguf"}),
    ]


async def test_one_download_at_a_time_and_a_removal_stops_it(
    service: Service, admin: dict[str, str], server: FileServer
) -> None:
    url = f"{server.address}/chunks-without-end"
    assert (await ask(service, "POST", "/admin/models", admin, url=url, name="one")).status_code == 202
    second = await ask(service, "POST", "/admin/models", admin, url=url, name="two")
    assert (second.status_code, second.json()["error"]["code"]) == (409, "already_active")
    assert (await ask(service, "DELETE", "/admin/models/one", admin)).status_code == 204
    download = (await shown(service, admin))["download"]
    assert not download["running"] and "stopped" in download["error"]


async def test_wrong_orders_are_refused(service: Service, admin: dict[str, str], server: FileServer) -> None:
    folder = service.config.data_dir / "models"
    folder.mkdir()
    await put(service, folder, "taken")
    for body, status, code in (
        ({"url": "/etc/passwd"}, 400, "invalid_value"),
        ({"url": "file:///etc/passwd"}, 400, "invalid_value"),
        ({"url": "https://user@example.com/x.gguf"}, 400, "invalid_value"),
        ({"url": f"{server.address}/a b"}, 400, "invalid_value"),
        ({"url": f"{server.address}/whole", "name": "../x"}, 400, "invalid_value"),
        ({"url": f"{server.address}/whole", "name": ".x"}, 400, "invalid_value"),
        ({"url": f"{server.address}/whole", "sha256": "00"}, 400, "invalid_value"),
        ({"url": f"{server.address}/whole", "name": "taken"}, 409, "name_taken"),
    ):
        refused = await ask(service, "POST", "/admin/models", admin, **body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (status, code), body
    assert service.state["downloads"].as_json() is None and server.asked.total() == 0


async def test_only_administrators_may(service: Service, admin: dict[str, str]) -> None:
    user = await service.bearer()
    for method, path in (("GET", "/admin/models"), ("POST", "/admin/models"), ("DELETE", "/admin/models/one")):
        assert (await ask(service, method, path, user, url="https://example.com/x.gguf")).status_code == 404


async def test_only_public_https_addresses_unless_the_service_is_local(
    config: Config, clocks: Clocks, server: FileServer
) -> None:
    async def names(host: str, port: int, account_id: str) -> list[str]:
        return [
            {"public.example": "1.1.1.1", "private.example": "10.0.0.1", "meta.example": "169.254.169.254"}.get(
                host, host
            )
        ]

    public = dataclasses.replace(config, base_url="https://svc.example.com", resolve=names)
    async with serving(public, clocks) as service:
        service.client.base_url = "https://svc.example.com"
        session = await service.sign_up()
        await service.state["db"].write(set_admin_by_claim, session["user"]["id"], True, clocks.now)
        admin = bearer(session["access_token"])
        for url in (
            f"{server.address}/whole",
            server.address.replace("http", "https") + "/whole",
            "http://public.example/x.gguf",
            "https://private.example/x.gguf",
            "https://meta.example/x.gguf",
        ):
            refused = await ask(service, "POST", "/admin/models", admin, url=url)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "address_not_allowed"), url
        assert service.state["downloads"].as_json() is None
    assert server.asked.total() == 0


async def test_failed_model_is_shown_with_its_log(service: Service, admin: dict[str, str]) -> None:
    folder: Path = service.config.data_dir / "models"
    folder.mkdir()
    await put(service, folder, "one", "refuse tensor 12 is missing")
    await chat(service, await key_of(service), "hello")
    (entry,) = (await shown(service, admin))["data"]
    assert entry["state"] == "failed" and "tensor 12 is missing" in entry["error"]
    found = [one for one in await examine(service.config) if one.about == "model local/one"]
    assert [one.grade for one in found] == ["wrong"] and "tensor 12 is missing" in doctor.line_of(found[0])
    catalog = (await ask(service, "GET", "/admin/catalog", admin)).json()
    assert [one["source"] for one in catalog["models"] if one["id"] == "local/one"] == ["local"]
    assert catalog["default_model"] == "local/one" and catalog["providers"] == []
