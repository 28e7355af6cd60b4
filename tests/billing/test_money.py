"""Money over connections: it is settled before the last block, for each way of a disconnect, and beside commands."""

import asyncio
import itertools
import math
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from svc.agents import loop
from tests.support.agent_runs import Account, add_accounts
from tests.support.cases import each, named
from tests.support.local_server import LocalServer, local_server
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, most_tokens, unwatch, watch
from tests.support.paid_requests import (
    CHAT,
    DONE,
    KINDS,
    answer,
    catalog,
    database,
    debits,
    held,
    is_idle,
    person,
    send,
)
from tests.support.people import command
from tests.support.waiting import run_ready, until

ALL_HELD = "usage-1000000000+in"  # it reports more than was held
MODELS = ("ok", "silent", "waits-after-3-chunks", "endless", ALL_HELD)
RUN_BYTES = len(loop.INSTRUCTIONS) + len("hello")
RUN_MESSAGES = [{"role": "system", "content": loop.INSTRUCTIONS}, {"role": "user", "content": "hello"}]
# A chat that is as large as a run's, in JSON and as a stream.
AS_RUN = {"messages": RUN_MESSAGES, "max_tokens": 4096, "stream_options": {"include_usage": True}}
RUN_WORST_TOKENS = most_tokens({**AS_RUN, "model": ALL_HELD, "stream": True})


@pytest.fixture
async def models() -> AsyncIterator[ModelServer]:
    async with ModelServer() as models:
        yield models


@pytest.fixture
async def server(tmp_path: Path, models: ModelServer) -> AsyncIterator[LocalServer]:
    async with local_server(tmp_path, catalog(models.port, *MODELS)) as server:
        watch(database(server))
        yield server
        await until(lambda: not server.rows("SELECT id FROM holds"))
        assert_exact(database(server))


# --- what is answered is settled


@each("model", ["lab/ok", "builtin/assistant-paid"])
@each("kind", KINDS)
async def test_settlement_is_stored_before_the_last_block(
    server: LocalServer, models: ModelServer, kind: str, model: str
) -> None:
    who = person(server)
    for number in range(5):
        stream = await send(server, who, kind, model, request_id=f"{kind}-{model}-{number}")
        await stream.head()
        assert stream.status == 200
        if kind != "json":
            async for block in stream.read():
                if block == DONE or b'"type":"final"' in block:
                    break
            else:
                raise AssertionError("there was no last block")
        query = "SELECT -amount_micros FROM ledger WHERE request_id = ?"
        booked = server.rows(query, stream.headers["x-request-id"])
        assert len(booked) == 1 and is_idle(server, who)
        assert kind != "json" or stream.headers["x-service-cost-micros"] == str(booked[0][0])
        await stream.close()


@pytest.mark.parametrize("served", range(4))
async def test_100_concurrent_calls_with_funds_for_k_give_exactly_k(
    server: LocalServer, models: ModelServer, served: int
) -> None:
    who = person(server, (served + 1) * RUN_WORST_TOKENS - 1)
    fields: dict[str, dict[str, Any]] = {"json": {**AS_RUN, "stream": None}, "stream": AS_RUN, "run": {}}
    streams = await asyncio.gather(
        *(send(server, who, kind, f"lab/{ALL_HELD}", **fields[kind]) for kind in (KINDS * 34)[:100])
    )
    answers = await asyncio.gather(*(answer(stream) for stream in streams))
    assert sorted(status for status, _ in answers) == [200] * served + [402] * (100 - served)
    assert debits(server, who) == [RUN_WORST_TOKENS] * served and len(models.requests) == served


# --- clients that leave

WAYS = ("close", "fin", "rst", "vanish")


async def leave(
    server: LocalServer, models: ModelServer, kind: str, phase: str, way: str, delay_seconds: float, who: Account
) -> None:
    """Send a request and disconnect in that phase. Return when the model server has lost its client, too."""
    model = {"silent": "lab/silent", "streaming": "lab/waits-after-3-chunks", "endless": "lab/endless"}
    cut = {"head": 40, "body": -5}.get(phase)
    # The model server knows the request by its words.
    words = {"goal": who.email} if kind == "run" else {"messages": [{"role": "user", "content": who.email}]}
    stream = await send(server, who, kind, model.get(phase, "lab/ok"), cut=cut, **words)
    if phase == "silent":
        await until(lambda: asked(models, who))
    elif phase in ("streaming", "endless", "ended"):
        lasts = {"streaming": (b"Hello",), "endless": (b"on and",), "ended": (b'"stop"', b'"final"')}[phase]
        await stream.head()
        async for block in stream.read():
            if any(last in block for last in lasts):
                break
    elif phase == "anytime":
        await asyncio.sleep(delay_seconds)
    stream.leave(way)
    if phase in ("silent", "streaming", "endless"):
        (seen,) = asked(models, who)
        await asyncio.wait_for(seen.gone.wait(), 20)
    await stream.close()


def assert_fair(server: LocalServer, models: ModelServer, kind: str, phase: str, who: Account) -> None:
    """Compare the charge of a client that disconnected in that phase with the output that it got."""
    paid, holds = debits(server, who), held(server, who)
    size = len(who.email) + (len(loop.INSTRUCTIONS) if kind == "run" else 0)
    read = math.ceil(size / 4)
    # As the model server counts it, or what it has read and as much of "Hello, world!" as has come.
    counted, estimated = 7 + 2 * 5, [read + 2 * tokens for tokens in range(math.ceil(13 / 4) + 1)]
    if phase in ("head", "body"):
        assert (paid, holds) == ([], [])
    elif phase == "silent":
        assert len(holds) == 1 and paid == [read]
    elif phase == "streaming":
        assert len(holds) == 1 and paid == [estimated[2]]
    elif phase == "ended":
        assert paid == [counted]
    elif phase == "endless":
        assert len(paid) == 1 and estimated[2] <= paid[0] <= holds[0]
    else:
        assert len(holds) <= 1 and (len(paid) == 1 if asked(models, who) else len(paid) <= 1)
        assert set(paid) <= {counted, *estimated}, (paid, estimated)


def asked(models: ModelServer, who: Account) -> list[Any]:
    return [
        seen for seen in models.requests if any(message["content"] == who.email for message in seen.body["messages"])
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_disconnected_client_pays_for_output_so_far(server: LocalServer, models: ModelServer, kind: str) -> None:
    phases = [
        "head",
        "body",
        "silent",
        *["anytime"] * 3,
        *(() if kind == "json" else ("streaming", "endless", "ended")),
    ]
    ways = [(phase, way) for phase in phases for way in WAYS]
    callers = add_accounts(server, len(ways), micros=1_000_000)
    async with asyncio.TaskGroup() as group:
        for number, ((phase, way), who) in enumerate(zip(ways, callers, strict=True)):
            group.create_task(leave(server, models, kind, phase, way, number / 1_000, who))
    await server.idle()
    for (phase, way), who in zip(ways, callers, strict=True):
        with named({"phase": phase, "way": way}):
            assert_fair(server, models, kind, phase, who)


@pytest.mark.parametrize("padding", [0, 100_000])
async def test_disconnect_is_noticed_after_a_large_body_and_a_pipelined_request(
    server: LocalServer, models: ModelServer, padding: int
) -> None:
    who = person(server)
    body = orjson.dumps({"model": "lab/silent", "messages": [{"role": "user", "content": who.email}]}) + b" " * padding
    lines = [f"POST {CHAT} HTTP/1.1", f"host: {server.host}", f"authorization: Bearer {who.key}"]
    lines += ["content-type: application/json", f"content-length: {len(body)}", "", ""]
    _, writer = await server.raw()
    writer.write("\r\n".join(lines).encode())
    await until(lambda: server.open_answers)  # the handler waits when the whole body comes in one read
    writer.write(body)
    await until(lambda: asked(models, who))
    writer.write(f"GET /healthz HTTP/1.1\r\nhost: {server.host}\r\n\r\n".encode())
    await run_ready()
    writer.close()
    await asyncio.wait_for(asked(models, who)[0].gone.wait(), 20)


async def test_stopped_run_pays_for_output_so_far(server: LocalServer, models: ModelServer) -> None:
    who = person(server)
    stream = await send(server, who, "run", "lab/waits-after-3-chunks")
    await stream.head()
    async with server.client() as client:
        async for block in stream.read():
            if b"Hello" in block:
                run = stream.headers["x-service-run"]
                assert (await client.post(f"/v1/agents/runs/{run}/stop", headers=who.headers)).status_code == 202
    last = stream.events[-1]
    assert (last["type"], last["reason"]) == ("stopped", "requested") and debits(server, who) == [last["cost_micros"]]
    assert last["cost_micros"] == math.ceil(RUN_BYTES / 4) + 2 * 2
    await stream.close()


# --- the operator beside it


async def test_commands_credit_at_once_and_debit_only_available_money(server: LocalServer, models: ModelServer) -> None:
    who = person(server, 0)
    assert (await answer(await send(server, who, "json", "lab/ok")))[0] == 402
    credited = await asyncio.to_thread(command, server, "credit", who.email, "0.01")
    assert credited.returncode == 0 and "balance $0.01 (10000 micros), held $0.00" in credited.stdout
    assert (await answer(await send(server, who, "json", "lab/ok")))[0] == 200
    stream = await send(server, who, "stream", "lab/silent")
    await until(lambda: len(models.requests) == 2)
    held = most_tokens(models.requests[-1].body) + 2 * 200  # micros
    refused = await asyncio.to_thread(command, server, "debit", who.email, f"0.00{9984 - held}")
    assert (
        refused.returncode == 1
        and f"$0.009983 (9983 micros), of which $0.000{held} ({held} micros) is reserved" in refused.stderr
    )
    taken = await asyncio.to_thread(command, server, "debit", who.email, f"0.00{9983 - held}", "--note", "Refund")
    assert taken.returncode == 0 and f"balance $0.000{held} ({held} micros), held $0.000{held}" in taken.stdout
    assert (await answer(await send(server, who, "json", "lab/ok")))[0] == 402
    stream.leave("rst")
    await until(lambda: is_idle(server, who))
    assert (await answer(await send(server, who, "json", "lab/ok")))[0] == 200
    assert debits(server, who) == [17, math.ceil(5 / 4), 17]  # a disconnected client pays for the prompt


async def spend(server: LocalServer, who: Account) -> None:
    for kind in itertools.cycle(KINDS):
        assert (await answer(await send(server, who, kind, "lab/ok")))[0] == 200


async def test_check_beside_a_busy_server_has_no_findings(server: LocalServer, models: ModelServer) -> None:
    people = [person(server) for _ in range(4)]
    unwatch(database(server))
    working = [asyncio.create_task(spend(server, who)) for who in people]
    try:
        checked = await asyncio.to_thread(command, server, "check")
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
    assert checked.returncode == 0 and re.fullmatch(r"ok: \d+ wallets and \d+ ledger rows add up\n", checked.stdout)
    assert all(debits(server, who) for who in people)
