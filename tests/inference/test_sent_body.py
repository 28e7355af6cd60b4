"""What a call sends to model servers in their own formats, on which paths, and what it costs."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.billing import wallet
from svc.config import Config
from tests.conftest import Service, bearer
from tests.support.byok import KEY, Names, add_provider
from tests.support.cases import each

HELLO = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
PATHS = {"responses": "/v1/responses", "messages": "/v1/messages"}
USAGE = {"input_tokens": 7, "output_tokens": 5}
EVENTS: dict[str, list[dict[str, Any]]] = {
    "responses": [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}},
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "Hello"},
        {"type": "response.completed", "response": {"status": "completed", "usage": {**USAGE, "total_tokens": 12}}},
    ],
    "messages": [
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "usage": {"input_tokens": 7}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USAGE},
        {"type": "message_stop"},
    ],
}
PRICES = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 1_000_000\n"


@dataclasses.dataclass
class Server:
    """A server of both formats that streams `events`; `asked` has the path, the headers and the body of each request."""

    port: int = 0
    asked: list[tuple[str, dict[str, str], Any]] = dataclasses.field(default_factory=list)
    left_out: int = 0  # events at the end that are not sent

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        path, body = first.split()[1], await reader.readexactly(int(headers.get("content-length", 0)))
        self.asked.append((path, headers, json.loads(body or b"null")))
        events = EVENTS[path.removeprefix("/v1/")]
        sent = "".join(f"data: {json.dumps(event)}\n\n" for event in events[: len(events) - self.left_out])
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(sent)}\r\n\r\n"
        writer.write((head + sent).encode())
        writer.close()


@asynccontextmanager
async def running() -> AsyncIterator[Server]:
    server = Server()
    async with await asyncio.start_server(server.connected, "127.0.0.1", 0) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server


@pytest.fixture
async def upstream() -> AsyncIterator[Server]:
    async with running() as upstream:
        yield upstream


@pytest.fixture
def config(config: Config, upstream: Server, tmp_path: Path) -> Config:
    provider = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\napi_key = "sk-of-the-operator-0123"\n'
    models = "".join(f'[[providers.models]]\nid = "{api}"\napi = "{api}"\n{PRICES}' for api in PATHS)
    (tmp_path / "catalog.toml").write_text(f'{provider}api = "messages"\n{models}')
    return dataclasses.replace(config, catalog=tmp_path / "catalog.toml", resolve=Names())


async def chat(service: Service, headers: dict[str, str], model: str, **fields: Any) -> httpx.Response:
    body = {"model": model, "messages": HELLO, "stream": True, **fields}
    return await service.client.post("/v1/chat/completions", json=body, headers=headers)


async def account(service: Service, headers: dict[str, str]) -> Any:
    return (await service.client.get("/billing/account", headers=headers)).json()


@each("api", PATHS)
async def test_server_is_asked_in_its_format_with_its_headers(service: Service, upstream: Server, api: str) -> None:
    upstream.asked.clear()
    headers = await service.bearer()
    own = await add_provider(service, headers, upstream.base_url, api=api)
    answer = await chat(service, headers, f"{own['name']}/m", max_tokens=9)
    assert answer.status_code == 200 and '"content":"Hello"' in answer.text and answer.text.endswith("[DONE]\n\n")
    ((path, sent, body),) = upstream.asked
    assert (path, body["model"], body["stream"]) == (PATHS[api], "m", True)
    key = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    expected = key if api == "messages" else {"authorization": f"Bearer {KEY}"}
    names = ("x-api-key", "anthropic-version", "authorization")
    assert {name: sent[name] for name in names if name in sent} == expected


@each("api", PATHS)
async def test_call_costs_the_usage_of_the_servers_format(service: Service, upstream: Server, api: str) -> None:
    upstream.asked.clear()
    signed_up = await service.sign_up()
    headers, account_id = bearer(signed_up["access_token"]), signed_up["user"]["id"]
    booked = {"description": "", "now_seconds": service.clocks.now}
    await service.state["db"].write(wallet.book, account_id, 1_000_000, **booked)
    before = await account(service, headers)
    answer = await chat(service, headers, f"lab/{api}", stream_options={"include_usage": True})
    assert answer.status_code == 200 and '"total_tokens":12' in answer.text
    after = await account(service, headers)
    assert after["wallet_balance_micros"] == before["wallet_balance_micros"] - 12 and after["held_micros"] == 0
    ((path, _, _),) = upstream.asked
    assert path == PATHS[api]


@each("api", PATHS)
async def test_stream_without_the_last_event_of_its_format_is_cut(service: Service, upstream: Server, api: str) -> None:
    upstream.left_out = 1
    own = await add_provider(service, headers := await service.bearer(), upstream.base_url, api=api)
    answer = await chat(service, headers, f"{own['name']}/m")
    assert "Hello" in answer.text and "was cut off before its end" in answer.text
    assert '"finish_reason":"stop"' not in answer.text
