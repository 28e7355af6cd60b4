"""Money in the real process: disconnected clients, signals, kill -9, failing disks, and commands beside it."""

import asyncio
import contextlib
import hashlib
import math
import os
import random
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path

import httpx
import pytest

from svc.billing import payments
from svc.billing.stripe import session_event, sign
from svc.ids import new_id
from svc.secrets import derive
from tests.support import waiting
from tests.support.agent_runs import RUN, Account, add_accounts
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, reading, rows, watch
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
from tests.support.server import APP, ROOT, RunningServer, running_server, running_server_sync

WEBHOOK = "/billing/webhook"
# Micros a token, in and out.
PRICES = {"lab": (1, 2), "builtin": (Fraction(1, 2), Fraction(3, 2))}


def settings(folder: Path, model_port: int) -> dict[str, str]:
    (folder / "catalog.toml").write_text(catalog(model_port, "ok", "drip-100ms", "slow-300ms"))
    return {"SVC_CATALOG": str(folder / "catalog.toml")}


@pytest.fixture(scope="module")
def model_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


@pytest.fixture
async def models(model_port: int) -> AsyncIterator[ModelServer]:
    async with ModelServer(model_port) as models:
        yield models


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, model_port: int) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("money")
    with running_server_sync(folder, settings(folder, model_port)) as server:
        watch(database(server))
        yield server
    assert_exact(folder / "data" / "service.db")


@pytest.fixture
def server(shared: RunningServer) -> Iterator[RunningServer]:
    yield shared
    assert_exact(database(shared))


# To read the database takes 4 ms of CPU: its schema is parsed each time.
until = partial(waiting.until, every_seconds=0.03)


# --- signals


async def test_sigterm_settles_every_open_answer_once(tmp_path: Path, model_port: int, models: ModelServer) -> None:
    async with running_server(tmp_path, settings(tmp_path, model_port)) as server:
        watch(database(server))
        people = add_accounts(server, 45, micros=100_000)
        slow = {"json": "lab/slow-300ms", "stream": "lab/drip-100ms", "run": "lab/drip-100ms"}
        streams = [await send(server, who, KINDS[n % 3], slow[KINDS[n % 3]]) for n, who in enumerate(people)]
        await until(lambda: len(models.requests) == 45)
        await asyncio.sleep(0.25)
        reading = [asyncio.create_task(answer(stream)) for stream in streams]
        assert await server.stop() == 0
        answers = await asyncio.gather(*reading)
        assert_exact(database(server))
        ended = []
        for number, (status, told) in enumerate(answers):
            paid = debits(server, people[number])
            assert status == 200 and len(held(server, people[number])) == 1
            if KINDS[number % 3] == "json":
                assert paid == [17] and streams[number].headers["x-service-cost-micros"] == "17"
            elif KINDS[number % 3] == "run":
                assert told[-1]["cost_micros"] == sum(paid)
                ended.append(told[-1].get("reason", told[-1]["type"]))
            else:
                assert streams[number].blocks[-1] == DONE
                ended.append(told[-1]["error"]["code"] if "error" in told[-1] else "final")
                text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in told if "choices" in chunk)
                # A shutdown charges the output. Of the whole text, the model server's count may have come: 5 tokens.
                cut = {2 * math.ceil(len(text) / 4), 10 if len(text) == 13 else 0}
                assert sum(paid) in ({17} if ended[-1] == "final" else cut)
        # On a slow machine some were faster than the signal.
        assert set(ended) <= {"shutting_down", "shutdown", "final"} and ended.count("final") < len(ended)


# --- kill -9


@dataclass
class Told:
    """What was acknowledged and must be stored: costs, checkouts, credits, and possible hashes of each artifact's
    content.
    """

    costs: dict[str, int] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)  # the requests that make one call of a model
    credited: set[str] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    contents: dict[str, set[bytes]] = field(default_factory=dict)

    def assert_kept(self, path: Path, *, idle: bool) -> None:
        assert_exact(path, idle=idle)
        with reading(path) as conn:
            query = "SELECT request_id, count(*), -sum(amount_micros) FROM ledger WHERE model IS NOT NULL GROUP BY 1"
            booked = {row[0]: (row[1], row[2]) for row in conn.execute(query)}
            credits = dict(
                conn.execute("SELECT reference, count(*) FROM ledger WHERE kind = 'credit' GROUP BY 1").fetchall()
            )
            notes = dict(
                conn.execute("SELECT description, count(*) FROM ledger WHERE kind = 'credit' GROUP BY 1").fetchall()
            )
            found = {
                row["id"]: (row["sha256"], content_of(conn, row["content_id"]))
                for row in conn.execute("SELECT * FROM artifacts")
            }
            contents = conn.execute("SELECT count(*) FROM artifact_contents WHERE NOT unused").fetchone()[0]
        assert {id: booked.get(id, (0, 0))[1] for id in self.costs} == self.costs
        assert all(booked.get(id, (0, 0))[0] <= 1 for id in self.sent)
        assert {credits.get(id) for id in self.credited} <= {1} and {notes.get(note) for note in self.notes} <= {1}
        for id, hashes in self.contents.items():
            sha256, content = found[id]
            assert sha256 in hashes and hashlib.sha256(content).digest() == sha256
        assert not idle or contents == len(found)


def content_of(conn: sqlite3.Connection, content_id: str) -> bytes:
    rows = conn.execute("SELECT content FROM artifact_chunks WHERE content_id = ? ORDER BY number", (content_id,))
    return b"".join(row["content"] for row in rows)


def cost_of(model: str, usage: dict[str, int]) -> int:
    price_in, price_out = PRICES[model.partition("/")[0]]
    return math.ceil(usage["prompt_tokens"] * price_in + usage["completion_tokens"] * price_out)


async def spend(server: RunningServer, who: Account, told: Told, rnd: random.Random) -> None:
    """Send paid requests until the server ends."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            kind = rnd.choice(KINDS)
            model = rnd.choice(["lab/ok", "builtin/assistant-paid"])
            id = f"{who.email}-{rnd.getrandbits(60)}"
            goal = {"goal": "Compute 12 * (3 + 4)", "tools": ["calculate"]} if kind == "run" else {}
            options = {"stream_options": {"include_usage": True}} if kind == "stream" else {}
            if kind != "run":
                told.sent.add(id)
            stream = await send(server, who, kind, model, request_id=id, **goal, **options)
            status, said = await answer(stream)
            error = (said[-1] if isinstance(said, list) else said).get("error")
            if error is not None:
                assert error["code"] == "storage_unavailable"
                await asyncio.sleep(0.02)
                continue
            assert status == 200
            if kind == "json":
                told.costs[id] = int(stream.headers["x-service-cost-micros"])
            else:
                assert said[-1]["type"] == "final" if kind == "run" else stream.blocks[-1] == DONE
                told.costs[id] = said[-1]["cost_micros"] if kind == "run" else cost_of(model, said[-1]["usage"])


async def keep(server: RunningServer, who: Account, told: Told, rnd: random.Random) -> None:
    """Replace the content of an artifact until the server ends."""
    async with server.client(headers=who.headers) as client:
        with contextlib.suppress(httpx.TransportError):
            made = await client.post("/artifacts", json={"name": "file", "content": ""})
            while made.status_code == 201:
                content = rnd.randbytes(64) * rnd.randrange(50_000)
                hashes = told.contents.setdefault(made.json()["id"], {hashlib.sha256().digest()})
                hashes.add(hashlib.sha256(content).digest())
                if (await client.put(f"/artifacts/{made.json()['id']}/content", content=content)).status_code == 200:
                    told.contents[made.json()["id"]] = {hashlib.sha256(content).digest()}


async def fund(server: RunningServer, checkouts: list[tuple[str, str]], told: Told) -> None:
    """Deliver each payment until it is acknowledged, and once more."""
    async with server.client() as client:
        with contextlib.suppress(httpx.TransportError):
            while checkouts:
                checkout_id, session_id = checkouts[-1]
                delivered = [await deliver(server, client, checkout_id, session_id) for _ in range(2)]
                assert {answer.status_code for answer in delivered} <= {200, 503}
                if any(answer.status_code == 200 for answer in delivered):
                    told.credited.add(checkout_id)
                if delivered[-1].status_code == 200:
                    checkouts.pop()
                await asyncio.sleep(0.01)


async def deliver(
    server: RunningServer, client: httpx.AsyncClient, checkout_id: str, session_id: str
) -> httpx.Response:
    """Deliver the event of a payment of 5 dollars."""
    secret = derive((server.data_dir / "master.key").read_bytes(), "sandbox-payments")
    body = session_event(session_id, checkout_id, 500, time.time())
    return await client.post(WEBHOOK, content=body, headers={"stripe-signature": sign(secret, body, int(time.time()))})


def open_checkouts(server: RunningServer, people: list[Account], count: int) -> list[tuple[str, str]]:
    """Store checkouts of 5 dollars; return their ids and those of their sessions."""
    made = [(checkout_id := new_id("chk"), f"sandbox_{checkout_id}") for _ in range(count)]
    with contextlib.closing(sqlite3.connect(database(server), isolation_level=None, timeout=10)) as tx:
        tx.execute("BEGIN IMMEDIATE")
        for number, (checkout_id, session_id) in enumerate(made):
            payments.add_checkout(tx, people[number % len(people)].id, checkout_id, 5_000_000, time.time())
            payments.set_session(tx, people[number % len(people)].id, checkout_id, session_id)
        tx.execute("COMMIT")
    return made


def kill_while_it_starts(folder: Path, env: dict[str, str], after_seconds: float) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    env = {**inherited, "SVC_PORT": "0", "SVC_DATA_DIR": str(folder / "data"), **env}
    process = subprocess.Popen(
        [sys.executable, APP], cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        _, complaint = process.communicate(timeout=after_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    else:
        raise AssertionError(f"it ended by itself: {complaint.decode()}")


@pytest.mark.slow
@pytest.mark.timeout(0)
async def test_kill_at_any_moment_loses_no_acknowledged_change(
    tmp_path: Path, model_port: int, models: ModelServer, pytestconfig: pytest.Config
) -> None:
    kills, rnd = pytestconfig.getoption("--kills"), random.Random(pytestconfig.getoption("--seed"))
    env, told = settings(tmp_path, model_port), Told()
    for _ in range(kills // 8):  # the first start of all
        kill_while_it_starts(tmp_path, env, rnd.uniform(0.1, 0.5))
    people: list[Account] = []
    checkouts: list[tuple[str, str]] = []
    for round_ in range(kills // 8, kills + 1):
        if round_ % 4 == 3 and round_ < kills:  # a start that has something to mend
            kill_while_it_starts(tmp_path, env, rnd.uniform(0.1, 0.5))
            continue
        async with asyncio.timeout(30 + kills // 4), running_server(tmp_path, env) as server:
            if not people:
                watch(database(server))
                people = add_accounts(server, 12, micros=1_000_000)
                checkouts = open_checkouts(server, people, 40 * kills)
            told.assert_kept(database(server), idle=True)
            if round_ == kills:
                break
            working = [asyncio.create_task(spend(server, who, told, rnd)) for who in people]
            working.append(asyncio.create_task(keep(server, people[0], told, rnd)))
            working.append(asyncio.create_task(fund(server, checkouts, told)))
            if round_ % 8 == 4:
                working.append(asyncio.create_task(credit_by_command(server, people[0], f"round {round_}", told)))
            if round_ % 3 == 0 and STRACE:
                await killed_by_its_disk(server, rnd)
            else:
                await asyncio.sleep(rnd.uniform(0.05, 0.6))
            server.kill()
            await asyncio.gather(*working)
            told.assert_kept(database(server), idle=False)
    assert len(told.costs) >= kills and len(told.credited) >= kills // 5  # or the test shows little
    assert told.contents


async def test_killed_server_gives_each_account_one_allowance(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text("[access]\nallowance_micros = 3_000_000\nchats_per_minute = 1_000\n")
    settings, chance = {"SVC_CATALOG": str(tmp_path / "catalog.toml")}, random.Random(27)
    ask = {"model": "builtin/assistant-paid", "messages": [{"role": "user", "content": "2+2"}], "max_tokens": 100}
    people = None
    for last in (False, False, False, True):
        async with running_server(tmp_path, settings) as server:
            people = people or add_accounts(server, 20)
            async with server.client() as client:
                requests = [client.post(CHAT, json=ask, headers=who.headers) for who in people for _ in range(3)]
                asking = [asyncio.create_task(request) for request in requests]  # type: ignore[arg-type]
                if last:
                    assert {answer.status_code for answer in await asyncio.gather(*asking)} == {200}
                    continue
                await asyncio.sleep(chance.random() / 4)  # any moment of the work
                server.process.kill()
                await asyncio.gather(*asking, return_exceptions=True)
    database = tmp_path / "data" / "service.db"
    assert_exact(database)
    query = (
        "SELECT count(*), count(DISTINCT account_id), sum(amount_micros) FROM ledger WHERE reference GLOB 'allowance:*'"
    )
    assert rows(database, query) == [(20, 20, 60_000_000)]


async def credit_by_command(server: RunningServer, who: Account, note: str, told: Told) -> None:
    done = await asyncio.to_thread(command, server, "credit", who.email, "0.01", "--note", note)
    assert done.returncode == 0, done.stderr
    told.notes.add(note)


# --- disks that fail

STRACE = (
    bool(shutil.which("strace"))
    and not subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode
)
needs_strace = pytest.mark.skipif(not STRACE, reason="strace is not here, or may not trace")


@contextlib.asynccontextmanager
async def traced(server: RunningServer, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run strace on all threads of the server during the block."""
    strace = await asyncio.create_subprocess_exec("strace", "-f", "-qq", "-p", str(server.pid), *arguments)
    tasks = Path(f"/proc/{server.pid}/task")
    try:
        await until(lambda: all("TracerPid:\t0" not in (task / "status").read_text() for task in tasks.iterdir()))
        yield strace
    finally:
        if strace.returncode is None:
            strace.terminate()
        try:
            async with asyncio.timeout(5):
                await strace.wait()
        except TimeoutError:  # it may wait without end for a thread of a killed server
            strace.kill()
            await strace.wait()


async def killed_by_its_disk(server: RunningServer, rnd: random.Random) -> None:
    """Kill the server at one of its next writes or syncs of the database and its WAL, some of which fail."""
    call, number = rnd.choice(["pwrite64", "fdatasync"]), rnd.randrange(1, 40)
    paths = [item for suffix in ("", "-wal") for item in ("-P", f"{database(server)}{suffix}")]
    fault = rnd.choice([f"signal=SIGKILL:when={number}", f"error=EIO:when={number}+"])
    async with traced(server, "-o", "/dev/null", *paths, "-e", f"trace={call}", "-e", f"inject={call}:{fault}"):
        with contextlib.suppress(TimeoutError):
            await until(lambda: server.process.poll() is not None, 1 if "KILL" in fault else 0.3)


@needs_strace
@pytest.mark.parametrize(("call", "error"), [("pwrite64", "ENOSPC"), ("pwrite64", "EIO"), ("fdatasync", "EIO")])
async def test_failing_disk_gives_503_and_records_all_paid_work(
    server: RunningServer, models: ModelServer, call: str, error: str
) -> None:
    people = {kind: person(server) for kind in KINDS}
    slow = {"json": "lab/slow-300ms", "stream": "lab/drip-100ms", "run": "lab/drip-100ms"}
    checkout_id, session_id = open_checkouts(server, [people["json"]], 1)[0]
    begun = {kind: await send(server, who, kind, slow[kind]) for kind, who in people.items()}
    await until(lambda: len(models.requests) == 3)
    fault = (
        "-o",
        "/dev/null",
        "-P",
        f"{database(server)}-wal",
        "-e",
        f"trace={call}",
        "-e",
        f"inject={call}:error={error}",
    )
    async with server.client() as client, traced(server, *fault):
        for kind, stream in begun.items():
            status, said = await answer(stream)
            assert (status == 503) is (kind == "json")
            assert (said if kind == "json" else said[-1])["error"]["code"] == "storage_unavailable"
        for kind, who in people.items():
            assert len(rows(database(server), "SELECT id FROM holds WHERE account_id = ?", who.id)) == 1
            status, said = await answer(await send(server, who, kind, "lab/ok"))
            assert (status, said["error"]["code"]) == (503, "storage_unavailable")
        assert (await deliver(server, client, checkout_id, session_id)).status_code == 503
        free = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}
        assert (await client.post(CHAT, json=free, headers=people["json"].headers)).status_code == 200
        assert len(models.requests) == 3  # nothing was asked for that could not have been paid
    await until(lambda: all(is_idle(server, who) for who in people.values()))
    assert debits(server, people["json"]) == [] and debits(server, people["stream"]) == [10]
    assert debits(server, people["run"]) == [10]
    async with server.client() as client:
        for kind, who in people.items():
            assert (await answer(await send(server, who, kind, "lab/ok")))[0] == 200
            assert len(held(server, who)) == 2
        assert [(await deliver(server, client, checkout_id, session_id)).json()["credited"] for _ in range(2)] == [
            True,
            False,
        ]


@needs_strace
async def test_every_acknowledgement_leaves_after_its_sync(
    tmp_path: Path, model_port: int, models: ModelServer
) -> None:
    """Behind a proxy, so that the answers can be read in the system calls."""
    env = {
        **settings(tmp_path, model_port),
        "SVC_TLS": "proxy",
        "SVC_TRUSTED_PROXIES": "127.0.0.1",
        "SVC_PAYMENTS": "sandbox",
    }
    async with running_server(tmp_path, env) as server:
        who, log = person(server), tmp_path / "calls"
        checkout_id, session_id = open_checkouts(server, [who], 1)[0]
        headers = {"x-forwarded-proto": "https", "host": "127.0.0.1", **who.headers}
        calls = "trace=pwrite64,fdatasync,write,writev,sendto,sendmsg"
        async with (
            server.client(headers=headers) as client,
            traced(server, "-o", str(log), "-y", "-s", "4096", "-e", calls),
        ):
            for stream in (True, False):
                body = {"model": "lab/ok", "messages": [{"role": "user", "content": "hi"}], "stream": stream}
                assert (await client.post(CHAT, json=body)).status_code == 200
            assert (await client.post(RUN, json={"model": "lab/ok", "goal": "hi", "tools": []})).status_code == 200
            assert (await deliver(server, client, checkout_id, session_id)).json()["credited"]
    state = "synced"
    acknowledged = []
    for line in log.read_text().splitlines():
        if "pwrite64(" in line and "-wal>" in line:
            state = "written"
        elif re.search(r"fdatasync(\(.*-wal>\)| resumed>.*\)) += 0", line):
            state = "synced"
        for word in ("[DONE]", "x-service-cost-micros", '\\"type\\":\\"final\\"', '\\"credited\\":true'):
            if word in line:
                acknowledged.append((word, state))
    # A word is seen twice if a busy system took its write in two parts.
    assert {state for _, state in acknowledged} == {"synced"} and len({word for word, _ in acknowledged}) == 4
