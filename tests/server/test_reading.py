"""Reading in the background. tests/routes/test_project_files.py tests it through HTTP."""

import sqlite3

from svc import quota
from svc.config import Config
from svc.content import project_files
from tests.conftest import Clocks, Service, serving
from tests.routes.test_project_files import TRAIN, add, artifact, has_text, listed, project_of, read
from tests.support.waiting import until

COUNTS = "SELECT (SELECT count(*) FROM file_passages), (SELECT count(*) FROM file_texts)"


def counts(conn: sqlite3.Connection) -> tuple[int, int]:
    passages, texts = conn.execute(COUNTS).fetchone()
    return passages, texts


async def test_files_of_accounts_are_read_beside_each_other(service: Service) -> None:
    for _ in range(3):
        headers = await service.bearer()
        project_id = await project_of(service, headers)
        for _ in range(2):
            file = await add(service, headers, project_id, await artifact(service, headers, TRAIN.encode()))
            assert file["status"] == "ready"


async def test_file_beyond_the_quota_fails_while_it_is_read_and_leaves_nothing(service: Service) -> None:
    signed_up = await service.sign_up()
    headers = {"authorization": f"Bearer {signed_up['access_token']}"}
    project_id, db = await project_of(service, headers), service.state["db"]
    artifact_id = await artifact(service, headers, TRAIN.encode() * 500)
    stored = (await db.read(quota.stored, signed_up["user"]["id"])).stored_bytes
    await db.write(quota.set_limit, stored + 10_000)  # enough for the row
    file = await add(service, headers, project_id, artifact_id)
    assert (file["status"], file["error"]["code"], file["text_bytes"]) == ("failed", "quota_exceeded", 0)
    assert "Delete something first." in file["error"]["message"]
    await until(lambda: db.look_up(counts) == (0, 0))
    assert (await db.read(quota.stored, signed_up["user"]["id"])).stored_bytes == stored + quota.ROW_BYTES
    await db.write(quota.set_limit, 10**9)
    path = f"/projects/{project_id}/files"
    assert (await service.client.delete(f"{path}/{artifact_id}", headers=headers)).status_code == 204
    assert (await add(service, headers, project_id, artifact_id))["status"] == "ready"


async def test_text_beyond_that_of_a_project_fails_while_it_is_read(service: Service) -> None:
    headers = await service.bearer()
    project_id = await project_of(service, headers)
    first = await add(service, headers, project_id, await artifact(service, headers, b"x " * 50))
    await has_text(service, project_files.MOST_TEXT_BYTES - 50)
    second = await add(service, headers, project_id, await artifact(service, headers, b"y " * 50))
    assert (first["status"], second["status"], second["error"]["code"]) == ("ready", "failed", "PAYLOAD_TOO_LARGE")
    await until(lambda: service.state["db"].look_up(counts)[1] == 1)


async def test_files_that_wait_are_read_after_a_restart(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks) as service:
        headers = await service.bearer()
        project_id = await project_of(service, headers)
        ids = [await artifact(service, headers, TRAIN.encode() * 100, f"{number}.md") for number in range(5)]
        for artifact_id in ids:
            body = {"artifact_id": artifact_id}
            await service.client.post(f"/projects/{project_id}/files", json=body, headers=headers)
        statuses = {file["status"] for file in await listed(service, headers, project_id)}
    assert "reading" in statuses
    async with serving(config, clocks) as service:
        files = [await read(service, headers, project_id, artifact_id) for artifact_id in ids]
        assert {file["status"] for file in files} == {"ready"}
        await until(lambda: service.state["db"].look_up(counts)[1] == 5)
