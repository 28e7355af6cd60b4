"""Random agent runs on a real server process, which must leave no task, thread or descriptor behind.

`pytest -m slow tests/agents/test_endings_process.py --runs 20000 --seed 7` plays more, and others.
"""

import asyncio
import itertools
from pathlib import Path

import pytest

from tests.agents.test_endings import Player, program
from tests.support.agent_runs import COMMAND, add_accounts, tasks
from tests.support.people import command
from tests.support.server import running_server

WARM_UP = 40
RUNS_PER_ACCOUNT = 40  # fewer than its limit of a minute


@pytest.mark.timeout(3600)
async def test_random_runs_leave_nothing_behind(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    count, seed = request.config.getoption("--runs"), request.config.getoption("--seed")
    env = {"TASKS_FILE": str(tmp_path / "tasks")}
    async with running_server(tmp_path, env, COMMAND) as server:
        rich = add_accounts(server, 4 + count // RUNS_PER_ACCOUNT, micros=1_000_000)
        poor = add_accounts(server, 1 + len(rich) // 4, micros=2_500, name="poor")
        people = rich + poor
        programs = (program(seed, number) for number in range(count + WARM_UP))
        async with server.client(timeout=60) as client:
            await Player(server, client).play_all(itertools.islice(programs, WARM_UP), people)
        await asyncio.sleep(1)
        before, tasks_before = server.counts(), await tasks(server, tmp_path / "tasks")
        async with server.client(timeout=60) as client:
            player = Player(server, client)
            await player.play_all(programs, people)
            await player.nothing_is_open(people)
        print(f"{count} runs: {player.ends}; a left one was recorded after at most {player.slowest_seconds:.2f} s")
        assert player.slowest_seconds < 10
        assert {"final", "error", "requested", "client_disconnected", "max_steps"} <= set(player.ends) or count < 300
        assert await server.settled_descriptors(before.descriptors) <= before.descriptors
        async with asyncio.timeout(10):
            while await tasks(server, tmp_path / "tasks") - tasks_before:
                await asyncio.sleep(0.1)
        assert server.counts().threads <= before.threads + 8  # a pool of a bounded size may not have been full before
        errors = [entry for entry in server.log_lines() if entry["level"] == "error"]
        assert [e.get("error") for e in errors] == []
        found = await asyncio.to_thread(command, server, "check")
        assert found.returncode == 0, found.stdout
