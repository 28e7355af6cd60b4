"""A new password or address through HTTP: who may set it, and what the old address can still do."""

import asyncio
import dataclasses
import re
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from svc import groups
from svc.auth import accounts, links
from svc.config import Config, MailServer
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.routes.test_links import CONFIRM, make_link, token_in
from tests.support.cases import each
from tests.support.identity_provider import StandIn, person, stand_in
from tests.support.mail_server import PASSWORD as MAIL_PASSWORD
from tests.support.mail_server import USER, MailBox
from tests.support.mail_server import box as box  # a fixture
from tests.support.oauth_browser import Browser, rows, with_providers

ADA, NEW, OTHER = "ada@example.com", "ada@new.example", "other@new.example"
BETTER = "an even better one"


@pytest.fixture
async def provider(clocks: Clocks) -> AsyncIterator[StandIn]:
    async with stand_in(lambda: clocks.now) as provider:
        yield provider


@pytest.fixture
def config(config: Config, provider: StandIn, request: pytest.FixtureRequest) -> Config:
    config = with_providers(config, stub=provider.url)
    if "box" not in request.fixturenames:
        return config
    port = request.getfixturevalue("box").port
    return dataclasses.replace(config, smtp_url=MailServer("127.0.0.1", port, "starttls", USER, MAIL_PASSWORD, USER))


def refused(answer: httpx.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["param"]


async def signs_in(service: Service, email: str, password: str = PASSWORD) -> bool:
    service.clocks.advance(60)
    answer = await service.client.post("/auth/login", json={"email": email, "password": password})
    return answer.status_code == 200


async def set_password(service: Service, headers: dict[str, str], **body: Any) -> httpx.Response:
    return await service.client.post("/user/password", json=body, headers=headers)


async def request_change(service: Service, headers: dict[str, str], email: str = NEW, **body: Any) -> httpx.Response:
    body = {"email": email, "current_password": PASSWORD, **body}
    return await service.client.patch("/user/me", json=body, headers=headers)


async def open_link(service: Service, token: str) -> httpx.Response:
    return await service.client.post("/auth/verify-email", json={"token": token})


async def verified(service: Service, email: str = ADA) -> dict[str, str]:
    """The headers of a new account's session. Its address is verified."""
    session = await service.sign_up(email)
    await service.state["db"].write(accounts.verify_email, session["user"]["id"], service.clocks.now)
    return bearer(session["access_token"])


def tokens_to(box: MailBox, email: str, page: str) -> list[str]:
    """The tokens of the links to that page that were mailed to an address."""
    texts = [message.get_content() for _, recipients, message in box.messages if recipients == [email]]
    return [token for text in texts for token in re.findall(rf"/{page}#(\w{{43}})", text)]


async def mailed(box: MailBox, email: str, page: str = "verify-email", number: int = 1) -> str:
    """The token of the link to that page, after so many were mailed to an address."""
    while len(tokens_to(box, email, page)) < number:
        await box.wait_for(len(box.messages) + 1)
    return tokens_to(box, email, page)[number - 1]


async def changed(service: Service, box: MailBox, headers: dict[str, str], email: str = NEW, **body: Any) -> str:
    """Change the account's address. Return the token of the link that undoes it."""
    before, _ = await email_of(service, headers)
    links, undone = len(tokens_to(box, email, "verify-email")), len(tokens_to(box, before, "password-reset"))
    assert (await request_change(service, headers, email, **body)).status_code == 202
    assert (await open_link(service, await mailed(box, email, number=links + 1))).status_code == 204
    return await mailed(box, before, "password-reset", undone + 1)


async def email_of(service: Service, headers: dict[str, str]) -> tuple[str, bool]:
    user = (await service.client.get("/user/me", headers=headers)).json()
    return user["email"], user["email_verified"]


# --- password


async def test_password_change_keeps_sessions_and_keys(service: Service) -> None:
    headers = bearer((await service.sign_up(ADA))["access_token"])
    key = await service.make_key(headers)
    answer = await set_password(service, headers, current_password=PASSWORD, password=BETTER)
    assert (answer.status_code, answer.content) == (204, b"")
    assert [await signs_in(service, ADA, password) for password in (PASSWORD, BETTER)] == [False, True]
    for token in (headers, bearer(key["key"])):
        assert (await service.client.get("/user/me", headers=token)).status_code == 200


async def test_password_change_ends_earlier_links(service: Service) -> None:
    headers = bearer((await service.sign_up(ADA))["access_token"])
    token = await make_link(service, ADA)
    assert (await set_password(service, headers, current_password=PASSWORD, password=BETTER)).status_code == 204
    answer = await service.client.post(CONFIRM, json={"token": token, "password": PASSWORD})
    assert refused(answer) == (400, "invalid_token", "token")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"password": BETTER}, (400, "missing_field", "current_password")),
        ({"password": BETTER, "current_password": "wrong password"}, (401, "invalid_credentials", "current_password")),
        ({"password": BETTER, "current_password": "x" * 100_000}, (401, "invalid_credentials", "current_password")),
        ({"password": "short", "current_password": PASSWORD}, (400, "invalid_value", "password")),
        ({"current_password": PASSWORD}, (400, "missing_field", "password")),
    ],
)
async def test_password_change_needs_the_current_one(
    service: Service, body: dict[str, str], expected: tuple[Any, ...]
) -> None:
    headers = bearer((await service.sign_up(ADA))["access_token"])
    assert refused(await set_password(service, headers, **body)) == expected
    assert await signs_in(service, ADA)


async def test_current_password_can_be_guessed_5_times_a_minute_in_all(service: Service) -> None:
    headers = bearer((await service.sign_up(ADA))["access_token"])
    wrong = {"current_password": "wrong password", "password": BETTER}
    statuses = [(await set_password(service, headers, **wrong)).status_code for _ in range(4)]
    leave = {"method": "DELETE", "url": "/user/me", "headers": headers}
    statuses += [(await service.client.request(**leave, json={"password": "guess"})).status_code for _ in range(2)]
    assert statuses == [401] * 5 + [429]
    service.clocks.advance(60)
    assert (await set_password(service, headers, current_password=PASSWORD, password=BETTER)).status_code == 204


async def test_of_concurrent_password_changes_one_wins(service: Service) -> None:
    headers = bearer((await service.sign_up(ADA))["access_token"])
    changes = [set_password(service, headers, current_password=PASSWORD, password=f"{BETTER} {n}") for n in range(4)]
    statuses = [answer.status_code for answer in await asyncio.gather(*changes)]
    assert sorted(statuses) == [204, 401, 401, 401]
    assert await signs_in(service, ADA, f"{BETTER} {statuses.index(204)}")


async def test_key_changes_neither_password_nor_address(service: Service, box: MailBox) -> None:
    headers = await verified(service)
    key = bearer((await service.make_key(headers))["key"])
    body = {"current_password": PASSWORD, "password": BETTER}
    assert refused(await set_password(service, key, **body)) == (403, "session_required", None)
    assert refused(await request_change(service, key)) == (403, "session_required", None)
    assert (await service.client.patch("/user/me", json={"name": "Ada"}, headers=key)).status_code == 200
    assert await signs_in(service, ADA)


# --- accounts without a password


async def test_account_without_password_sets_one_after_a_recent_single_sign_on(
    service: Service, provider: StandIn
) -> None:
    browser = Browser(service)
    session = await browser.sign_in(provider, person(ADA))
    headers = bearer(session["access_token"])
    assert session["user"]["has_password"] is False
    service.clocks.advance(601)
    assert refused(await set_password(service, headers, password=BETTER)) == (403, "recent_sign_in_required", None)
    headers = bearer((await browser.sign_in(provider, person(ADA)))["access_token"])
    service.clocks.advance(599)
    assert (await set_password(service, headers, password=BETTER)).status_code == 204
    assert (await service.client.get("/user/me", headers=headers)).json()["has_password"] is True
    assert await signs_in(service, ADA, BETTER)
    assert refused(await set_password(service, headers, password=PASSWORD)) == (
        400,
        "missing_field",
        "current_password",
    )


async def test_single_sign_on_from_before_the_verification_sets_no_password(
    service: Service, provider: StandIn
) -> None:
    """Another person may have linked that identity."""
    session = await Browser(service).sign_in(provider, person(ADA, email_verified=False))
    service.clocks.advance(1)
    await service.state["db"].write(accounts.verify_email, session["user"]["id"], service.clocks.now)
    answer = await set_password(service, bearer(session["access_token"]), password=BETTER)
    assert refused(answer) == (403, "recent_sign_in_required", None)


async def test_account_without_password_changes_its_address(service: Service, box: MailBox, provider: StandIn) -> None:
    session = await Browser(service).sign_in(provider, person(ADA))
    headers = bearer(session["access_token"])
    await changed(service, box, headers, current_password=None)
    assert await email_of(service, headers) == (NEW, True)


# --- address


async def test_address_changes_when_the_new_one_is_confirmed(service: Service, box: MailBox) -> None:
    headers = bearer((await service.sign_up(ADA))["access_token"])
    await box.wait_for(1)
    assert (await open_link(service, token_in(box, 0, "verify-email"))).status_code == 204
    reset_token = await make_link(service, ADA)
    answer = await request_change(service, headers, NEW, name="Ada")
    assert answer.status_code == 202 and (answer.json()["email"], answer.json()["name"]) == (ADA, "Ada")
    await box.wait_for(2)
    assert box.messages[1][1] == [NEW] and await email_of(service, headers) == (ADA, True)
    token = token_in(box, 1, "verify-email")
    assert [(await open_link(service, token)).status_code for _ in range(2)] == [204, 400]
    assert await email_of(service, headers) == (NEW, True)
    await box.wait_for(3)
    assert box.messages[2][1] == [ADA] and NEW not in box.messages[2][2].get_content()
    assert [await signs_in(service, email) for email in (ADA, NEW)] == [False, True]
    answer = await service.client.post(CONFIRM, json={"token": reset_token, "password": BETTER})
    assert refused(answer) == (400, "invalid_token", "token"), "it was sent to the old address"


async def test_account_leaves_and_joins_groups_with_its_address(service: Service, box: MailBox) -> None:
    headers = await verified(service)
    service.state["models"].catalog.groups = groups.parse({"groups": [{"name": "new", "emails": ["*@new.example"]}]})

    async def group() -> str | None:
        user: dict[str, str | None] = (await service.client.get("/user/me", headers=headers)).json()
        return user["group"]

    for email, joined in ((NEW, "new"), ("ada@old.example", None)):
        await changed(service, box, headers, email)
        assert await group() == joined


async def test_link_to_a_new_address_expires_after_a_day(service: Service, box: MailBox) -> None:
    headers = await verified(service)
    await request_change(service, headers)
    token = await mailed(box, NEW)
    service.clocks.advance(24 * 3600)
    assert refused(await open_link(service, token)) == (400, "invalid_token", "token")
    assert (await rows(service, "SELECT email FROM accounts")) == [(ADA,)]


async def test_without_mail_an_address_cannot_be_changed(service: Service) -> None:
    answer = await request_change(service, await verified(service))
    assert refused(answer) == (409, "mail_not_set_up", None) and "SVC_SMTP_URL" in answer.json()["error"]["message"]


async def test_address_change_needs_the_password(service: Service, box: MailBox) -> None:
    headers = await verified(service)
    answer = await request_change(service, headers, current_password="wrong password", name="Eve")
    assert refused(answer) == (401, "invalid_credentials", "current_password")
    answer = await request_change(service, headers, current_password=None)
    assert refused(answer) == (400, "missing_field", "current_password")
    answer = await request_change(service, headers, "no address")
    assert refused(answer) == (400, "invalid_value", "email")
    assert (await service.client.get("/user/me", headers=headers)).json()["name"] is None
    assert await rows(service, "SELECT count(*) FROM links WHERE purpose = 'change'") == [(0,)]


async def test_the_same_address_is_no_change(service: Service) -> None:
    headers = await verified(service)
    answer = await service.client.patch("/user/me", json={"email": ADA, "name": "Ada"}, headers=headers)
    assert (answer.status_code, answer.json()["name"]) == (200, "Ada")


async def test_answer_does_not_tell_which_addresses_are_taken(service: Service, box: MailBox) -> None:
    await service.sign_up(OTHER)
    headers = await verified(service)
    taken, free = [await request_change(service, headers, email) for email in (OTHER.upper(), NEW)]
    assert taken.status_code == free.status_code == 202 and taken.json() == free.json()
    await mailed(box, NEW)
    assert len(tokens_to(box, OTHER, "verify-email")) <= 1, "the one of the sign-up"
    assert await rows(service, "SELECT email FROM links WHERE purpose = 'change'") == [(NEW,)]


async def test_addresses_of_3_changes_an_hour_get_mail(service: Service, box: MailBox) -> None:
    headers = await verified(service)
    statuses = [
        (await request_change(service, headers, f"person{number}@victim.example")).status_code for number in range(4)
    ]
    assert statuses == [202, 202, 202, 429]


async def test_one_of_two_accounts_gets_an_address_that_both_confirm(service: Service, box: MailBox) -> None:
    for email in (ADA, OTHER):
        assert (await request_change(service, await verified(service, email))).status_code == 202
    tokens = [await mailed(box, NEW, number=number) for number in (1, 2)]
    answers = await asyncio.gather(*(open_link(service, token) for token in tokens))
    assert sorted(answer.status_code for answer in answers) == [204, 409]
    assert await rows(service, f"SELECT count(*) FROM accounts WHERE email = '{NEW}'") == [(1,)]


async def test_sign_up_before_the_confirmation_keeps_its_address(service: Service, box: MailBox) -> None:
    headers = await verified(service)
    await request_change(service, headers)
    token = await mailed(box, NEW)
    await service.sign_up(NEW)
    assert refused(await open_link(service, token)) == (409, "email_taken", None)
    assert await email_of(service, headers) == (ADA, True)


async def test_password_change_ends_a_requested_change_of_address(service: Service, box: MailBox) -> None:
    headers = await verified(service)
    await request_change(service, headers)
    token = await mailed(box, NEW)
    assert (await set_password(service, headers, current_password=PASSWORD, password=BETTER)).status_code == 204
    assert refused(await open_link(service, token)) == (400, "invalid_token", "token")


# --- undo


async def undo(service: Service, token: str) -> int:
    return (
        await service.client.post(CONFIRM, json={"token": token, "password": BETTER, "delete_keys": True})
    ).status_code


async def test_old_address_undoes_the_change_with_a_new_password(
    service: Service, box: MailBox, provider: StandIn
) -> None:
    headers = await verified(service)
    token = await changed(service, box, headers)
    assert token.endswith("u"), "the page suggests to delete the keys"
    key = await service.make_key(headers)
    session = (await service.client.post("/auth/login", json={"email": NEW, "password": PASSWORD})).json()
    assert await Browser(service).link(provider, session, person("eve@example.com")) == {"linked": "stub"}
    service.clocks.advance(72 * 3600 - 1)
    assert [await undo(service, token) for _ in range(2)] == [204, 400]
    assert await rows(service, "SELECT email, email_verified_at IS NOT NULL FROM accounts") == [(ADA, 1)]
    assert (
        await rows(service, "SELECT count(*) FROM identities")
        == await rows(service, "SELECT count(*) FROM links")
        == [(0,)]
    )
    assert (await service.client.get("/user/me", headers=bearer(key["key"]))).status_code == 401
    assert [await signs_in(service, ADA, password) for password in (PASSWORD, BETTER)] == [False, True]


async def test_undo_link_expires_after_72_hours(service: Service, box: MailBox) -> None:
    token = await changed(service, box, await verified(service))
    service.clocks.advance(72 * 3600)
    assert await undo(service, token) == 400
    await service.sign_up(ADA)  # the address is free again


async def test_old_address_is_reserved_while_the_change_can_be_undone(service: Service, box: MailBox) -> None:
    token = await changed(service, box, await verified(service))
    answer = await service.client.post("/auth/signup", json={"email": ADA.upper(), "password": PASSWORD})
    assert refused(answer) == (409, "email_taken", "email")
    to_ada = await make_change_link(service, await verified(service, OTHER), ADA)
    assert refused(await open_link(service, to_ada)) == (409, "email_taken", None)
    assert await undo(service, token) == 204


async def test_an_earlier_address_undoes_later_changes_but_not_the_reverse(service: Service, box: MailBox) -> None:
    headers = await verified(service)
    first = await changed(service, box, headers)
    second = await changed(service, box, headers, OTHER)
    assert await undo(service, second) == 204 and await email_of(service, headers) == (NEW, True)
    assert await undo(service, first) == 204 and await email_of(service, headers) == (ADA, True)
    first = await changed(service, box, headers, current_password=BETTER)
    service.clocks.advance(3600)
    headers = bearer(
        (await service.client.post("/auth/login", json={"email": NEW, "password": BETTER})).json()["access_token"]
    )
    second = await changed(service, box, headers, OTHER, current_password=BETTER)
    assert [await undo(service, token) for token in (first, second)] == [204, 400]
    assert await email_of(service, headers) == (ADA, True)


async def test_unverified_old_address_gets_no_link(service: Service, box: MailBox) -> None:
    """It may belong to a stranger, because of a typing error at sign-up."""
    headers = bearer((await service.sign_up(ADA))["access_token"])
    await box.wait_for(1)
    await request_change(service, headers)
    assert (await open_link(service, await mailed(box, NEW))).status_code == 204
    await box.wait_for(3)
    assert box.messages[2][1] == [ADA] and "#" not in box.messages[2][2].get_content()
    await service.sign_up(ADA)


async def test_an_address_that_could_not_be_restored_is_not_left(service: Service, box: MailBox) -> None:
    headers = await verified(service)
    for number in range(20):
        link = await make_change_link(service, headers, f"ada{number}@example.com")
        assert (await open_link(service, link)).status_code == 204
    assert await make_change_link(service, headers, NEW) == "", "there is no room"


async def make_change_link(service: Service, headers: dict[str, str], email: str, purpose: str = "change") -> str:
    """Store a link that gives the account this address, and return its token; "" if there are too many."""
    account_id = (await service.client.get("/user/me", headers=headers)).json()["id"]

    def add(tx: sqlite3.Connection) -> str:
        account = accounts.existing_account(tx, account_id)
        return (links.add_link(tx, account, purpose, service.clocks.now, email) or ("", ""))[1]

    token: str = await service.state["db"].write(add)
    return token


# --- SVC_PASSWORDS=0


@pytest.fixture
async def without_passwords(
    config: Config, clocks: Clocks, provider: StandIn
) -> AsyncIterator[tuple[Service, dict[str, str]]]:
    """The service with passwords disabled, and the headers of a session of Ada, who had a password before."""
    async with serving(config, clocks) as service:
        await verified(service)
    async with serving(dataclasses.replace(config, passwords=False), clocks) as service:
        session = await Browser(service).sign_in(provider, person(ADA))
        assert session["user"]["has_password"] is True
        yield service, bearer(session["access_token"])


WithoutPasswords = tuple[Service, dict[str, str]]


@each(
    ("path", "body"),
    [
        ("/auth/signup", {"email": NEW, "password": PASSWORD}),
        ("/auth/login", {"email": ADA, "password": PASSWORD}),
        ("/auth/login", {"email": NEW, "password": PASSWORD}),
        ("/auth/password-reset", {"email": ADA}),
        ("/user/password", {"current_password": PASSWORD, "password": BETTER}),
    ],
)
async def test_disabled_passwords_are_refused(
    without_passwords: WithoutPasswords, path: str, body: dict[str, str]
) -> None:
    service, headers = without_passwords
    answer = await service.client.post(path, json=body, headers=headers)
    assert refused(answer) == (403, "passwords_disabled", None)
    assert await rows(service, "SELECT count(*) FROM accounts") == [(1,)]


async def test_one_time_link_opens_a_session_instead_of_setting_a_password(
    without_passwords: WithoutPasswords, config: Config, clocks: Clocks
) -> None:
    service, _ = without_passwords
    token = await make_link(service, ADA, by_mail=False)
    answer = await service.client.post(CONFIRM, json={"token": token, "password": BETTER})
    assert (
        answer.status_code == 200
        and answer.json()["expires_in"] == 28_800
        and "__Host-" in answer.headers["set-cookie"]
    )
    headers = bearer(answer.json()["access_token"])
    assert await email_of(service, headers) == (ADA, True)
    again = await service.client.post(CONFIRM, json={"token": token})
    assert refused(again) == (400, "invalid_token", "token")
    answer = await request_change(service, headers)
    assert answer.status_code == 409, "mail is not set up"
    service.clocks.advance(28_800)
    assert (await service.client.get("/user/me", headers=headers)).status_code == 401


async def test_undo_without_passwords_removes_the_password_that_another_person_may_know(
    without_passwords: WithoutPasswords,
) -> None:
    service, headers = without_passwords
    user = (await service.client.get("/user/me", headers=headers)).json()

    answer = await service.client.post(CONFIRM, json={"token": await make_change_link(service, headers, OTHER, "undo")})
    assert answer.status_code == 200
    assert answer.json()["user"] == {**user, "email": OTHER, "has_password": False, "created_at": user["created_at"]}
    assert await rows(service, "SELECT password_hash FROM accounts") == [(None,)]


async def test_without_passwords_a_recent_single_sign_on_is_needed(
    without_passwords: WithoutPasswords, provider: StandIn
) -> None:
    service, headers = without_passwords
    identity = (await service.client.get("/user/identities", headers=headers)).json()["data"][0]["id"]
    answer = await service.client.delete(f"/user/identities/{identity}", headers=headers)
    assert refused(answer) == (409, "last_identity", None), "the password is no way to sign in"
    answer = await service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=headers)
    assert refused(answer) == (400, "invalid_value", "confirm")
    answer = await service.client.request("DELETE", "/user/me", json={"confirm": ADA}, headers=headers)
    assert answer.status_code == 204


async def test_checkout_without_passwords_offers_the_providers(without_passwords: WithoutPasswords) -> None:
    service, _ = without_passwords
    service.client.cookies.clear()
    form = {"content-type": "application/x-www-form-urlencoded", "origin": service.config.base_url}
    signed_in = await service.client.post("/checkout/sign-in", content=f"email={ADA}&password={PASSWORD}", headers=form)
    for answer, status in ((signed_in, 403), (await service.client.get("/checkout"), 401)):
        assert answer.status_code == status and 'href="/auth/oauth/stub"' in answer.text
        assert "password" not in answer.text.partition("<h1>")[2].replace("Passwords are disabled", "")
        assert "set-cookie" not in answer.headers


async def test_pages_know_that_passwords_are_disabled(without_passwords: WithoutPasswords) -> None:
    service, _ = without_passwords
    assert '"passwords":false' in (await service.client.get("/")).text
    assert 'data-passwords="off"' in (await service.client.get("/password-reset")).text
