"""Paid chats, streams and runs, each over a separate connection, and what they have cost."""

from pathlib import Path
from typing import Any

import orjson

from tests.support.agent_runs import RUN, Account, Stream, add_accounts
from tests.support.local_server import AnyServer, LocalServer
from tests.support.money import rows

CHAT = "/v1/chat/completions"
KINDS = ("json", "stream", "run")
DONE = b"data: [DONE]"


def catalog(model_port: int, *models: str) -> str:
    """Return a catalog of priced models: a micro for an input token and two for an output token. The output of `...+in`
    is free.
    """
    entries = "".join(
        f'[[providers.models]]\nid = "{name}"\ninput_micros_per_million_tokens = 1_000_000\n'
        f"output_micros_per_million_tokens = {0 if name.endswith('+in') else 2_000_000}\n"
        for name in models
    )
    return f'[[providers]]\nname = "lab"\nbase_url = "http://127.0.0.1:{model_port}/v1"\ntimeout_seconds = 5\n{entries}'


def database(server: AnyServer) -> Path:
    return server.data_dir / "service.db"


def read(server: AnyServer, query: str, *values: Any) -> list[tuple[Any, ...]]:
    return server.rows(query, *values) if isinstance(server, LocalServer) else rows(database(server), query, *values)


_names = iter(range(1_000_000))


def person(server: AnyServer, micros: int = 1_000_000) -> Account:
    return add_accounts(server, 1, micros=micros, name=f"p{next(_names)}-")[0]


async def send(
    server: AnyServer,
    who: Account,
    kind: str,
    model: str,
    *,
    request_id: str = "",
    cut: int | None = None,
    **fields: Any,
) -> Stream:
    """Send a request, or only `cut` bytes of it."""
    asked = {
        "model": model,
        "messages": [{"role": "user", "content": "hello"}],
        "stream": kind == "stream",
        "max_tokens": 200,
    }
    body = orjson.dumps({**({"model": model, "goal": "hello", "tools": []} if kind == "run" else asked), **fields})
    lines = [f"POST {RUN if kind == 'run' else CHAT} HTTP/1.1", f"host: {server.host}"]
    lines += [f"authorization: Bearer {who.key}", "content-type: application/json", f"content-length: {len(body)}"]
    lines += [f"x-request-id: {request_id}"] if request_id else []
    reader, writer = await server.raw(limit=16_384)
    writer.write(("\r\n".join(lines).encode() + b"\r\n\r\n" + body)[:cut])
    return Stream(reader, writer)


async def answer(stream: Stream) -> tuple[int, Any]:
    """Read an answer to its end; return the status and its JSON or events."""
    try:
        await stream.head()
        if stream.headers.get("content-type") != "text/event-stream":
            return stream.status, orjson.loads(await stream.body())
        async for _ in stream.read():
            pass
        return stream.status, [orjson.loads(block[6:]) for block in stream.blocks if block not in (DONE, b": ping")]
    finally:
        await stream.close()


def debits(server: AnyServer, who: Account) -> list[int]:
    query = "SELECT -amount_micros FROM ledger WHERE account_id = ? AND model IS NOT NULL ORDER BY seq"
    return [micros for (micros,) in read(server, query, who.id)]


def held(server: AnyServer, who: Account) -> list[int]:
    """Every amount that was ever held."""
    query = "SELECT amount_micros FROM witness_holds WHERE account_id = ? ORDER BY id"
    return [micros for (micros,) in read(server, query, who.id)]


def is_idle(server: AnyServer, who: Account) -> bool:
    return not read(server, "SELECT id FROM holds WHERE account_id = ?", who.id)
