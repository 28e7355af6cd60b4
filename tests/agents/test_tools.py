"""What tools do with anything that a model may call them with: bounded in time and size, never a run's end."""

import asyncio
import base64
import contextlib
import io
import re
import sqlite3
import time
import wave
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from svc.agents import loop
from svc.agents.loop import ToolFailure
from svc.agents.tools import RunContext
from svc.auth import accounts
from svc.billing import wallet
from svc.config import Config
from svc.content import artifacts, history, projects
from svc.content.artifact_contents import CONTENT_BYTES
from svc.db import Database
from svc.errors import UpstreamFault
from svc.ids import new_id
from svc.outbound.client import Outbound
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.loop_clock import advance_loop, hastened
from tests.support.model_media import PNG
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, watch
from tests.support.toolboxes import NOW, box_of, failure
from tests.support.waiting import until

RUN = "/v1/agents/run"
PRICE = 20_000
UNREADABLE = "This address cannot be read. Only public http and https pages can."


@pytest.fixture
async def person(service: Service) -> tuple[dict[str, str], str]:
    """Headers and id of an account that can pay for a picture and a speech at a time."""
    signed_up = await service.sign_up()
    watch(service.config.data_dir / "service.db")
    account_id: str = signed_up["user"]["id"]
    await service.state["db"].write(wallet.book, account_id, 100_000, description="", now_seconds=1.0)
    return {"authorization": f"Bearer {signed_up['access_token']}"}, account_id


async def run(service: Service, headers: dict[str, str], goal: str, **fields: Any) -> list[dict[str, Any]]:
    answer = await service.client.post(RUN, json={"goal": goal, **fields}, headers=headers)
    assert answer.status_code == 200, answer.text
    assert_exact(service.config.data_dir / "service.db")
    return [orjson.loads(block[6:]) for block in answer.text.split("\n\n")[:-1]]


async def spent(service: Service, headers: dict[str, str]) -> int:
    account = (await service.client.get("/billing/account", headers=headers)).json()
    assert account["held_micros"] == 0
    return 100_000 - int(account["wallet_balance_micros"])


async def test_goal_for_a_picture_and_speech_makes_both(service: Service, person: tuple[dict[str, str], str]) -> None:
    headers, _ = person
    *events, final = await run(service, headers, "Draw a lighthouse at night and say good night aloud")
    assert [event["name"] for event in events if event["type"] == "tool_call"] == ["generate_image", "generate_audio"]
    assert [event["ok"] for event in events if event["type"] == "tool_result"] == [True, True]
    assert final["type"] == "final" and [made["content_type"] for made in final["artifacts"]] == [
        "image/png",
        "audio/wav",
    ]
    assert [made["name"] for made in final["artifacts"]] == ["a-lighthouse-at-night.png", "good-night.wav"]
    (drawn,) = (
        event["result"] for event in events if event["type"] == "tool_result" and event["name"] == "generate_image"
    )
    assert drawn["revised_prompt"].startswith("A lighthouse ") and f"Drew {drawn['revised_prompt']}" in final["output"]
    png, wav = [
        (await service.client.get(f"/artifacts/{made['id']}/content", headers=headers)).content
        for made in final["artifacts"]
    ]
    assert png.startswith(b"\x89PNG")
    with wave.open(io.BytesIO(wav)) as reader:
        assert reader.getnframes() > 8_000
    assert PRICE < final["cost_micros"] == await spent(service, headers) < 2 * PRICE
    listed = (await service.client.get(f"/artifacts?run_id={final['run_id']}", headers=headers)).json()["data"]
    assert [(made["content_type"], made["prompt"]) for made in listed] == [
        ("audio/wav", None),
        ("image/png", "a lighthouse at night"),
    ]
    record = (await service.client.get(f"/v1/agents/runs/{final['run_id']}", headers=headers)).json()
    assert record["cost_micros"] == final["cost_micros"]


async def test_media_that_cannot_be_paid_or_made_is_a_result_for_the_model(
    service: Service, person: tuple[dict[str, str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, account_id = person

    async def die(order: Any, **options: Any) -> bytes:
        raise UpstreamFault("cut", "The helper process ended with status -9.")

    draw = 'tool generate_image {"prompt": "hills"}\n---\nsay done'
    with monkeypatch.context() as patched:
        patched.setattr(service.state["media"].painter, "run", die)
        *events, final = await run(service, headers, draw, model="builtin/script")
    (result,) = (event for event in events if event["type"] == "tool_result")
    assert not result["ok"] and "cut off" in result["result"] and final["type"] == "final"
    assert final["artifacts"] == [] and final["cost_micros"] == 0 == await spent(service, headers)
    await service.state["db"].write(wallet.book, account_id, -90_000, description="", now_seconds=1.0)
    *events, final = await run(service, headers, draw, model="builtin/script")
    (result,) = (event for event in events if event["type"] == "tool_result")
    assert not result["ok"] and "This needs $0.02" in result["result"] and final["cost_micros"] == 0


@each(("end", "pays"), [("requested", True), ("shutdown", False), ("too slow", False)])
async def test_speech_of_a_run_that_ends_early_is_paid_only_if_the_caller_ended_it(
    config: Config, clocks: Clocks, end: str, pays: bool
) -> None:
    async with ModelServer() as upstream:
        catalog = f"""
            [[providers]]
            name = "lab"
            base_url = "{upstream.base_url}"
            [[providers.models]]
            id = "silent-after-3-chunks"
            kind = "speech"
            micros_per_thousand_audio_tokens = 1000000
        """
        config = replace(config, data_dir=config.data_dir.with_name(end))
        async with serving(config, clocks, catalog) as service:
            signed_up = await service.sign_up()
            account_id, headers = signed_up["user"]["id"], bearer(signed_up["access_token"])
            await service.state["db"].write(wallet.book, account_id, 5_000_000, description="", now_seconds=1.0)
            goal = 'tool generate_audio {"input": "hi"}\n---\nsay done'
            running = asyncio.create_task(run(service, headers, goal, model="builtin/script"))
            await until(lambda: upstream.requests)
            metric = 'svc_upstream_first_answer_seconds_count{provider="lab"} 1'
            while metric not in (await service.client.get("/metrics")).text:
                await asyncio.sleep(0.01)
            if end == "too slow":
                advance_loop(loop.TOOL_SECONDS)
            else:
                service.state["drain"].end_all_of(account_id, end)
            last = (await running)[-1]
            assert last["type"] == ("final" if end == "too slow" else "stopped")
            account = (await service.client.get("/billing/account", headers=headers)).json()
            assert account["held_micros"] == 0
            paid = 5_000_000 - account["wallet_balance_micros"]
            assert paid == last["cost_micros"] and (paid > 0) is pays


async def test_run_may_exclude_tools(service: Service, person: tuple[dict[str, str], str]) -> None:
    headers, _ = person
    *events, final = await run(service, headers, "Draw a lighthouse", tools=["calculate"])
    assert all(event["type"] != "tool_call" for event in events) and final["cost_micros"] == 0


async def test_full_account_is_refused_before_media_is_made_or_paid(
    service: Service, person: tuple[dict[str, str], str]
) -> None:
    headers, account_id = person

    def fill(tx: sqlite3.Connection) -> None:
        for mebibytes in [32] * 31 + [31]:  # of 1024 that it may: one is left, too little for a picture
            made = new_id("art", 1.0)
            tx.execute("INSERT INTO artifact_contents (account_id, id) VALUES (?, ?)", (account_id, made))
            row = (made, account_id, "file", "text/plain", mebibytes << 20, bytes(32), made, 1.0, 1.0)
            tx.execute(
                "INSERT INTO artifacts (id, account_id, name, content_type, size, sha256, content_id, created_at, "
                "updated_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )

    await service.state["db"].write(fill)
    goal = 'tool generate_image {"prompt": "hills"}\ntool generate_audio {"input": "hi"}\n---\nsay done'
    *events, final = await run(service, headers, goal, model="builtin/script")
    results = [event for event in events if event["type"] == "tool_result"]
    assert [result["ok"] for result in results] == [False, False]
    assert all(re.search(r"This needs \d{7} bytes", result["result"]) for result in results)
    assert final["type"] == "final" and final["cost_micros"] == 0 == await spent(service, headers)


async def test_own_provider_draws_without_a_model_of_the_operator(config: Config, clocks: Clocks) -> None:
    async with ModelServer() as upstream, serving(replace(config, builtin=False), clocks) as service:
        headers = await service.bearer()
        body = {"name": "own", "base_url": upstream.base_url, "models": ["tools-image", {"id": "ok", "kind": "image"}]}
        assert (await service.client.post("/user/providers", json=body, headers=headers)).status_code == 201
        answer = await service.client.post("/v1/images/generations", json={"prompt": "a cat"}, headers=headers)
        assert answer.status_code == 200, answer.text
        assert base64.b64decode(answer.json()["data"][0]["b64_json"]) == PNG
        answer = await service.client.post(RUN, json={"goal": "x", "model": "own/tools-image"}, headers=headers)
        started = orjson.loads(answer.text.split("\n\n")[0][6:])
        assert "generate_image" in started["tools"] and "generate_audio" not in started["tools"]


async def add(db: Database, box: RunContext, content: bytes, content_type: str = "text/plain") -> str:
    row = await artifacts.add_artifact(
        db, artifacts.Home(box.home.account_id), content, name="file", content_type=content_type, now_seconds=NOW
    )
    return row.id


@each(
    "bomb",
    [
        "9**9**9",
        "9**1000*" * 100 + "1",
        "(" * 500 + "1" + ")" * 500,
        "-" * 999 + "1",
        "1e999999999",
        "1/7+" * 249 + "1",
        "+".join(["9**999"] * 140),
    ],
)
async def test_calculations_do_not_block_the_event_loop(box: RunContext, bomb: str) -> None:
    latest = 0.0

    async def tick() -> None:
        nonlocal latest
        while True:
            began = time.process_time()
            await asyncio.sleep(0.005)
            latest = max(latest, time.process_time() - began)

    ticking = asyncio.create_task(tick())
    began = time.process_time()
    for _ in range(5):
        with contextlib.suppress(ToolFailure):
            assert len(await box.call("calculate", {"expression": bomb})) < 1100
    ticking.cancel()
    assert time.process_time() - began < 3 and latest < 0.25


async def test_a_written_artifact_is_listed_and_read_and_bound_to_its_run(db: Database, box: RunContext) -> None:
    text = "Grüße\r\n\u2028 data: x\n\n🙂 \0"
    made = await box.call("write_artifact", {"name": "note.md", "content": text})
    assert set(made) == {"id", "name", "content_type", "size"}
    assert await box.call("read_artifact", {"id": made["id"]}) == text
    assert await box.call("list_artifacts", {}) == [made]
    assert (await db.read(artifacts.TABLE.by_id, box.home.account_id, made["id"])).run_id == "run_1"


async def test_lone_surrogates_in_a_content_are_replaced(box: RunContext) -> None:
    made = await box.call("write_artifact", {"name": "n", "content": "a\ud800b"})
    assert await box.call("read_artifact", {"id": made["id"]}) == "a?b"


@each("name", ["\0", "a\0b", " ", "\ud800", "a\nb", "\x1b[31m"])
async def test_invalid_file_name_is_refused(box: RunContext, faults: list[BaseException], name: str) -> None:
    assert "name" in await failure(box, "write_artifact", {"name": name, "content": "x"})
    assert await box.call("list_artifacts", {}) == [] and faults == []


async def test_long_text_is_read_in_part_with_whole_characters(db: Database, box: RunContext) -> None:
    for text in ("é" * 100_000, "x" + "é" * 100_000, "x" * 65_536, "🙂" * 16_384 + "x"):
        read = await box.call("read_artifact", {"id": await add(db, box, text.encode())})
        assert text.startswith(read) and 65_532 <= len(read.encode()) <= 65_536
    assert await box.call("read_artifact", {"id": await add(db, box, b"")}) == ""


@each("content", [b"\x89PNG\r\n\x1a\n\0\xff", b"\xff" * 200_000, b"x" * 65_535 + b"\xff" * 10, b"caf\xe9"])
async def test_binary_file_is_not_read(db: Database, box: RunContext, content: bytes) -> None:
    assert (
        await failure(box, "read_artifact", {"id": await add(db, box, content, "image/png")})
        == "This file is not text (image/png)."
    )


async def test_large_file_is_not_loaded_whole(db: Database, box: RunContext) -> None:
    artifact_id = await add(db, box, b"x" * CONTENT_BYTES)
    statements: list[str] = []
    await db.read(lambda conn: conn.set_trace_callback(statements.append))
    assert len(await box.call("read_artifact", {"id": artifact_id})) == 65_536
    assert any("number = 0" in statement for statement in statements)


async def test_artifacts_of_another_account_are_not_found(
    db: Database, guarded: Outbound, box: RunContext, faults: list[BaseException]
) -> None:
    made = await box.call("write_artifact", {"name": "n", "content": "mine"})
    other = await box_of(db, guarded, faults, "bob@example.com")
    assert await failure(other, "read_artifact", {"id": made["id"]}) == await failure(
        other, "read_artifact", {"id": "art_unknown\0"}
    )
    assert await other.call("list_artifacts", {}) == []


async def test_writing_fails_after_account_or_project_was_deleted(
    db: Database, box: RunContext, faults: list[BaseException]
) -> None:
    project = await db.write(projects.add_project, box.home.account_id, projects.NewProject("p"), NOW)
    box.home = box.home._replace(project_id=project.id)
    await box.call("write_artifact", {"name": "n", "content": "x"})
    await db.write(projects.TABLE.delete, box.home.account_id, project.id)
    assert "no such project" in await failure(box, "write_artifact", {"name": "n", "content": "x"})
    box.home = box.home._replace(project_id=None)
    await db.write(accounts.delete_account, box.home.account_id)
    await failure(box, "write_artifact", {"name": "n", "content": "x"})
    assert await box.call("list_artifacts", {}) == [] and faults == []


async def test_memory_search_finds_only_the_accounts_messages(db: Database, guarded: Outbound, box: RunContext) -> None:
    said = {"role": "user", "content": "The zebra is called Ada.", "run_id": "run_1"}
    await db.write(history.add_message, box.home.account_id, now_seconds=NOW, **said)
    (found,) = await box.call("search_memory", {"query": "zebra"})
    assert (
        found["text"] == "The zebra is called Ada." and found["source"] == "run_1" and found["created_at"].endswith("Z")
    )
    other = await box_of(db, guarded, [], "bob@example.com")
    assert await other.call("search_memory", {"query": "zebra"}) == []


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@contextlib.asynccontextmanager
async def web(handler: Handler) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A page server on loopback; its address and the request heads that it saw."""
    heads: list[bytes] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads
    finally:
        server.close()


def page(
    content: bytes, content_type: str = "text/html; charset=utf-8", status: bytes = b"200 OK", more: bytes = b""
) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 %b\r\ncontent-type: %b\r\ncontent-length: %d\r\n%b\r\n" % (
            status,
            content_type.encode(),
            len(content),
            more,
        )
        writer.write(head + content)
        await writer.drain()

    return handler


@pytest.fixture
async def open_box(db: Database, faults: list[BaseException]) -> AsyncIterator[RunContext]:
    """Tools that reach loopback, where the tests' pages are."""
    outbound = Outbound()
    yield await box_of(db, outbound, faults, "eve@example.com")
    await outbound.aclose()


async def test_fetch_sends_no_data_of_the_caller(open_box: RunContext) -> None:
    async with web(page("Grüße".encode())) as (address, heads):
        found = await open_box.call("fetch_url", {"url": f"{address}/a?b=c"})
    assert found == {"status": 200, "content_type": "text/html; charset=utf-8", "text": "Grüße"}
    assert (
        heads[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
        and b"user_" not in heads[0]
        and b"cookie" not in heads[0].lower()
    )


async def test_missing_page_is_a_result_with_its_status(open_box: RunContext) -> None:
    async with web(page(b"gone", status=b"404 Not Found")) as (address, _):
        assert (await open_box.call("fetch_url", {"url": address}))["status"] == 404


async def test_a_redirect_is_not_followed(open_box: RunContext) -> None:
    async with web(page(b"secret")) as (inner, seen):
        async with web(page(b"", status=b"302 Found", more=b"location: " + inner.encode() + b"\r\n")) as (
            address,
            heads,
        ):
            assert (await open_box.call("fetch_url", {"url": address}))["status"] == 302
        assert len(heads) == 1 and seen == []


async def test_large_page_is_cut_and_its_connection_closed(open_box: RunContext) -> None:
    ended = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        try:
            while True:
                writer.write("é".encode() * 5_000)
                await writer.drain()
        finally:
            ended.set()

    async with web(endless) as (address, _):
        found = await open_box.call("fetch_url", {"url": address})
        await asyncio.wait_for(ended.wait(), 5)
    assert len(found["text"].encode()) <= 65_540 and found["text"].startswith("éé")


async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")


async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


async def test_every_fault_has_one_text_in_bounded_time(open_box: RunContext, faults: list[BaseException]) -> None:
    texts = set()
    for handler in (dripping, silent, cut, nonsense):
        async with web(handler) as (address, _):
            texts.add(await hastened(failure(open_box, "fetch_url", {"url": address})))
    texts.add(await failure(open_box, "fetch_url", {"url": address}))  # no server listens there
    texts.add(await failure(open_box, "fetch_url", {"url": "https" + address.removeprefix("http")}))
    assert texts == {UNREADABLE} and faults == []


@each("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\0" * 100_000])
async def test_binary_page_is_not_fetched(open_box: RunContext, content: bytes) -> None:
    async with web(page(content, "image/png")) as (address, _):
        assert (
            await failure(open_box, "fetch_url", {"url": address})
            == "The content of this address is not text (image/png)."
        )


@each(
    "host",
    [
        *(
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0",
            "0.0.0.0",
            "localhost",
            "LOCALHOST",
            "127.0.0.1.",
        ),
        *(
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
        ),
        *(
            "10.0.0.1",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "[fe80::1]",
            "[fd00::1]",
            "224.0.0.1",
            "100.64.0.1",
        ),
        *(
            "255.255.255.255",
            "①②⑦.0.0.1",
            "127。0。0。1",
            "[fe80::1%25lo]",
            "%31%32%37.0.0.1",
            "127.0.0.1%00.example.com",
        ),
    ],
)
async def test_private_address_is_refused_in_any_spelling(
    box: RunContext, faults: list[BaseException], host: str
) -> None:
    async with web(page(b"secret")) as (address, heads):
        port = address.rpartition(":")[2]
        for url in (
            f"http://{host}:{port}/",
            f"https://{host}:{port}/",
            f"http://example.com@{host}:{port}/",
            f"http://{host}/",
        ):
            assert await failure(box, "fetch_url", {"url": url}) == UNREADABLE
    assert heads == [] and faults == []


@each(
    "url",
    [
        *(
            "file:///etc/passwd",
            "ftp://example.com/",
            "gopher://x/",
            "javascript:alert(1)",
            "http:///",
            "http://\0.com/",
            "http:////x",
        ),
        *(
            "http://[",
            "http://a b/",
            "http://x:99999/",
            "http://x\r\nHost: y/",
            "//example.com",
            "example.com",
            "http://\ud800.com/",
        ),
        *("http://xn--/", "http://" + "a" * 300 + ".com/", "data:text/plain,hello", "unix:///run/docker.sock"),
    ],
)
async def test_invalid_address_is_refused_with_the_same_text(
    box: RunContext, faults: list[BaseException], url: str
) -> None:
    assert await failure(box, "fetch_url", {"url": url}) == UNREADABLE
    assert faults == []
