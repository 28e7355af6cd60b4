"""`svc user …`, on a database and beside a running server."""

import asyncio
import dataclasses
import os
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from svc import cli
from svc.auth import accounts
from svc.config import Config
from svc.schema import command_connection
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.people import command_on
from tests.support.server import ROOT

EMAIL = "ada@example.com"


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path))
    path = tmp_path / "service.db"
    with command_connection(path) as tx:
        accounts.add_account(tx, EMAIL, None, None, 1_790_000_000.0)
    return path


async def test_printed_link_sets_a_password_and_does_not_verify_the_email(
    service: Service, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service.clocks.now = time.time()  # as the command has it
    session = await service.sign_up(EMAIL)
    monkeypatch.setenv("SVC_DATA_DIR", str(service.config.data_dir))
    # In a thread: the command asks the service, whose event loop is this one, for its address.
    assert await asyncio.to_thread(cli.main, ["user", "reset-link", EMAIL.upper()]) == 0
    link = capsys.readouterr().out.strip()
    assert re.fullmatch(re.escape(service.config.base_url) + "/password-reset#[0-9A-Za-z]{43}", link)
    body = {"token": link.partition("#")[2], "password": "a new password"}
    assert (await service.client.post("/auth/password-reset/confirm", json=body)).status_code == 204
    me = (await service.client.get("/user/me", headers=bearer(session["access_token"]))).json()
    assert me["email_verified"] is False


@each("email", ["p@example..com", ".p@example.com", "p@example.com."])
def test_invalid_email_is_refused(database: Path, capsys: pytest.CaptureFixture[str], email: str) -> None:
    assert cli.main(["user", "add", email]) == 1
    assert "email must be an address such as ada@example.com" in capsys.readouterr().err


def test_an_account_is_named_by_its_email_or_its_id(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["user", "list", "--sort", "stored_bytes"]) == 0
    account_id = capsys.readouterr().out.split("\t")[0]
    assert cli.main(["credit", account_id, "1"]) == 0
    assert cli.main(["user", "delete", account_id]) == 0
    assert cli.main(["user", "delete", account_id]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
def test_list_into_a_closed_pipe_holds_no_lock_and_prints_no_traceback(database: Path) -> None:
    with command_connection(database) as tx:
        for number in range(3_000):  # more than a pipe takes
            accounts.add_account(tx, f"person{number}@example.com", None, None, 1_790_000_000.0)
    arguments = [sys.executable, "-m", "svc", "user", "list"]
    environ = {**os.environ, "SVC_DATA_DIR": str(database.parent)}
    with subprocess.Popen(arguments, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listing:
        assert listing.stdout is not None and listing.stderr is not None
        assert listing.stdout.read(5) == b"user_"  # it prints, and waits until more is read
        with closing(sqlite3.connect(database, timeout=0.2, isolation_level=None)) as conn:
            conn.execute("BEGIN IMMEDIATE")
            conn.execute("ROLLBACK")
        listing.stdout.close()
        assert listing.stderr.read() == b"" and listing.wait(30) == 1


def test_a_password_from_standard_input_signs_in(database: Path) -> None:
    words = ("user", "add", "bob@example.com", "--name", "Bob")
    answer = command_on(database.parent, *words, stdin=f"{PASSWORD}\n")
    assert answer.returncode == 0 and "password" not in answer.stdout
    with closing(sqlite3.connect(database)) as conn:
        (stored,) = conn.execute("SELECT password_hash FROM accounts WHERE email = 'bob@example.com'").fetchone()
    assert stored.startswith("$argon2id$")


@pytest.mark.parametrize(("base_url", "admin"), [("", True), ("https://svc.example", False)])
async def test_first_account_by_command_is_an_administrator_if_the_running_server_is_local(
    config: Config, clocks: Clocks, base_url: str, admin: bool
) -> None:
    settings = {"SVC_BASE_URL": base_url} if base_url else {}
    async with serving(
        dataclasses.replace(config, base_url=base_url or config.base_url, environ=settings), clocks
    ) as service:
        words = ("user", "add", EMAIL)
        added = await asyncio.to_thread(command_on, service.config.data_dir, *words, stdin=f"{PASSWORD}\n")
        assert added.returncode == 0, added.stderr
        made = (await service.client.post("/auth/login", json={"email": EMAIL, "password": PASSWORD})).json()
        assert made["user"]["admin"] is admin and made["user"]["email_verified"] is True
