"""API keys through HTTP."""

import re
import sqlite3

from svc import quota
from svc.auth import tokens
from tests.conftest import Service, bearer
from tests.support.cases import each


async def test_key_is_shown_once_and_listed_without_it(service: Service) -> None:
    headers = await service.bearer()
    assert (await service.client.get("/user/api-keys", headers=headers)).json() == []
    first = await service.make_key(headers, "laptop")
    named = {"id", "key", "key_prefix", "name", "created_at", "last_used_at"}
    assert set(first) == named | {"spent_micros", "monthly_limit_micros", "spent_this_month_micros"}
    assert re.fullmatch(r"svc-v1-[0-9A-Za-z]{42}", first["key"]) and first["key_prefix"] == first["key"][:10]
    service.clocks.advance(1)
    second = await service.make_key(headers, "laptop")  # names need not be unique
    listed = (await service.client.get("/user/api-keys", headers=headers)).json()
    assert listed == [{name: value for name, value in key.items() if name != "key"} for key in (second, first)]


async def test_database_has_only_a_hash_of_the_key(service: Service) -> None:
    key = await service.make_key(await service.bearer())
    secret = key["key"][10:]

    def dump(conn: sqlite3.Connection) -> str:
        return "\n".join(conn.iterdump())

    assert secret not in await service.state["db"].read(dump)


async def test_key_has_the_rights_of_its_account(service: Service) -> None:
    session = await service.sign_up()
    key = await service.make_key(bearer(session["access_token"]))
    me = (await service.client.get("/user/me", headers=bearer(key["key"]))).json()
    assert me == {**session["user"], "auth": "api_key"}
    other = await service.make_key(bearer(key["key"]))
    assert (await service.client.get("/user/me", headers=bearer(other["key"]))).status_code == 200


async def test_deleted_key_fails_on_the_next_request(service: Service) -> None:
    headers = await service.bearer()
    key = await service.make_key(headers)
    gone = await service.client.delete(f"/user/api-keys/{key['id']}", headers=bearer(key["key"]))
    assert (gone.status_code, gone.content) == (204, b"")
    assert (await service.client.get("/user/me", headers=bearer(key["key"]))).status_code == 401
    assert (await service.client.delete(f"/user/api-keys/{key['id']}", headers=headers)).status_code == 404


@each("name", [None, "", "   ", "\n", 5, ["x"], "a\0b", "x" * 1_001])
async def test_key_name_is_not_blank(service: Service, name: object) -> None:
    answer = await service.client.post("/user/api-keys", json={"name": name}, headers=await service.bearer())
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "name"


@each("name", ["Ü 🙂 </script>", "x" * 1_000, " padded "])
async def test_key_name_is_returned_as_sent(service: Service, name: str) -> None:
    headers = await service.bearer()
    assert (await service.make_key(headers, name))["name"] == name
    assert (await service.client.get("/user/api-keys", headers=headers)).json()[0]["name"] == name


async def test_number_of_keys_is_not_limited(service: Service) -> None:
    headers = await service.bearer()
    for _ in range(120):
        await service.make_key(headers)
    assert len((await service.client.get("/user/api-keys", headers=headers)).json()) == 120


async def test_last_use_has_minute_precision(service: Service) -> None:
    service.clocks.now = 1_790_000_040.0  # 14:14:00
    headers = await service.bearer()
    key = await service.make_key(headers)
    assert key["last_used_at"] is None
    for seconds, expected in (
        (10, "2026-09-21T14:14:00.000Z"),
        (40, "2026-09-21T14:14:00.000Z"),
        (60, "2026-09-21T14:15:00.000Z"),
    ):
        service.clocks.now = 1_790_000_040.0 + seconds
        await service.client.get("/user/me", headers=bearer(key["key"]))
        await service.state["key_uses"].flush()
        assert (await service.client.get("/user/api-keys", headers=headers)).json()[0]["last_used_at"] == expected


async def test_key_gets_another_name_and_limit(service: Service) -> None:
    headers = await service.bearer()
    key = await service.make_key(headers, "laptop")
    path = f"/user/api-keys/{key.pop('id')}"
    del key["key"]
    for changes in (
        {"name": "desk"},
        {"monthly_limit_micros": 0},
        {"monthly_limit_micros": 10**15, "name": "ö" * 1_000},
        {},
        {"monthly_limit_micros": None},
    ):
        key |= changes
        answer = await service.client.patch(path, json=changes, headers=headers)
        shown = answer.json()
        assert answer.status_code == 200 and {name: shown[name] for name in key} == key
        assert (await service.client.get("/user/api-keys", headers=headers)).json() == [shown]
    for field, value in (("name", " "), ("name", None), ("monthly_limit_micros", -1), ("monthly_limit_micros", 2**63)):
        refused = await service.client.patch(path, json={field: value}, headers=headers)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, field)
    stored_bytes = (await service.client.get("/billing/account", headers=headers)).json()["stored_bytes"]
    await service.client.patch(path, json={"name": "a"}, headers=headers)
    await service.state["db"].write(quota.set_limit, stored_bytes - 1)
    refused = await service.client.patch(path, json={"name": "ö" * 1_000}, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "quota_exceeded")
    assert (await service.client.get("/user/api-keys", headers=headers)).json() == [{**shown, "name": "a"}]


async def test_new_key_can_have_a_limit(service: Service) -> None:
    headers = await service.bearer()
    body = {"name": "ci", "monthly_limit_micros": 5_000_000}
    answer = await service.client.post("/user/api-keys", json=body, headers=headers)
    assert answer.status_code == 201 and answer.json().items() >= body.items()
    (listed,) = (await service.client.get("/user/api-keys", headers=headers)).json()
    assert listed["monthly_limit_micros"] == 5_000_000 and listed["spent_this_month_micros"] == 0
    wrong = await service.client.post("/user/api-keys", json={**body, "monthly_limit_micros": -1}, headers=headers)
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "monthly_limit_micros")


async def test_long_list_of_keys_is_complete_and_in_order(service: Service) -> None:
    session = await service.sign_up()

    def add(tx: sqlite3.Connection) -> None:
        for number in range(700):
            tokens.add_key(tx, session["user"]["id"], "n" * 1_000, tokens.new_key_token(), 1_790_000_000.0 + number)

    await service.state["db"].write(add)
    answer = await service.client.get("/user/api-keys", headers=bearer(session["access_token"]))
    listed = [key["id"] for key in answer.json()]
    assert len(set(listed)) == 700 and listed == sorted(listed, reverse=True)
    assert "content-length" not in answer.headers, "it is sent as it is read"
