"""A project of 50 MB of text: the CPU times of adding, searches and steps of its deletion, and whether its export is whole.

python -m tests.bench_files [MEGABYTES]

Prints the figures, and exits with status 1 beyond a target of svc/OPERATING.md.
"""

import asyncio
import io
import random
import resource
import sqlite3
import sys
import tempfile
import time
import zipfile
from functools import cache
from itertools import accumulate
from pathlib import Path

import orjson

from svc.config import Config
from svc.content import file_search, project_files
from tests.conftest import Clocks, Service, serving
from tests.routes.test_project_files import artifact, listed, project_of

FILE_BYTES = 5_000_000
SEARCH_MILLIS, ADDING_SECONDS, STEP_MILLIS = 100, 1.0, 50
CONSONANTS, VOWELS = "bcdfghklmnprstvw", "aeiou"
WORDS = 40_000


@cache
def _words() -> list[str]:
    chosen = random.Random(1)
    return [
        "".join(chosen.choice(CONSONANTS) + chosen.choice(VOWELS) for _ in range(chosen.randint(1, 4)))
        for _ in range(WORDS)
    ]


def chosen_words(chosen: random.Random, count: int) -> str:
    """Return words, of which few are frequent, as in natural texts."""
    return " ".join(chosen.choices(_words(), cum_weights=_shares(), k=count))


@cache
def _shares() -> list[float]:
    return [*accumulate(1 / (place + 5) for place in range(WORDS))]


def text(size: int, seed: int) -> str:
    """Return paragraphs of words, of which few are frequent."""
    chosen = random.Random(seed)
    paragraphs, length = [], 0
    while length < size:
        paragraph = chosen_words(chosen, chosen.randint(30, 150)).capitalize() + "."
        paragraphs.append(paragraph)
        length += len(paragraph) + 2
    return "\n\n".join(paragraphs)[:size]


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


async def add(service: Service, headers: dict[str, str], project_id: str, count: int, size: int) -> float:
    """Add files, and return the CPU seconds until all are read."""
    ids = [await artifact(service, headers, text(size, seed).encode(), f"{seed}.txt") for seed in range(count)]
    began = cpu_seconds()
    for artifact_id in ids:
        body = {"artifact_id": artifact_id}
        added = await service.client.post(f"/projects/{project_id}/files", json=body, headers=headers)
        assert added.status_code == 201, added.text
    while any(file["status"] == "reading" for file in await listed(service, headers, project_id)):
        await asyncio.sleep(0.5)
    assert all(file["status"] == "ready" for file in await listed(service, headers, project_id))
    return cpu_seconds() - began


async def search_millis(service: Service, account_id: str, project_id: str, count: int) -> list[float]:
    """Return the CPU times of searches for three to eight words of all frequencies, in order."""
    took = []

    def measured(conn: sqlite3.Connection, query: str) -> list[file_search.FoundPassage]:
        began = time.thread_time()
        found = file_search.matching_passages(conn, account_id, project_id, query)
        took.append((time.thread_time() - began) * 1000)
        return found

    for seed in range(count):
        query = chosen_words(random.Random(seed), 3 + seed % 6)
        assert await service.state["db"].heavy_read(measured, query)
    return sorted(took)


async def delete(service: Service, headers: dict[str, str], project_id: str) -> list[float]:
    """Delete the project, and return the milliseconds of each step of the deletion of its texts, in order."""
    took: list[float] = []
    steps = project_files.delete_unused

    def measured(tx: sqlite3.Connection) -> bool:
        began = time.thread_time()
        more = steps(tx)
        took.append((time.thread_time() - began) * 1000)
        return more

    assert (await service.client.delete(f"/projects/{project_id}", headers=headers)).status_code == 204
    while await service.state["db"].write_as("alone", measured):
        pass
    return sorted(took)


async def exported_files(service: Service, headers: dict[str, str]) -> int:
    answer = await service.client.get("/user/export", headers=headers)
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        rows = [orjson.loads(line) for line in archive.read("project_files.jsonl").splitlines()]
        sizes = [archive.getinfo(orjson.loads(line)["file"]).file_size for line in archive.open("artifacts.jsonl")]
    assert sum(row["text_bytes"] for row in rows) == sum(sizes)
    return len(rows)


async def measure(service: Service, megabytes: int, searches: int = 200) -> list[tuple[str, float, float]]:
    """Return the name, the figure and the target of each measurement."""
    signed_up = await service.sign_up()
    headers = {"authorization": f"Bearer {signed_up['access_token']}"}
    project_id, account_id = await project_of(service, headers), signed_up["user"]["id"]
    size = min(FILE_BYTES, megabytes * 1_000_000)
    count = megabytes * 1_000_000 // size
    seconds = await add(service, headers, project_id, count, size)
    took = await search_millis(service, account_id, project_id, searches)
    assert await exported_files(service, headers) == count
    steps = await delete(service, headers, project_id)
    return [
        ("adding, CPU seconds a MB", seconds / megabytes, ADDING_SECONDS),
        ("search, median CPU milliseconds", took[len(took) // 2], SEARCH_MILLIS),
        ("search, p95 CPU milliseconds", took[len(took) * 95 // 100], SEARCH_MILLIS),
        ("deletion, median CPU milliseconds a step", steps[len(steps) // 2], STEP_MILLIS),
        ("deletion, p99 CPU milliseconds a step", steps[len(steps) * 99 // 100], STEP_MILLIS),
    ]


async def main(megabytes: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with (path / "log").open("wb", buffering=0) as log:
            clocks = Clocks()
            config = Config(log_fd=log.fileno(), data_dir=path / "data", discover=False, argon2_memory_kib=8)
            async with serving(config, clocks) as service:
                figures = await measure(service, megabytes)
    for name, figure, target in figures:
        print(f"{name:40} {figure:8.2f}  (target {target:g})")
    return int(any(figure > target for _, figure, target in figures))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)))
