"""Large requests and answers of `POST /v1/responses`: no step holds the event loop for 50 ms."""

import dataclasses
from pathlib import Path
from typing import Any

import orjson
import pytest

from svc.config import Config
from tests.inference.test_model_call import Lab, catalog, lab, upstream  # noqa: F401 - fixtures
from tests.support.cases import each
from tests.support.model_server import ModelServer
from tests.support.watchdog import WATCHDOG

RESPONSES = "/v1/responses"
TOOL = {"type": "function", "name": "calculate", "parameters": {"type": "object"}, "strict": False}


@pytest.fixture
def config(config: Config, upstream: ModelServer, tmp_path: Path) -> Config:  # noqa: F811 - a fixture
    patient = catalog(upstream.base_url).replace("timeout_seconds = 0.5", "timeout_seconds = 30")
    (tmp_path / "catalog.toml").write_text(patient)
    return dataclasses.replace(config, catalog=tmp_path / "catalog.toml")


@each("kind", ["texts", "image", "depth", "tools", "calls"])
async def test_large_body_does_not_block_the_event_loop(
    lab: Lab,  # noqa: F811 - a fixture
    kind: str,
) -> None:
    """The watchdog fails a test whose event loop was held."""
    WATCHDOG.most_seconds = 0.05
    body: dict[str, Any] = {"input": [{"role": "user", "content": "hi"}]}
    if kind == "texts":
        body["instructions"] = "é" * 4_000_000
    elif kind == "image":
        part = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 15_000_000}
        body["input"][0]["content"] = [{"type": "input_text", "text": "see"}, part]
    elif kind == "depth":
        body["metadata"] = orjson.loads("[" * 99 + "]" * 99)
    elif kind == "tools":
        body["tools"] = [{**TOOL, "name": f"tool_{number}", "description": "é" * 500} for number in range(5_000)]
    else:
        calls = [
            {"type": "function_call", "call_id": str(number), "name": "f", "arguments": "{}"} for number in range(5_000)
        ]
        body["input"] += calls
        body["input"] += [
            {"type": "function_call_output", "call_id": call["call_id"], "output": "x"} for call in reversed(calls)
        ]
    person = await lab.person()
    body |= {"model": "lab/ok+free", "stream": True}
    answer = await lab.service.client.post(RESPONSES, json=body, headers=person.headers)
    assert answer.status_code == (400 if kind == "depth" else 200), answer.text[:500]
    assert kind == "depth" or answer.content.endswith(b"data: [DONE]\n\n")


@each("stream", [False, True])
async def test_long_answer_does_not_block_the_event_loop(
    lab: Lab,  # noqa: F811 - a fixture
    stream: bool,
) -> None:
    WATCHDOG.most_seconds = 0.05
    message = {"role": "assistant", "content": "é" * 1_500_000}
    lab.script.completion = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    delta = {"index": 0, "delta": {"content": "é" * 10_000}}
    lab.script.chunks = [{"choices": [delta]}] * 150 + [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    ]
    person = await lab.person()
    body = {"model": "lab/ok+free", "input": "x", "stream": stream}
    answer = await lab.service.client.post(RESPONSES, json=body, headers=person.headers)
    assert answer.status_code == 200 and len(answer.content) > 6 * 1_500_000
    assert not stream or b"event: response.completed" in answer.content
