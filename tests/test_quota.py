"""How much an account stores is counted by the schema; what a caller sends, and what a call will store, must fit beside
it.
"""

import asyncio
import dataclasses
import re
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from svc import quota
from svc.agents.run_records import EVENTS_BYTES
from svc.billing import wallet
from svc.config import Config
from svc.content import projects
from svc.errors import ApiError
from tests.conftest import PASSWORD, Clocks, Service, bearer, serving
from tests.content.test_history import NOW, ada, bob, conn  # noqa: F401 - fixtures
from tests.support.cases import each
from tests.support.model_answers import TEXT
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, rows, watch


def add_project(conn: sqlite3.Connection, account_id: str, instructions: str) -> str:  # noqa: F811
    return projects.add_project(conn, account_id, projects.NewProject("Thesis", instructions), NOW).id


def test_stored_bytes_count_for_the_account_until_deletion(
    conn: sqlite3.Connection,  # noqa: F811
    ada: str,  # noqa: F811
    bob: str,  # noqa: F811
) -> None:
    before, others = quota.stored(conn, ada).stored_bytes, quota.stored(conn, bob)
    made = add_project(conn, ada, "x" * 1_000)
    assert quota.stored(conn, ada).stored_bytes - before == 1_000 + len("Thesis") + 256
    assert quota.stored(conn, bob) == others
    projects.TABLE.delete(conn, ada, made)
    assert quota.stored(conn, ada).stored_bytes == before


def test_data_over_the_quota_is_refused_with_both_numbers(conn: sqlite3.Connection, ada: str) -> None:  # noqa: F811
    stored_bytes = quota.stored(conn, ada).stored_bytes
    quota.set_limit(conn, stored_bytes + 100)
    quota.check_room(conn, ada, 100)
    with pytest.raises(ApiError) as refusal:
        quota.check_room(conn, ada, 101)
    assert (refusal.value.code, refusal.value.status) == ("quota_exceeded", 413)
    assert f"{stored_bytes} of the {stored_bytes + 100} bytes" in str(refusal.value) and "needs 101 bytes" in str(
        refusal.value
    )


def test_data_over_a_lowered_limit_stays_and_may_shrink(conn: sqlite3.Connection, ada: str) -> None:  # noqa: F811
    made = add_project(conn, ada, "x" * 1_000)
    quota.set_limit(conn, 1)
    assert quota.stored(conn, ada).stored_bytes > quota.stored(conn, ada).limit_bytes == 1
    quota.check_room(conn, ada, 0)
    quota.check_room(conn, ada, -500)
    projects.TABLE.delete(conn, ada, made)


# --- calls

CHAT, RUN, HEADER = "/v1/chat/completions", "/v1/agents/run", "x-service-conversation"
COST = 17  # micros of 7 input and 5 output tokens, see PRICED
PRICED = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 2_000_000\n"
MODELS = (
    "ok",
    "slow-300ms",
    "status-500",
    "status-400",
    "cut-after-3-chunks",
    "cut-after-1-chunks",
    "silent",
    "tools",
    "endless",
)
# The answer's share of a request without a limit, and the most that rows, titles and a short question take.
SHARE, ROWS = 4_096 * 32, 2_000


@dataclass
class Lab:
    """A session with 10 dollars in front of a model server."""

    service: Service
    upstream: ModelServer
    headers: dict[str, str]
    account_id: str

    async def ask(self, model: str = "ok", **fields: Any) -> httpx.Response:
        conversation = fields.pop("conversation", None)
        headers = {**self.headers, HEADER: conversation} if conversation else self.headers
        body = {"model": f"lab/{model}", "messages": [{"role": "user", "content": "hello?"}], **fields}
        return await self.service.client.post(CHAT, json=body, headers=headers)

    async def run(self, model: str = "ok", **fields: Any) -> httpx.Response:
        body = {"model": f"lab/{model}", "goal": "hello?", **fields}
        return await self.service.client.post(RUN, json=body, headers=self.headers)

    async def store(self, size_bytes: int) -> httpx.Response:
        body = {"name": "x", "content": "x" * size_bytes}
        return await self.service.client.post("/artifacts", json=body, headers=self.headers)

    async def get(self, path: str) -> Any:
        answer = await self.service.client.get(path, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def leave_free(self, size_bytes: int) -> None:
        """Sets the limit so that so many bytes are free."""
        stored_bytes = (await self.get("/billing/account"))["stored_bytes"]
        await self.service.state["db"].write(quota.set_limit, stored_bytes + size_bytes)

    async def spent(self) -> int:
        return 10_000_000 - int((await self.get("/billing/account"))["wallet_balance_micros"])

    async def asked(self, count: int) -> None:
        """Waits until the model server has had so many requests."""
        while len(self.upstream.requests) < count:
            await asyncio.sleep(0.01)

    def reserved(self) -> list[tuple[Any, ...]]:
        return rows(self.service.config.data_dir / "service.db", "SELECT * FROM reserved_room")


@pytest.fixture
async def lab(config: Config, clocks: Clocks, tmp_path: Path) -> AsyncIterator[Lab]:
    async with ModelServer() as upstream:
        text = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\ntimeout_seconds = 0.5\n'
        text += "".join(f'[[providers.models]]\nid = "{name}"\n{PRICED}' for name in MODELS)
        text += '[[providers.models]]\nid = "drip-100ms"\n'
        (tmp_path / "catalog.toml").write_text(text)
        async with serving(dataclasses.replace(config, catalog=tmp_path / "catalog.toml"), clocks) as service:
            session = await service.sign_up()
            watch(service.config.data_dir / "service.db")
            account_id = session["user"]["id"]
            await service.state["db"].write(wallet.book, account_id, 10_000_000, description="", now_seconds=NOW)
            yield Lab(service, upstream, bearer(session["access_token"]), account_id)
            await asyncio.sleep(0)
            assert_exact(service.config.data_dir / "service.db")  # no hold and no reservation is left


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("goes_on", [False, True])
async def test_chat_is_refused_before_the_model_call_or_charged_and_stored(
    lab: Lab, stream: bool, goes_on: bool
) -> None:
    conversation = (await lab.ask()).headers[HEADER] if goes_on else None
    count = before = int(goes_on)
    for free_bytes in (0, 57, 255, 256, 512, 1_000, 20_000, SHARE, SHARE + ROWS):
        await lab.leave_free(free_bytes)
        answer = await lab.ask(stream=stream, conversation=conversation)
        count += answer.status_code == 200
        assert len(lab.upstream.requests) == count and await lab.spent() == count * COST
        if answer.status_code != 200:
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (413, "quota_exceeded") and free_bytes < SHARE + ROWS
            needed = re.search(r"needs (\d+) bytes", error["message"])
            recalled = int(needed[1] if needed else 0) - (SHARE + 1_344 + len("hello?") + len("[]"))
            assert 0 <= recalled <= goes_on * 1_000, (
                "an answer of before may be recalled, and is stored with the answer"
            )
            assert HEADER not in answer.headers and len((await lab.get("/conversations"))["data"]) == before
            continue
        said = (await lab.get(f"/conversations/{answer.headers[HEADER]}/messages"))["data"]
        assert [message["content"] for message in said[:2]] == [TEXT, "hello?"]
    account = await lab.get("/billing/account")
    assert count == before + 1 and account["stored_bytes"] <= account["limit_bytes"]


async def test_answer_reserves_32_bytes_per_token_up_to_256_kib(lab: Lab) -> None:
    await lab.leave_free(1)
    for limits, share in (
        ({"max_tokens": 10}, 320),
        ({"max_completion_tokens": 100}, 3_200),
        ({"max_tokens": 10, "max_completion_tokens": 100}, 320),
        ({"max_tokens": 10**12}, 256 * 1_024),
        ({}, SHARE),
    ):
        answer = await lab.ask(**limits)
        assert answer.status_code == 413 and f"needs {share + 1_352} bytes" in answer.json()["error"]["message"]


async def test_concurrent_calls_reserve_different_bytes(lab: Lab) -> None:
    await lab.leave_free(2 * SHARE - 1)
    answers = await asyncio.gather(*(lab.ask("slow-300ms", stream=stream) for stream in (False, True)))
    assert sorted(answer.status_code for answer in answers) == [200, 413] and await lab.spent() == COST
    refused = next(answer for answer in answers if answer.status_code == 413).json()["error"]["message"]
    assert f"{SHARE} more are reserved for requests under way" in refused
    await lab.leave_free(3 * SHARE)
    answers = await asyncio.gather(lab.ask("slow-300ms"), lab.run("slow-300ms"))
    assert sorted(answer.status_code for answer in answers) == [200, 413] and await lab.spent() == 2 * COST


async def test_no_reservation_is_left_after_a_refused_or_failed_block(service: Service) -> None:
    account_id, db = (await service.sign_up())["user"]["id"], service.state["db"]
    reserved = "SELECT ifnull(sum(bytes), 0) FROM reserved_room"
    with pytest.raises(ApiError, match="storage"):
        async with quota.room(db, account_id, 2**50):
            raise NotImplementedError
    with pytest.raises(ZeroDivisionError):
        async with quota.room(db, account_id, 1_000):
            assert await db.read(lambda read: read.execute(reserved).fetchone()[0]) == 1_000
            raise ZeroDivisionError
    assert await db.read(lambda read: read.execute(reserved).fetchone()[0]) == 0


async def test_reserved_bytes_are_exclusive_until_the_call_ends(lab: Lab) -> None:
    for number, (call, needed) in enumerate(((lab.ask, SHARE), (lab.run, 2 * SHARE + EVENTS_BYTES))):
        await lab.leave_free(needed + ROWS + 1_000)
        asked = asyncio.create_task(call("slow-300ms"))
        await lab.asked(number + 1)
        refused = await lab.store(5_000)
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "quota_exceeded")
        assert (await asked).status_code == 200 and lab.reserved() == []
        assert (await lab.store(5_000)).status_code == 201


@pytest.mark.parametrize("stream", [False, True])
async def test_reserved_answer_is_stored_in_a_full_account(lab: Lab, stream: bool) -> None:
    asked = asyncio.create_task(lab.ask("slow-300ms", stream=stream))
    await lab.asked(1)
    await lab.service.state["db"].write(quota.set_limit, 1)
    answer = await asked
    said = (await lab.get(f"/conversations/{answer.headers[HEADER]}/messages"))["data"]
    assert answer.status_code == 200 and [message["content"] for message in said] == [TEXT, "hello?"]


@pytest.mark.slow
@each("stream", [False, True])
@each("model", [*MODELS[:-1], "drip-100ms"])
async def test_reservation_ends_with_its_call(lab: Lab, model: str, stream: bool) -> None:
    await lab.ask(model, stream=stream)
    assert lab.reserved() == []
    await lab.run(model, max_steps=2)
    assert lab.reserved() == []


async def test_reservation_ends_on_empty_wallet_deleted_account_or_stopped_run(lab: Lab) -> None:
    assert (await lab.ask(max_tokens=1)).status_code == 200
    await lab.service.state["db"].write(wallet.book, lab.account_id, -9_999_980, description="", now_seconds=NOW)
    assert [(await call()).status_code for call in (lab.ask, lab.run)] == [402, 402] and lab.reserved() == []
    going = [asyncio.create_task(call("drip-100ms", stream=True)) for call in (lab.ask, lab.run)]
    await lab.asked(3)
    assert len(lab.reserved()) == 2
    run_id = (await lab.get("/v1/agents/runs"))["data"][0]["id"]
    assert (await lab.service.client.post(f"/v1/agents/runs/{run_id}/stop", headers=lab.headers)).status_code == 202
    assert (await going[1]).status_code == 200 and len(lab.reserved()) == 1
    gone = await lab.service.client.request("DELETE", "/user/me", json={"password": PASSWORD}, headers=lab.headers)
    assert gone.status_code == 204 and (await going[0]).status_code in (200, 401) and lab.reserved() == []


async def test_reservations_of_a_crash_end_at_the_next_start(config: Config, clocks: Clocks) -> None:
    async with serving(config, clocks) as service:
        session = await service.sign_up()
        await service.state["db"].write(quota.reserve, session["user"]["id"], "room_1", 1024**3 - 10_000)
    async with serving(config, clocks) as service:
        body = {"name": "x", "content": "x" * 50_000}
        answer = await service.client.post("/artifacts", json=body, headers=bearer(session["access_token"]))
        assert answer.status_code == 201


async def test_run_is_refused_before_the_model_call_or_charged_and_stored(lab: Lab) -> None:
    count = 0
    for free_bytes in (0, 57, 255, 600, 20_000, 2 * SHARE + EVENTS_BYTES, 2 * SHARE + EVENTS_BYTES + ROWS):
        await lab.leave_free(free_bytes)
        answer = await lab.run()
        count += answer.status_code == 200
        assert len(lab.upstream.requests) == count and await lab.spent() == count * COST
        if answer.status_code != 200:
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "quota_exceeded")
            continue
        final = orjson.loads(answer.text.split("\n\n")[-2][6:])
        stored = (await lab.get("/v1/agents/runs"))["data"]
        assert final["type"] == "final" and [run["output"] for run in stored] == [TEXT]
    account = await lab.get("/billing/account")
    assert count == 1 and account["stored_bytes"] <= account["limit_bytes"]


async def test_model_list_of_a_provider_counts_on_create_and_change(lab: Lab) -> None:
    body: dict[str, Any] = {"name": "own", "base_url": lab.upstream.base_url, "models": ["small"]}
    made = (await lab.service.client.post("/user/providers", json=body, headers=lab.headers)).json()
    await lab.leave_free(5_000)
    body = {**body, "name": "other", "models": [f"model-{number}" for number in range(500)]}
    refused = [
        await lab.service.client.post("/user/providers", json=body, headers=lab.headers),
        await lab.service.client.patch(
            f"/user/providers/{made['id']}", json={"models": body["models"]}, headers=lab.headers
        ),
    ]
    assert [answer.json()["error"]["code"] for answer in refused] == ["quota_exceeded"] * 2
    shorter = await lab.service.client.patch(f"/user/providers/{made['id']}", json={"models": []}, headers=lab.headers)
    assert shorter.status_code == 200


async def test_messages_of_each_role_count(lab: Lab) -> None:
    made = (await lab.service.client.post("/conversations", json={}, headers=lab.headers)).json()
    await lab.leave_free(300)
    for role in ("user", "assistant", "system"):
        body = {"role": role, "content": "x" * 100}
        answer = await lab.service.client.post(f"/conversations/{made['id']}/messages", json=body, headers=lab.headers)
        assert answer.status_code == 413
