"""Attacks on sign-in and accounts: the worst texts without sign-in, and password hashing."""

import asyncio
import time
from typing import Any

from tests.attacks.lab import PASSWORD, Lab, attack

# A mark that stands above and one that stands below, in turn: normalizing sorts them, which takes quadratic time.
MARKS = "a" + "\u0301\u0323" * 160_000
TEXTS = (MARKS, MARKS + "@example.com", "\ufdfa" * 100_000, "@" * 300_000, "a." * 150_000 + "@b", "\u202e" * 300_000)
FORM = {"content-type": "application/x-www-form-urlencoded"}


async def _anonymous(lab: Lab, path: str, body: dict[str, Any]) -> None:
    await lab.post(path, body, headers={"authorization": ""})


@attack("combining marks and other bombs of 300,000 characters as e-mail, name and token, nobody signed in")
async def marks(lab: Lab) -> None:
    texts = TEXTS[:3] if lab.short else TEXTS
    for text in texts:
        await _anonymous(lab, "/auth/login", {"email": text, "password": text})
        await _anonymous(lab, "/auth/signup", {"email": text, "password": PASSWORD, "name": text})
        await _anonymous(lab, "/auth/password-reset", {"email": text})
        await _anonymous(lab, "/auth/password-reset/confirm", {"token": text, "password": text})
        await _anonymous(lab, "/auth/verify-email", {"token": text})
        form = {"content": b"email=" + b"%CC%81%CC%A3" * 1_200 + b"&password=x"}
        origin = {"origin": lab.server.base_url, "authorization": ""}
        await lab.request("POST", "/checkout/sign-in", headers={**FORM, **origin}, **form)


@attack("combining marks and other bombs as the names of an account and its keys")
async def marked_names(lab: Lab) -> None:
    for text in TEXTS[:3] if lab.short else TEXTS:
        await lab.request("PATCH", "/user/me", json={"name": text})
        await lab.post("/user/api-keys", {"name": text})
        await lab.request("PATCH", "/user/settings", json={"default_model": text})


async def _logins_beside(lab: Lab, flood: list["asyncio.Task[Any]"]) -> None:
    """Another client signs in three times from its own address during the flood.
    Each sign-in must succeed, and soon.
    """
    async with lab.from_elsewhere(1, timeout=20) as client:
        for _ in range(3):
            began = time.monotonic()
            answer = await client.post("/auth/login", json={"email": "somebody@example.com", "password": PASSWORD})
            took_seconds = time.monotonic() - began
            assert answer.status_code == 200, answer.text
            assert took_seconds < 5, f"a login took {took_seconds:.1f} s"
    for task in flood:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)


@attack("130 connections guess tokens of password links, each guess with a password to hash; others sign in")
async def reset_guesses(lab: Lab) -> None:
    async def guess(number: int) -> None:
        for attempt in range(20):
            await _anonymous(
                lab, "/auth/password-reset/confirm", {"token": f"{number} {attempt}", "password": PASSWORD}
            )

    flood = [asyncio.create_task(guess(number)) for number in range(30 if lab.short else 130)]
    await asyncio.sleep(0.2)
    await _logins_beside(lab, flood)


@attack("130 connections delete accounts with wrong passwords, each with an account of its own; others sign in")
async def delete_guesses(lab: Lab) -> None:
    accounts = [await lab.account(number) for number in range(3 if lab.short else 8)]

    async def guess(headers: dict[str, str]) -> None:
        await lab.request("DELETE", "/user/me", json={"password": "a wrong guess"}, headers=headers)

    flood = [asyncio.create_task(guess(headers)) for headers in accounts for _ in range(5 if lab.short else 17)]
    await asyncio.sleep(0.1)
    await _logins_beside(lab, flood)


@attack("3,000 keys with names of 1,000 characters, listed by 16 connections at once")
async def listed_keys(lab: Lab) -> None:
    for _ in range(2 if lab.short else 60):
        await lab.at_once(50, lambda: lab.post("/user/api-keys", {"name": "\U0001f600" * 1_000}))
    await lab.at_once(16, lambda: lab.request("GET", "/user/api-keys"))


@attack("an account opens checkouts as fast as it can")
async def checkouts(lab: Lab) -> None:
    login = await lab.post("/auth/login", {"email": lab.email, "password": PASSWORD}, headers={"authorization": ""})
    cookie = login.headers["set-cookie"].partition(";")[0] if login is not None else ""
    headers = {**FORM, "origin": lab.server.base_url, "cookie": cookie}
    await lab.at_once(40, lambda: lab.request("POST", "/checkout", content=b"amount=5", headers=headers))
    if lab.statuses.get("303", 0) > 20:
        raise AssertionError(f"an account opened {lab.statuses['303']} checkouts")
