"""What was deleted is in no file of the data folder and in no later backup, after a stop and after a crash."""

import asyncio
import contextlib
from pathlib import Path

import httpx
import pytest

from svc.deletion.slices import begin_deletion
from svc.schema import connect
from tests.support.local_server import AnyServer, local_server
from tests.support.money import rows
from tests.support.people import PASSWORD, Person, another_person, command
from tests.support.remains import Texts, content_of, fill, found_in, texts
from tests.support.waiting import until


async def id_of(client: httpx.AsyncClient, person: Person) -> str:
    account_id: str = (await client.get("/user/me", headers=person.headers)).json()["id"]
    return account_id


async def filled(server: AnyServer) -> tuple[Person, Texts, Texts]:
    """Fill two accounts. Return one of them, and the texts of both."""
    bob, ada = await another_person(server), await another_person(server)  # the first one is the administrator
    path = server.data_dir / "service.db"
    async with server.client() as client:
        ids = [await id_of(client, person) for person in (ada, bob)]
    for account_id in ids:
        await asyncio.to_thread(fill, path, account_id)
    with contextlib.closing(connect(path, query_only=True)) as conn:
        gone, stays = (texts(conn, account_id) for account_id in ids)
    for place, those in stays.items():  # both have a key with the same name
        gone[place] = [text for text in gone[place] if text not in those]
    empty = [place for place, those in gone.items() if not those]
    assert empty == [], "fill these columns in tests/support/remains.py, or name the reason in NOT_PERSONAL"
    before = await asyncio.to_thread(content_of, server.data_dir)
    assert found_in(before, gone) == gone, "else nothing below could fail"
    return ada, gone, stays


async def delete_account(server: AnyServer, person: Person) -> None:
    async with server.client(headers=person.session_headers, timeout=60) as client:
        answer = await client.request("DELETE", "/user/me", json={"password": PASSWORD})
        assert answer.status_code == 204, answer.text


def check_erased(server: AnyServer, folder: Path, gone: Texts, stays: Texts) -> None:
    """Check the data folder of a server that has ended, and a backup of it."""
    assert found_in(content_of(server.data_dir), gone) == {}
    made = command(server, "backup", str(folder / "a.tar"))
    assert made.returncode == 0, made.stderr
    archive = (folder / "a.tar").read_bytes()
    assert found_in(archive, gone) == {}
    kept = found_in(archive, stays)
    del kept["accounts.name"], stays["accounts.name"]
    assert kept == stays
    assert command(server, "check").stdout.startswith("ok")


@pytest.mark.parametrize("crash", [False, True])
async def test_deleted_account_leaves_no_bytes(tmp_path: Path, crash: bool) -> None:
    async with local_server(tmp_path) as server:
        ada, gone, stays = await filled(server)
        if not crash:
            await delete_account(server, ada)
            await server.stop()
            check_erased(server, tmp_path, gone, stays)
            return
        async with server.client() as client:
            account_id = await id_of(client, ada)
        await server.service.state["db"].write(begin_deletion, account_id, 1_790_000_000.0, None)
        (tmp_path / "crashed").mkdir()
        database = server.copy_after_crash(tmp_path / "crashed")
        assert rows(database, "SELECT id FROM accounts WHERE deleting_at IS NOT NULL") == [(account_id,)]
    async with local_server(tmp_path / "crashed") as server:
        await until(lambda: rows(database, "SELECT id FROM accounts WHERE deleting_at IS NOT NULL") == [])
        await server.stop()
    assert found_in(content_of(server.data_dir), gone) == {}
