"""Calculations of a model are bounded in time."""

import asyncio
import contextlib
import time

from svc.agents.tools.registry import ToolContext, ToolFailure
from tests.support.cases import each


@each(
    "bomb",
    [
        "9**9**9",
        "9**1000*" * 100 + "1",
        "(" * 500 + "1" + ")" * 500,
        "-" * 999 + "1",
        "1e999999999",
        "1/7+" * 249 + "1",
        "+".join(["9**999"] * 140),
    ],
)
async def test_calculations_do_not_block_the_event_loop(box: ToolContext, bomb: str) -> None:
    latest = 0.0

    async def tick() -> None:
        nonlocal latest
        while True:
            began = time.process_time()
            await asyncio.sleep(0.005)
            latest = max(latest, time.process_time() - began)

    ticking = asyncio.create_task(tick())
    began = time.process_time()
    for _ in range(5):
        with contextlib.suppress(ToolFailure):
            assert len(await box.call("calculate", {"expression": bomb})) < 1100
    ticking.cancel()
    assert time.process_time() - began < 3 and latest < 0.25
