"""svc/routes/kept.py on sockets: clients that leave, streams that are followed, the shutdown, a crash, and SDKs."""

import asyncio
import contextlib
import itertools
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import pytest_asyncio

from tests.support.agent_runs import Account, add_accounts
from tests.support.cases import each
from tests.support.local_server import AnyServer, local_server
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, rows
from tests.support.waiting import run_ready, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
CHAT, RESPONSES, MESSAGES, AUDIO = "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/audio/generate"
KEY, REPLAYED = "idempotency-key", "x-service-replayed"
FUNDS = 5_000_000
PRICES = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 2_000_000\n"
LONG = "endless+times-900"
MODELS = ("ok", "drip-100ms", "drip-20ms", "slow-100ms", "endless", LONG, "silent")
_numbers = itertools.count(1)


@dataclass
class Lab:
    """The service in front of `upstream`, and a person with 5 dollars."""

    server: Any
    upstream: ModelServer
    person: Account
    client: httpx.AsyncClient

    def headers(self, key: str) -> dict[str, str]:
        return {**self.person.headers, KEY: key}

    def body(self, path: str, model: str, **fields: Any) -> dict[str, Any]:
        asked = {"input": "hi"} if path == RESPONSES else {"messages": [{"role": "user", "content": "hi"}]}
        return {"model": f"lab/{model}", **asked, **({"max_tokens": 50} if path == MESSAGES else {}), **fields}

    async def post(self, path: str, body: dict[str, Any], key: str) -> httpx.Response:
        return await self.client.post(path, json=body, headers=self.headers(key))

    @property
    def database(self) -> Path:
        return self.server.data_dir / "service.db"

    def debits(self) -> list[int]:
        query = "SELECT amount_micros FROM ledger WHERE account_id = ? AND kind = 'debit' AND request_id IS NOT NULL"
        return [row[0] for row in rows(self.database, query, self.person.id)]

    async def settled(self) -> None:
        await until(lambda: not self.server.service.state["claims"].running)
        assert rows(self.database, "SELECT id FROM holds WHERE account_id = ?", self.person.id) == []


def catalog(upstream: ModelServer) -> str:
    models = "".join(f'[[providers.models]]\nid = "{name}"\n{PRICES}' for name in MODELS)
    return f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\ntimeout_seconds = 5\n{models}'


def person(server: AnyServer) -> Account:
    return add_accounts(server, 1, micros=FUNDS, name=f"person{next(_numbers)}-")[0]


@contextlib.asynccontextmanager
async def laboratory(folder: Path, upstream: ModelServer) -> AsyncIterator[Lab]:
    async with local_server(folder, catalog(upstream)) as server, server.client(timeout=30) as client:
        yield Lab(server, upstream, person(server), client)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lab]:
    async with ModelServer() as upstream, laboratory(tmp_path_factory.mktemp("lab"), upstream) as lab:
        yield lab


@pytest_asyncio.fixture(loop_scope="module")
async def lab(shared: Lab) -> Lab:
    shared.upstream.requests.clear()
    return replace(shared, person=person(shared.server))


async def leave_after_a_part(lab: Lab, path: str, body: dict[str, Any], key: str) -> None:
    async with lab.client.stream("POST", path, json=body, headers=lab.headers(key)) as answer:
        async for _ in answer.aiter_bytes():
            break


@each("path", [CHAT, RESPONSES, MESSAGES])
async def test_stream_runs_to_its_end_without_its_client(lab: Lab, path: str) -> None:
    lab.upstream.requests.clear()
    body, before = lab.body(path, "drip-20ms", stream=True), len(lab.debits())
    await leave_after_a_part(lab, path, body, path)
    follower = await lab.post(path, body, path)
    repeat = await lab.post(path, body, path)
    assert follower.content == repeat.content and b'"ld"' in repeat.content
    assert repeat.headers[REPLAYED] == follower.headers[REPLAYED] == "true"
    assert len(lab.upstream.requests) == 1 and len(lab.debits()) == before + 1


@each("path", [CHAT, RESPONSES, MESSAGES])
async def test_json_answer_is_completed_without_its_client(lab: Lab, path: str) -> None:
    lab.upstream.requests.clear()
    body, before = lab.body(path, "slow-100ms"), len(lab.debits())
    asking = asyncio.create_task(lab.post(path, body, path))
    await until(lambda: lab.upstream.requests)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    repeat = await lab.post(path, body, path)
    assert repeat.status_code == 200 and repeat.headers[REPLAYED] == "true"
    assert len(lab.upstream.requests) == 1 and len(lab.debits()) == before + 1
    await lab.settled()


async def test_answer_that_is_too_large_ends_with_its_client(lab: Lab) -> None:
    body = lab.body(CHAT, LONG, stream=True, max_tokens=10_000_000)
    async with lab.client.stream("POST", CHAT, json=body, headers=lab.headers("k")) as answer:
        size = 0
        async for part in answer.aiter_bytes():
            size += len(part)
            if size > 9_000_000:
                break
    await asyncio.wait_for(lab.upstream.requests[-1].gone.wait(), 10)
    await lab.settled()
    assert (await lab.post(CHAT, body, "k")).json()["error"]["code"] == "answer_not_kept"
    assert len(lab.debits()) == len(lab.upstream.requests) == 1


async def test_answer_that_becomes_too_large_without_its_client_ends(lab: Lab) -> None:
    body = lab.body(CHAT, LONG, stream=True, max_tokens=10_000_000)
    await leave_after_a_part(lab, CHAT, body, "k")
    await asyncio.wait_for(lab.upstream.requests[-1].gone.wait(), 20)
    await lab.settled()
    assert (await lab.post(CHAT, body, "k")).json()["error"]["code"] == "answer_not_kept"
    assert len(lab.debits()) == len(lab.upstream.requests) == 1


async def test_speech_is_completed_without_its_client(lab: Lab) -> None:
    body = {"model": "builtin/voice", "input": "One two three four five. " * 20}
    with pytest.raises(httpx.TimeoutException):
        await lab.client.post(AUDIO, json=body, headers=lab.headers("speech"), timeout=0.1)
    repeat = await lab.post(AUDIO, body, "speech")
    assert repeat.status_code == 200 and repeat.headers[REPLAYED] == "true"
    assert len(lab.debits()) == 1


async def test_follower_gets_parts_while_the_first_runs(lab: Lab) -> None:
    body = lab.body(CHAT, "drip-100ms", stream=True)
    first = asyncio.create_task(lab.post(CHAT, body, "k"))
    await until(lambda: lab.upstream.requests)
    parts = []
    async with lab.client.stream("POST", CHAT, json=body, headers=lab.headers("k")) as answer:
        assert answer.headers[REPLAYED] == "true" and "content-length" not in answer.headers
        async for part in answer.aiter_bytes():
            parts.append((part, first.done()))
    assert len(parts) > 2 and not parts[0][1]
    assert b"".join(part for part, _ in parts) == (await first).content


async def test_follower_that_leaves_disturbs_nobody(lab: Lab) -> None:
    body = lab.body(CHAT, "drip-100ms", stream=True)
    first = asyncio.create_task(lab.post(CHAT, body, "k"))
    await until(lambda: lab.upstream.requests)
    await leave_after_a_part(lab, CHAT, body, "k")
    assert (await first).content == (await lab.post(CHAT, body, "k")).content
    assert len(lab.debits()) == 1


async def test_follower_of_a_request_that_never_arrives_whole_may_try_again(lab: Lab) -> None:
    body = orjson.dumps(lab.body(CHAT, "ok"))
    head = [f"POST {CHAT} HTTP/1.1", f"host: {lab.server.host}", f"content-length: {len(body)}"]
    head += ["content-type: application/json", *(f"{name}: {value}" for name, value in lab.headers("k").items())]
    reader, writer = await lab.server.raw()
    writer.write("\r\n".join([*head, "expect: 100-continue", "", ""]).encode())
    await reader.readuntil(b"100 Continue\r\n\r\n")  # the key is claimed
    writer.write(body[:-1])
    await writer.drain()
    sent = {"content-type": "application/json", **lab.headers("k")}
    following = asyncio.create_task(lab.client.post(CHAT, content=body, headers=sent))
    await run_ready()
    assert not following.done()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    answer = await following
    assert answer.status_code == 503 and answer.headers["retry-after"] == "1"
    assert (await lab.client.post(CHAT, content=body, headers=sent)).status_code == 200


async def test_run_still_ends_with_its_client(lab: Lab) -> None:
    body = {"goal": "hi", "model": "lab/silent"}
    async with lab.client.stream("POST", "/v1/agents/run", json=body, headers=lab.headers("k")) as answer:
        run_id = answer.headers["x-service-run"]
    query = "SELECT status FROM runs WHERE id = ?"
    await until(lambda: rows(lab.database, query, run_id) != [("running",)])
    repeat = await lab.post("/v1/agents/run", body, "k")
    assert repeat.status_code == 409 and repeat.json()["error"]["run_id"] == run_id


@pytest.mark.parametrize("stream", [False, True])
async def test_shutdown_releases_the_key(tmp_path: Path, stream: bool) -> None:
    async with ModelServer() as upstream, laboratory(tmp_path, upstream) as lab:
        body = lab.body(CHAT, "endless" if stream else "silent", stream=stream)
        asking = [asyncio.create_task(lab.post(CHAT, body, "k")) for _ in range(3)]
        drain, claims = (lab.server.service.state[name] for name in ("drain", "claims"))
        await until(lambda: upstream.requests and len(drain) == 3)
        await until(lambda: all(claim.begun == stream for claim in claims.running.values()))
        await run_ready()
        for answer in drain.open:
            answer.grace_seconds = min(answer.grace_seconds, 0.1)  # a JSON answer has 5 s
        await lab.server.stop()
        answers = await asyncio.gather(*asking)
        assert {answer.status_code for answer in answers} == {200 if stream else 503}
        assert all(b"shutting_down" in answer.content for answer in answers)
        assert len(lab.debits()) == int(stream)
        for table in ("idempotency_keys", "idempotency_chunks", "reserved_room"):
            assert rows(lab.database, f"SELECT * FROM {table}") == []
        assert_exact(lab.database)


async def test_shutdown_ends_what_runs_without_its_client(tmp_path: Path) -> None:
    async with ModelServer() as upstream, laboratory(tmp_path, upstream) as lab:
        body = lab.body(CHAT, LONG, stream=True, max_tokens=10_000_000)
        await leave_after_a_part(lab, CHAT, body, "k")
        await lab.server.stop()
        assert rows(lab.database, "SELECT * FROM idempotency_keys") == []
        assert_exact(lab.database)


async def test_request_of_a_crashed_service_may_be_sent_again_and_is_charged_once(tmp_path: Path) -> None:
    (tmp_path / "crashed").mkdir()
    async with ModelServer() as upstream, laboratory(tmp_path, upstream) as lab:
        asking = asyncio.create_task(lab.post(CHAT, lab.body(CHAT, "silent"), "k"))
        await until(lambda: upstream.requests)
        place = tmp_path / "crashed" / "data"
        shutil.copytree(lab.server.data_dir, place, ignore=shutil.ignore_patterns("status"))
        asking.cancel()
        assert len(rows(place / "service.db", "SELECT * FROM holds")) == 1
        async with local_server(tmp_path / "crashed", catalog(upstream)) as server, server.client() as client:
            again = replace(lab, server=server, client=client)
            for table in ("holds", "idempotency_keys", "reserved_room"):
                assert rows(again.database, f"SELECT * FROM {table}") == []
            answers = [await again.post(CHAT, again.body(CHAT, "ok"), "k") for _ in range(2)]
            assert [answer.status_code for answer in answers] == [200, 200]
            assert [answer.headers.get(REPLAYED) for answer in answers] == [None, "true"]
            assert answers[0].content == answers[1].content and len(again.debits()) == 1
            assert_exact(again.database)


def cutting(http: Any) -> Any:
    """Return a client of `http`, httpx or httpx2, that loses the first two answers after they were sent."""
    inner, lost = http.AsyncHTTPTransport(), itertools.count(1)

    class Cutting(http.AsyncBaseTransport):  # type: ignore[misc]
        async def handle_async_request(self, request: Any) -> Any:
            answer = await inner.handle_async_request(request)
            if next(lost) > 2:
                return answer
            await answer.aread()
            raise http.ReadError("the connection was cut")

        async def aclose(self) -> None:
            await inner.aclose()

    return http.AsyncClient(transport=Cutting())


@pytest.mark.slow  # the clients wait before they try again
@pytest.mark.parametrize("stream", [False, True])
async def test_retries_of_the_sdks_are_charged_once(lab: Lab, stream: bool) -> None:
    import anthropic
    import httpx2
    import openai

    asked: Any = {"model": "lab/ok", "messages": [{"role": "user", "content": "hi"}], "stream": stream}
    asked["extra_headers"] = {"Idempotency-Key": "mine"}
    options: Any = {"api_key": lab.person.key, "max_retries": 2}
    base_url = str(lab.client.base_url).rstrip("/")  # without TLS
    async with openai.AsyncOpenAI(base_url=f"{base_url}/v1", http_client=cutting(httpx), **options) as client:
        found: Any = await client.chat.completions.create(**asked)
        if stream:
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in found])
        else:
            text = found.choices[0].message.content
    assert text == "Hello, world!" and len(lab.debits()) == len(lab.upstream.requests) == 1
    async with anthropic.AsyncAnthropic(base_url=base_url, http_client=cutting(httpx2), **options) as sdk:
        told: Any = await sdk.messages.create(max_tokens=50, **asked)
        if stream:
            parts = [part async for part in told]
            text = "".join(part.delta.text for part in parts if part.type == "content_block_delta")
            assert parts[-1].type == "message_stop"
        else:
            text = told.content[0].text
    assert text == "Hello, world!" and len(lab.debits()) == len(lab.upstream.requests) == 2
