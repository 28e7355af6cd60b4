"""`svc rotate-secrets`, with the server stopped, running, and killed at every step."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from svc import cli
from svc.auth import accounts, links
from svc.config import Config
from svc.errors import StartError
from svc.inference.providers import KeyBox, add_provider
from svc.schema import command_connection, connect
from svc.secrets import derive, fits, open_folder
from svc.server.rotation import check_master
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.oauth_browser import rows

KEY = "sk-users-own-0123456789-secret"


@pytest.fixture
def folder(config: Config, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SVC_DATA_DIR", str(config.data_dir))
    return config.data_dir


async def rotate() -> int:
    # In a thread: the command asks the service, whose event loop is this one.
    return await asyncio.to_thread(cli.main, ["rotate-secrets"])


async def own_provider(service: Service, headers: dict[str, str], name: str = "mine") -> str:
    body = {"name": name, "base_url": "http://127.0.0.1:9/v1", "api_key": KEY}
    answer = await service.client.post("/user/providers", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    provider_id: str = answer.json()["id"]
    return provider_id


def stored_keys(folder: Path) -> list[str]:
    """The providers' keys, decrypted with the master key of the folder."""
    with closing(connect(folder / "service.db", query_only=True)) as conn:
        master = (folder / "master.key").read_bytes()
        assert fits(conn, master)
        found = conn.execute("SELECT account_id, id, sealed_key FROM providers").fetchall()
    return [KeyBox(master).open(*row) for row in found]


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("master.key*")}


async def sign_in(service: Service, email: str) -> dict[str, str]:
    answer = await service.client.post("/auth/login", json={"email": email, "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    return bearer(answer.json()["access_token"])


async def test_rotation_of_a_running_server_ends_sessions_links_and_cookies(
    service: Service, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = await service.sign_up("ada@example.com")
    headers, old = bearer(session["access_token"]), (folder / "master.key").read_bytes()
    cookie = (
        await service.client.post("/auth/login", json={"email": "ada@example.com", "password": PASSWORD})
    ).headers["set-cookie"]
    key = bearer((await service.make_key(headers))["key"])
    await own_provider(service, headers)
    image = {"name": "a.png", "content_type": "image/png", "content": "x"}
    artifact = (await service.client.post("/artifacts", json=image, headers=headers)).json()

    def link(tx: sqlite3.Connection) -> str:
        account, now = accounts.existing_account(tx, session["user"]["id"]), service.clocks.now
        reset, undo = (
            links.add_link(tx, account, "reset", now),
            links.add_link(tx, account, "undo", now, "a@old.example"),
        )
        assert reset and undo
        tx.execute("INSERT INTO oauth_flows VALUES (zeroblob(32), zeroblob(32), 'stub', NULL, 9e9)")
        return reset[1]

    token = await service.state["db"].write(link)
    assert await rotate() == 0
    out = capsys.readouterr().out
    assert "1 provider keys" in out and "master.key.old" in out and out.count("\n") == 2
    service.client.cookies.clear()
    checkout = await service.client.get("/checkout", headers={"cookie": cookie.partition(";")[0]})
    for answer in (await service.client.get("/user/me", headers=headers), checkout):
        assert answer.status_code == 401
    assert (await service.client.get(artifact["content_url"])).status_code == 401
    body = {"token": token, "password": PASSWORD}
    assert (await service.client.post("/auth/password-reset/confirm", json=body)).status_code == 400
    assert await rows(service, "SELECT purpose FROM links") == [("undo",)], "owners can still undo a change of address"
    assert await rows(service, "SELECT * FROM oauth_flows") == []
    assert (await service.client.get("/user/me", headers=key)).status_code == 200
    headers = await sign_in(service, "ada@example.com")
    assert (await service.client.get("/user/me", headers=headers)).status_code == 200
    assert files(folder) == {"master.key", "master.key.old"} and (folder / "master.key.old").read_bytes() == old
    assert (folder / "master.key").stat().st_mode & 0o777 == 0o600
    await own_provider(service, headers, "another")
    assert stored_keys(folder) == [KEY, KEY]
    audited = await rows(service, "SELECT actor, action, details FROM audit WHERE action = 'secrets.rotate'")
    assert audited == [("operator", "secrets.rotate", '{"provider_keys":1}')]


async def test_rotation_survives_a_restart_and_the_old_key_is_in_no_file_of_the_database(
    config: Config, clocks: Clocks, folder: Path
) -> None:
    async with serving(config, clocks) as service:
        await own_provider(service, bearer((await service.sign_up("ada@example.com"))["access_token"]))
        sealed = await rows(service, "SELECT sealed_key FROM providers")
        assert await rotate() == 0 and await rotate() == 0, "twice in a row"
        headers = await sign_in(service, "ada@example.com")
        assert not any(sealed[0][0] in path.read_bytes() for path in folder.glob("service.db*"))
    async with serving(config, clocks) as service:
        assert (await service.client.get("/user/me", headers=headers)).status_code == 200
    assert stored_keys(folder) == [KEY]


async def test_rotation_with_the_server_stopped(config: Config, clocks: Clocks, folder: Path) -> None:
    async with serving(config, clocks) as service:
        headers = bearer((await service.sign_up())["access_token"])
        await own_provider(service, headers)
    old = (folder / "master.key").read_bytes()
    assert await rotate() == 0
    assert files(folder) == {"master.key", "master.key.old"} and (folder / "master.key.old").read_bytes() == old
    assert stored_keys(folder) == [KEY]
    async with serving(config, clocks) as service:
        assert (await service.client.get("/user/me", headers=headers)).status_code == 401
        assert await rows(service, "SELECT action FROM audit") == [("secrets.rotate",)]


async def test_providers_stored_during_a_rotation_stay_readable(service: Service, folder: Path) -> None:
    owners = [await service.bearer() for _ in range(4)]
    keys = [bearer((await service.make_key(headers))["key"]) for headers in owners]

    async def store(headers: dict[str, str]) -> None:
        for number in range(5):
            await own_provider(service, headers, f"p{number}")

    statuses = await asyncio.gather(rotate(), rotate(), *(store(headers) for headers in keys))
    assert statuses[:2] == [0, 0]
    assert stored_keys(folder) == [KEY] * 20
    row = (await rows(service, "SELECT account_id, id, sealed_key FROM providers LIMIT 1"))[0]
    assert service.state["key_box"].open(*row) == KEY


def test_rotation_of_a_lost_master_key_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(folder)
    (folder / "master.key").write_bytes(os.urandom(32))
    before = (folder / "master.key").read_bytes()
    assert cli.main(["rotate-secrets"]) == 1
    assert "is not the one with which 3 provider keys" in capsys.readouterr().err
    assert (folder / "master.key").read_bytes() == before


def test_server_without_a_socket_must_be_stopped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(folder)
    server = open_folder(folder)
    assert cli.main(["rotate-secrets"]) == 1
    assert "another server" in capsys.readouterr().err and files(folder) == {"master.key"}
    server.close()


# --- killed


def fill(folder: Path) -> None:
    """A database with three encrypted keys, as a server leaves it."""
    made = open_folder(folder)
    with command_connection(folder / "service.db") as tx:
        account = accounts.add_account(tx, "ada@example.com", None, None, 1.0)
        tx.execute("UPDATE installation SET key_check = ?", (derive(made.master, "check"),))
        for number in range(3):
            fields: dict[str, Any] = {
                "name": f"p{number}",
                "base_url": "http://a.example",
                "api_key": KEY,
                "models": None,
            }
            add_provider(tx, account.id, fields, KeyBox(made.master), 1.0)
        links.add_link(tx, account, "reset", 1.0)
    made.close()


def test_second_rotation_after_an_interrupted_one_loses_no_key(folder: Path) -> None:
    fill(folder)
    assert cli.main(["rotate-secrets"]) == 0
    # As if it had been killed between the transaction and the renames.
    (folder / "master.key").rename(folder / "master.key.new")
    (folder / "master.key.old").rename(folder / "master.key")
    assert cli.main(["rotate-secrets"]) == 0
    assert stored_keys(folder) == [KEY] * 3 and files(folder) == {"master.key", "master.key.old"}


@pytest.mark.parametrize("content", [b"", b"x" * 31, bytes(range(32))])
def test_a_new_key_that_has_not_reached_the_database_is_deleted_by_a_start(folder: Path, content: bytes) -> None:
    fill(folder)
    (folder / "master.key.new").write_bytes(content)
    with pytest.raises(StartError, match="is missing"):
        (folder / "master.key").rename(folder / "elsewhere")
        start(folder)
    (folder / "elsewhere").rename(folder / "master.key")
    start(folder)
    assert files(folder) == {"master.key"} and stored_keys(folder) == [KEY] * 3


def start(folder: Path) -> None:
    """What a start does with the secrets."""
    opened = open_folder(folder)
    try:
        with command_connection(folder / "service.db") as tx:
            check_master(tx, opened)
        opened.keep_master()
    finally:
        opened.close()


# --- backups


async def test_backups_during_rotations_are_whole(
    service: Service, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await own_provider(service, await service.bearer())
    targets = [tmp_path / f"{number}.tar" for number in range(4)]
    backups = [asyncio.to_thread(cli.main, ["backup", str(target)]) for target in targets]
    assert await asyncio.gather(*backups, *(rotate() for _ in range(4))) == [0] * 8
    for target in targets:
        monkeypatch.setenv("SVC_DATA_DIR", str(target.with_suffix("")))
        assert cli.main(["restore", str(target)]) == 0
        assert stored_keys(target.with_suffix("")) == [KEY]


def test_next_backup_deletes_the_old_key(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder)
    assert cli.main(["rotate-secrets"]) == 0
    assert cli.main(["backup", str(tmp_path / "backup.tar")]) == 0
    assert files(folder) == {"master.key"}
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path / "restored"))
    assert cli.main(["restore", str(tmp_path / "backup.tar")]) == 0
    assert stored_keys(tmp_path / "restored") == [KEY] * 3


def test_database_from_before_a_rotation_is_restored_with_the_old_key(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder)
    with closing(sqlite3.connect(folder / "service.db")) as conn:
        conn.execute("VACUUM INTO ?", (str(folder / "replica.db"),))
    assert cli.main(["rotate-secrets"]) == 0
    monkeypatch.setenv("SVC_DATA_DIR", str(tmp_path / "restored"))
    assert cli.main(["restore", str(folder / "replica.db")]) == 0
    assert stored_keys(tmp_path / "restored") == [KEY] * 3


def test_doctor_reports_an_interrupted_rotation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(folder)
    (folder / "master.key").rename(folder / "master.key.new")
    (folder / "master.key").write_bytes(os.urandom(32))
    cli.main(["doctor"])
    assert "master.key is being replaced" in capsys.readouterr().out
