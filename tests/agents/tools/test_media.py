"""What media tools make and cost in a run."""

import asyncio
import base64
import io
import os
import re
import signal
import sqlite3
import wave
from dataclasses import replace
from typing import Any

import orjson
import pytest

from svc.agents import loop
from svc.billing import wallet
from svc.config import Config
from svc.ids import new_id
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.loop_clock import advance_loop
from tests.support.model_media import PNG
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, watch
from tests.support.voice import until_children
from tests.support.waiting import until

RUN = "/v1/agents/run"
PRICE = 20_000


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
    return [orjson.loads(block[6:]) for block in answer.text.split("\n\n")[:-1] if block != ": ping"]


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


async def test_media_that_cannot_be_made_is_a_result_for_the_model_and_that_cannot_be_paid_ends_the_run(
    service: Service, person: tuple[dict[str, str], str]
) -> None:
    headers, account_id = person
    draw = 'tool generate_image {"prompt": "hills"}\n---\nsay done'
    running = asyncio.create_task(run(service, headers, draw, model="builtin/script"))
    (helper,) = await until_children(1)
    os.kill(helper, signal.SIGKILL)
    *events, final = await running
    (result,) = (event for event in events if event["type"] == "tool_result")
    assert not result["ok"] and "cut off" in result["result"] and final["type"] == "final"
    assert final["artifacts"] == [] and final["cost_micros"] == 0 == await spent(service, headers)
    await service.state["db"].write(wallet.book, account_id, -90_000, description="", now_seconds=1.0)
    *_, error = await run(service, headers, draw, model="builtin/script")
    assert (error["type"], error["error"]["code"]) == ("error", "insufficient_funds") and error["cost_micros"] == 0
    assert "This needs $0.02" in error["error"]["message"]


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
