"""Attacks on signing in, on names and on what an account lists."""

import asyncio

import orjson

from tests.attacks.lab import PASSWORD, Lab, attack

MARKS = "a" + "\u0300\u0316" * 250_000


@attack("an e-mail of 500,000 combining marks on every way in, nobody signed in")
async def marks_in_emails(lab: Lab) -> None:
    body = orjson.dumps({"email": f"{MARKS}@example.com", "password": PASSWORD})
    for path in ("/auth/login", "/auth/signup", "/auth/password-reset"):
        await lab.flood(path, body, 4)
    form = f"email={'%CC%80%CC%96' * 1300}%40example.com&password=x"
    headers = {"content-type": "application/x-www-form-urlencoded", "origin": lab.server.base_url}
    await lab.request("POST", "/checkout/sign-in", content=form, headers=headers)


@attack("names, titles and search words of 500,000 combining marks")
async def marks_in_names(lab: Lab) -> None:
    for path, field in (
        ("/projects", "name"),
        ("/conversations", "title"),
        ("/user/api-keys", "name"),
        ("/artifacts", "name"),
    ):
        await lab.flood(path, orjson.dumps({field: MARKS, "content": "x"}), 8)
    await lab.request("GET", "/conversations", params={"q": "a" + "\u0300\u0316" * 2_000})


@attack("130 passwords guessed at once for a link that does not exist")
async def reset_links(lab: Lab) -> None:
    body = {"token": "x" * 43, "password": "a new password"}
    await lab.at_once(130, lambda: lab.post("/auth/password-reset/confirm", body))


@attack("130 passwords guessed at once to delete the account")
async def deletions(lab: Lab) -> None:
    await lab.at_once(40 if lab.short else 130, lambda: lab.request("DELETE", "/user/me", json={"password": "wrong"}))


@attack("a list of 400 keys with names of 900,000 characters, read 40 times at once")
async def long_key_names(lab: Lab) -> None:
    body = {"name": "x" * 900_000}
    for _ in range(5 if lab.short else 20):
        await lab.at_once(5 if lab.short else 20, lambda: lab.post("/user/api-keys", body))
    await lab.at_once(10 if lab.short else 40, lambda: lab.request("GET", "/user/api-keys"))


@attack("20,000 keys, listed 40 times at once by readers who stand still")
async def many_keys(lab: Lab) -> None:
    for _ in range(6 if lab.short else 200):
        await lab.at_once(25 if lab.short else 100, lambda: lab.post("/user/api-keys", {"name": "\U0001f600" * 1000}))
    request = f"GET /user/api-keys HTTP/1.1\r\nhost: localhost\r\nauthorization: {lab.headers['authorization']}\r\n\r\n"
    async with lab.connections(40, request.encode()):
        await asyncio.sleep(lab.seconds)
