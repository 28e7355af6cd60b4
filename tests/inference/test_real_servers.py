"""llama.cpp's own server behind the service: the three formats of callers in front of its three formats, and vLLM's
gateway for Responses between them.

Tests of the gateway are skipped without its package: its dependencies take minutes to build.
"""

import asyncio
import contextlib
import itertools
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.config import Config
from tests.conftest import Clocks, Service, bearer, serving
from tests.inference.test_nine_cells import CELLS, PATHS, events_in, heard, joined
from tests.support.cases import each
from tests.support.clients import model_file, needed
from tests.support.format_events import APIS
from tests.support.sdk_types import checked_answer, checked_event
from tests.support.server import free_port
from tests.support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
]
TEXT = "Name three colours."
CONTEXT_TOKENS, TOKENS = 256, 6
ASK: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": TEXT}], "max_tokens": TOKENS},
    "responses": {"input": TEXT, "max_output_tokens": TOKENS},
    "messages": {"messages": [{"role": "user", "content": TEXT}], "max_tokens": TOKENS},
}


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    """The address of a running server. Its context is small: reading a prompt takes most of the time."""
    command = [sys.executable, "-m", "tests.support.llama_server", str(needed(model_file)), str(CONTEXT_TOKENS)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **pipes, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@contextlib.asynccontextmanager
async def gateway(address: str, folder: Path) -> AsyncIterator[str]:
    """Yield the address of a running gateway in front of the server at `address`."""
    port = free_port()
    where = ("--host", "127.0.0.1", "--port", str(port), "--vllm-base-url", address, "--shutdown-timeout-s", "1")
    silent = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "agentic_api",
        "serve",
        *where,
        cwd=folder,
        stdout=silent,
        stderr=silent,
    )
    try:
        await until(lambda: _listens(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()  # it ends its gateway, which has a process group of its own
        await process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@contextlib.asynccontextmanager
async def in_front_of(config: Config, clocks: Clocks, address: str) -> AsyncIterator[Service]:
    model = "[[providers.models]]\nid = 'smollm2'\ncontext_length = 4096\n"
    providers = (f"[[providers]]\nname = '{api}'\napi = '{api}'\nbase_url = '{address}/v1'\n{model}" for api in APIS)
    async with serving(replace(config, builtin=True), clocks, "".join(providers)) as service:
        yield service


async def play(service: Service, cells: list[tuple[str, str]]) -> None:
    key = bearer((await service.make_key(await service.bearer()))["key"])
    unchecked = httpx.AsyncClient(transport=httpx.ASGITransport(service.app), base_url=service.config.base_url)
    texts = set()
    for (caller, server), stream in itertools.product(cells, (False, True)):
        service.clocks.advance(60)
        body = {**ASK[caller], "model": f"{server}/smollm2", "temperature": 0, "stream": stream}
        if caller == "chat":
            body["stream_options"] = {"include_usage": True}
        # llama.cpp's own answers lack fields that the interface document requires, and they pass as they come.
        client = unchecked if caller == server else service.client
        answer = await client.post(PATHS[caller], json=body, headers=key)
        assert answer.status_code == 200, answer.text
        document = answer.json() if not stream else joined(caller, _events(caller, answer.content))
        if caller != server:  # on the diagonal the answer is llama.cpp's
            if not stream:
                checked_answer(caller, document)
            for event in _events(caller, answer.content) if stream else ():
                checked_event(caller, event)
        said = heard(caller, document)
        assert said.usage[0] > 5 and said.usage[-1] == TOKENS, (caller, server, stream, said)
        texts.add((said.text, said.finish if server != "responses" else "length"))
    assert len(texts) == 1, texts


async def test_llama_cpp_says_the_same_in_every_cell(llama: str, config: Config, clocks: Clocks) -> None:
    async with in_front_of(config, clocks, llama) as service:
        await play(service, CELLS)


@pytest.mark.skipif(find_spec("agentic_api") is None, reason="pip install --no-deps agentic-api")
async def test_gateway_of_vllm_says_the_same_to_every_caller(
    llama: str, config: Config, clocks: Clocks, tmp_path: Path
) -> None:
    async with gateway(llama, tmp_path) as passed, in_front_of(config, clocks, passed) as service:
        await play(service, [(caller, "responses") for caller in APIS])


def _events(caller: str, content: bytes) -> list[dict[str, Any]]:
    return [event for event in events_in(content) if event.get("type") != "ping"]


async def test_llama_cpp_refuses_a_long_prompt_in_the_callers_form(llama: str, config: Config, clocks: Clocks) -> None:
    async with in_front_of(config, clocks, llama) as service:
        key = bearer((await service.make_key(await service.bearer()))["key"])
        for caller, server in CELLS:
            clocks.advance(60)
            field = "input" if caller == "responses" else "messages"
            long = "x " * 600
            value: Any = long if caller == "responses" else [{"role": "user", "content": long}]
            body = {**ASK[caller], field: value, "model": f"{server}/smollm2"}
            answer = await service.client.post(PATHS[caller], json=body, headers=key)
            error = answer.json()["error"]
            assert answer.status_code == 400, (caller, server)
            if caller == "messages":
                assert error["message"].startswith("prompt is too long: 6"), error
                assert error["message"].endswith(f"> {CONTEXT_TOKENS} maximum")
            else:
                assert error["code"] == "context_length_exceeded", (caller, server)


@each("api", ["chat", "messages"])
async def test_chat_of_a_session_continues_beyond_the_context(
    llama: str, config: Config, clocks: Clocks, tmp_path: Path, api: str
) -> None:
    config = replace(config, data_dir=tmp_path / api)
    model = "[[providers.models]]\nid = 'smollm2'\n"
    catalog = f"[[providers]]\nname = 'lab'\napi = '{api}'\nbase_url = '{llama}/v1'\n{model}"
    async with serving(config, clocks, catalog) as service:
        headers, messages = await service.bearer(), list[dict[str, Any]]()
        for number in range(4):
            messages.append({"role": "user", "content": f"{number} " + "one two three four " * 13})
            body = {"model": "lab/smollm2", "messages": messages, "max_tokens": TOKENS, "temperature": 0}
            answer = await service.client.post(PATHS["chat"], json=body, headers=headers)
            assert answer.status_code == 200, (number, answer.text)
            headers["x-service-conversation"] = answer.headers["x-service-conversation"]
            messages.append(answer.json()["choices"][0]["message"])
            assert 75 < answer.json()["usage"]["prompt_tokens"] <= CONTEXT_TOKENS - TOKENS
        path = f"/conversations/{headers['x-service-conversation']}/messages"
        stored = (await service.client.get(path, headers=headers)).json()["data"]
        assert stored[0]["first_sent_message_id"] is not None and stored[-1]["first_sent_message_id"] is None
        assert stored[0]["answer"]["input_tokens"] > 150, "more was left out than was needed"
