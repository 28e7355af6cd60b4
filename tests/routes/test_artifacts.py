"""Artifacts and their contents through HTTP: what is made, changed, listed, and read whole or in part."""

import asyncio
import base64
import hashlib
import itertools
import re
import socket
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from svc import quota
from svc.content import artifacts
from svc.content.artifact_contents import CHUNK_BYTES, CONTENT_BYTES
from tests.conftest import JSON, Service, bearer
from tests.routes.test_projects import make_project
from tests.support.artifacts import LONG, UNKNOWN, get_content, make_artifact, put_content
from tests.support.cases import each
from tests.support.server import read_to_end
from tests.support.waiting import run_ready, until
from tests.support.wire import listening_sockets

FIELDS = {
    "id",
    "name",
    "content_type",
    "size",
    "sha256",
    "project_id",
    "run_id",
    "content_url",
    "created_at",
    "updated_at",
}
RUN_A, RUN_B = (f"run_{letter * 26}" for letter in "ab")
DIGITS = b"0123456789"


async def until_stored(service: Service, chunks: int) -> None:
    """Wait until so many chunks are stored: the writer deletes unused ones when it has time."""
    count = "SELECT count(*) FROM artifact_chunks"
    async with asyncio.timeout(20):
        while await service.state["db"].read(lambda conn: conn.execute(count).fetchone()[0]) != chunks:
            await asyncio.sleep(0.005)


# --- the objects


async def test_artifact_is_returned_as_created(service: Service) -> None:
    headers = await service.bearer()
    project = await make_project(service, headers)
    made = await make_artifact(
        service,
        headers,
        name=" Über 🙂.md ",
        content="Grüße\n\0",
        content_type="text/markdown",
        project_id=project["id"],
    )
    content = "Grüße\n\0".encode()
    assert re.fullmatch(r"art_[0-9a-z]{26}", made["id"])
    assert made == {
        "id": made["id"],
        "name": " Über 🙂.md ",
        "content_type": "text/markdown",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "project_id": project["id"],
        "run_id": None,
        "prompt": None,
        "content_url": made["content_url"],
        "created_at": "2026-09-21T14:13:20.000Z",
        "updated_at": "2026-09-21T14:13:20.000Z",
    }
    assert (await service.client.get(f"/artifacts/{made['id']}", headers=headers)).json() == made
    listed = (await service.client.get("/artifacts", headers=headers)).json()
    assert listed == {"object": "list", "data": [made], "has_more": False}
    assert (await get_content(service, headers, made["id"])).content == content


@each("content", [b"", b"\xff\0\r\n", LONG, LONG[:CHUNK_BYTES], LONG[: CHUNK_BYTES + 1]])
async def test_base64_content_is_stored_as_bytes(service: Service, content: bytes) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content_base64=base64.b64encode(content).decode())
    assert (made["size"], made["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    answer = await get_content(service, headers, made["id"])
    assert (answer.status_code, answer.content) == (200, content)
    assert answer.headers["content-length"] == str(len(content))


async def test_default_type_depends_on_the_content_field(service: Service) -> None:
    headers = await service.bearer()
    assert (await make_artifact(service, headers))["content_type"] == "text/plain; charset=utf-8"
    assert (await make_artifact(service, headers, content_type=None))["content_type"] == "text/plain; charset=utf-8"
    assert (await make_artifact(service, headers, content_base64=""))["content_type"] == "application/octet-stream"


async def test_change_keeps_missing_fields_and_the_content(service: Service) -> None:
    headers = await service.bearer()
    project = await make_project(service, headers)
    made = await make_artifact(service, headers)
    for changes in ({"name": "b"}, {"content_type": "image/png"}, {"project_id": project["id"]}, {"project_id": None}):
        service.clocks.advance(1)
        before = (await service.client.get(f"/artifacts/{made['id']}", headers=headers)).json()
        changed = (await service.client.patch(f"/artifacts/{made['id']}", json=changes, headers=headers)).json()
        assert (
            changed == {**before, **changes, "updated_at": changed["updated_at"]}
            and changed["updated_at"] > before["updated_at"]
        )
        assert (await service.client.get(f"/artifacts/{made['id']}", headers=headers)).json() == changed
        assert (await get_content(service, headers, made["id"])).content == b"text"


async def test_delete_removes_the_artifact_and_its_content(service: Service) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers)
    answer = await service.client.delete(f"/artifacts/{made['id']}", headers=headers)
    assert (answer.status_code, answer.content) == (204, b"")
    for method, path in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("GET", "/content"),
        ("HEAD", "/content"),
        ("PUT", "/content"),
    ):
        answer = await service.client.request(method, f"/artifacts/{made['id']}{path}", json={}, headers=headers)
        assert answer.status_code == 404
    assert (await service.client.get("/artifacts", headers=headers)).json()["data"] == []
    await until_stored(service, 0)


@each(
    ("field", "value"),
    [
        *[
            ("name", value)
            for value in ("", " \t", "\u2003", 5, False, ["x"], {}, "a\r\nx: y", "a\0b", "\x7f", "\x9b", "x" * 256)
        ],
        *[
            ("content_type", value)
            for value in (5, True, [], {}, "", "text", "text/", "/plain", "text/plain\r\nx: y", "text/pläin")
        ],
        *[
            ("content_type", value)
            for value in ("text/plain;", "text/plain; a", "text/plain; a=b c", "text/plain, a/b", 'a/b; c="\\"')
        ],
        *[
            ("content_type", value)
            for value in (" text/plain", "text/plain\n", "text/plain;\ta=b", 'a/b; c="\n"', f"a/{'b' * 199}")
        ],
        *[("project_id", value) for value in (5, True, [], {}, 1.5)],
    ],
)
async def test_wrong_value_is_400_and_changes_nothing(service: Service, field: str, value: Any) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers)
    for method, path in (("POST", "/artifacts"), ("PATCH", f"/artifacts/{made['id']}")):
        body = {"name": "x", "content": "x", field: value}
        answer = await service.client.request(method, path, json=body, headers=headers)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_value", field)
    assert (await service.client.get("/artifacts", headers=headers)).json()["data"] == [made]


@each(
    "content_type",
    ["a/b", "image/svg+xml", "Text/HTML;charset=UTF-8", 'a/b ; c="d; e" ; f=g', "x-!#$%&'*+.^_`|~/*", f"a/{'b' * 198}"],
)
async def test_media_type_is_returned_as_sent(service: Service, content_type: str) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content_type=content_type)
    assert made["content_type"] == content_type
    assert (await get_content(service, headers, made["id"])).headers["content-type"] == content_type


@each(
    ("body", "code", "param"),
    [
        ({"content": "x"}, "missing_field", "name"),
        ({"content": "x", "name": None}, "missing_field", "name"),
        ({"name": "x"}, "missing_field", "content"),
        ({"name": "x", "content": None, "content_base64": None}, "missing_field", "content"),
        ({"name": "x", "content": "", "content_base64": ""}, "invalid_value", "content_base64"),
        *[({"name": "x", "content": value}, "invalid_value", "content") for value in (5, 0, True, [], {}, ["x"])],
        *[({"name": "x", "content_base64": value}, "invalid_value", "content_base64") for value in (5, False, [], {})],
        *[
            ({"name": "x", "content_base64": value}, "invalid_value", "content_base64")
            for value in (
                "x",
                "QQ",
                "QQ=",
                "QQ==QQ==",
                "Q=Q=",
                "====",
                "QUJ\n",
                "QU J",
                "Q-_Q",
                "ÄÄÄÄ",
                "QUJD=",
                "QQ=Q",
                "=QQQ",
                "QUJDA===",
                "A" * 2_000_001,
            )
        ],
    ],
)
async def test_name_and_exactly_one_content_are_required(
    service: Service, body: dict[str, Any], code: str, param: str
) -> None:
    headers = await service.bearer()
    answer = await service.client.post("/artifacts", json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["param"]) == (400, code, param)
    assert (await service.client.get("/artifacts", headers=headers)).json()["data"] == []


@each("changes", [{"name": None}, {"content_type": None}])
async def test_name_and_type_cannot_be_null(service: Service, changes: dict[str, None]) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers)
    answer = await service.client.patch(f"/artifacts/{made['id']}", json=changes, headers=headers)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, next(iter(changes)))


# --- lists


async def test_list_is_filtered_by_project_and_run(service: Service) -> None:
    session = await service.sign_up()
    headers = bearer(session["access_token"])
    project = await make_project(service, headers)
    made = {}
    for project_id in (project["id"], None):
        for run_id in (RUN_A, RUN_B, None):
            service.clocks.advance(1)
            row = await artifacts.add_artifact(
                service.state["db"],
                artifacts.Home(session["user"]["id"], project_id, run_id),
                b"x",
                name="x",
                content_type="text/plain",
                now_seconds=service.clocks.now,
            )
            made[project_id, run_id] = row.id

    async def listed(**query: str) -> list[str]:
        answer = await service.client.get("/artifacts", params=query, headers=headers)
        assert answer.status_code == 200
        return [artifact["id"] for artifact in answer.json()["data"]]

    assert await listed(project_id=project["id"]) == [made[project["id"], run] for run in (None, RUN_B, RUN_A)]
    assert await listed(run_id=RUN_A) == [made[None, RUN_A], made[project["id"], RUN_A]]
    assert await listed(run_id=RUN_B, project_id=project["id"]) == [made[project["id"], RUN_B]]
    assert await listed(run_id=RUN_A, after=made[None, RUN_A]) == [made[project["id"], RUN_A]]
    assert await listed(run_id="run_unknown") == await listed(run_id="") == []


# --- other accounts


async def test_filter_by_a_run_of_another_account_is_empty(service: Service) -> None:
    mine, theirs = await service.bearer(), await service.sign_up()
    fields = {"name": "x", "content_type": "a/b", "now_seconds": 1.0}
    await artifacts.add_artifact(
        service.state["db"], artifacts.Home(theirs["user"]["id"], None, "run_x"), b"", **fields
    )
    assert (await service.client.get("/artifacts?run_id=run_x", headers=mine)).json()["data"] == []


# --- contents


@pytest.mark.parametrize("content", [b"", b"new", LONG])
async def test_put_replaces_content_and_type(service: Service, content: bytes) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content_base64=base64.b64encode(LONG[1:]).decode())
    service.clocks.advance(1)
    replaced = await put_content(service, headers, made["id"], content, **{"content-type": "audio/wav"})
    assert replaced.status_code == 200
    assert replaced.json() == {
        **made,
        "content_type": "audio/wav",
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "content_url": replaced.json()["content_url"],
        "updated_at": "2026-09-21T14:13:21.000Z",
    }
    assert (await service.client.get(f"/artifacts/{made['id']}", headers=headers)).json() == replaced.json()
    answer = await get_content(service, headers, made["id"])
    assert (answer.content, answer.headers["content-type"]) == (content, "audio/wav")
    await until_stored(service, -(-len(content) // CHUNK_BYTES))


async def test_put_without_type_keeps_the_type(service: Service) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content_type="text/csv")
    assert (await put_content(service, headers, made["id"], b"a,b")).json()["content_type"] == "text/csv"


@each("header", [{"content-type": "nonsense"}, {"content-type": "a/b\xff"}, {"content-range": "bytes 0-1/4"}])
async def test_put_with_wrong_type_or_range_is_400_and_changes_nothing(
    service: Service, header: dict[str, str]
) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers)
    raw = {name: value.encode("latin-1") for name, value in {**headers, **header}.items()}
    answer = await service.client.put(f"/artifacts/{made['id']}/content", content=b"ne", headers=raw)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_value")
    assert (await get_content(service, headers, made["id"])).content == b"text"


@each(("artifact_id", "content_type", "status"), [(UNKNOWN, "a/b", 404), (None, "nonsense", 400), (None, "a/b", 200)])
async def test_put_is_rejected_before_the_body_is_read(
    service: Service, artifact_id: str | None, content_type: str, status: int
) -> None:
    headers, read = await service.bearer(), []
    artifact_id = artifact_id or (await make_artifact(service, headers))["id"]

    async def chunks() -> AsyncIterator[bytes]:
        read.append(True)
        yield b"x"

    answer = await put_content(service, headers, artifact_id, chunks(), **{"content-type": content_type})
    assert answer.status_code == status and bool(read) == (status == 200)


@each(
    ("wrong", "status"),
    [({"project_id": "proj_unknown"}, 404), ({"name": ""}, 400), ({"content_type": "nonsense"}, 400)],
)
async def test_rejected_artifact_stores_no_content(service: Service, wrong: dict[str, str], status: int) -> None:
    headers, db = await service.bearer(), service.state["db"]
    before = await db.write(lambda tx: tx.total_changes)
    body = {"name": "x", "content": "x" * (9 * CHUNK_BYTES), **wrong}
    assert (await service.client.post("/artifacts", json=body, headers=headers)).status_code == status
    assert await db.write(lambda tx: tx.total_changes) == before


async def test_too_large_content_is_413_and_changes_nothing(service: Service) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers)

    async def mebibytes(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"x" * (1024 * 1024)

    declared = {"content-length": str(CONTENT_BYTES + 1)}
    too_large = [
        await put_content(service, headers, made["id"], mebibytes(1), **declared),
        await put_content(service, headers, made["id"], mebibytes(33)),
        await service.client.post("/artifacts", content=mebibytes(45), headers={**headers, **JSON}),
    ]
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in too_large] == [
        (413, "PAYLOAD_TOO_LARGE")
    ] * 3
    assert (await get_content(service, headers, made["id"])).content == b"text"
    assert len((await service.client.get("/artifacts", headers=headers)).json()["data"]) == 1
    assert service.state["bodies"].taken_bytes == 0


@pytest.mark.slow
async def test_content_has_at_most_32_mib(service: Service) -> None:
    headers = await service.bearer()
    most = (LONG * (CONTENT_BYTES // len(LONG) + 1))[:CONTENT_BYTES]

    async def post(field: bytes, text: bytes) -> httpx.Response:
        body = b'{"name": "x", "%b": "%b"}' % (field, text)  # to have it made from a dictionary takes seconds
        return await service.client.post("/artifacts", content=body, headers={**headers, **JSON})

    made = (await post(b"content_base64", base64.b64encode(most))).json()
    assert (made["size"], made["sha256"]) == (CONTENT_BYTES, hashlib.sha256(most).hexdigest())
    assert (await get_content(service, headers, made["id"])).content == most

    too_long = [
        await put_content(service, headers, made["id"], most + b"x"),
        await post(b"content_base64", base64.b64encode(most + b"x")),
        await post(b"content", b"x" * (CONTENT_BYTES + 1)),
    ]
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in too_long] == [
        (413, "PAYLOAD_TOO_LARGE")
    ] * 3
    assert (await get_content(service, headers, made["id"])).content == most
    assert (await put_content(service, headers, made["id"], most[::-1])).json()["sha256"] == hashlib.sha256(
        most[::-1]
    ).hexdigest()
    assert service.state["bodies"].taken_bytes == 0


@each(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-", 5, 10),
        ("bytes=-5", 5, 10),
        ("bytes=2-4", 2, 5),
        ("BYTES=9-9", 9, 10),
        ("bytes=0-999999999999999999", 0, 10),
        ("bytes=-999999999999999999", 0, 10),
        ("bytes=0-", 0, 10),
    ],
)
async def test_range_returns_its_bytes(service: Service, asked: str, start: int, end: int) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content=DIGITS.decode())
    answer = await get_content(service, headers, made["id"], range=asked)
    assert (answer.status_code, answer.content) == (206, DIGITS[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/10"
    assert answer.headers["content-length"] == str(end - start)
    whole = await get_content(service, headers, made["id"])
    left_out = ("content-length", "content-range", "x-request-id")
    assert {name: value for name, value in answer.headers.items() if name not in left_out} == {
        name: value for name, value in whole.headers.items() if name not in left_out
    }


async def test_range_crosses_stored_chunks(service: Service) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content_base64=base64.b64encode(LONG).decode())
    starts = (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, len(LONG) - 1)
    lengths = (1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, len(LONG))
    for start, length in itertools.product(starts, lengths):
        asked = f"bytes={start}-{start + length - 1}"
        answer = await get_content(service, headers, made["id"], range=asked)
        assert (answer.status_code, answer.content) == (206, LONG[start : start + length]), asked


@each("asked", ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=999999999999999999-"])
async def test_range_after_the_end_is_416_with_the_size(service: Service, asked: str) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content=DIGITS.decode())
    answer = await get_content(service, headers, made["id"], range=asked)
    assert (answer.status_code, answer.headers["content-range"]) == (416, "bytes */10")
    assert answer.json()["error"]["type"] == "invalid_request_error"


@each(
    "asked",
    [
        *(
            "bytes=0-0,2-3",
            "bytes=0-0, -1",
            "bytes=4-2",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes",
            "0-1",
            "items=0-1",
            "",
        ),
        *("bytes=0--1", "bytes=0-1-2", "bytes= 0-1", "bytes=1.5-2", "bytes=\u0661-", "bytes=" + "9" * 5000 + "-"),
    ],
)
async def test_invalid_and_multiple_ranges_return_the_whole_content(service: Service, asked: str) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content=DIGITS.decode())
    raw = {name: value.encode() for name, value in {**headers, "range": asked}.items()}
    answer = await service.client.get(f"/artifacts/{made['id']}/content", headers=raw)
    assert (answer.status_code, answer.content) == (200, DIGITS) and "content-range" not in answer.headers


@each(("asked", "status"), [("bytes=0-", 416), ("bytes=0-0", 416), ("bytes=-0", 416), ("bytes=-5", 200), ("x", 200)])
async def test_empty_content_has_no_range(service: Service, asked: str, status: int) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content="")
    answer = await get_content(service, headers, made["id"], range=asked)
    assert answer.status_code == status and (status == 416 or answer.content == b"")
    assert answer.headers.get("content-range") == ("bytes */0" if status == 416 else None)


async def test_if_range_of_another_content_returns_the_whole_content(service: Service) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content=DIGITS.decode())
    etag = (await get_content(service, headers, made["id"])).headers["etag"]
    for condition, status in (
        (etag, 206),
        ('"other"', 200),
        (f"W/{etag}", 200),
        ("Mon, 21 Sep 2026 14:13:20 GMT", 200),
    ):
        assert (
            await get_content(service, headers, made["id"], range="bytes=0-0", if_range=condition)
        ).status_code == status


async def test_current_copy_is_304(service: Service) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers)
    etag = (await get_content(service, headers, made["id"])).headers["etag"]
    assert etag == f'"{made["sha256"]}"'
    for condition in (etag, f"W/{etag}", f'"a", {etag}', "*"):
        answer = await get_content(service, headers, made["id"], if_none_match=condition, range="bytes=0-0")
        assert (answer.status_code, answer.content) == (304, b"")
        assert (answer.headers["etag"], answer.headers["cache-control"]) == (etag, "private, no-cache")
        assert "content-length" not in answer.headers and "content-type" not in answer.headers
    for condition in ('"a"', etag.strip('"'), "", "W/"):
        assert (await get_content(service, headers, made["id"], if_none_match=condition)).status_code == 200
    await put_content(service, headers, made["id"], b"new")
    assert (await get_content(service, headers, made["id"], if_none_match=etag)).content == b"new"


async def test_head_is_get_without_the_content(service: Service) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content=DIGITS.decode())
    whole = await get_content(service, headers, made["id"])
    head = await service.client.head(f"/artifacts/{made['id']}/content", headers={**headers, "range": "bytes=0-0"})
    assert (head.status_code, head.content) == (200, b"")
    assert {**head.headers, "x-request-id": ""} == {**whole.headers, "x-request-id": ""}
    known = await service.client.head(
        f"/artifacts/{made['id']}/content", headers={**headers, "if-none-match": whole.headers["etag"]}
    )
    assert known.status_code == 304


# --- inert in a browser


@each(
    ("content_type", "disposition"),
    [
        *[(kind, "inline") for kind in ("image/png", "IMAGE/JPEG", "image/webp; q=1", "audio/wav", "audio/mpeg")],
        *[
            (kind, "attachment")
            for kind in ("image/svg+xml", "Image/SVG+XML;charset=utf-8", "image/svg", "image/x+xml", "image/xml")
        ],
        *[
            (kind, "attachment")
            for kind in ("text/html", "text/plain", "application/pdf", "video/mp4", "application/xhtml+xml")
        ],
        *[
            (kind, "attachment")
            for kind in ("application/javascript", "multipart/x-mixed-replace", "x/image", "images/png", "text/xml")
        ],
    ],
)
async def test_content_cannot_run_in_a_browser(service: Service, content_type: str, disposition: str) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content="<script>alert(1)</script>", content_type=content_type)
    for answer in (
        await get_content(service, headers, made["id"]),
        await get_content(service, headers, made["id"], range="bytes=0-"),
    ):
        assert answer.headers["content-type"] == content_type
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
        assert answer.headers["content-security-policy"] == "sandbox"
        assert answer.headers["content-disposition"].partition(";")[0] == disposition
        assert answer.headers["cache-control"] == "private, no-cache"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers


@each(
    ("name", "plain", "true"),
    [
        ("note (1).md", "note (1).md", "note (1).md"),
        ("Grüße 🙂.txt", "Gr__e _.txt", "Grüße 🙂.txt"),
        ('a"; filename=evil.exe; x="', "a__ filename_evil.exe_ x__", 'a"; filename=evil.exe; x="'),
        ("../../etc/passwd", ".._.._etc_passwd", ".._.._etc_passwd"),
        ("..\\x%0d%0aset-cookie: a=b", ".._x_0d_0aset-cookie_ a_b", ".._x%0d%0aset-cookie: a=b"),
        ("a\u2028b\u202ec", "a_bc", "a\u2028bc"),
        ("..", "file..", "file.."),
        ("*'%", "___", "*'%"),
        ("🙂" * 200, "_" * 200, "🙂" * 200),
    ],
)
async def test_header_has_a_safe_file_name(service: Service, name: str, plain: str, true: str) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, name=name)
    assert made["name"] == name
    header = (await get_content(service, headers, made["id"])).headers["content-disposition"]
    found = re.fullmatch(
        r"attachment; filename=\"([A-Za-z0-9 ._()+-]*)\"; filename\*=UTF-8''([A-Za-z0-9._~%-]*)", header
    )
    assert found and (found[1], unquote(found[2])) == (plain, true)


# --- bounds


async def test_storage_quota_is_exact_and_shown(service: Service) -> None:
    session, other = await service.sign_up(), await service.bearer()
    headers = bearer(session["access_token"])
    await service.state["db"].write(quota.set_limit, 100_000)
    exact = await make_artifact(service, headers, content="x" * 99_000)
    told = (await service.client.get("/billing/account", headers=headers)).json()
    assert told["limit_bytes"] == 100_000 and 99_000 < told["stored_bytes"] < 100_000
    conversation = (await service.client.post("/conversations", json={}, headers=headers)).json()["id"]
    big = "y" * 1_000
    chat: dict[str, Any] = {"model": "builtin/echo", "messages": [{"role": "user", "content": big}]}
    refusals = [
        await service.client.post("/artifacts", json={"name": "x", "content": big}, headers=headers),
        await put_content(service, headers, exact["id"], b"z" * 100_000),
        await service.client.post("/projects", json={"name": "x", "instructions": big}, headers=headers),
        await service.client.post(
            f"/conversations/{conversation}/messages", json={"role": "user", "content": big}, headers=headers
        ),
        await service.client.post("/v1/chat/completions", json=chat, headers=headers),
        await service.client.post("/v1/agents/run", json={"goal": big, "model": "builtin/echo"}, headers=headers),
        await service.client.post("/user/api-keys", json={"name": big}, headers=headers),
    ]
    for answer in refusals:
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "quota_exceeded"), answer.request.url
    assert (await put_content(service, headers, exact["id"], b"six")).status_code == 200
    await make_artifact(service, headers, content=big)
    await make_artifact(service, other, content="x")


# --- at the same time


async def test_replaced_content_cuts_a_slow_download_with_little_memory(service: Service) -> None:
    headers = await service.bearer()
    made = await make_artifact(service, headers, content="")
    large, new = (letter * 6 * 1024 * 1024 for letter in (b"o", b"n"))  # more than the kernel buffers
    await put_content(service, headers, made["id"], large)
    async with listening_sockets(service.app) as sockets:
        tracemalloc.start()
        writers = []
        for _ in range(3):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, sockets.address)
            reader, writer = await asyncio.open_connection(sock=client, limit=1024)
            lines = f"GET {made['content_url']} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {headers['authorization']}\r\n\r\n"
            writer.write(lines.encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writers.append(writer)
        await until(lambda: all(each.transport.get_write_buffer_size() for each in sockets.state.connections))
        await run_ready()
        most_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most_bytes < len(large)
        await put_content(service, headers, made["id"], new)
        assert CHUNK_BYTES < len(await read_to_end(reader)) < len(large)
        for writer in writers:
            writer.transport.abort()
    assert (await get_content(service, headers, made["id"])).content == new
