"""Prints the time from a cold start to the first answered chat, and the resident memory then: `python -m tests.bench_start`."""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from tests.support.people import new_person
from tests.support.server import running_server

CHAT = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hello"}]}
RUNS = 5
SECONDS_LIMIT = 1.0
MEGABYTES_LIMIT = 100


async def measure(fresh: bool) -> tuple[float, float, float]:
    """Seconds to the listening line, seconds to the first chat's answer, resident megabytes; on a fresh folder or a used one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with running_server(folder) as server:
            person = await new_person(server)
        if fresh:
            (folder / "data").rename(folder / "used")
        began = time.perf_counter()
        async with running_server(folder) as server, server.client() as client:
            listening = time.perf_counter() - began
            if fresh:
                person = await new_person(server)
            answer = await client.post("/v1/chat/completions", json=CHAT, headers=person.headers)
            assert answer.status_code == 200, answer.text
            return listening, time.perf_counter() - began, server.counts().rss_bytes / 1e6


def main() -> None:
    for name, fresh in (("first start, with sign-up and key", True), ("later start", False)):
        rows = [asyncio.run(measure(fresh)) for _ in range(RUNS)]
        listening, answered, memory = (statistics.median(column) for column in zip(*rows, strict=True))
        verdict = "ok" if answered < SECONDS_LIMIT and memory < MEGABYTES_LIMIT else "over the limit"
        print(f"{name}: listening after {listening:.2f} s, first chat {answered:.2f} s, {memory:.0f} MB resident: {verdict}")


if __name__ == "__main__":
    main()
