"""What artifacts may be, wherever they come from: the rules of the schema, the quotas, and contents kept in chunks."""

import asyncio
import hashlib
import sqlite3
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from svc.content import artifacts
from svc.content.artifact_contents import CONTENT_BYTES
from svc.content.artifacts import LINK_SECONDS, account_of_link, content_url
from svc.errors import ApiError
from tests.conftest import Service, bearer
from tests.routes.test_projects import make_project
from tests.support.artifacts import get_content, make_artifact, put_content
from tests.support.cases import each

KEY, NOW = b"k" * 32, 1_790_000_000.0
ARTIFACT, ACCOUNT = "art_1", "user_1"
RUN_A, RUN_B = (f"run_{letter * 26}" for letter in "ab")


def query_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


QUERY = query_of(content_url(KEY, "https://here", ACCOUNT, ARTIFACT, NOW))


def test_link_names_its_account_for_an_hour() -> None:
    assert account_of_link(KEY, QUERY, ARTIFACT, NOW) == ACCOUNT
    assert account_of_link(KEY, QUERY, ARTIFACT, NOW + LINK_SECONDS - 1) == ACCOUNT
    assert account_of_link(KEY, QUERY, ARTIFACT, NOW + LINK_SECONDS) is None


@each(
    "changes",
    [
        {"account": "user_2"},
        {"expires": "1990000000"},
        {"expires": "-1"},
        {"expires": "9" * 5_000},
        {"expires": "\u0661"},
        {"signature": ""},
        {"signature": QUERY["signature"] + "="},
        {"signature": "é\0"},
        {"account": "user_1\nart_1"},
    ],
)
def test_any_change_invalidates_the_link(changes: dict[str, str]) -> None:
    assert account_of_link(KEY, QUERY | changes, ARTIFACT, NOW) is None
    assert (
        account_of_link(KEY, QUERY, "art_2", NOW) is None and account_of_link(b"x" * 32, QUERY, ARTIFACT, NOW) is None
    )
    assert account_of_link(KEY, {}, ARTIFACT, NOW) is None


async def make(service: Service, headers: dict[str, str]) -> dict[str, Any]:
    body = {"name": "a.png", "content_type": "image/png", "content_base64": "iVBORw0KGgo="}
    made: dict[str, Any] = (await service.client.post("/artifacts", json=body, headers=headers)).json()
    return made


async def test_img_on_another_site_needs_no_token(service: Service) -> None:
    made = await make(service, await service.bearer())
    for method in ("GET", "HEAD"):
        answer = await service.client.request(method, made["content_url"])
        assert answer.status_code == 200 and answer.headers["content-type"] == "image/png"
        assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
        assert (
            answer.headers["content-disposition"].startswith("inline")
            and answer.headers["x-content-type-options"] == "nosniff"
        )
    assert (await service.client.put(made["content_url"], content=b"x")).status_code == 401
    assert (await service.client.get(made["content_url"].replace("/content?", "?"))).status_code == 401


async def test_link_expires_with_its_hour_artifact_and_account(service: Service) -> None:
    session = await service.sign_up()
    headers = bearer(session["access_token"])
    first, second = await make(service, headers), await make(service, headers)
    assert (await service.client.delete(f"/artifacts/{first['id']}", headers=headers)).status_code == 204
    assert (await service.client.get(first["content_url"])).status_code == 404
    assert (await service.client.get(second["content_url"])).status_code == 200
    service.clocks.advance(LINK_SECONDS)
    assert (await service.client.get(second["content_url"])).status_code == 401
    again = (await service.client.get(f"/artifacts/{second['id']}", headers=headers)).json()["content_url"]
    assert (await service.client.get(again)).status_code == 200
    gone = await service.client.request(
        "DELETE", "/user/me", json={"password": "correct horse battery"}, headers=headers
    )
    assert gone.status_code == 204 and (await service.client.get(again)).status_code in (401, 404)


# More than a chunk and not a whole number of them.


async def test_deleting_a_project_keeps_its_artifacts(service: Service) -> None:
    headers = await service.bearer()
    project, other = await make_project(service, headers), await make_project(service, headers)
    inside = await make_artifact(service, headers, project_id=project["id"])
    elsewhere = await make_artifact(service, headers, project_id=other["id"])
    assert (await service.client.delete(f"/projects/{project['id']}", headers=headers)).status_code == 204
    assert (await service.client.get(f"/artifacts/{inside['id']}", headers=headers)).json() == {
        **inside,
        "project_id": None,
    }
    assert (await service.client.get(f"/artifacts/{elsewhere['id']}", headers=headers)).json() == elsewhere
    assert (await get_content(service, headers, inside["id"])).content == b"text"


async def fill(service: Service, account_id: str, sizes: list[int]) -> None:
    """Rows without contents, past the triggers, which would count the whole account for each of them."""

    def add(tx: sqlite3.Connection) -> None:
        triggers = tx.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'artifacts_bounded*'"
        ).fetchall()
        for name, _ in triggers:
            tx.execute(f"DROP TRIGGER {name}")
        names = ((account_id, f"art_{number:026}") for number in range(len(sizes)))
        tx.executemany("INSERT INTO artifact_contents (account_id, id) VALUES (?, ?)", names)
        tx.executemany(
            """
            INSERT INTO artifacts (id, account_id, name, content_type, size, sha256, content_id, created_at, updated_at)
            VALUES (?1, ?2, 'x', 'a/b', ?3, zeroblob(32), ?1, 0, 0)
            """,
            ((f"art_{number:026}", account_id, size) for number, size in enumerate(sizes)),
        )
        for _, sql in triggers:
            tx.execute(sql)

    await service.state["db"].write(add)


async def test_account_may_have_10000_artifacts(service: Service) -> None:
    session, other = await service.sign_up(), await service.bearer()
    headers = bearer(session["access_token"])
    await fill(service, session["user"]["id"], [0] * 9_999)
    last = await make_artifact(service, headers)
    answer = await service.client.post("/artifacts", json={"name": "x", "content": ""}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")
    assert "10,000" in answer.json()["error"]["message"] and "Delete" in answer.json()["error"]["message"]
    assert (await put_content(service, headers, last["id"], b"longer")).status_code == 200
    await make_artifact(service, other)
    assert (await service.client.delete(f"/artifacts/art_{0:026}", headers=headers)).status_code == 204
    await make_artifact(service, headers)


async def test_artifact_of_an_agent_obeys_the_same_rules(service: Service) -> None:
    session, db = await service.sign_up(), service.state["db"]
    usual = {
        "data": b"x",
        "name": "x",
        "content_type": "a/b",
        "now_seconds": 1.0,
    }
    home = artifacts.Home(session["user"]["id"], None, "run_x")
    row = await artifacts.add_artifact(db, home, **usual)
    assert (row.run_id, row.sha256) == ("run_x", hashlib.sha256(b"x").digest())
    for wrong, code in (
        ({"name": "a\r\nb"}, "invalid_value"),
        ({"content_type": "a"}, "invalid_value"),
        ({"data": bytes(CONTENT_BYTES + 1)}, "PAYLOAD_TOO_LARGE"),
        ({"home": artifacts.Home(home.account_id, "proj_unknown", "run_x")}, "not_found"),
    ):
        with pytest.raises(ApiError) as refused:
            await artifacts.add_artifact(db, **{"home": home, **usual, **wrong})
        assert refused.value.code == code
    with pytest.raises(ApiError) as gone:
        await artifacts.add_artifact(db, artifacts.Home("user_gone", None, "run_x"), **usual)
    assert gone.value.code == "invalid_api_key"


async def test_content_of_one_chunk_is_read_whole_during_writes(service: Service) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers)

    async def write() -> None:
        for number in range(60):
            await put_content(service, headers, made["id"], b"%03d" % number * 10_000)

    async def read() -> None:
        for _ in range(60):
            answer = await get_content(service, headers, made["id"])
            assert answer.status_code == 200 and answer.headers["content-length"] == str(len(answer.content))
            assert answer.headers["etag"] == f'"{hashlib.sha256(answer.content).hexdigest()}"'

    await asyncio.gather(write(), read(), read())
