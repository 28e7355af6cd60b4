"""One-time links through HTTP: password reset and verification."""

import asyncio
import dataclasses
import re
import sqlite3
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

import pytest

from svc.auth import accounts, identities, links, oauth_flows
from svc.config import Config, MailServer
from svc.routes.links import delete_keys_and_providers, verify_address
from tests.billing.test_wallet import empty_database
from tests.conftest import PASSWORD, Service, bearer
from tests.support.cases import each
from tests.support.mail_server import PASSWORD as MAIL_PASSWORD
from tests.support.mail_server import USER, MailBox
from tests.support.mail_server import box as box  # a fixture
from tests.support.oauth_browser import rows
from tests.support.waiting import until

NOW = 1_790_000_000.0
MINE = ("https://mine.example", "7")
ADA, BOB = "ada@example.com", "bob@example.com"
CONFIRM = "/auth/password-reset/confirm"


@pytest.fixture
def conn() -> Iterator[sqlite3.Connection]:
    conn = empty_database()
    yield conn
    conn.close()


def account(conn: sqlite3.Connection, default_model: str | None) -> str:
    """An account with two identities, a provider `lab`, a sign-in under way, and that default model."""
    account_id = accounts.add_account(conn, "ada@example.com", None, None, NOW).id
    for issuer, subject in (("https://evil.example", "1"), MINE):
        identities.add_identity(conn, account_id, issuer, subject, None, NOW)
    oauth_flows.begin(conn, "s", "browser", "evil", account_id, NOW)
    conn.execute(
        "INSERT INTO providers (id, account_id, name, base_url, created_at) VALUES ('prov_1', ?, 'lab', "
        "'http://lab/v1', 1)",
        (account_id,),
    )
    accounts.update_account(conn, account_id, {"default_model": default_model})
    return account_id


@pytest.mark.parametrize(
    ("before", "after"),
    [("lab/m", None), ("lab/deep/m", None), ("builtin/echo", "builtin/echo"), ("laboratory/m",) * 2, (None, None)],
)
def test_verification_keeps_its_identity_and_clears_a_default_model_of_an_own_provider(
    conn: sqlite3.Connection, before: str | None, after: str | None
) -> None:
    account_id = account(conn, before)
    verify_address(conn, account_id, NOW, by_identity=MINE)
    assert identities.account_of(conn, *MINE) == account_id
    assert identities.account_of(conn, "https://evil.example", "1") is None
    assert oauth_flows.end(conn, "s", "browser", NOW) is None
    verified = accounts.account_by_id(conn, account_id)
    assert verified is not None and verified.email_verified and verified.default_model == after


def test_a_second_verification_changes_nothing(conn: sqlite3.Connection) -> None:
    account_id = account(conn, "lab/m")
    verify_address(conn, account_id, NOW)
    identities.add_identity(conn, account_id, *MINE, None, NOW)
    accounts.update_account(conn, account_id, {"default_model": "lab/m"})
    verify_address(conn, account_id, NOW + 1)
    verified = accounts.account_by_id(conn, account_id)
    assert verified is not None and (verified.default_model, verified.email_verified_at) == ("lab/m", NOW)
    assert identities.account_of(conn, *MINE) == account_id


def test_deleting_the_providers_clears_the_default_model(conn: sqlite3.Connection) -> None:
    account_id = account(conn, "lab/m")
    delete_keys_and_providers(conn, account_id)
    left = accounts.account_by_id(conn, account_id)
    assert left is not None and left.default_model is None
    assert conn.execute("SELECT count(*) FROM providers").fetchone()[0] == 0


@pytest.fixture
def config(config: Config, request: pytest.FixtureRequest) -> Config:
    """With mail for the tests that ask for a box."""
    if "box" not in request.fixturenames:
        return config
    box: MailBox = request.getfixturevalue("box")
    return dataclasses.replace(
        config, smtp_url=MailServer("127.0.0.1", box.port, "starttls", USER, MAIL_PASSWORD, USER)
    )


def token_in(box: MailBox, number: int, path: str) -> str:
    text = box.messages[number][2].get_content()
    match = re.search(rf"/{path}#(\w{{43}})\r?$", text, re.MULTILINE)
    assert match is not None, text
    return match[1]


async def make_link(service: Service, email: str, purpose: str = "reset", *, by_mail: bool = True) -> str:
    """Store a link and return its token."""

    def add(tx: sqlite3.Connection) -> str:
        account = accounts.account_by_email(tx, email)
        assert account is not None
        link = links.add_link(tx, account, purpose, service.clocks.now, by_mail=by_mail)
        assert link is not None
        return link[1]

    token: str = await service.state["db"].write(add)
    return token


async def me(service: Service, session: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = (await service.client.get("/user/me", headers=bearer(session["access_token"]))).json()
    return value


# --- verification


async def test_invitation_is_mailed_and_not_shown(service: Service, box: MailBox) -> None:
    admin = await service.bearer()
    made = (await service.client.post("/admin/users", json={"email": ADA}, headers=admin)).json()
    await box.wait_for(2)
    (number,) = [number for number, (_, recipients, _) in enumerate(box.messages) if recipients == [ADA]]
    body = {"token": token_in(box, number, "password-reset"), "password": "a new password"}
    assert made["invite_url"] is None
    assert (await service.client.post(CONFIRM, json=body)).status_code == 204


@each(("name", "inviter"), [(None, "boss@example.com"), ("Zo\u00eb {token} % Boss", "Zo\u00eb {token} % Boss")])
async def test_letters_of_administrators_say_who_sent_them_and_what_to_do(
    service: Service, box: MailBox, name: str | None, inviter: str
) -> None:
    box.messages.clear()
    email = f"{len(inviter)}@example.com"
    boss = await service.client.post("/auth/login", json={"email": "boss@example.com", "password": PASSWORD})
    session = boss.json() if boss.status_code == 200 else await service.sign_up("boss@example.com")
    headers = bearer(session["access_token"])
    await service.client.patch("/user/me", json={"name": name}, headers=headers)
    made = (await service.client.post("/admin/users", json={"email": email}, headers=headers)).json()
    await service.client.post(f"/admin/users/{made['id']}/reset-link", headers=headers)

    def letters() -> list[EmailMessage]:
        return [message for _, recipients, message in box.messages if recipients == [email]]

    async with asyncio.timeout(10):
        while len(letters()) < 2:
            await asyncio.sleep(0.01)
    base_url, host = service.config.base_url, urlsplit(service.config.base_url).netloc
    texts = {message["Subject"]: " ".join(message.get_content().split()) for message in letters()}
    assert texts.keys() == {f"You are invited to svc at {host}", f"A link to your account at {host}"}
    for text in texts.values():
        assert (
            inviter in text
            and base_url in text
            and "open this link within 72 hours to set your password" in text.lower()
        )
        assert re.search(r"/password-reset#\w{43} ", text)
    assert f"{inviter} has invited you" in texts[f"You are invited to svc at {host}"]


async def test_sign_up_mails_a_verification_link(service: Service, box: MailBox) -> None:
    session = await service.sign_up(ADA)
    assert session["user"]["email_verified"] is False
    await box.wait_for(1)
    _, recipients, message = box.messages[0]
    assert recipients == [ADA] and message["Subject"] == "Verify your email address"
    token = token_in(box, 0, "verify-email")
    assert (await service.client.post(CONFIRM, json={"token": token, "password": PASSWORD})).status_code == 400
    assert (await service.client.post("/auth/verify-email", json={"token": token})).status_code == 204
    assert (await me(service, session))["email_verified"] is True
    again = await service.client.post("/auth/verify-email", json={"token": token})
    assert (again.status_code, again.json()["error"]["code"]) == (400, "invalid_token")


async def test_verification_link_expires_after_a_day(service: Service) -> None:
    session = await service.sign_up(ADA)
    first = await make_link(service, ADA, "verify")
    service.clocks.advance(24 * 3600 - 1)
    second = await make_link(service, ADA, "verify")
    service.clocks.advance(1)
    assert (await service.client.post("/auth/verify-email", json={"token": first})).status_code == 400
    assert (await service.client.post("/auth/verify-email", json={"token": second})).status_code == 204
    assert session["user"]["id"]


@each("body", [{}, {"token": None}, {"token": ""}, {"token": 5}, {"token": "x" * 1_000_000}, {"token": "unknown"}])
async def test_unknown_token_verifies_nothing(service: Service, body: dict[str, Any]) -> None:
    answer = await service.client.post("/auth/verify-email", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "token")


async def test_verification_mail_can_be_resent_3_times_an_hour(service: Service, box: MailBox) -> None:
    headers = bearer((await service.sign_up(ADA))["access_token"])
    statuses = [(await service.client.post("/user/verify-email", headers=headers)).status_code for _ in range(4)]
    assert statuses == [202, 202, 202, 429]
    await box.wait_for(4)
    token = token_in(box, 2, "verify-email")
    assert (await service.client.post("/auth/verify-email", json={"token": token})).status_code == 204
    answer = await service.client.post("/user/verify-email", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "already_verified")


async def test_without_mail_the_answer_says_so(service: Service) -> None:
    answer = await service.client.post("/user/verify-email", headers=await service.bearer())
    assert answer.status_code == 202 and "Mail is not set up" in answer.json()["message"]


# --- a new password


async def test_invalid_link_hashes_no_password(service: Service) -> None:
    service.state["passwords"].close()  # a password that is hashed would be a 500
    answer = await service.client.post(CONFIRM, json={"token": "unknown", "password": PASSWORD})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_token")


async def test_10_attempts_a_minute_from_one_address(service: Service) -> None:
    body = {"token": "unknown", "password": PASSWORD}
    statuses = [(await service.client.post(CONFIRM, json=body)).status_code for _ in range(11)]
    assert statuses == [400] * 10 + [429]
    service.clocks.advance(60)
    assert (await service.client.post(CONFIRM, json=body)).status_code == 400


async def test_concurrent_uses_of_one_link_set_one_password(service: Service) -> None:
    await service.sign_up(ADA)
    token = await make_link(service, ADA)
    bodies = [{"token": token, "password": f"password {number}"} for number in range(5)]
    answers = await asyncio.gather(*(service.client.post(CONFIRM, json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [204, 400, 400, 400, 400]


async def test_account_has_at_most_20_valid_links(service: Service, box: MailBox) -> None:
    for number, email in enumerate((ADA, BOB), 1):
        await service.sign_up(email)
        await box.wait_for(number)
    for number, email in enumerate([ADA] * 25 + [BOB]):
        service.transport.client = (f"203.0.113.{number}", 1)
        assert (await service.client.post("/auth/password-reset", json={"email": email})).status_code == 202
    # Mails are sent in turn, so Bob's comes after those of Ada.
    await until(lambda: any(recipients == [BOB] for _, recipients, _ in box.messages[2:]))
    await box.wait_for(22)
    assert [recipients for _, recipients, _ in box.messages].count([ADA]) == 20
    assert await rows(service, "SELECT count(*) FROM links") == [(22,)]
    body = {"token": token_in(box, 2, "password-reset"), "password": PASSWORD}
    assert (await service.client.post(CONFIRM, json=body)).status_code == 204


async def test_token_suffix_marks_an_unverified_address(service: Service, box: MailBox) -> None:
    await service.sign_up(ADA)
    await box.wait_for(1)
    for number, letter in ((1, "u"), (2, "p")):
        await service.client.post("/auth/password-reset", json={"email": ADA})
        await box.wait_for(number + 1)
        token = token_in(box, number, "password-reset")
        assert token.endswith(letter)
        assert (await service.client.post(CONFIRM, json={"token": token, "password": PASSWORD})).status_code == 204


# --- what the first proof undoes


async def plant(service: Service) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Another person created the account with Ada's address, and has a session, a key and a checkout cookie."""
    session = await service.sign_up(ADA)
    headers = bearer(session["access_token"])
    login = await service.client.post("/auth/login", json={"email": ADA, "password": PASSWORD})
    cookie = login.headers["set-cookie"].partition(";")[0]
    key = await service.make_key(headers)
    body = {"name": "lab", "base_url": "http://127.0.0.1:9/v1", "models": ["m"]}
    assert (await service.client.post("/user/providers", json=body, headers=headers)).status_code == 201
    assert (
        await service.client.patch("/user/settings", json={"default_model": "lab/m"}, headers=headers)
    ).status_code == 200

    def link(tx: sqlite3.Connection) -> None:
        who = session["user"]["id"]
        tx.execute(
            "INSERT INTO identities VALUES ('idn_1', ?, 'https://evil.example', '7', 'evil@example.com', 1)", (who,)
        )
        tx.execute("INSERT INTO oauth_flows VALUES (zeroblob(32), zeroblob(32), 'evil', ?, 9e9)", (who,))

    await service.state["db"].write(link)
    service.clocks.advance(1)
    return headers, key, cookie


async def left(service: Service, headers: dict[str, str], cookie: str) -> dict[str, Any]:
    settings = (await service.client.get("/user/settings", headers=headers)).json()
    return {
        "identities": await rows(service, "SELECT count(*) FROM identities"),
        "flows": await rows(service, "SELECT count(*) FROM oauth_flows"),
        "default_model": settings["default_model"],
        "checkout": (await service.client.get("/checkout", headers={"cookie": cookie})).status_code,
        "keys": len((await service.client.get("/user/api-keys", headers=headers)).json()),
        "providers": len((await service.client.get("/user/providers", headers=headers)).json()["data"]),
    }


ALL = {"identities": [(1,)], "flows": [(1,)], "default_model": "lab/m", "checkout": 200, "keys": 1, "providers": 1}
PROVED = {**ALL, "identities": [(0,)], "flows": [(0,)], "default_model": None, "checkout": 401}


@pytest.mark.parametrize(
    ("purpose", "by_mail", "delete_keys", "expected"),
    [
        ("reset", True, None, PROVED),
        ("reset", True, False, PROVED),
        ("reset", True, True, {**PROVED, "keys": 0, "providers": 0}),
        ("verify", True, None, PROVED),
        ("reset", False, None, ALL),
        ("reset", False, True, {**ALL, "keys": 0, "providers": 0, "default_model": None}),
    ],
)
async def test_first_verification_removes_foreign_access(
    service: Service, purpose: str, by_mail: bool, delete_keys: bool | None, expected: dict[str, Any]
) -> None:
    headers, key, cookie = await plant(service)
    assert await left(service, headers, cookie) == ALL
    token = await make_link(service, ADA, purpose, by_mail=by_mail)
    body = {"token": token} if purpose == "verify" else {"token": token, "password": "a new password"}
    if delete_keys is not None:
        body = {**body, "delete_keys": delete_keys}  # type: ignore[dict-item]
    path = "/auth/verify-email" if purpose == "verify" else CONFIRM
    assert (await service.client.post(path, json=body)).status_code == 204
    assert await left(service, headers, cookie) == expected
    status = (await service.client.get("/user/me", headers=bearer(key["key"]))).status_code
    assert status == (401 if expected["keys"] == 0 else 200)


async def test_later_verification_removes_nothing(service: Service) -> None:
    await service.sign_up(ADA)
    body = {"token": await make_link(service, ADA), "password": PASSWORD}
    assert (await service.client.post(CONFIRM, json=body)).status_code == 204
    login = await service.client.post("/auth/login", json={"email": ADA, "password": PASSWORD})
    headers, cookie = bearer(login.json()["access_token"]), login.headers["set-cookie"].partition(";")[0]
    who = login.json()["user"]["id"]

    def link(tx: sqlite3.Connection) -> None:
        tx.execute(
            "INSERT INTO identities VALUES ('idn_1', ?, 'https://mine.example', '7', 'ada@example.com', 1)", (who,)
        )

    await service.state["db"].write(link)
    body = {"token": await make_link(service, ADA), "password": PASSWORD}
    assert (await service.client.post(CONFIRM, json=body)).status_code == 204
    assert (await left(service, headers, cookie))["identities"] == [(1,)]
    assert (await service.client.get("/checkout", headers={"cookie": cookie})).status_code == 200


async def test_delete_keys_removes_a_thousand_keys(service: Service) -> None:
    session = await service.sign_up(ADA)

    def plant_keys(tx: sqlite3.Connection) -> None:
        for number in range(1_700):
            tx.execute(
                "INSERT INTO api_keys (id, account_id, token_hash, key_prefix, name, created_at) VALUES (?, ?, ?, ?, "
                "'x', 1)",
                (f"key_{number}", session["user"]["id"], number.to_bytes(32, "big"), "svc-v1-abc"),
            )

    await service.state["db"].write(plant_keys)
    body = {"token": await make_link(service, ADA), "password": PASSWORD, "delete_keys": True}
    assert (await service.client.post(CONFIRM, json=body)).status_code == 204
    assert await rows(service, "SELECT count(*) FROM api_keys") == [(0,)]
