"""Tools in the chats of a session after kill -9 at any moment: paid searches, paid tools, approvals and limits."""

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.routes.test_chat_tools import CHAT, HEADER, TOOLS
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, rows, unwatch, watch
from tests.support.paid_requests import catalog
from tests.support.people import Person, another_person, command
from tests.support.search_engine import SearchEngine
from tests.support.server import RunningServer, running_server
from tests.support.tool_server import Asked, Scripted, result, scripted, stateless, text, tool

PRICE, SEARCH_PRICE = 2_500, 5_000
WALLETS = ((1_000_000, None), (1_000_000, 12_000), (14_000, None))  # micros, and the monthly limit of the account
LEDGER_NAMES = {"search_web": "search:searxng"}
_numbers = itertools.count(1)


@dataclass
class Told:
    """What the people know. Each chat has its name in the arguments of its calls, and as the id of its requests."""

    asked: Counter[str] = field(default_factory=Counter)  # requests that may have run a call, by its name
    shown: dict[str, str] = field(default_factory=dict)  # the arguments as a person saw them
    approved: set[str] = field(default_factory=set)
    done: set[tuple[str, str]] = field(default_factory=set)  # calls whose result was received, with the ledger's model
    waiting: dict[str, tuple[Person, str]] = field(default_factory=dict)  # without a decision that was received whole
    ends: Counter[str] = field(default_factory=Counter)


async def stream_of(client: httpx.AsyncClient, path: str, body: Any, headers: dict[str, str]) -> list[Any] | None:
    """Return the chunks of an answer, or None if the request is refused. Raises httpx.HTTPError if the server ends."""
    async with client.stream("POST", path, json=body, headers=headers) as answer:
        if answer.status_code != 200:
            assert answer.status_code in (402, 409, 503), await answer.aread()
            return None
        lines = [line[6:] async for line in answer.aiter_lines() if line.startswith("data: ")]
    if lines[-1:] != ["[DONE]"]:
        raise httpx.ReadError("cut")
    return [orjson.loads(line) for line in lines[:-1]]


def steps_of(chunks: list[Any], kind: str) -> list[Any]:
    return [chunk["service"][kind] for chunk in chunks if kind in chunk.get("service", {})]


async def chat(client: httpx.AsyncClient, person: Person, told: Told, rnd: random.Random) -> bool:
    """Ask one question whose answer uses tools; return whether the person has funds for another."""
    name = f"call-{next(_numbers)}"
    search = f'tool search_web {{"query": "{name}"}}\ntool wiki__look {{"at":  "{name}"}}'
    script = rnd.choice((search, f'tool wiki__delete {{"title":  "{name}"}}', f"{search}\n---\n{search}"))
    body = {
        "model": rnd.choice(("lab/script", "lab/script+drip-20ms", "builtin/script")),
        "messages": [{"role": "user", "content": f"{script}\n---\nsay done"}],
        "stream": True,
    }
    headers = {**person.session_headers, TOOLS: "search_web,wiki__look,wiki__delete", "x-request-id": name}
    made = await client.post("/conversations", json={}, headers=person.session_headers)
    headers[HEADER] = made.json()["id"]
    told.asked[name] += 1
    told.waiting[name] = person, headers[HEADER]
    chunks = await stream_of(client, CHAT, body, headers)
    if chunks is None:
        told.ends["refused"] += 1
        return False
    if any("error" in chunk for chunk in chunks):
        told.ends["error"] += 1
    note_results(told, name, chunks)
    for call in steps_of(chunks, "tool_call"):
        if call["name"] == "wiki__delete":
            told.shown[name] = call["arguments"]
    if any(choice["finish_reason"] == "tool_calls" for chunk in chunks for choice in chunk.get("choices", ())):
        return await decide(client, told, name, rnd)
    told.waiting.pop(name)
    return True


def note_results(told: Told, name: str, chunks: list[Any]) -> None:
    for done in steps_of(chunks, "tool_result"):
        told.ends[f"{done['name']} {done['ok']}"] += 1
        if done["ok"]:
            told.done.add((LEDGER_NAMES.get(done["name"], done["name"]), name))


async def decide(client: httpx.AsyncClient, told: Told, name: str, rnd: random.Random) -> bool:
    """Decide on the call that waits, sometimes twice at once, as two windows do."""
    person, conversation = told.waiting[name]
    listed = await client.get(f"/conversations/{conversation}/messages", headers=person.session_headers)
    message = listed.json()["data"][0] if listed.status_code == 200 and listed.json()["data"] else {}
    if message.get("status") != "waiting":
        told.ends[f"left {message.get('status')}"] += 1
        told.waiting.pop(name)
        return True
    (call,) = (step["tool_call"] for step in message["steps"] if "tool_call" in step)
    assert told.shown.setdefault(name, call["arguments"]) == call["arguments"]
    answer = rnd.random() < 0.8
    if answer:
        told.approved.add(name)

    async def send() -> list[Any] | None:
        told.asked[name] += 1
        headers = {**person.session_headers, "x-request-id": f"{name}-{told.asked[name]}"}
        body = {"calls": {call["id"]: answer}}
        return await stream_of(client, f"/conversations/{conversation}/approve", body, headers)

    for chunks in await asyncio.gather(*(send() for _ in range(rnd.choice((1, 1, 2))))):
        if chunks is not None:
            note_results(told, name, chunks)
            told.waiting.pop(name, None)
    return name not in told.waiting


async def work(server: RunningServer, person: Person, told: Told, rnd: random.Random) -> None:
    """Chat until the server ends, or the person has no funds left."""
    with contextlib.suppress(httpx.HTTPError):
        async with server.client(timeout=30) as client:
            while await chat(client, person, told, rnd):
                pass


async def people_of(server: RunningServer) -> list[Person]:
    """New people with different funds."""
    people = []
    for micros, limit in WALLETS:
        person = await another_person(server)
        grant = await asyncio.to_thread(command, server, "credit", person.email, f"{micros / 1e6:.6f}")
        assert grant.returncode == 0, grant.stderr
        async with server.client(headers=person.session_headers) as client:
            # Recalled questions have scripts, too.
            settings = {"monthly_limit_micros": limit, "memory_enabled": False}
            changed = await client.patch("/user/settings", json=settings)
            assert changed.status_code == 200, changed.text
        people.append(person)
    return people


async def play(folder: Path, kills: int, rnd: random.Random) -> Told:
    """Kill the server so often, and compare at the end what was approved, sent, received and charged."""

    async def answer_later(asked: Asked) -> bytes:
        await asyncio.sleep(rnd.random() * 0.05)
        return result(asked, text("seen"))

    told, database = Told(), folder / "data" / "service.db"
    tools = [tool("look", annotations={"readOnlyHint": True}), tool("delete")]
    async with (
        ModelServer() as models,
        SearchEngine("searxng") as engine,
        scripted(stateless(tools, answer_later)) as wiki,  # type: ignore[arg-type]
    ):
        entry = f'[[tool_servers]]\nname = "wiki"\nurl = "{wiki.url}"\nmicros_per_call = {PRICE}\n'
        access = "[access]\nchats_per_minute = 1000\n"
        entries = catalog(models.port, "script", "script+drip-20ms") + access + entry + engine.catalog(SEARCH_PRICE)
        (folder / "catalog.toml").write_text(entries)
        people: list[Person] = []
        for round_ in range(kills + 1):
            async with running_server(folder, {"SVC_CATALOG": str(folder / "catalog.toml")}) as server:
                watch(database)
                assert_exact(database)
                async with server.client(timeout=30) as client:
                    for name in list(told.waiting):  # what the last kill left
                        await decide(client, told, name, rnd)
                    if round_ == kills:
                        await asyncio.gather(*(chat(client, person, told, rnd) for person in people))
                        break
                people = await people_of(server) if round_ % 4 == 0 else people
                working = [asyncio.create_task(work(server, person, told, rnd)) for person in people * 2]
                await asyncio.sleep(rnd.uniform(0.05, 0.8))
                server.kill()
                await asyncio.gather(*working)
        assert_exact(database)
        unwatch(database)
        checks = await asyncio.to_thread(command, server, "check")
        assert checks.returncode == 0, checks.stdout + checks.stderr
        assert_kept(told, database, engine, wiki)
    return told


def assert_kept(told: Told, database: Path, engine: SearchEngine, wiki: Scripted) -> None:
    """Verify that each call was sent at most as often as it was made and charged at most as often as it was sent."""
    sent = Counter(("search:searxng", asked.query) for asked in engine.requests)
    for asked in wiki.of("tools/call"):
        params = asked.body["params"]
        name = params["arguments"].get("title") or params["arguments"]["at"]
        sent[f"wiki__{params['name']}", name] += 1
        if params["name"] == "delete":
            assert name in told.approved and told.shown[name].encode() in asked.raw
    assert max(sent.values()) <= 2  # as in the longest script
    assert {name: count for (tool, name), count in sent.items() if tool == "wiki__delete" and count > 1} == {}
    query = (
        "SELECT model, request_id, count(*) FROM ledger WHERE kind = 'debit' AND model NOT LIKE 'lab/%' GROUP BY 1, 2"
    )
    charged: Counter[tuple[str, str]] = Counter()
    for model, request_id, count in rows(database, query):
        charged[model, "-".join(request_id.split("-")[:2])] += count
    assert {call: (count, sent[call]) for call, count in charged.items() if count > sent[call]} == {}
    assert told.done <= charged.keys(), "a result that was received is charged"
    assert told.waiting == {}


@pytest.mark.timeout(0)
async def test_kill_at_any_moment_sends_what_was_approved_and_charges_each_call_once(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    told = await play(tmp_path, pytestconfig.getoption("--kills"), random.Random(pytestconfig.getoption("--seed")))
    assert told.approved and told.done, told.ends


@pytest.mark.soak
@pytest.mark.timeout(0)
async def test_100_kills_send_what_was_approved_and_charge_each_call_once(tmp_path: Path) -> None:
    told = await play(tmp_path, 100, random.Random(39))
    wanted = {"left interrupted", "search_web True", "search_web False", "wiki__look True", "wiki__delete True"}
    assert wanted <= set(told.ends), told.ends
