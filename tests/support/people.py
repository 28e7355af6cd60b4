"""Accounts and keys on a real server, made through its API or by the operator's command (which no
sign-up limit slows).
"""

import contextlib
import io
import itertools
import os
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from svc import cli
from tests.support.local_server import AnyServer

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


_ONE_COMMAND = ThreadPoolExecutor(1)


def command(server: AnyServer, *arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run `svc ARGUMENTS` beside the server, in a thread of this process: a new process takes half a second of CPU
    time.
    """
    return command_on(server.data_dir, *arguments, stdin=stdin, **{"SVC_BASE_URL": server.base_url, **env})


def command_on(data_dir: Path, *arguments: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run `svc ARGUMENTS` on a data folder, in a thread as well."""
    return _ONE_COMMAND.submit(_run, arguments, stdin, {"SVC_DATA_DIR": str(data_dir), **env}).result(30)


def _run(arguments: tuple[str, ...], stdin: str, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    out, err = io.StringIO(), io.StringIO()
    unset = [name for name in os.environ if name.startswith("SVC_")]
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        for name in unset:
            patch.delenv(name)
        for name, value in settings.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        status = cli.main(arguments)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


async def new_person(server: AnyServer, email: str = "ada@example.com", address: str = "127.0.0.1") -> Person:
    """Signs up from `address` (10 an hour are let in from each) and makes a key."""
    context = server.tls or ssl.create_default_context()
    async with server.client(transport=httpx.AsyncHTTPTransport(verify=context, local_address=address)) as client:
        signed_up = await client.post("/auth/signup", json={"email": email, "password": PASSWORD})
        assert signed_up.status_code == 201, signed_up.text
        return await with_key(client, email, signed_up.json()["access_token"])


_numbers = itertools.count(1)


async def another_person(server: AnyServer) -> Person:
    """Sign up a new account from its own address, as often as a test calls it."""
    number = next(_numbers)
    return await new_person(server, f"person{number}@example.com", f"127.0.{number // 250 + 1}.{number % 250 + 1}")


async def with_key(client: httpx.AsyncClient, email: str, session: str) -> Person:
    made = await client.post("/user/api-keys", json={"name": "tests"}, headers={"authorization": f"Bearer {session}"})
    assert made.status_code == 201, made.text
    return Person(email, session, made.json()["key"])
