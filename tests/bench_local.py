"""What the service adds to a real model in a helper process: `python -m tests.bench_local [--rounds 50]`.

Print the median time to the first token, on kept connections: directly at a helper process, and through the service,
alternately. Then the same with four streams at once, and the 95th percentile of `/healthz` beside them. On a shared machine
only the comparison is reliable.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from svc.inference.local.model import HELPER
from tests.inference.local.test_helper_process import ASK, helpers_of, serving
from tests.support.agent_runs import add_accounts
from tests.support.clients import model_file
from tests.support.server import ROOT

BODY: dict[str, Any] = {**ASK["chat"], "max_tokens": 4, "temperature": 0, "stream": True}


def direct_helper() -> tuple["subprocess.Popen[str]", httpx.AsyncClient]:
    """Start a helper process as the service does, and return a client for it."""
    process = subprocess.Popen(HELPER, cwd=ROOT, text=True, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL)
    assert process.stdin and process.stdout
    order = {"parent": os.getpid(), "path": str(model_file()), "key": "k", "context_length": 1024, "parallel": 2}
    process.stdin.write(json.dumps({**order, "threads": 1, "gpu_layers": None}) + "\n")
    process.stdin.flush()
    address = f"http://127.0.0.1:{process.stdout.readline().strip()}"
    return process, httpx.AsyncClient(base_url=address, headers={"authorization": "Bearer k"}, timeout=120)


async def first_token_ms(client: httpx.AsyncClient, headers: dict[str, str], **more: Any) -> float:
    began = time.perf_counter()
    first = 0.0
    async with client.stream("POST", "/v1/chat/completions", json={**BODY, **more}, headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        async for line in answer.aiter_lines():
            if not first and line.startswith("data: {") and json.loads(line[6:])["choices"][0]["delta"].get("content"):
                first = (time.perf_counter() - began) * 1000
    return first


async def first_direct_ms(client: httpx.AsyncClient) -> float:
    """As `first_token_ms`, once more if llama.cpp has closed the connection after the call before."""
    with contextlib.suppress(httpx.RemoteProtocolError):
        return await first_token_ms(client, {})
    return await first_token_ms(client, {})


async def healthz_ms(client: httpx.AsyncClient, until_set: asyncio.Event) -> list[float]:
    found = []
    while not until_set.is_set():
        began = time.perf_counter()
        assert (await client.get("/healthz")).status_code == 200
        found.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.02)
    return found


def _cpu_ms(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


async def main(rounds: int) -> None:
    process, direct = direct_helper()
    with tempfile.TemporaryDirectory() as folder:
        async with serving(Path(folder)) as server, server.client(timeout=120) as through:
            accounts = add_accounts(server, 1 + rounds // 25)  # of 120 chats a minute each
            keys = [account.headers for account in accounts]
            ours = {"model": "local/free"}
            began = time.perf_counter()
            await first_token_ms(through, keys[0], **ours)
            print(f"first token with loading: {time.perf_counter() - began:.1f} s")
            await first_direct_ms(direct)
            times: dict[str, list[float]] = {"direct": [], "through the service": []}
            cpu_ms = _cpu_ms(server.pid)
            for number in range(rounds):
                times["direct"].append(await first_direct_ms(direct))
                times["through the service"].append(await first_token_ms(through, keys[number % len(keys)], **ours))
            for name, found in times.items():
                print(f"first token, {name}: median {statistics.median(found):.1f} ms of {rounds}")
            added = statistics.median(b - a for a, b in zip(*times.values(), strict=True))
            print(f"added by the service: median {added:.2f} ms")
            print(f"CPU of the service for a call: {(_cpu_ms(server.pid) - cpu_ms) / rounds:.2f} ms")
            over = asyncio.Event()
            async with server.client(timeout=60) as other:
                probing = asyncio.create_task(healthz_ms(other, over))
                long = {**ours, "max_tokens": 200, "ignore_eos": True}
                four = [first_token_ms(through, keys[number % len(keys)], **long) for number in range(4)]
                print("four streams at once, first tokens:", *(f"{ms:.0f} ms" for ms in await asyncio.gather(*four)))
                over.set()
                health = await probing
            print(f"/healthz beside them: p95 {statistics.quantiles(health, n=20)[-1]:.1f} ms of {len(health)}")
            for pid in helpers_of(server):
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                print(f"memory of the helper process: {pages * os.sysconf('SC_PAGE_SIZE') >> 20} MiB")
    process.kill()
    await direct.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    asyncio.run(main(parser.parse_args().rounds))
