"""Accounts and keys on a real server, made through its API or by the operator's command (which no sign-up limit slows)."""

import itertools
import os
import ssl
import subprocess
import sys
from dataclasses import dataclass

import httpx

from tests.support.server import ROOT, RunningServer

PASSWORD = "correct horse battery"


@dataclass
class Person:
    email: str
    session: str
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}

    @property
    def session_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.session}"}


def command(server: RunningServer, *arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Runs `python -m svc ARGUMENTS` beside the server."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    settings |= {"SVC_DATA_DIR": str(server.data_dir), "SVC_BASE_URL": server.base_url, **env}
    return subprocess.run(
        [sys.executable, "-m", "svc", *arguments], cwd=ROOT, env=settings, input=stdin, capture_output=True, text=True, timeout=30
    )


async def new_person(server: RunningServer, email: str = "ada@example.com", address: str = "127.0.0.1") -> Person:
    """Signs up from `address` (10 an hour are let in from each) and makes a key."""
    context = server.tls or ssl.create_default_context()
    async with server.client(transport=httpx.AsyncHTTPTransport(verify=context, local_address=address)) as client:
        signed_up = await client.post("/auth/signup", json={"email": email, "password": PASSWORD})
        assert signed_up.status_code == 201, signed_up.text
        return await with_key(client, email, signed_up.json()["access_token"])


_numbers = itertools.count(1)


async def another_person(server: RunningServer) -> Person:
    """Sign up a new account from its own address, as often as a test calls it."""
    number = next(_numbers)
    return await new_person(server, f"person{number}@example.com", f"127.0.{number // 250 + 1}.{number % 250 + 1}")


async def with_key(client: httpx.AsyncClient, email: str, session: str) -> Person:
    made = await client.post("/user/api-keys", json={"name": "tests"}, headers={"authorization": f"Bearer {session}"})
    assert made.status_code == 201, made.text
    return Person(email, session, made.json()["key"])
