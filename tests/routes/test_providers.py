"""Users' own providers: their records, and keys that are written and never read again."""

import asyncio
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.config import Config
from svc.errors import ApiError
from svc.inference import providers
from svc.inference.providers import TABLE
from tests.conftest import JSON, PASSWORD, Service
from tests.support.byok import KEY, Names, add_provider

PROVIDERS = "/user/providers"
URL = "https://api.example.com/v1"


@pytest.fixture
def config(config: Config, tmp_path: Path) -> Config:
    """Unknown host names, and an operator with a provider."""
    catalog = tmp_path / "catalog.toml"
    catalog.write_text(
        '[[providers]]\nname = "lab"\nbase_url = "http://127.0.0.1:9/v1"\n[[providers.models]]\nid = "m"\n'
    )
    return replace(config, resolve=Names(), catalog=catalog, list_seconds=0.1)  # none of them answers


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return await service.bearer()


async def create(service: Service, headers: dict[str, str], **fields: Any) -> httpx.Response:
    body = {"name": "mine", "base_url": URL, "api_key": KEY, **fields}
    return await service.client.post(PROVIDERS, json=body, headers=headers)


def refusal(answer: httpx.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


async def stored(service: Service, provider_id: str) -> sqlite3.Row:
    row: sqlite3.Row = await service.state["db"].read(
        lambda conn: conn.execute("SELECT * FROM providers WHERE id = ?", (provider_id,)).fetchone()
    )
    return row


# --- create, show, list, change, delete


async def test_provider_has_the_documented_fields(service: Service, headers: dict[str, str]) -> None:
    draw = {"id": "draw", "kind": "image"}
    made = await create(service, headers, models=["org/chat:7b", "small", draw | {"x": 1}, "small", draw])
    assert made.status_code == 201
    provider = made.json()
    assert provider == {
        "id": provider["id"],
        "name": "mine",
        "base_url": URL,
        "api": "chat",
        "api_key_hint": "…cret",
        "models": ["org/chat:7b", "small", draw],
        "created_at": "2026-09-21T14:13:20.000Z",
    }
    assert provider["id"].startswith("prov_")
    shown = await service.client.get(f"{PROVIDERS}/{provider['id']}", headers=headers)
    listed = await service.client.get(PROVIDERS, headers=headers)
    assert shown.json() == provider and listed.json() == {"object": "list", "data": [provider], "has_more": False}
    deleted = await service.client.delete(f"{PROVIDERS}/{provider['id']}", headers=headers)
    assert deleted.status_code == 204 and deleted.content == b""
    assert (await service.client.get(f"{PROVIDERS}/{provider['id']}", headers=headers)).status_code == 404
    assert (await service.client.get(PROVIDERS, headers=headers)).json()["data"] == []
    assert (await create(service, headers)).status_code == 201, "the name is free again"


async def test_only_name_and_base_url_are_needed(service: Service, headers: dict[str, str]) -> None:
    made = await service.client.post(PROVIDERS, json={"name": "mine", "base_url": URL}, headers=headers)
    assert made.status_code == 201 and made.json()["api_key_hint"] is None and made.json()["models"] is None
    for field in ("name", "base_url"):
        for body in ({"name": "other", "base_url": URL, field: None}, {"name": "other", "base_url": URL}):
            body = {name: value for name, value in body.items() if name != field or value is None}
            assert refusal(await service.client.post(PROVIDERS, json=body, headers=headers)) == (
                400,
                "missing_field",
                field,
            )
        changed = await service.client.patch(f"{PROVIDERS}/{made.json()['id']}", json={field: None}, headers=headers)
        assert refusal(changed) == (400, "missing_field", field)


async def test_change_keeps_missing_fields(service: Service, headers: dict[str, str]) -> None:
    provider = await add_provider(service, headers, URL, models=["a"])
    path = f"{PROVIDERS}/{provider['id']}"
    for change, expected in (
        ({}, {}),
        ({"name": "new-name"}, {"name": "new-name"}),
        ({"name": "new-name"}, {}),
        ({"models": ["b", "c"]}, {"models": ["b", "c"]}),
        ({"models": []}, {"models": []}),
        ({"models": None}, {"models": None}),
        ({"api_key": "x" * 20 + "last"}, {"api_key_hint": "…last"}),
        ({"api_key": None}, {"api_key_hint": None}),
    ):
        changed = await service.client.patch(path, json=change, headers=headers)
        provider |= expected
        assert changed.status_code == 200 and changed.json() == provider
        assert (await service.client.get(path, headers=headers)).json() == provider


async def test_account_has_at_most_100_providers(service: Service, headers: dict[str, str]) -> None:
    for _ in range(98):
        service.clocks.advance(3)  # 30 in a minute
        await add_provider(service, headers, URL)
    answers = await asyncio.gather(*(create(service, headers, name=f"last{number}") for number in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 201, 400, 400, 400]
    assert {refusal(answer)[1] for answer in answers if answer.status_code == 400} == {"invalid_value"}
    assert (await create(service, await service.bearer())).status_code == 201, "others have their own"


# --- refusals


async def test_wrong_field_or_body_changes_nothing(service: Service, headers: dict[str, str]) -> None:
    own = await add_provider(service, headers, URL)
    requests = (("POST", PROVIDERS), ("PATCH", f"{PROVIDERS}/{own['id']}"))
    for method, path in requests:
        for field, value in (("name", "A"), ("base_url", 1), ("api_key", "a b"), ("models", {})):
            body = {"name": "other", "base_url": "https://other.example", field: value}
            answer = await service.client.request(method, path, json=body, headers=headers)
            assert refusal(answer) == (400, "invalid_value", field)
        for content in (b"", b"[]", b"null", b'"text"', b"{", b'{"name": NaN}', b"\xff"):
            answer = await service.client.request(method, path, content=content, headers={**headers, **JSON})
            assert refusal(answer)[:2] == (400, "invalid_json")
        answer = await service.client.request(method, path, content=b" " * 1_100_000, headers={**headers, **JSON})
        assert refusal(answer)[:2] == (413, "PAYLOAD_TOO_LARGE")
    assert (await service.client.get(PROVIDERS, headers=headers)).json()["data"] == [own]


async def test_name_of_an_operator_provider_is_taken(service: Service, headers: dict[str, str]) -> None:
    own = await add_provider(service, headers, URL)
    for name in ("builtin", "lab"):
        assert refusal(await create(service, headers, name=name)) == (409, "name_taken", "name")
        changed = await service.client.patch(f"{PROVIDERS}/{own['id']}", json={"name": name}, headers=headers)
        assert refusal(changed) == (409, "name_taken", "name") and changed.headers["x-should-retry"] == "false"


async def test_name_is_unique_for_the_account(service: Service, headers: dict[str, str]) -> None:
    answers = await asyncio.gather(*(create(service, headers) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    other = await add_provider(service, headers, URL, api_key=None)
    changed = await service.client.patch(
        f"{PROVIDERS}/{other['id']}", json={"name": "mine", "api_key": KEY}, headers=headers
    )
    assert refusal(changed) == (409, "name_taken", "name")
    assert (await service.client.get(f"{PROVIDERS}/{other['id']}", headers=headers)).json() == other
    assert (await create(service, await service.bearer())).status_code == 201, "another user may use it too"


# --- the key


async def test_short_key_has_no_hint(service: Service, headers: dict[str, str]) -> None:
    for key, hint in (("sk-1", "…"), ("x" * 15, "…"), ("x" * 12 + "tail", "…tail"), ("~" * 4096, "…~~~~")):
        assert (await add_provider(service, headers, URL, api_key=key))["api_key_hint"] == hint


async def test_new_scheme_host_or_port_drops_the_key(service: Service, headers: dict[str, str]) -> None:
    changes: list[tuple[dict[str, Any], bool]] = [
        ({"base_url": "https://api.example.com/v2"}, True),
        ({"base_url": "https://api.example.com:443/v1"}, True),
        ({"base_url": "HTTPS://API.EXAMPLE.COM/v1"}, True),
        ({"models": ["m"]}, True),
        ({"base_url": "http://api.example.com/v1"}, False),
        ({"base_url": "http://api.example.com:443/v1"}, False),
        ({"base_url": "https://api.example.com:8443/v1"}, False),
        ({"base_url": "https://api.example.org/v1"}, False),
        ({"base_url": "https://example.com/v1"}, False),
        ({"base_url": "https://api.example.com.evil.example/v1"}, False),
        ({"base_url": "https://api.example.com./v1"}, False),
        ({"base_url": "https://api.example.org/v1", "api_key": None}, False),
    ]
    for change, kept in changes:
        service.clocks.advance(60)
        own = await add_provider(service, headers, URL)
        changed = await service.client.patch(f"{PROVIDERS}/{own['id']}", json=change, headers=headers)
        assert changed.status_code == 200 and changed.json()["api_key_hint"] == ("…cret" if kept else None), change
        assert ((await stored(service, own["id"]))["sealed_key"] is not None) == kept
        back = await service.client.patch(f"{PROVIDERS}/{own['id']}", json={"base_url": URL}, headers=headers)
        assert back.json()["api_key_hint"] == ("…cret" if kept else None), "it does not come back with the address"


async def test_new_address_with_a_key_stores_the_key(service: Service, headers: dict[str, str]) -> None:
    own = await add_provider(service, headers, URL)
    change = {"base_url": "http://other.example", "api_key": "another-key-of-theirs"}
    changed = await service.client.patch(f"{PROVIDERS}/{own['id']}", json=change, headers=headers)
    assert changed.json()["api_key_hint"] == "…eirs" and changed.json()["base_url"] == "http://other.example"


async def test_rejected_address_keeps_address_and_key(service: Service, headers: dict[str, str]) -> None:
    own = await add_provider(service, headers, URL)
    await create(service, headers)
    change = {"base_url": "http://other.example", "name": "mine"}
    assert (await service.client.patch(f"{PROVIDERS}/{own['id']}", json=change, headers=headers)).status_code == 409
    assert (await service.client.get(f"{PROVIDERS}/{own['id']}", headers=headers)).json() == own


async def test_key_is_in_no_answer_file_or_log(service: Service, headers: dict[str, str], tmp_path: Path) -> None:
    answers = [await create(service, headers)]
    path = f"{PROVIDERS}/{answers[0].json()['id']}"
    answers += [
        await create(service, headers),
        await service.client.get(path, headers=headers),
        await service.client.get(PROVIDERS, headers=headers),
        await service.client.patch(path, json={"api_key": KEY, "name": "A"}, headers=headers),
        await service.client.patch(path, json={"api_key": KEY}, headers=headers),
        await service.client.get("/v1/models", headers=headers),
        await service.client.post(f"{path}/test", headers=headers),
    ]
    for answer in answers:
        assert KEY not in answer.text + str(answer.headers) and "secret" not in answer.text
    target = sqlite3.connect(tmp_path / "copy.db")
    await service.state["db"].read(lambda conn: conn.backup(target))
    target.close()
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {"log", "copy.db", "service.db", "service.db-wal"} <= {file.name for file in files}
    for file in files:
        assert b"sk-users-own" not in file.read_bytes(), file


async def test_providers_are_deleted_with_the_account(service: Service, headers: dict[str, str]) -> None:
    await add_provider(service, headers, URL)
    account_id = (await service.client.get("/user/me", headers=headers)).json()["id"]
    deleted = await service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=headers)
    assert deleted.status_code == 204
    db, box = service.state["db"], service.state["key_box"]
    assert await db.read(lambda conn: conn.execute("SELECT count(*) FROM providers").fetchone()[0]) == 0
    late = {"name": "late", "base_url": URL, "api_key": None, "models": None}
    with pytest.raises(ApiError) as refused:
        await db.write(providers.add_provider, account_id, late, box, 1.0)
    assert refused.value.code == "invalid_api_key"


async def test_page_has_rows_of_one_account_and_its_filters(service: Service, headers: dict[str, str]) -> None:
    mine = []
    for _ in range(3):
        service.clocks.advance(1)
        mine.append(await add_provider(service, headers, URL))
    other = await service.bearer()
    theirs = await add_provider(service, other, URL)
    account_id = (await service.client.get("/user/me", headers=headers)).json()["id"]
    db = service.state["db"]

    async def ids(limit: int, after: str | None, **equal: str | None) -> list[str]:
        return [row["id"] for row in (await db.read(TABLE.page, account_id, limit, after, **equal)).items]

    newest = [provider["id"] for provider in mine[::-1]]
    assert await ids(9, None) == newest and await ids(1, None) == newest[:1] and await ids(9, newest[0]) == newest[1:]
    assert await ids(9, None, name=mine[1]["name"], base_url=None) == [mine[1]["id"]]
    assert await ids(9, newest[1], name=mine[1]["name"]) == []
    assert await ids(9, theirs["id"]) == newest, "as an id that does not exist: what is older follows"
    with pytest.raises(ApiError):
        await ids(9, "no id")
