"""Requests with an Idempotency-Key: what repeats and followers get, what it costs, and what frees a key."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
import pytest

from svc.billing import wallet
from svc.config import Config
from svc.content import idempotency
from svc.errors import ApiError
from svc.inference import claim
from svc.server import idempotency as guard
from svc.server.limits import MIB
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.support.answers import assert_error
from tests.support.cases import each
from tests.support.databases import read_only
from tests.support.loop_clock import advance_loop
from tests.support.model_server import ModelServer

KEY, REPLAYED, COST, CONVERSATION = (
    "idempotency-key",
    "x-service-replayed",
    "x-service-cost-micros",
    "x-service-conversation",
)
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
IMAGES, AUDIO, SPEECH, RUN = "/v1/images/generations", "/v1/audio/generate", "/v1/audio/speech", "/v1/agents/run"
FUNDS = 5_000_000
PRICES = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 2_000_000\n"
MODELS = (
    "ok",
    "slow-300ms",
    "status-400",
    "status-422",
    "status-429",
    "status-500",
    "status-404",
    "mid-line",
    "silent",
    "drip-100ms",
    "echo",
    "slow-300ms+status-422",
)
USER = [{"role": "user", "content": "hi"}]
# A body for each path, whose model has a price.
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "lab/ok", "messages": USER},
    RESPONSES: {"model": "lab/ok", "input": "hi"},
    MESSAGES: {"model": "lab/ok", "messages": USER, "max_tokens": 50},
    IMAGES: {"model": "builtin/paint", "prompt": "a pine", "size": "64x64"},
    AUDIO: {"model": "builtin/voice", "input": "Hello."},
    SPEECH: {"model": "builtin/voice", "input": "Hello.", "voice": "alloy", "response_format": "wav"},
}
STREAMED = {path: {**BODIES[path], "stream": True} for path in (CHAT, RESPONSES, MESSAGES)}
STREAMED[SPEECH] = {**BODIES[SPEECH], "stream_format": "sse"}
ALL = [*BODIES.items(), *STREAMED.items()]


def catalog(upstream: ModelServer) -> str:
    entries = [f'[[providers.models]]\nid = "{name}"\n' for name in MODELS]
    free = "".join(entry.replace('"\n', '+free"\n') for entry in entries)
    paid = "".join(entry + PRICES for entry in entries)
    speech = '[[providers.models]]\nid = "seconds-300"\nkind = "speech"\nmicros_per_thousand_audio_tokens = 100\n'
    return f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\ntimeout_seconds = 1\n{paid}{free}{speech}'


@dataclass
class Lab:
    """The service in front of a model server, and an account with 5 dollars. `as_session` and `as_key` sign in."""

    service: Service
    upstream: ModelServer
    account_id: str
    as_session: dict[str, str]
    as_key: dict[str, str]
    headers: dict[str, str] = field(default_factory=dict)

    async def post(self, path: str, body: Any, key: str | None = "k1", **headers: str) -> httpx.Response:
        keyed = {} if key is None else {KEY: key}
        return await self.service.client.post(
            path,
            content=orjson.dumps(body),
            headers={"content-type": "application/json", **self.headers, **keyed, **headers},
        )

    async def spent(self) -> int:
        account = (await self.service.client.get("/billing/account", headers=self.as_key)).json()
        assert account["held_micros"] == 0
        return FUNDS - int(account["wallet_balance_micros"])

    async def debits(self) -> int:
        ledger = (await self.service.client.get("/billing/ledger", headers=self.as_key)).json()["data"]
        return sum(row["kind"] == "debit" for row in ledger)

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.service.state["db"].read(lambda conn: conn.execute(query).fetchall())]

    async def stored_bytes(self) -> int:
        return int((await self.rows(f"SELECT bytes FROM stored WHERE account_id = '{self.account_id}'"))[0][0])


@pytest.fixture
async def lab(config: Config, clocks: Clocks) -> AsyncIterator[Lab]:
    async with ModelServer() as upstream, serving(config, clocks, catalog(upstream)) as service:
        yield await person(service, upstream)


async def person(service: Service, upstream: ModelServer) -> Lab:
    session = await service.sign_up()
    account_id, as_session = session["user"]["id"], bearer(session["access_token"])
    as_key = bearer((await service.make_key(as_session))["key"])
    await service.state["db"].write(wallet.book, account_id, FUNDS, description="", now_seconds=1.0)
    return Lab(service, upstream, account_id, as_session, as_key, as_key)


def kept(answer: httpx.Response) -> dict[str, str]:
    """The headers that belong to an answer."""
    names = ("content-type", COST, CONVERSATION, "x-audio-seconds", "x-audio-truncated", "x-service-memory")
    return {name: answer.headers[name] for name in names if name in answer.headers}


@each(("path", "body"), ALL)
async def test_repeat_gets_the_same_bytes_and_costs_nothing(lab: Lab, path: str, body: dict[str, Any]) -> None:
    key = f"{path} {len(body)}".replace(" ", "-")
    first = await lab.post(path, body, key)
    assert first.status_code == 200, first.text
    assert REPLAYED not in first.headers
    before = (await lab.spent(), await lab.debits(), len(lab.upstream.requests))
    for _ in range(2):
        repeat = await lab.post(path, body, key)
        assert (repeat.status_code, repeat.content, kept(repeat)) == (200, first.content, kept(first))
        assert repeat.headers[REPLAYED] == "true"
        assert repeat.headers["x-request-id"] != first.headers["x-request-id"]
        assert ("content-length" in repeat.headers) == ("content-length" in first.headers)
    assert (await lab.spent(), await lab.debits(), len(lab.upstream.requests)) == before


@each("stream", [False, True])
@each("path", [CHAT, RESPONSES, MESSAGES])
async def test_equal_requests_at_once_are_one_call(lab: Lab, path: str, stream: bool) -> None:
    lab.upstream.requests.clear()
    body, spent = {**BODIES[path], "model": "lab/slow-300ms", "stream": stream}, await lab.spent()
    answers = await asyncio.gather(*(lab.post(path, body, f"{stream}") for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1 and answers[0].content
    assert sum(REPLAYED in answer.headers for answer in answers) == 19
    assert len(lab.upstream.requests) == 1
    assert len({str(sorted(kept(answer).items())) for answer in answers}) == 1
    assert await lab.spent() > spent
    assert not lab.service.state["claims"].running and not lab.service.state["claims"].taken_bytes


async def test_repeats_and_refused_ones_take_no_place_of_the_bucket(lab: Lab) -> None:
    name = "x-ratelimit-remaining-requests"
    first = await lab.post(CHAT, BODIES[CHAT])
    for _ in range(30):
        repeat = await lab.post(CHAT, BODIES[CHAT])
        assert repeat.status_code == 200 and name not in repeat.headers
        assert_error(await lab.post(CHAT, {**BODIES[CHAT], "seed": 1}), 409, "idempotency_mismatch")
    following = await lab.post(CHAT, BODIES[CHAT], "k2")
    assert int(following.headers[name]) == int(first.headers[name]) - 1


@each(("path", "body"), BODIES.items())
async def test_another_body_with_the_same_key_is_refused(lab: Lab, path: str, body: dict[str, Any]) -> None:
    first = await lab.post(path, body)
    spent = await lab.spent()
    refused = await lab.post(path, {**body, "user": "another"})
    assert_error(refused, 409, "idempotency_mismatch")
    assert refused.headers["x-should-retry"] == "false" and await lab.spent() == spent
    spaced = await lab.service.client.post(
        path, content=orjson.dumps(body) + b" ", headers={**lab.headers, KEY: "k1", "content-type": "application/json"}
    )
    assert_error(spaced, 409, "idempotency_mismatch")  # the same means the same bytes
    assert (await lab.post(path, body)).content == first.content


async def test_other_body_is_refused_while_the_first_runs(lab: Lab) -> None:
    body = {**BODIES[CHAT], "model": "lab/slow-300ms"}
    first, other = await asyncio.gather(lab.post(CHAT, body), lab.post(CHAT, {**body, "seed": 1}))
    assert first.status_code == 200
    assert_error(other, 409, "idempotency_mismatch")


async def test_key_belongs_to_the_account_and_the_path(lab: Lab) -> None:
    first = await lab.post(CHAT, BODIES[CHAT], **lab.as_key)
    other = await person(lab.service, lab.upstream)
    assert REPLAYED not in (await other.post(CHAT, BODIES[CHAT])).headers
    assert REPLAYED not in (await lab.post(MESSAGES, BODIES[MESSAGES])).headers
    second_key = bearer((await lab.service.make_key(lab.as_session))["key"])
    for headers in (second_key, lab.as_session):
        repeat = await lab.post(CHAT, BODIES[CHAT], **headers)
        assert repeat.headers[REPLAYED] == "true" and repeat.content == first.content


WRONG_KEYS = ["", "a b", "x" * 256, "caf\u00e9", "tab\there"]


@each("key", WRONG_KEYS)
async def test_wrong_key_is_refused_after_the_rate_limit(lab: Lab, key: str) -> None:
    headers = {**lab.headers, "content-type": "application/json"}
    for path, body in BODIES.items():
        sent = [(name.encode(), value.encode()) for name, value in headers.items()] + [(KEY.encode(), key.encode())]
        answer = await lab.service.client.post(path, content=orjson.dumps(body), headers=sent)
        error = assert_error(answer, 400, "invalid_value")
        assert ("x-ratelimit-limit-requests" in answer.headers) == (path in (CHAT, RESPONSES, MESSAGES))
        if path != MESSAGES:
            assert error["param"] == "Idempotency-Key"


async def test_repeated_header_is_refused(lab: Lab) -> None:
    headers = [*lab.headers.items(), ("content-type", "application/json"), (KEY, "a"), (KEY, "a")]
    answer = await lab.service.client.post(CHAT, content=orjson.dumps(BODIES[CHAT]), headers=headers)
    assert_error(answer, 400, "invalid_value")
    assert (await lab.post(CHAT, BODIES[CHAT], "x" * 255)).status_code == 200


@each("stream", [False, True])
@each("path", [CHAT, RESPONSES, MESSAGES])
@each("model", ["status-400", "status-422", "status-404"])
async def test_model_servers_own_refusal_is_kept(lab: Lab, path: str, stream: bool, model: str) -> None:
    lab.upstream.requests.clear()
    body = {**BODIES[path], "model": f"lab/{model}", "stream": stream}
    first = await lab.post(path, body, f"{model}{stream}")
    repeat = await lab.post(path, body, f"{model}{stream}")
    assert first.status_code == repeat.status_code == int(model[-3:]) and repeat.content == first.content
    assert repeat.headers[REPLAYED] == "true" and len(lab.upstream.requests) == 1
    assert await lab.spent() == 0


FAULTS = [
    (model, path, stream)
    for model in ("status-500", "status-429")
    for path in (CHAT, RESPONSES, MESSAGES)
    for stream in (False, True)
]


@each(("model", "path", "stream"), [*FAULTS, ("silent", CHAT, True)])  # to give up a silent one takes seconds
async def test_fault_of_the_model_server_releases_the_key(lab: Lab, path: str, stream: bool, model: str) -> None:
    asked = []
    body = {**BODIES[path], "model": f"lab/{model}", "stream": stream}
    for _ in range(2):
        lab.upstream.requests.clear()
        lab.service.clocks.advance(60)
        answer = await lab.post(path, body, f"{model}{stream}")
        assert answer.status_code in (502, 503, 504) and REPLAYED not in answer.headers
        asked.append(len(lab.upstream.requests))
    assert asked[0] == asked[1] > 0 and await lab.spent() == 0
    assert await lab.rows("SELECT id FROM idempotency_keys") == []
    assert await lab.rows("SELECT id FROM reserved_room") == []


@each("path", [CHAT, RESPONSES, MESSAGES])
@each("model", ["lab/slow-300ms", "lab/slow-300ms+status-422"])
async def test_follower_of_a_silent_stream_gets_its_head_early(
    lab: Lab, path: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "QUIET_SECONDS", 0.02)
    body = {**BODIES[path], "model": model, "stream": True}
    first, follower = await asyncio.gather(lab.post(path, body, model), lab.post(path, body, model))
    assert first.status_code == follower.status_code == (422 if model.endswith("422") else 200)
    assert path == MESSAGES or follower.content == first.content  # an error has the id of its request there


async def test_followers_of_a_released_call_get_its_error(lab: Lab) -> None:
    body = {**BODIES[CHAT], "model": "lab/silent"}
    answers = await asyncio.gather(*(lab.post(CHAT, body) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {504}
    assert await lab.rows("SELECT id FROM idempotency_keys") == []


@each(
    ("change", "status"),
    [
        ({"model": "lab/none"}, 404),
        ({"messages": []}, 400),
        ({"model": 5}, 400),
        ({"max_tokens": 0.5}, 400),
    ],
)
async def test_refusal_before_the_model_is_asked_releases_the_key(
    lab: Lab, change: dict[str, Any], status: int
) -> None:
    for _ in range(2):
        answer = await lab.post(CHAT, {**BODIES[CHAT], **change})
        assert answer.status_code == status and REPLAYED not in answer.headers
    assert (await lab.post(CHAT, BODIES[CHAT], str(change).replace(" ", ""))).status_code == 200


async def test_empty_wallet_and_full_bucket_release_the_key(lab: Lab) -> None:
    db = lab.service.state["db"]
    await db.write(wallet.book, lab.account_id, -FUNDS, description="", now_seconds=1.0)
    assert_error(await lab.post(CHAT, BODIES[CHAT]), 402, "insufficient_funds")
    await db.write(wallet.book, lab.account_id, FUNDS, description="", now_seconds=1.0)
    limit = 1
    while (answer := await lab.post(CHAT, {"model": "builtin/echo", "messages": USER}, None)).status_code == 200:
        limit += 1
    assert_error(await lab.post(CHAT, BODIES[CHAT]), 429, "rate_limit_exceeded")
    assert answer.status_code == 429 and limit > 10
    lab.service.clocks.advance(60)
    assert REPLAYED not in (await lab.post(CHAT, BODIES[CHAT])).headers


@each("path", [CHAT, RESPONSES, MESSAGES])
@each("model", ["lab/mid-line", "lab/mid-line+free"])
async def test_stream_that_ended_in_an_error_event_is_kept(lab: Lab, path: str, model: str) -> None:
    lab.upstream.requests.clear()
    body = {**BODIES[path], "model": model, "stream": True}
    first = await lab.post(path, body, model)
    spent = await lab.spent()
    repeat = await lab.post(path, body, model)
    assert first.status_code == 200 and b"error" in first.content and repeat.content == first.content
    assert repeat.headers[REPLAYED] == "true" and len(lab.upstream.requests) == 1
    assert await lab.spent() == spent and (spent > 0 or model.endswith("free"))


async def test_key_expires_after_24_hours(lab: Lab) -> None:
    first = await lab.post(CHAT, BODIES[CHAT], **lab.as_key)
    lab.service.clocks.advance(24 * 3600 - 1)
    assert (await lab.post(CHAT, BODIES[CHAT])).content == first.content
    lab.service.clocks.advance(1)
    anew = await lab.post(CHAT, {**BODIES[CHAT], "seed": 1})
    assert anew.status_code == 200 and REPLAYED not in anew.headers and await lab.debits() == 2
    assert (await lab.post(CHAT, {**BODIES[CHAT], "seed": 1})).content == anew.content


async def test_kept_answers_count_as_stored_until_they_are_deleted(lab: Lab) -> None:
    before = await lab.stored_bytes()
    await lab.post(IMAGES, BODIES[IMAGES])
    size = len((await lab.post(IMAGES, BODIES[IMAGES])).content)
    assert before + size + 256 < await lab.stored_bytes() < before + size + 512
    old = lab.service.clocks.now + idempotency.KEPT_SECONDS + 1
    db = lab.service.state["db"]
    while await db.write_as("alone", idempotency.delete_old, old - idempotency.KEPT_SECONDS):
        pass
    assert await lab.stored_bytes() == before
    assert await lab.rows("SELECT key_id FROM idempotency_chunks") == []


async def test_session_stores_the_question_once(lab: Lab) -> None:
    for stream in (False, True):
        body = {"model": "lab/ok", "messages": USER, "stream": stream}
        lab.headers = lab.as_session
        first, follower = await asyncio.gather(lab.post(CHAT, body, f"{stream}"), lab.post(CHAT, body, f"{stream}"))
        repeat = await lab.post(CHAT, body, f"{stream}")
        for answer in (follower, repeat):
            assert answer.content == first.content and kept(answer) == kept(first) and answer.headers[REPLAYED]
        conversation = first.headers[CONVERSATION]
        page = (await lab.service.client.get(f"/conversations/{conversation}/messages", headers=lab.as_session)).json()
        assert [message["role"] for message in page["data"]] == ["assistant", "user"]
    assert len((await lab.service.client.get("/conversations", headers=lab.as_session)).json()["data"]) == 2


def echo(size: int, **fields: Any) -> dict[str, Any]:
    return {"model": "lab/echo+free", "messages": [{"role": "user", "content": "x" * size}], **fields}


@pytest.mark.parametrize("size", [200_000, 300_000, 2_500_000])
@pytest.mark.parametrize("stream", [False, True])
async def test_long_answer_is_kept_whole(lab: Lab, size: int, stream: bool) -> None:
    body = echo(size, stream=stream)
    first = await lab.post(CHAT, body)
    repeat = await lab.post(CHAT, body)
    assert first.status_code == 200 and len(first.content) > size
    assert repeat.content == first.content and repeat.headers[REPLAYED] == "true"
    assert await lab.rows("SELECT id FROM reserved_room") == []


LONG_SPEECH = {"model": "lab/seconds-300", "input": "Hello.", "tts_max_tokens": 32768}
LONG_STREAM = {
    "model": "builtin/echo",
    "messages": [{"role": "user", "content": "x" * 500_000}],
    "max_tokens": 1_000_000,
    "stream": True,
}


@pytest.fixture
def at_most_2_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of 8 MiB takes seconds."""
    monkeypatch.setattr(claim, "MOST_BYTES", 2 * MIB)


@pytest.mark.parametrize(("path", "body"), [(AUDIO, LONG_SPEECH), (CHAT, LONG_STREAM), (MESSAGES, LONG_STREAM)])
async def test_answer_over_8_mib_is_not_kept(
    lab: Lab, path: str, body: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    if path != AUDIO:
        request.getfixturevalue("at_most_2_mib")
    first, follower = await asyncio.gather(lab.post(path, body), lab.post(path, body))
    spent = await lab.spent()
    assert first.status_code == 200 and len(first.content) > (8 * MIB if path == AUDIO else 2 * MIB)
    if path == AUDIO:
        assert_error(follower, 409, "answer_not_kept")
    else:  # it had begun
        assert follower.status_code == 200 and b"too large to keep" in follower.content[-500:]
    assert_error(await lab.post(path, body), 409, "answer_not_kept")
    assert_error(await lab.post(path, {**body, "user": "x"}), 409, "idempotency_mismatch")
    assert await lab.spent() == spent and len(lab.upstream.requests) == (path == AUDIO)
    claims = lab.service.state["claims"]
    assert not claims.running and not claims.taken_bytes
    assert await lab.rows("SELECT key_id FROM idempotency_chunks") == []


async def test_last_event_can_make_an_answer_too_large(lab: Lab, at_most_2_mib: None) -> None:
    body = {
        "model": "lab/echo",
        "input": "x" * 900_000,
        "max_output_tokens": 500_000,
        "stream": True,
    }  # the end of the stream repeats the text
    first, follower = await asyncio.gather(lab.post(RESPONSES, body), lab.post(RESPONSES, body))
    assert first.status_code == 200 and first.content.endswith(b"data: [DONE]\n\n")
    assert b"too large to keep" in follower.content[-500:] or follower.status_code == 409
    assert_error(await lab.post(RESPONSES, body), 409, "answer_not_kept")
    assert await lab.debits() == 1 and await lab.spent() > 0
    assert await lab.rows("SELECT key_id FROM idempotency_chunks") == []


async def test_full_account_is_refused_before_the_model_is_asked(lab: Lab) -> None:
    db = lab.service.state["db"]
    room = await lab.stored_bytes() + idempotency.RESERVED_BYTES
    await db.write(lambda tx: tx.execute("UPDATE storage_limit SET bytes = ?", (room,)) and None)
    for path, body in [*BODIES.items(), *STREAMED.items(), (CHAT, {"model": "builtin/echo", "messages": USER})]:
        assert_error(await lab.post(path, body), 413, "quota_exceeded")
    assert lab.upstream.requests == [] and await lab.spent() == 0
    await db.write(lambda tx: tx.execute("UPDATE storage_limit SET bytes = ?", (room + 1000,)) and None)
    assert (await lab.post(CHAT, BODIES[CHAT])).status_code == 200
    assert (await lab.post(CHAT, BODIES[CHAT])).headers[REPLAYED] == "true"
    long = echo(300_000)  # for which there is no room when it is whole
    assert (await lab.post(CHAT, long, "k2")).status_code == 200
    assert_error(await lab.post(CHAT, long, "k2"), 409, "answer_not_kept")


async def test_account_has_40_keyed_requests_in_progress_at_most(lab: Lab) -> None:
    speech = {"model": "builtin/voice", "input": "Hello."}
    claims = lab.service.state["claims"]
    places = [idempotency.place_of(lab.account_id, CHAT, str(n)) for n in range(40)]
    begun = [claims.begin(place, lab.service.state["db"], lab.service.config.clock) for place in places]
    assert_error(await lab.post(AUDIO, speech), 429, "rate_limit_exceeded")
    begun[0].fail(ApiError("internal_error"))
    assert (await lab.post(AUDIO, speech)).status_code == 200


async def test_agent_run_is_started_once(lab: Lab) -> None:
    body = {"goal": "Calculate 2 + 2", "model": "builtin/assistant"}
    first, *others = await asyncio.gather(*(lab.post(RUN, body) for _ in range(5)))
    run_id = first.headers["x-service-run"]
    for answer in (*others, await lab.post(RUN, body)):
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["run_id"]) == (409, "already_started", run_id)
        assert error["type"] == "conflict_error" and answer.headers["x-should-retry"] == "false"
    assert_error(await lab.post(RUN, {**body, "max_steps": 2}), 409, "idempotency_mismatch")
    runs = (await lab.service.client.get("/v1/agents/runs", headers=lab.as_key)).json()["data"]
    assert [run["id"] for run in runs] == [run_id] and runs[0]["status"] == "final"
    assert await lab.rows("SELECT id FROM reserved_room") == []


async def test_refused_start_of_a_run_releases_the_key(lab: Lab) -> None:
    body = {"goal": "Calculate 2 + 2", "model": "builtin/assistant"}
    assert_error(await lab.post(RUN, {**body, "project_id": "proj_none"}), 404, "not_found")
    await lab.service.state["db"].write(wallet.book, lab.account_id, -FUNDS, description="", now_seconds=1.0)
    assert_error(await lab.post(RUN, {**body, "model": "lab/ok"}), 402, "insufficient_funds")
    assert (await lab.post(RUN, body)).status_code == 200
    assert (await lab.post(RUN, body)).json()["error"]["code"] == "already_started"


async def until_asked(lab: Lab) -> None:
    async with asyncio.timeout(5):
        while not lab.upstream.requests:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_settlement_on_a_full_disk_releases_the_key(lab: Lab, stream: bool, session: bool) -> None:
    lab.headers = lab.as_session if session else lab.as_key
    body = {**BODIES[CHAT], "model": "lab/slow-300ms", "stream": stream}
    asking = [asyncio.create_task(lab.post(CHAT, body)) for _ in range(2)]
    await until_asked(lab)
    async with read_only(lab.service.state["db"]):
        answers = await asyncio.gather(*asking)
    for answer in answers:
        assert answer.status_code == (200 if stream else 503) and b"storage_unavailable" in answer.content
    advance_loop(2)  # then it is stored
    async with asyncio.timeout(5):
        while await lab.rows("SELECT id FROM idempotency_keys"):
            await asyncio.sleep(0.02)
    charged = await lab.debits()
    repeat = await lab.post(CHAT, body)
    assert repeat.status_code == 200 and REPLAYED not in repeat.headers and b"Hello" in repeat.content
    assert (await lab.post(CHAT, body)).content == repeat.content
    assert await lab.debits() == charged + 1 and charged == int(stream)


@pytest.mark.parametrize("stream", [False, True])
async def test_stopped_answer_of_a_session_is_kept(lab: Lab, stream: bool) -> None:
    lab.headers = lab.as_session
    body = {"model": "lab/drip-100ms" if stream else "lab/slow-300ms", "messages": USER, "stream": stream}
    asking = asyncio.create_task(lab.post(CHAT, body))
    await until_asked(lab)
    (conversation,) = lab.service.state["open_answers"]
    stopped = await lab.service.client.post(f"/conversations/{conversation}/stop", headers=lab.as_session)
    assert stopped.status_code == 202
    first, repeat = await asking, await lab.post(CHAT, body)
    assert first.status_code == 200 and b'"status":"stopped"' in first.content
    assert repeat.content == first.content and kept(repeat) == kept(first) and repeat.headers[REPLAYED] == "true"
    assert len(lab.upstream.requests) == 1


async def test_deleted_conversation_takes_its_kept_answers_along_and_a_repeat_stays_free(lab: Lab) -> None:
    lab.headers = lab.as_session
    body = {"model": "lab/ok", "messages": USER}
    first = await lab.post(CHAT, body)
    conversation = first.headers[CONVERSATION]
    await lab.post(CHAT, body, "k2")
    stored = await lab.stored_bytes()
    removed = await lab.service.client.delete(f"/conversations/{conversation}", headers=lab.as_session)
    assert removed.status_code == 204 and await lab.stored_bytes() < stored - len(first.content)
    assert await lab.rows("SELECT count(*) FROM idempotency_chunks") == [(1,)], "that of the other conversation"
    assert_error(await lab.post(CHAT, body), 409, "answer_not_kept")
    assert await lab.debits() == 2 and len(lab.upstream.requests) == 2


async def test_answer_that_ends_after_its_conversation_was_deleted_is_not_kept(lab: Lab) -> None:
    lab.headers = lab.as_session
    body = {"model": "lab/drip-100ms", "messages": USER, "stream": True}
    asking = asyncio.create_task(lab.post(CHAT, body))
    await until_asked(lab)
    (conversation,) = lab.service.state["open_answers"]
    assert (
        await lab.service.client.delete(f"/conversations/{conversation}", headers=lab.as_session)
    ).status_code == 204
    await asking
    assert await lab.rows("SELECT * FROM idempotency_chunks") == []


async def test_deleted_account_takes_its_claims_along(lab: Lab) -> None:
    body = {**BODIES[CHAT], "model": "lab/slow-300ms"}
    await lab.post(IMAGES, BODIES[IMAGES])
    asking = [asyncio.create_task(lab.post(CHAT, body)) for _ in range(2)]
    await until_asked(lab)
    removed = await lab.service.client.request(
        "DELETE", "/user/me", json={"password": PASSWORD}, headers=lab.as_session
    )
    assert removed.status_code == 204
    for answer in await asyncio.gather(*asking):
        assert_error(answer, 401, "invalid_api_key")
    for table in ("idempotency_keys", "idempotency_chunks", "reserved_room"):
        assert await lab.rows(f"SELECT * FROM {table}") == []
    assert not lab.service.state["claims"].running


async def test_users_own_model_server_is_treated_the_same(lab: Lab) -> None:
    models = ["ok", "status-429", "status-401"]
    provider = {"name": "mine", "base_url": lab.upstream.base_url, "models": models}
    made = await lab.service.client.post("/user/providers", json=provider, headers=lab.as_key)
    assert made.status_code == 201, made.text
    for model, status, asked in (("ok", 200, 1), ("status-429", 429, 2), ("status-401", 401, 1)):
        lab.upstream.requests.clear()
        body = {"model": f"mine/{model}", "messages": USER}
        first, repeat = await lab.post(CHAT, body, model), await lab.post(CHAT, body, model)
        assert (first.status_code, repeat.content) == (status, first.content), first.text
        assert (REPLAYED in repeat.headers) == (asked == 1) and len(lab.upstream.requests) == asked
    assert await lab.spent() == 0
