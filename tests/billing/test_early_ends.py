"""The table "What a call costs if it ends early" of svc/OPERATING.md: each row, with each kind of call."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.support.agent_runs import RUN
from tests.support.calls import GENERATE, IMAGES, SPEECH, TRANSCRIPTIONS, Answer, Call, Person, calls, catalog, people
from tests.support.full_disk import full_disk
from tests.support.local_server import LocalServer, local_server
from tests.support.loop_clock import advance_loop, hastened
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, rows, watch
from tests.support.people import command
from tests.support.waiting import logged, until

ROOT = Path(__file__).parent.parent.parent
SAID, OUTPUT_TOKENS = "Hello, ", 2
SILENT = calls("silent-after-3-chunks", "silent", "picture+silent", "speech+silent-after-3-chunks")
WAITING = calls("waits-after-3-chunks", "waits", "picture+waits", "speech+waits-after-3-chunks")
MEDIA = (IMAGES, GENERATE, SPEECH)
ROWS = {
    "disconnected": "the client disconnects, without an `Idempotency-Key`",
    "stopped": "the answer or the run is stopped",
    "conversation deleted": "the conversation is deleted",
    "suspended": "the account is suspended",
    "deleted": "the account is deleted",
    "SIGTERM": "SIGTERM",
    "model server": "the model server fails, or takes too long",
    "disk": "the disk is full before the settlement",
    "crash": "the service crashes",
}


def table() -> dict[str, tuple[str, str]]:
    """Return input and output by the end of a call, as the page has them."""
    page = (ROOT / "svc" / "OPERATING.md").read_text()
    part = page.partition("| end | input | output |\n|---|---|---|\n")[2].partition("\n\n")[0]
    found = [re.fullmatch(r"\| (.*) \| (.*) \| (.*) \|", line) for line in part.splitlines()]
    return {match[1]: (match[2], match[3].partition(":")[0]) for match in found if match}


def test_the_table_has_these_rows() -> None:
    assert sorted(table()) == sorted(ROWS.values())


@dataclass
class Lab:
    """A server in front of model servers, and an account for each kind of call."""

    server: LocalServer
    models: ModelServer
    client: httpx.AsyncClient
    callers: dict[str, Person]

    async def begin(self, made: dict[str, Call]) -> dict[str, tuple[Answer, "asyncio.Task[Answer]"]]:
        """Send the calls. Return when the models have them and the clients have the text so far."""
        answers = {name: Answer(call) for name, call in made.items()}
        begun = {
            name: (answer, asyncio.create_task(answer.read(self.client, self.callers[name])))
            for name, answer in answers.items()
        }
        await until(lambda: len(self.models.requests) >= len(made))
        for answer in answers.values():
            if answer.call.streams and answer.call.path not in MEDIA:
                await answer.until_text(SAID)
        return begun

    async def tokens(self, name: str) -> tuple[int, int] | None:
        """Wait until nothing is held. Return the tokens that a caller was charged, or None without a debit."""
        database, account_id = self.server.data_dir / "service.db", self.callers[name].account.id
        holds = partial(rows, database, "SELECT 1 FROM holds WHERE account_id = ?", account_id)
        await until(lambda: not holds(), every_seconds=0.03)
        query = "SELECT sum(input_tokens), sum(output_tokens) FROM ledger WHERE account_id = ? AND model IS NOT NULL"
        ((input_tokens, output_tokens),) = rows(database, query, account_id)
        return None if input_tokens is None else (input_tokens, output_tokens)

    async def charged(self, row: str, made: dict[str, Call], produced_tokens: int = OUTPUT_TOKENS) -> None:
        """Compare what these calls have cost with a row of the table."""
        pays_input, pays_output = table()[ROWS[row]]
        found, wanted = {}, {}
        for name, call in made.items():
            tokens = await self.tokens(name)
            if call.path in MEDIA:  # no input; of a speech the client may have paid a part
                produced = pays_output == "what was produced" and call.path != IMAGES
                found[name], wanted[name] = tokens is not None and tokens[1] > 0, produced
                continue
            output = produced_tokens if call.streams and pays_output != "free" else 0
            found[name] = (tokens[0] > 0, tokens[1]) if tokens else (False, 0)
            wanted[name] = (pays_input == "charged", output)
        assert found == wanted

    def logged(self) -> set[tuple[str, int, int]]:
        """Return the tokens of each chat and run in the log, by their request ids."""
        lines = [line for line in self.server.log_lines() if "input_tokens" in line]
        return {(line["request_id"], line["input_tokens"], line["output_tokens"]) for line in lines}

    def of_sessions(self) -> list[str]:
        return [name for name, call in SILENT.items() if call.of_session]


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with ModelServer() as models:
        text = catalog(models.base_url, {**SILENT, **{n + "!": c for n, c in WAITING.items()}})
        async with local_server(tmp_path, text) as server:
            watch(server.data_dir / "service.db")
            limits = httpx.Limits(max_connections=None)
            async with server.client(timeout=30, limits=limits) as client:
                yield Lab(server, models, client, dict(zip(SILENT, people(server, len(SILENT)), strict=True)))


def without(*names: str) -> dict[str, Call]:
    return {name: call for name, call in SILENT.items() if name not in names}


async def test_client_that_disconnects_pays_for_input_and_output(lab: Lab) -> None:
    made = without("continued")  # that one goes on
    for _, task in (await lab.begin(made)).values():
        task.cancel()
    await lab.charged("disconnected", made)
    chats = [call for call in made.values() if call.path not in (*MEDIA, TRANSCRIPTIONS)]
    await until(lambda: len(lab.logged()) >= len(chats))
    booked = rows(lab.server.data_dir / "service.db", "SELECT request_id, input_tokens, output_tokens FROM ledger")
    assert lab.logged() <= set(booked)


async def test_stopped_answers_and_runs_pay_for_input_and_output(lab: Lab) -> None:
    made = {name: SILENT[name] for name in (*lab.of_sessions(), "run")}
    begun = await lab.begin(made)
    for name, (answer, _) in begun.items():
        who = lab.callers[name].headers(made[name])
        if name == "run":
            path = f"{RUN.removesuffix('run')}runs/{answer.headers['x-service-run']}/stop"
        else:
            (conversation,) = (await lab.client.get("/conversations", headers=who)).json()["data"]
            path = f"/conversations/{conversation['id']}/stop"
        assert (await lab.client.post(path, headers=who)).status_code == 202
    for name, (_, task) in begun.items():
        answer = await task
        assert answer.status == 200 and answer.error == ("requested" if name == "run" else None)
        assert not answer.is_stream or name == "run" or answer.ends[-1]["status"] == "stopped"
    await lab.charged("stopped", made)


async def test_answers_of_a_deleted_conversation_pay_for_input_and_output(lab: Lab) -> None:
    made = {name: SILENT[name] for name in lab.of_sessions()}
    begun = await lab.begin(made)
    for name in begun:
        who = lab.callers[name].headers(made[name])
        (conversation,) = (await lab.client.get("/conversations", headers=who)).json()["data"]
        assert (await lab.client.delete(f"/conversations/{conversation['id']}", headers=who)).status_code == 204
    await asyncio.gather(*(task for _, task in begun.values()))
    await lab.charged("conversation deleted", made)


@pytest.mark.parametrize("row", ["suspended", "deleted"])
async def test_calls_of_an_account_that_an_operator_ends(lab: Lab, row: str) -> None:
    begun = await lab.begin(SILENT)
    ending = ("suspend", "on") if row == "suspended" else ("delete",)
    for caller in lab.callers.values():
        done = await asyncio.to_thread(command, lab.server, "user", ending[0], caller.account.email, *ending[1:])
        assert done.returncode == 0, done.stderr
    codes = (
        ("account_suspended", "permission_error") if row == "suspended" else ("invalid_api_key", "authentication_error")
    )
    for name, (_, task) in begun.items():
        answer = await task
        assert not answer.ends and answer.error is not None, name
        assert answer.is_stream or answer.error in codes, name
    await lab.charged(row, SILENT)


async def test_shutdown_charges_only_the_output_that_was_sent(lab: Lab) -> None:
    begun = await lab.begin(SILENT)
    await lab.server.stop(with_grace=False)
    for name, (_, task) in begun.items():
        answer = await task
        assert (answer.status, answer.is_ended) == (200 if answer.is_stream else 503, answer.is_stream), name
        assert not answer.ends and answer.error is not None, name
    await lab.charged("SIGTERM", SILENT)


async def test_fault_of_the_model_server_charges_only_the_output_that_was_sent(lab: Lab) -> None:
    begun = await lab.begin(SILENT)
    await lab.models.stop()
    for name, (_, task) in begun.items():
        answer = await task
        assert answer.status == (200 if answer.is_stream else 502) and not answer.ends and answer.error, name
    await lab.charged("model server", SILENT)


async def test_full_disk_charges_only_the_output_that_was_sent(lab: Lab) -> None:
    """The end of a stream follows its settlement. No finish reason and no usage is sent before the error."""
    begun = await lab.begin(WAITING)
    with full_disk():
        lab.models.release.set()
        for name, (_, task) in begun.items():
            answer = await hastened(task)
            assert answer.status == (200 if answer.is_stream else 503), name
            assert not answer.is_stream or (answer.is_ended and answer.text == "Hello, world!"), name
            assert answer.error in ("storage_unavailable", "server_error", "overloaded_error") and not answer.ends, name
    advance_loop(2)  # then it is stored
    await lab.charged("disk", WAITING, produced_tokens=5)
    (line,) = await logged(lab.server.log_lines, route=RUN)
    assert (line["code"], line["cause"]) == ("storage_unavailable", "SQLITE_IOERR_WRITE") and "error" not in line


async def test_crash_charges_nothing(lab: Lab, tmp_path: Path) -> None:
    """The service starts on a copy of the database as a crash during the calls would leave it."""
    begun = await lab.begin(SILENT)
    database = lab.server.copy_after_crash(tmp_path / "again")
    for _, task in begun.values():
        task.cancel()
    assert rows(database, "SELECT count(*) FROM holds") == [(len(SILENT),)]
    async with local_server(tmp_path / "again") as server:
        await replace(lab, server=server).charged("crash", SILENT)
    assert_exact(database)
