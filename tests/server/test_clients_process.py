"""The official `openai` client and the pages' own lines against the real server."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.support.pages import EXAMPLES
from tests.support.people import Person, another_person
from tests.support.server import ROOT, RunningServer, running_server_sync

if TYPE_CHECKING:  # a second of CPU in every process that collects the tests
    import openai

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "calculate",
            "description": "Computes.",
            "parameters": {
                "type": "object",
                "properties": {"expression": {"type": "string"}},
                "required": ["expression"],
            },
        },
    }
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server_sync(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
async def person(server: RunningServer) -> Person:
    return await another_person(server)


@pytest.fixture
async def client(server: RunningServer, person: Person) -> AsyncIterator["openai.AsyncOpenAI"]:
    import openai

    http = httpx.AsyncClient(verify=server.tls or False)
    async with openai.AsyncOpenAI(base_url=f"{server.base_url}/v1", api_key=person.key, http_client=http) as made:
        yield made


async def test_openai_reads_json_stream_and_models(client: "openai.AsyncOpenAI") -> None:
    messages = [{"role": "user", "content": "Hello there 🙂"}]
    answer = await client.chat.completions.create(model="builtin/echo", messages=messages)
    assert answer.choices[0].message.content == "Hello there 🙂" and answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id
    stream = await client.chat.completions.create(
        model="builtin/echo", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello there 🙂"
    assert chunks[-1].usage.total_tokens == answer.usage.total_tokens
    listed = [model.id async for model in client.models.list()]
    assert "builtin/assistant" in listed
    assert (await client.models.retrieve("builtin/assistant")).owned_by == "builtin"


async def test_openai_runs_a_tool_loop_in_json_and_stream(client: "openai.AsyncOpenAI") -> None:
    messages = [{"role": "user", "content": "What is 12 * (3 + 4)?"}]
    asked = await client.chat.completions.create(model="builtin/assistant", messages=messages, tools=TOOLS)
    (call,) = asked.choices[0].message.tool_calls
    messages += [asked.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "84"}]
    answer = await client.chat.completions.create(model="builtin/assistant", messages=messages, tools=TOOLS)
    assert "84" in answer.choices[0].message.content
    async with client.chat.completions.stream(model="builtin/assistant", messages=messages[:1], tools=TOOLS) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].message.tool_calls[0].function.name == "calculate"


async def test_openai_raises_its_exception_for_each_refusal(
    client: "openai.AsyncOpenAI", server: RunningServer
) -> None:
    import openai

    ask = {"messages": [{"role": "user", "content": "fail 400 too long"}]}
    with pytest.raises(openai.NotFoundError) as missing:
        await client.chat.completions.create(model="no/such", **ask)
    assert missing.value.code == "model_not_found" and missing.value.request_id
    with pytest.raises(openai.BadRequestError) as refused:
        await client.chat.completions.create(model="builtin/script", **ask)
    assert "too long" in refused.value.message
    stranger = client.with_options(api_key="svc-v1-" + "0" * 42, max_retries=0)
    with pytest.raises(openai.AuthenticationError) as unknown:
        await stranger.chat.completions.create(model="builtin/echo", **ask)
    assert unknown.value.code == "invalid_api_key"
    with pytest.raises(openai.APIError) as broken:
        stream = await client.chat.completions.create(
            model="builtin/script", messages=[{"role": "user", "content": "say Hello\nfail 500 oops"}], stream=True
        )
        _ = [chunk async for chunk in stream]
    assert "oops" in broken.value.message or broken.value.code == "upstream_error"
    impatient = client.with_options(max_retries=0)
    with pytest.raises(openai.RateLimitError) as limited:
        await asyncio.gather(*(impatient.chat.completions.create(model="builtin/echo", **ask) for _ in range(25)))
    assert 1 <= int(limited.value.response.headers["retry-after"]) <= 59


def here(text: str, server: RunningServer) -> str:
    text = text.replace("https://127.0.0.1:8443", server.base_url).replace("data/tls/ca.pem", str(server.ca))
    return text.replace(".venv/bin/svc", f"{sys.executable} -m svc")


async def test_curl_lines_of_the_readme_work(server: RunningServer) -> None:
    script = "echo; echo ---\n".join(EXAMPLES[mark] for mark in ("curl", "byok-curl", "agent-curl", "media-curl"))
    done = await asyncio.to_thread(
        subprocess.run,
        ["bash", "-euo", "pipefail", "-c", here(script, server)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=server.data_dir,
        env={**os.environ, "SVC_DATA_DIR": str(server.data_dir), "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    chats, providers, agents, media = done.stdout.split("\n---\n")
    assert '"id":"builtin/assistant"' in chats and "84" in chats and chats.endswith("data: [DONE]\n\n")
    assert json.loads(providers)["name"] == "mine" and "sk-..." not in providers
    run, _, runs = agents.rpartition("\n\n")
    assert '"type":"final"' in run.rpartition("data: ")[2] and json.loads(runs)["data"][0]["status"] == "final"
    assert '"url":"https://' in media and (server.data_dir / "hello.wav").read_bytes()[:4] == b"RIFF"


async def test_python_lines_of_the_readme_work(server: RunningServer, person: Person) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", here(EXAMPLES["openai"], server)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "KEY": person.key},
    )
    assert (done.returncode, done.stdout) == (0, "Hello, stream"), done.stderr


@pytest.mark.parametrize("mark", ["agent-python", "agent-javascript"])
async def test_agent_clients_of_the_readme_work(server: RunningServer, person: Person, mark: str) -> None:
    program = here(EXAMPLES[mark], server)
    command = (
        [sys.executable, "-c", program] if mark == "agent-python" else ["node", "--input-type=module", "-e", program]
    )
    env = {**os.environ, "KEY": person.key, "NODE_EXTRA_CA_CERTS": str(server.ca)}
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout.startswith("started")
        and "84" in done.stdout.splitlines()[-1]
        and done.stdout.splitlines()[-1].startswith("final")
    )
