"""SIGTERM at any moment of any kind of call: each answer agrees with the ledger. What is paid is delivered."""

import asyncio
import math
import random
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.support.agent_runs import RUN
from tests.support.calls import IMAGES, WHOLE, Answer, Call, calls, catalog, people
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, rows, watch
from tests.support.server import RunningServer, running_server

LONG = "x" * 120_000  # a prompt whose estimate is 30,000 micros
SECONDS = 0.5  # in which the calls begin
TEXT_BYTES, OUTPUT = 13, 2 * 5  # of the model server's whole answer; micros
CALLS = calls("drip-30ms", "slow-300ms", "picture+slow-300ms", "speech+drip-30ms", LONG) | {
    "painted": Call(IMAGES, {"prompt": "a cat", "model": "builtin/paint", "size": "512x512"}, 20_000),
    "run with tools": Call(
        RUN, {"goal": LONG, "model": "lab/drip-30ms+tools", "tools": ["current_time"], "max_steps": 2}, 2 * WHOLE
    ),
}


def is_right(call: Call, answer: Answer, paid: int) -> bool:
    """Return whether a client that paid so many micros got what it paid, and nothing else."""
    if answer.status != 200 or answer.is_cut:
        return paid == 0 and answer.status in (0, 503)
    if not answer.is_stream:
        return paid == call.whole_micros == int(answer.headers["x-service-cost-micros"])
    if not answer.is_ended:
        return False
    if call.path == RUN:
        last = answer.events[-1]
        whole_steps = last["usage"]["prompt_tokens"] / 7  # those that a shutdown cuts have no input
        return last["cost_micros"] == paid and whole_steps in (0, 1, 2)
    if answer.error is None:
        return paid == call.whole_micros
    # The last tokens may have been counted, but not sent.
    least = 2 * math.ceil(len(answer.text) / 4)
    is_error = answer.error in ("shutting_down", "overloaded_error", "server_error")
    return is_error and not answer.ends and least <= paid <= max(least, OUTPUT)


async def play(
    server: RunningServer, models: ModelServer, rnd: random.Random, each: int
) -> tuple[list[str], Counter[tuple[str, str]]]:
    """Begin `each` calls of each kind, and send SIGTERM after some of them have reached the model server.

    Return what is wrong, and the number of answers by their kind and end.
    """
    models.requests.clear()
    names = list(CALLS) * each
    callers = people(server, len(names))
    async with server.client(timeout=30, limits=httpx.Limits(max_connections=None)) as client:

        async def begin(number: int) -> Answer:
            call = CALLS[names[number]]
            if rnd.random() < 0.5:
                call = call._replace(headers={**call.headers, "idempotency-key": "a-key"})
            await asyncio.sleep(rnd.uniform(0, SECONDS))
            return await Answer(call).read(client, callers[number])

        asking = [asyncio.create_task(begin(number)) for number in range(len(names))]
        most = rnd.uniform(0.1, 0.8) * len(names)
        async with asyncio.timeout(20):
            while len(models.requests) < most:
                await asyncio.sleep(0.01)
        await asyncio.sleep(rnd.uniform(0, 0.4))
        assert await server.stop() == 0
        answers = await asyncio.gather(*asking)
    database = server.data_dir / "service.db"
    assert_exact(database)
    query = "SELECT account_id, -sum(amount_micros) FROM ledger WHERE model IS NOT NULL GROUP BY 1"
    debits = dict(rows(database, query))
    wrong, ends = [], Counter[tuple[str, str]]()
    for name, caller, answer in zip(names, callers, answers, strict=True):
        paid = debits.get(caller.account.id, 0)
        end = "error" if answer.status == 200 and answer.error else str(answer.status)
        if not is_right(CALLS[name], answer, paid):
            end = "wrong"
            wrong.append(f"{name}: status {answer.status}, {paid} micros, {answer.content[-300:]!r}")
        ends[name, end] += 1
    return wrong, ends


@pytest.mark.parametrize("rounds", [2, pytest.param(25, marks=pytest.mark.soak)])
async def test_every_answer_at_sigterm_agrees_with_the_ledger(tmp_path: Path, rounds: int) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    rnd = random.Random(seed)
    wrong: list[str] = []
    ends = Counter[tuple[str, str]]()
    async with ModelServer() as models:
        for number in range(rounds):
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / "catalog.toml").write_text(catalog(models.base_url, CALLS))
            async with running_server(folder, {"SVC_CATALOG": str(folder / "catalog.toml")}) as server:
                watch(server.data_dir / "service.db")
                found, told = await play(server, models, rnd, 4)
            wrong += found
            ends += told
    print(*(f"{name:25} {end:8} {times}" for (name, end), times in sorted(ends.items())), sep="\n")
    assert not wrong, "\n".join([f"{len(wrong)} with seed {seed}", *wrong[:40]])
