"""The caller's account, settings and API keys through HTTP."""

import asyncio
import re
import sqlite3
from dataclasses import replace

import pytest

from svc import quota
from svc.auth import tokens
from svc.config import Config
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
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


@each(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "Bearer svc-v1-" + "0" * 42,
        "Bearer svc-v1-short",
        "Bearer eyJhbGciOiJub25lIn0.e30.",
        "Bearer " + "x" * 100_000,
        "Bearer a b",
        "svc-v1-" + "0" * 42,
    ],
)
async def test_bad_tokens_have_one_401_body(service: Service, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    answer = await service.client.get("/user/me", headers=headers)
    reference = await service.client.get("/user/me", headers=bearer(tokens.new_key_token()))
    assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert answer.content == reference.content and answer.json()["error"]["code"] == "invalid_api_key"


async def test_exactly_one_authorization_header_is_accepted(service: Service) -> None:
    token = (await service.sign_up())["access_token"]
    headers = [("authorization", f"Bearer {token}"), ("authorization", f"Bearer {token}")]
    assert (await service.client.get("/user/me", headers=headers)).status_code == 401
    assert (await service.client.get("/user/me", headers={"authorization": f"bEaReR {token}"})).status_code == 200


async def test_malformed_key_costs_no_query(service: Service) -> None:
    queries = []
    state_db = service.state["db"]
    original = state_db.look_up
    state_db.look_up = lambda *args: queries.append(args) or original(*args)
    key = tokens.new_key_token()
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    assert (await service.client.get("/user/me", headers=bearer(wrong))).status_code == 401
    assert queries == []
    assert (await service.client.get("/user/me", headers=bearer(key))).status_code == 401
    assert len(queries) == 1


async def test_name_can_be_changed_and_other_fields_are_ignored(service: Service) -> None:
    session = await service.sign_up()
    headers = bearer(session["access_token"])
    answer = await service.client.patch(
        "/user/me", json={"name": "Ada", "tier": "pro", "id": "user_x"}, headers=headers
    )
    assert answer.status_code == 200 and answer.json() == {**session["user"], "name": "Ada"}
    assert (await service.client.patch("/user/me", json={}, headers=headers)).json()["name"] == "Ada"
    assert (await service.client.patch("/user/me", json={"name": None}, headers=headers)).json()["name"] is None


AS_MADE = {
    "default_model": None,
    "chat_model": "builtin/assistant",
    "memory_enabled": True,
    "monthly_limit_micros": None,
    "spent_this_month_micros": 0,
    "instructions": None,
    "mail_enabled": False,
    "retention": {"conversations_days": None, "runs_days": None, "files_days": None},
}


async def test_settings_can_be_changed_separately(service: Service) -> None:
    headers = await service.bearer()
    as_made = {**AS_MADE, "certificate_file": str(service.config.data_dir / "tls" / "ca.pem")}
    assert (await service.client.get("/user/settings", headers=headers)).json() == as_made
    answer = await service.client.patch("/user/settings", json={"memory_enabled": False}, headers=headers)
    assert answer.json() == {**as_made, "memory_enabled": False}
    await service.client.patch("/user/settings", json={"default_model": "builtin/echo"}, headers=headers)
    read_back = (await service.client.get("/user/settings", headers=headers)).json()
    changed = {"default_model": "builtin/echo", "chat_model": "builtin/echo", "memory_enabled": False}
    assert read_back == {**as_made, **changed}


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


async def test_instructions_are_stored_bytes_until_removed(service: Service) -> None:
    headers = await service.bearer()
    before = (await service.client.get("/billing/account", headers=headers)).json()
    path = "/user/settings"
    for value in ("ö" * 8_000, "", None):
        answer = await service.client.patch(path, json={"instructions": value}, headers=headers)
        assert answer.json()["instructions"] == value, answer.text
        assert (await service.client.get(path, headers=headers)).json() == answer.json()
        after = (await service.client.get("/billing/account", headers=headers)).json()
        assert after["stored_bytes"] - before["stored_bytes"] == 2 * len(value or "")
    await service.state["db"].write(quota.set_limit, before["stored_bytes"] + 99)
    refused = await service.client.patch(path, json={"instructions": "x" * 100}, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "quota_exceeded")
    kept = await service.client.patch(path, json={"instructions": "x" * 99}, headers=headers)
    shorter = await service.client.patch(path, json={"instructions": "y" * 98}, headers=headers)
    assert (kept.status_code, shorter.status_code) == (200, 200)


@pytest.mark.parametrize(
    ("settings", "certificate_file"),
    [({"tls": "files"}, None), ({"host": "0.0.0.0", "base_url": "https://ai.example"}, "ca.pem")],
)
async def test_only_a_local_installation_shows_the_path_of_its_certificate(
    config: Config, clocks: Clocks, settings: dict[str, str], certificate_file: str | None
) -> None:
    async with serving(replace(config, **settings), clocks) as service:
        shown = (await service.client.get("/user/settings", headers=await service.bearer())).json()
        assert shown["certificate_file"] == certificate_file


@each(
    "body",
    [
        {"memory_enabled": 1},
        {"memory_enabled": None},
        {"instructions": "x" * 8_001},
        {"instructions": 3},
        {"default_model": "no/model"},
        {"default_model": "builtin/paint"},
        {"default_model": 3},
        {"monthly_limit_micros": -1},
        {"monthly_limit_micros": 10**15 + 1},
        {"monthly_limit_micros": "5"},
        {"monthly_limit_micros": 0.5},
    ],
)
async def test_wrong_setting_is_400_and_changes_nothing(service: Service, body: dict) -> None:
    headers = await service.bearer()
    as_made = (await service.client.get("/user/settings", headers=headers)).json()
    answer = await service.client.patch("/user/settings", json=body, headers=headers)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == next(iter(body))
    assert (await service.client.get("/user/settings", headers=headers)).json() == as_made


async def test_deleting_the_account_needs_a_session_and_the_password(service: Service) -> None:
    headers = await service.bearer()
    key = await service.make_key(headers)
    refusals = [
        (bearer(key["key"]), {"password": PASSWORD}, 403, "session_required"),
        (headers, {}, 400, "missing_field"),
        (headers, {"password": "wrong password"}, 401, "invalid_credentials"),
    ]
    for who, body, status, code in refusals:
        answer = await service.client.request("DELETE", "/user/me", json=body, headers=who)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert (await service.client.get("/user/me", headers=headers)).status_code == 200


async def test_deletion_ends_keys_and_sessions_and_frees_the_email(service: Service) -> None:
    session = await service.sign_up("ada@example.com")
    headers = bearer(session["access_token"])
    key = await service.make_key(headers)
    assert (
        await service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=headers)
    ).status_code == 204
    for who in (headers, bearer(key["key"])):
        answer = await service.client.get("/user/me", headers=who)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    rows = await service.state["db"].read(lambda conn: conn.execute("SELECT count(*) FROM api_keys").fetchone()[0])
    assert rows == 0
    await service.sign_up("ada@example.com")


async def test_account_that_is_being_deleted_answers_as_a_deleted_one(service: Service) -> None:
    admin, body = await service.bearer(), {"password": PASSWORD}
    for _ in range(10):
        session = await service.sign_up()
        path, headers = f"/admin/users/{session['user']['id']}", bearer(session["access_token"])
        asked = [service.client.delete(path, headers=admin)]
        asked += [service.client.request("DELETE", "/user/me", json=body, headers=headers) for _ in range(4)]
        assert {answer.status_code for answer in await asyncio.gather(*asked)} <= {204, 401}


async def test_deletion_can_be_tried_5_times_a_minute(service: Service) -> None:
    headers, other = await service.bearer(), await service.bearer()
    wrong = {"password": "wrong password"}
    statuses = [
        (await service.client.request("DELETE", "/user/me", json=wrong, headers=headers)).status_code for _ in range(6)
    ]
    assert statuses == [401] * 5 + [429]
    assert (
        await service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=other)
    ).status_code == 204
    service.clocks.advance(60)
    assert (
        await service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=headers)
    ).status_code == 204


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
