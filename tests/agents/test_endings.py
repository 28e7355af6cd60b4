"""Random agent runs, random readers, stops and faults, many at once on one server: each run ends once.

`--seed 7` plays others, and tests/agents/test_endings_process.py plays more.
"""

import asyncio
import itertools
import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.agents.tools.offered import TOOLS
from svc.agents.tools.registry import ToolContext
from tests.conftest import Service
from tests.routes.test_agents import events
from tests.support.agent_runs import (
    ENDS,
    RUN,
    Account,
    Stream,
    add_accounts,
    agrees,
    books,
    checked,
    listed,
    unix_seconds,
)
from tests.support.local_server import AnyServer, local_server
from tests.support.money import assert_exact

AT_ONCE = 32
TEXTS = (
    *(
        "",
        " ",
        "hello",
        "a longer text of several words, ",
        "Grüße aus Zürich 🙂",
        "日本語",
        "👩\u200d👩\u200d👧",
        "\ud83d",
        "\ude00\ud83d",
    ),
    *(
        'data: {"type":"final","seq":1}\n\n',
        "data: [DONE]\n\n",
        "event: error\r\n",
        ": ping\n\n",
        "\u2028\u2029\u0085\x0b",
        "\0\x1b[31m",
    ),
    *("</script><script>", '"\\', "x" * 20_000, "é" * 3_000),
)
ARGUMENTS = (
    *(
        "{}",
        '{"expression": "6 * 7"}',
        '{"expression": "9**9**9"}',
        '{"expression": "1/0"}',
        '{"expression": 5}',
        '{"expression": "1", "x": 1}',
    ),
    *(
        '{"name": "n.txt", "content": "Grüße 🙂"}',
        '{"name": "", "content": ""}',
        '{"name": "a\\u0000b", "content": "x"}',
        '{"id": "art_x"}',
    ),
    *(
        "",
        "no json",
        "[]",
        "null",
        "NaN",
        '{"a": 1e999}',
        '"text"',
        '{"expression": "\\ud800"}',
        '{"a":' * 300 + "1" + "}" * 300,
    ),
)
GOALS = (
    "Compute 12 * (3 + 4)",
    "Compute 2**64 and save a note with the result",
    "Write a note called plan.md",
    "What day is it?",
    "hello",
)
FAULTS = (
    ("fail", 500, "it broke"),
    ("fail", 429, "slow down"),
    ("fail", 400, "no \u2028 tools"),
    ("fail", 599, ""),
    ("drop",),
)

Directive = tuple[Any, ...]


@dataclass
class Program:
    """A run to play: what is asked for, how its reader behaves, and its end without interference (None:
    not predicted).
    """

    number: int
    body: dict[str, Any]
    reader: str
    after_events: int
    leave: str
    end: tuple[str, Any] | None = None
    left_at: float = 0.0


def program(seed: int, number: int) -> Program:
    """The program of that number: always the same one."""
    rnd = random.Random(f"{seed}:{number}")
    reader = rnd.choices(
        [
            "reads",
            "leaves",
            "leaves at once",
            "sends a part",
            "stops",
            "stops twice",
            "stops and leaves",
            "pauses",
            "pauses and leaves",
        ],
        [50, 18, 4, 3, 10, 4, 4, 4, 3],
    )[0]
    made = Program(number, {}, reader, rnd.randrange(1, 8), rnd.choice(["close", "fin", "rst", "vanish"]))
    if rnd.random() < 0.15:
        made.body = {"model": "builtin/assistant-paid", "goal": rnd.choice(GOALS)}
        return made
    parts = [[directive(rnd) for _ in range(rnd.randrange(5))] for _ in range(rnd.randrange(1, 5))]
    if reader.startswith("pauses") or rnd.random() < 0.03:
        parts[0].insert(0, (rnd.randrange(500, 1500), "say", "some text that goes on and on "))
    if reader != "reads" and not reader.startswith("pauses") and rnd.random() < 0.6:
        parts[rnd.randrange(len(parts))].append((1, "wait", 30_000))  # only an interruption ends it in time
        made.reader = "leaves" if reader in ("leaves at once", "sends a part") else reader
        made.after_events = min(made.after_events, 2)
    lines = [line(one) for part in parts for one in [*part, (1, "---")]][:-1]
    wrong = rnd.random() < 0.03
    if wrong:
        lines.insert(
            rnd.randrange(len(lines) + 1), rnd.choice(["sing a song", "wait 99999999", "fail 200 fine", "length x"])
        )
    max_steps = rnd.choice([None, 1, 2, 3, 20])
    made.body = {"model": "builtin/script", "goal": "\n".join(lines) if any(map(str.strip, lines)) else "say hi"}
    made.body |= {"max_steps": max_steps} if max_steps else {}
    made.body |= (
        {"tools": rnd.choice([[], ["calculate"], ["current_time", "write_artifact"]])} if rnd.random() < 0.2 else {}
    )
    if made.body["goal"] == "say hi":
        parts = [[(1, "say", "hi")]]
    if not any(one[1:] == ("wait", 30_000) for part in parts for one in part):
        made.end = ("error", None) if wrong else foretold(parts, max_steps or 6)
    return made


def directive(rnd: random.Random) -> Directive:
    kind = rnd.choices(["say", "tool", "wait", "fault", "length"], [40, 30, 15, 6, 4])[0]
    if kind == "say":
        return 1, "say", rnd.choice(TEXTS)
    if kind == "tool":
        name = rnd.choice([*TOOLS, *TOOLS, "no_such_tool", "__init__", "a\u2028b"])
        return rnd.choices([1, 3, 17], [90, 8, 2])[0], "tool", name, rnd.choice(ARGUMENTS)
    if kind == "wait":
        return 1, "wait", rnd.choice([0, 1, 20, 80])
    return (1, "length") if kind == "length" else (1, *rnd.choice(FAULTS))


def line(one: Directive) -> str:
    count, kind, *rest = one
    words = [json.dumps(text) if kind == "say" else str(text) for text in rest]
    return " ".join([*([f"repeat {count}"] if count != 1 else []), kind, *words])


def foretold(parts: list[list[Directive]], max_steps: int) -> tuple[str, Any]:
    """How the script ends without interference: its type, and the output or the reason."""
    for part in itertools.islice(itertools.chain(parts, itertools.repeat([])), max_steps):
        texts, calls = "", 0
        for count, kind, *rest in part:
            if kind in ("fail", "drop"):
                return "error", None
            if kind == "length":
                break
            calls += count if kind == "tool" else 0
            texts += (
                rest[0].encode("utf-16", "surrogatepass").decode("utf-16", "replace") * count if kind == "say" else ""
            )
        if calls > 16:
            return "error", None
        if calls == 0:
            return "final", texts
    return "stopped", "max_steps"


@dataclass
class Player:
    """Plays programs against one server and checks each."""

    server: AnyServer
    client: httpx.AsyncClient
    ends: dict[str, int] = field(default_factory=dict)
    slowest_seconds: float = 0.0

    async def play(self, program: Program, account: Account) -> None:
        try:
            async with asyncio.timeout(60):
                await self._play(program, account)
        except BaseException as error:
            error.add_note(f"program {program.number}: {program.reader} after {program.after_events}, {program.leave}")
            error.add_note(json.dumps(program.body)[:2000])
            raise

    async def _play(self, program: Program, account: Account) -> None:
        cut = 200 if program.reader == "sends a part" else None
        stream = await Stream.send(self.server, RUN, account.key, program.body, cut)
        try:
            if program.reader in ("leaves at once", "sends a part"):
                await asyncio.sleep(program.after_events / 1000)
                stream.leave(program.leave)
                return
            await stream.head()
            if stream.status == 402 and program.body["model"] == "builtin/assistant-paid":
                self.count("refused")
                return
            assert stream.status == 200, await stream.body()
            whole = await self._read(program, account, stream)
        finally:
            await stream.close()
        record = await self._ended(account, stream.headers["x-service-run"])
        self.count(record["reason"] or record["status"])
        if not whole:
            self._check_left(program, record)
            return
        last = checked(stream)[-1]
        assert agrees(last, record), (last, record)
        assert "".join(e["text"] for e in stream.events if e["type"] == "delta").endswith(record["output"] or "")
        calls, results = (
            [e["id"] for e in stream.events if e["type"] == kind] for kind in ("tool_call", "tool_result")
        )
        assert calls[: len(results)] == results and len(calls) - len(results) <= (last["type"] == "stopped")
        self._check_foretold(program, record)

    async def _read(self, program: Program, account: Account, stream: Stream) -> bool:
        """Whether the stream was read to its end."""
        blocks, number = stream.read(), 0
        async for _ in blocks:
            number += 1
            if number != program.after_events or program.reader == "reads":
                continue
            if program.reader.startswith("pauses"):
                await asyncio.sleep(0.3)
            if program.reader.startswith("stops"):
                await self._stop(account, stream.headers["x-service-run"], twice=program.reader == "stops twice")
            if program.reader.endswith("leaves"):
                program.left_at = time.time()
                stream.leave(program.leave)
                return False
        return True

    async def _stop(self, account: Account, run_id: str, twice: bool) -> None:
        for _ in range(1 + twice):
            answer = await self.client.post(f"/v1/agents/runs/{run_id}/stop", headers=account.headers)
            assert answer.status_code in (202, 409), answer.text

    async def _ended(self, account: Account, run_id: str) -> dict[str, Any]:
        while True:
            answer = await self.client.get(f"/v1/agents/runs/{run_id}", headers=account.headers)
            record: dict[str, Any] = answer.json()
            assert answer.status_code == 200, record
            if record["status"] != "running":
                return record
            await asyncio.sleep(0.05)

    def _check_left(self, program: Program, record: dict[str, Any]) -> None:
        late_seconds = unix_seconds(record["finished_at"]) - program.left_at
        self.slowest_seconds = max(self.slowest_seconds, late_seconds)
        if record["reason"] not in ("client_disconnected", "requested"):
            self._check_foretold(program, record)

    def _check_foretold(self, program: Program, record: dict[str, Any]) -> None:
        if program.end is None or (program.reader.startswith("stops") and record["reason"] == "requested"):
            return
        told = {"final": record["output"], "error": None, "stopped": record["reason"]}[record["status"]]
        assert (record["status"], told) == program.end

    def count(self, what: str) -> None:
        self.ends[what] = self.ends.get(what, 0) + 1

    async def play_all(self, programs: Iterator[Program], accounts: list[Account]) -> None:
        async def worker() -> None:
            for one in programs:
                await self.play(one, accounts[one.number % len(accounts)])

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(worker())

    async def nothing_is_open(self, accounts: list[Account]) -> None:
        """Every run is ended, every hold released, every ledger adds up, and each paid run cost what
        the ledger says.
        """
        async with asyncio.timeout(10):
            while not re.search(r"^svc_open_answers 0$", (await self.client.get("/metrics")).text, re.MULTILINE):
                await asyncio.sleep(0.05)
        for account in accounts:
            runs = await listed(self.client, account, "/v1/agents/runs")
            assert {run["status"] for run in runs} <= set(ENDS), account
            balance, held, total = await books(self.client, account)
            assert (held, balance) == (0, total)
            ledger = await listed(self.client, account, "/billing/ledger")
            debits = [-row["amount_micros"] for row in ledger if row["kind"] == "debit" and row["model"] is not None]
            assert sum(debits) == sum(run["cost_micros"] for run in runs)


PLAIN_RUNS = 32


async def test_random_runs_end_once_as_recorded(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seed = request.config.getoption("--seed")
    async with local_server(tmp_path) as server, server.client(timeout=60) as client:
        rich = add_accounts(server, 3, micros=1_000_000)
        poor = add_accounts(server, 1, micros=2_500, name="poor")
        player = Player(server, client)
        await player.play_all((program(seed, number) for number in range(PLAIN_RUNS)), rich + poor)
        await player.nothing_is_open(rich + poor)
        assert [line.get("error") for line in server.log_lines() if line["level"] == "error"] == []
    assert_exact(tmp_path / "data" / "service.db")


async def test_stop_during_a_tool_ends_tool_and_run(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    async def slow(run: ToolContext) -> None:
        log.append("begun")
        try:
            await asyncio.sleep(60)
        finally:
            log.append("ended")

    monkeypatch.setitem(TOOLS, "current_time", replace(TOOLS["current_time"], function=slow))
    headers = await service.bearer()
    body = {"goal": "tool current_time {}\n---\nsay never", "model": "builtin/script"}
    running = asyncio.create_task(service.client.post(RUN, json=body, headers=headers))
    async with asyncio.timeout(10):
        while not log:
            await asyncio.sleep(0.01)
        (run,) = (await service.client.get("/v1/agents/runs", headers=headers)).json()["data"]
        stopped = await service.client.post(f"/v1/agents/runs/{run['id']}/stop", headers=headers)
        found = events(await running)
    assert stopped.status_code == 202 and log == ["begun", "ended"]
    assert [event["type"] for event in found] == ["started", "step", "tool_call", "stopped"]
    record = (await service.client.get(f"/v1/agents/runs/{run['id']}", headers=headers)).json()
    assert agrees(found[-1], record) and record["reason"] == "requested"
