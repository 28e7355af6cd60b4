"""SDKs and frameworks against POST /v1/responses and POST /v1/messages, each as its users start it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import CALL_MICROS, Lab
from tests.support.clients import environment, run_script

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(400)]


async def played(lab: Lab, name: str, folder: Path) -> Any:
    env = environment(lab.server, lab.person, folder / "home")
    return await asyncio.to_thread(run_script, name, env, folder)


async def test_openai_for_node_creates_streams_parses_and_calls_tools(lab: Lab, tmp_path: Path) -> None:
    result = await played(lab, "openai_sdk.mjs", tmp_path)
    assert result["echoed"] == ["Hello there 🙂", "completed", True] and result["streamed"] == "Hello, stream"
    assert result["types"][0] == "response.created" and result["types"][-1] == "response.completed"
    assert set(result["parsed"]) == {"answer"}
    assert result["call"] == "calculate" and "84" in result["answered"]
    assert result["refused"] == ["NotFoundError", "model_not_found"]


async def test_anthropic_for_node_creates_streams_counts_and_calls_tools(lab: Lab, tmp_path: Path) -> None:
    result = await played(lab, "anthropic_sdk.mjs", tmp_path)
    assert result["echoed"] == ["Hello there 🙂", "end_turn", True] and result["streamed"] == "Hello, stream"
    assert result["types"][0] == "message_start" and result["types"][-1] == "message_stop"
    assert result["call"] == ["calculate", "tool_use"] and "84" in result["answered"]
    assert result["ran"] == ["1", "2", "3", "It is 7."]
    assert result["counted"] > 0
    assert result["refused"] == ["NotFoundError", "not_found_error", True]


async def test_vercel_ai_sdk_generates_streams_and_runs_tools_in_both_formats(lab: Lab, tmp_path: Path) -> None:
    result = await played(lab, "vercel_ai.mjs", tmp_path)
    for one in (result["openai"], result["anthropic"]):
        assert (one["generated"], one["finish"], one["streamed"], one["tokens"]) == (
            "Hello there",
            "stop",
            "Hello, stream",
            True,
        )
        assert (one["expressions"], one["looped"], one["steps"], one["value"]) == (["12 * 7"], "It is 84.", 2, 84)
    assert await lab.spent() == 6 * CALL_MICROS


async def test_openai_agents_sdk_runs_an_agent_with_its_default_model_class(lab: Lab, tmp_path: Path) -> None:
    result = await played(lab, "agents_sdk.py", tmp_path)
    assert (
        result["value"] == 84
        and result["whole"] == result["streamed"] == "It is 84."
        and result["expressions"] == ["12 * 7", "12 * 7"]
    )
    assert "raw_response_event" in result["kinds"] and result["built_in"] == "Hello"
    assert await lab.spent() == 5 * CALL_MICROS


async def test_langchain_invokes_streams_and_calls_tools_in_both_formats(lab: Lab, tmp_path: Path) -> None:
    result = await played(lab, "langchain_clients.py", tmp_path)
    for one in (result["openai"], result["anthropic"]):
        assert (one["invoked"], one["streamed"]) == ("Hello there", "Hello, stream")
        assert (
            one["call"] == ["calculate", {"expression": "12 * 7"}]
            and one["answered"] == "It is 84."
            and one["tokens"] == 12
        )
        assert one["structured"] == 84
    assert await lab.spent() == 6 * CALL_MICROS
