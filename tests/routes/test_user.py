"""The caller's account and settings through HTTP."""

import asyncio
from dataclasses import replace

import pytest

from svc import quota
from svc.auth import tokens
from svc.config import Config
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.cases import each


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
    "generate_titles": "never",  # of accounts of tests
    "language": None,
    "monthly_limit_micros": None,
    "spent_this_month_micros": 0,
    "instructions": None,
    "mail_enabled": False,
    "deletion_enabled": True,
    "own_providers_enabled": True,
    "sharing_enabled": True,
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
