"""Sign-up, login, logout and password reset through HTTP."""

import asyncio
import dataclasses
import re
import statistics
import time
from ipaddress import ip_network
from pathlib import Path

import orjson
import pytest

from svc.auth import accounts
from svc.auth.passwords import Passwords
from svc.config import Config
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.routes.test_links import make_link
from tests.support.cases import each
from tests.support.pages import EXAMPLES


def from_ip(service: Service, address: str) -> None:
    service.transport.client = (address, 4321)


async def test_sign_up_returns_a_session_of_8_hours(service: Service) -> None:
    answer = await service.client.post(
        "/auth/signup", json={"email": "Ada@Example.com", "password": PASSWORD, "name": " Ada "}
    )
    assert answer.status_code == 201
    session = answer.json()
    assert session["token_type"] == "bearer" and session["expires_in"] == 28800
    assert session["user"] == {
        **session["user"],
        "email": "Ada@Example.com",
        "name": "Ada",
        "tier": "free",
        "auth": "session",
    }
    me = await service.client.get("/user/me", headers=bearer(session["access_token"]))
    assert me.json() == session["user"]


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"password": PASSWORD}, "missing_field", "email"),
        ({"email": "ada@example.com"}, "missing_field", "password"),
        ({"email": "no address", "password": PASSWORD}, "invalid_value", "email"),
        ({"email": "a@b\r\nBcc: x@y", "password": PASSWORD}, "invalid_value", "email"),
        ({"email": "a@b\0c", "password": PASSWORD}, "invalid_value", "email"),
        ({"email": "p@example..com", "password": PASSWORD}, "invalid_value", "email"),
        ({"email": ".p@example.com", "password": PASSWORD}, "invalid_value", "email"),
        ({"email": "p@example.com.", "password": PASSWORD}, "invalid_value", "email"),
        ({"email": ["a@b.example"], "password": PASSWORD}, "invalid_value", "email"),
        ({"email": "ada@example.com", "password": "seven77"}, "invalid_value", "password"),
        ({"email": "ada@example.com", "password": "x" * 1025}, "invalid_value", "password"),
        ({"email": "ada@example.com", "password": 12345678}, "invalid_value", "password"),
        ({"email": "ada@example.com", "password": PASSWORD, "name": "a\nb"}, "invalid_value", "name"),
        ({"email": "ada@example.com", "password": PASSWORD, "name": 5}, "invalid_value", "name"),
    ],
)
async def test_wrong_sign_up_names_the_field_and_creates_no_account(
    service: Service, body: dict, code: str, param: str
) -> None:
    answer = await service.client.post("/auth/signup", json=body)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["param"]) == (400, code, param)
    assert await service.state["db"].read(accounts.all_accounts) == []


@each(("first", "second"), [("ada@example.com", "ADA@EXAMPLE.COM"), ("straße@example.com", "STRASSE@example.com")])
async def test_email_case_does_not_matter_for_sign_up(service: Service, first: str, second: str) -> None:
    await service.sign_up(first)
    answer = await service.client.post("/auth/signup", json={"email": second, "password": PASSWORD})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "email_taken")
    assert answer.headers["x-should-retry"] == "false"


async def test_50_concurrent_sign_ups_create_one_account(service: Service) -> None:
    async def attempt(number: int) -> int:
        transport = service.transport
        body = {"email": "same@example.com", "password": PASSWORD}
        scope_client = (f"203.0.113.{number}", 1)
        transport.client = scope_client  # type: ignore[attr-defined]
        return (await service.client.post("/auth/signup", json=body)).status_code

    statuses = await asyncio.gather(*(attempt(number) for number in range(50)))
    assert sorted(statuses) == [201] + [409] * 49
    assert len(await service.state["db"].read(accounts.all_accounts)) == 1


async def test_closed_sign_up_is_403(config, clocks) -> None:  # type: ignore[no-untyped-def]
    import dataclasses

    import httpx

    from app import create_app
    from tests.conftest import _WithState

    app = create_app(dataclasses.replace(config, signup="closed"))
    async with app.router.lifespan_context(app) as state:
        transport = httpx.ASGITransport(_WithState(app, state))
        async with httpx.AsyncClient(transport=transport, base_url="https://127.0.0.1:8443") as client:
            answer = await client.post("/auth/signup", json={"email": "ada@example.com", "password": PASSWORD})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "signup_closed")


async def test_email_case_does_not_matter_for_login(service: Service) -> None:
    await service.sign_up("ada@example.com")
    answer = await service.client.post("/auth/login", json={"email": "ADA@example.com", "password": PASSWORD})
    assert answer.status_code == 200
    assert (await service.client.get("/user/me", headers=bearer(answer.json()["access_token"]))).json()[
        "email"
    ] == "ada@example.com"


async def test_unknown_email_and_wrong_password_have_the_same_answer(service: Service) -> None:
    await service.sign_up("ada@example.com")
    answers = [
        await service.client.post("/auth/login", json={"email": email, "password": password})
        for email, password in (
            ("ada@example.com", "wrong password"),
            ("bob@example.com", PASSWORD),
            ("ada@example.com", "x" * 2000),
        )
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0].json()["error"]["code"] == "invalid_credentials"


async def test_sign_ins_are_counted_by_way_and_code_without_the_person(service: Service) -> None:
    account = (await service.sign_up("ada@example.com"))["user"]["id"]
    person = {"email": "ada@example.com", "password": PASSWORD}
    assert (await service.client.post("/auth/login", json=person)).status_code == 200
    assert (await service.client.post("/auth/login", json={**person, "password": "x" * 12})).status_code == 401
    await service.state["db"].write(accounts.update_account, account, {"suspended_at": 1.0})
    assert (await service.client.post("/auth/login", json=person)).status_code == 403
    text = (await service.client.get("/metrics")).text
    assert re.findall(r"^svc_sign_ins_total\{(.*)\} (\d)$", text, re.MULTILINE) == [
        (f'way="password",code="{code}"', "1") for code in ("account_suspended", "invalid_credentials", "ok")
    ]


async def test_only_failed_sign_ins_log_the_client_address(config: Config, clocks: Clocks, tmp_path: Path) -> None:
    behind_a_proxy = dataclasses.replace(config, trusted_proxies=(ip_network("192.0.2.0/24"),), payments="sandbox")
    form = {"email": "ada@example.com", "password": "a wrong one"}
    async with serving(behind_a_proxy, clocks) as service:
        headers = bearer((await service.sign_up("ada@example.com"))["access_token"])
        from_ip(service, "192.0.2.1")
        client = service.client
        forwarded = {"x-forwarded-for": "203.0.113.9, 198.51.100.7, 192.0.2.2", "origin": config.base_url}
        for password in ("a wrong one", "x" * 2000):
            wrong = {"email": "ada@example.com", "password": password}
            assert (await client.post("/auth/login", json=wrong, headers=forwarded)).status_code == 401
        assert (await client.post("/checkout/sign-in", data=form, headers=forwarded)).status_code == 401
        right = {**form, "password": PASSWORD}
        assert (await client.post("/auth/login", json=right, headers=forwarded)).status_code == 200
        assert (await client.get("/user/me", headers=headers)).status_code == 200
        assert (await client.get("/user/me", headers=bearer("no token"))).status_code == 401
    lines = [orjson.loads(line) for line in (tmp_path / "log").read_bytes().splitlines()]
    found = [(line["route"], line["code"], line["client_ip"]) for line in lines if "client_ip" in line]
    login, checkout = [(path, "invalid_credentials", "198.51.100.7") for path in ("/auth/login", "/checkout/sign-in")]
    assert found == [login, login, checkout]
    assert sum(b"198.51.100" in line for line in (tmp_path / "log").read_bytes().splitlines()) == 3
    pattern = EXAMPLES["fail2ban"].partition("failregex = ")[2].strip().replace("<ADDR>", r"(?P<host>[0-9.]+)")
    hosts = [
        match["host"] for line in (tmp_path / "log").read_text().splitlines() if (match := re.search(pattern, line))
    ]
    assert hosts == ["198.51.100.7"] * 3, "the filter of svc/OPERATING.md finds them"


async def test_unknown_email_and_wrong_password_take_the_same_time() -> None:
    passwords = Passwords(4096, 1)
    stored = await passwords.hash(PASSWORD)

    async def seconds(known: str | None) -> float:
        began = time.process_time()
        assert not await passwords.matches("wrong password", known)
        return time.process_time() - began

    await seconds(None)
    pairs = [(await seconds(stored), await seconds(None)) for _ in range(15)]
    passwords.close()
    ratio = statistics.median(known for known, _ in pairs) / statistics.median(unknown for _, unknown in pairs)
    assert 0.5 < ratio < 2


async def test_5_of_200_logins_a_minute_from_one_address_pass(service: Service, clocks) -> None:  # type: ignore[no-untyped-def]
    await service.sign_up("ada@example.com")
    from_ip(service, "192.0.2.7")
    for _ in range(2):
        answers = await asyncio.gather(
            *(
                service.client.post("/auth/login", json={"email": "ada@example.com", "password": PASSWORD})
                for _ in range(200)
            )
        )
        refused = [answer for answer in answers if answer.status_code == 429]
        assert sum(answer.status_code == 200 for answer in answers) == 5 and len(refused) == 195
        error = refused[0].json()["error"]
        assert (
            error["type"] == "rate_limit_error" and error["retry_after"] == int(refused[0].headers["retry-after"]) == 59
        )
        clocks.advance(60)


async def test_sign_up_allows_10_an_hour_and_password_reset_3(service: Service, clocks) -> None:  # type: ignore[no-untyped-def]
    from_ip(service, "192.0.2.8")
    for path, limit in (("/auth/signup", 10), ("/auth/password-reset", 3)):
        statuses = [(await service.client.post(path, json={})).status_code for _ in range(limit + 1)]
        assert statuses == [400] * limit + [429]
    clocks.advance(3599)
    assert (await service.client.post("/auth/password-reset", json={})).status_code == 429
    clocks.advance(1)
    assert (await service.client.post("/auth/password-reset", json={})).status_code == 400


async def test_forwarded_for_of_an_untrusted_peer_is_ignored(service: Service) -> None:
    from_ip(service, "127.0.0.1")
    statuses = [
        (await service.client.post("/auth/login", json={}, headers={"x-forwarded-for": f"10.0.0.{n}"})).status_code
        for n in range(6)
    ]
    assert statuses == [400] * 5 + [429]


async def test_token_stays_valid_after_logout(service: Service, clocks) -> None:  # type: ignore[no-untyped-def]
    headers = await service.bearer()
    assert (await service.client.post("/auth/logout", headers=headers)).status_code == 204
    clocks.advance(8 * 3600 - 1)
    assert (await service.client.get("/user/me", headers=headers)).status_code == 200
    clocks.advance(1)
    expired = await service.client.get("/user/me", headers=headers)
    assert (expired.status_code, expired.json()["error"]["code"]) == (401, "session_expired")


async def test_password_reset_request_is_always_202(service: Service) -> None:
    await service.sign_up("ada@example.com")
    answers = [
        await service.client.post("/auth/password-reset", json={"email": e})
        for e in ("ada@example.com", "bob@example.com")
    ]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].content == answers[1].content


async def test_reset_link_works_once(service: Service) -> None:
    await service.sign_up("ada@example.com")
    token = await make_link(service, "ada@example.com", by_mail=False)
    answer = await service.client.post(
        "/auth/password-reset/confirm", json={"token": token, "password": "a new password"}
    )
    assert answer.status_code == 204
    again = await service.client.post(
        "/auth/password-reset/confirm", json={"token": token, "password": "another password"}
    )
    assert (again.status_code, again.json()["error"]["param"]) == (400, "token")
    old, new = [
        (await service.client.post("/auth/login", json={"email": "ada@example.com", "password": password})).status_code
        for password in (PASSWORD, "a new password")
    ]
    assert (old, new) == (401, 200)


async def test_earlier_links_work_until_one_is_used(service: Service) -> None:
    await service.sign_up("ada@example.com")
    tokens = [await make_link(service, "ada@example.com", by_mail=False) for _ in range(3)]
    confirm = "/auth/password-reset/confirm"
    assert (await service.client.post(confirm, json={"token": tokens[1], "password": PASSWORD})).status_code == 204
    for token in tokens:
        assert (await service.client.post(confirm, json={"token": token, "password": PASSWORD})).status_code == 400


async def test_reset_link_expires_after_an_hour(service: Service, clocks) -> None:  # type: ignore[no-untyped-def]
    await service.sign_up("ada@example.com")
    token = await make_link(service, "ada@example.com", by_mail=False)
    clocks.advance(3600)
    answer = await service.client.post("/auth/password-reset/confirm", json={"token": token, "password": PASSWORD})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_token")


async def test_reset_token_is_not_a_session(service: Service) -> None:
    await service.sign_up("ada@example.com")
    token = await make_link(service, "ada@example.com", by_mail=False)
    assert (await service.client.get("/user/me", headers=bearer(token))).status_code == 401
