"""Requests that real clients have sent, played against the service in front of a model server."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson

from svc.billing import wallet
from svc.config import Config
from tests.conftest import Clocks, bearer, serving
from tests.support.model_server import ModelServer, Seen

RECORDED = Path(__file__).parent / "recorded"
PRICES = "input_micros_per_million_tokens = 3000000\noutput_micros_per_million_tokens = 15000000\n"
CALL_MICROS = 7 * 3 + 5 * 15
FUNDS_MICROS = 50_000_000


def recorded(client: str) -> list[dict[str, Any]]:
    """The path, headers and body of each request of a client, without PDFs, which the service refuses."""
    return [_without_pdfs(json.loads(path.read_text())) for path in sorted(RECORDED.glob(f"{client}-*.json"))]


def _without_pdfs(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_pdfs(one) for one in value if not (isinstance(one, dict) and one.get("type") == "document")]
    return {name: _without_pdfs(one) for name, one in value.items()} if isinstance(value, dict) else value


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The events of a stream, without pings and `[DONE]`."""
    data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return [event for event in map(orjson.loads, filter("[DONE]".__ne__, data)) if event["type"] != "ping"]


class Played(NamedTuple):
    request: dict[str, Any]
    answer: httpx.Response
    asked: Seen
    spent_micros: int


@asynccontextmanager
async def in_front_of(config: Config, clocks: Clocks, model: str) -> AsyncIterator[Any]:
    """Yield a function that plays a request, whose model is an alias of `model`."""
    async with ModelServer() as upstream:
        names = sorted({request["body"]["model"] for path in ("claude-code", "codex") for request in recorded(path)})
        catalog = f'[[providers]]\nname = "lab"\nbase_url = "{upstream.base_url}"\n'
        catalog += f'[[providers.models]]\nid = "{model}"\naliases = {names}\n{PRICES}'
        async with serving(config, clocks, catalog) as service:
            session = await service.sign_up()
            key = await service.make_key(bearer(session["access_token"]))
            db, account_id = service.state["db"], session["user"]["id"]
            await db.write(wallet.book, account_id, FUNDS_MICROS, description="", now_seconds=clocks.now)

            async def play(request: dict[str, Any]) -> Played:
                headers = {**request["headers"], **bearer(key["key"])}
                before = await balance()
                answer = await service.client.post(request["path"], json=request["body"], headers=headers)
                assert answer.status_code == 200, answer.text
                return Played(request, answer, upstream.requests[-1], before - await balance())

            async def balance() -> int:
                answer = await service.client.get("/billing/account", headers=bearer(key["key"]))
                assert answer.json()["held_micros"] == 0
                return int(answer.json()["wallet_balance_micros"])

            yield play
