"""Prints chats per second through the whole service over TLS, built-in and through a model server: `python -m tests.bench_chat`.

The client, the model server and the service share the machine: what counts is the service's own CPU time a request, beside the
yardstick `GET /healthz` in the same run.
"""

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import orjson

from tests.support.server import RunningServer, running_server

IN_FLIGHT = 64
SECONDS = 4.0
ACCOUNTS = 400


async def keys_of_many(server: RunningServer) -> list[str]:
    """Keys of as many accounts as it takes not to meet the limit of 20 chats a minute."""
    import sqlite3

    from svc.auth import accounts, tokens

    now, keys = time.time(), [tokens.new_key_token() for _ in range(ACCOUNTS)]
    with sqlite3.connect(server.data_dir / "service.db", isolation_level=None, timeout=30) as tx:
        tx.row_factory = sqlite3.Row
        tx.execute("BEGIN IMMEDIATE")
        for number, key in enumerate(keys):
            account = accounts.add_account(tx, f"bench{number}@example.com", None, None, now)
            tx.execute("UPDATE accounts SET tier = 'pro' WHERE id = ?", (account.id,))
            tokens.add_key(tx, account.id, "bench", key, now)
        tx.execute("COMMIT")
    return keys


def cpu_seconds(server: RunningServer) -> float:
    """The CPU time that the server process has used."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(server: RunningServer, requests: list[bytes]) -> tuple[float, float, float]:
    """Requests per second, the 99th percentile in milliseconds, and the server's CPU in microseconds a request, with
    IN_FLIGHT connections in a closed loop."""
    cpu_before = cpu_seconds(server)
    until = time.perf_counter() + SECONDS
    took: list[float] = []
    position = 0

    async def worker() -> None:
        nonlocal position
        reader, writer = await server.raw()
        while time.perf_counter() < until:
            request = requests[position % len(requests)]
            position += 1
            began = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            took.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    cpu_micros = (cpu_seconds(server) - cpu_before) / len(took) * 1e6
    return len(took) / SECONDS, sorted(took)[int(len(took) * 0.99)] * 1000, cpu_micros


def chat(key: str, model: str) -> bytes:
    body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": "hello there"}]})
    lines = [
        "POST /v1/chat/completions HTTP/1.1",
        "host: 127.0.0.1",
        f"authorization: Bearer {key}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        upstream = await asyncio.create_subprocess_exec(
            sys.executable, "tests/support/model_server.py", "--port", "0", stdout=asyncio.subprocess.PIPE
        )
        assert upstream.stdout
        port = int((await upstream.stdout.readline()).split()[-1])
        (folder / "catalog.toml").write_text(
            f'[[providers]]\nname = "lab"\nbase_url = "http://127.0.0.1:{port}/v1"\n[[providers.models]]\nid = "ok"\n'
        )
        async with running_server(folder, {"SVC_CATALOG": str(folder / "catalog.toml")}) as server:
            keys = await keys_of_many(server)
            health = [b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"]
            base, base_p99, base_cpu = await load(server, health)
            print(f"GET /healthz:               {base:7.0f}/s, p99 {base_p99:.1f} ms, {base_cpu:.0f} µs CPU (the yardstick)")
            for name, model in (("chat, builtin/echo", "builtin/echo"), ("chat, a model server", "lab/ok")):
                rate, p99, cpu = await load(server, [chat(key, model) for key in keys])
                print(
                    f"{name + ':':27} {rate:7.0f}/s, p99 {p99:.1f} ms, {cpu:.0f} µs CPU, {cpu / base_cpu:.1f} times the yardstick"
                )
            print(f"resident memory afterwards: {server.counts().rss_bytes / 1e6:.0f} MB")
        upstream.terminate()
        await upstream.wait()


if __name__ == "__main__":
    asyncio.run(main())
