"""Calls of tools are counted by month."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from svc.billing import tool_usage
from svc.billing.tool_usage import ToolCounter
from svc.db import Database, open_database

SEPTEMBER = 1_790_000_000.0


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    database = await open_database(tmp_path / "service.db")
    yield database
    await database.close()


async def test_calls_failures_and_cost_are_summed_by_month_and_tool(db: Database) -> None:
    counter = ToolCounter(db)
    for failed, cost_micros in ((False, 5), (True, 0), (False, 7)):
        counter.count("look", SEPTEMBER, failed=failed, cost_micros=cost_micros)
    await counter.flush()
    counter.count("look", SEPTEMBER, failed=True, cost_micros=0)
    counter.count("look", SEPTEMBER + 30 * 86_400, failed=False, cost_micros=1)
    counter.count("draw", SEPTEMBER, failed=False, cost_micros=0)
    await counter.close()
    assert await db.read(tool_usage.of_month, "2026-09") == {
        "look": {"calls": 4, "failures": 2, "cost_micros": 12},
        "draw": {"calls": 1, "failures": 0, "cost_micros": 0},
    }
    assert (await db.read(tool_usage.of_month, "2026-10"))["look"]["calls"] == 1
    assert await db.read(tool_usage.of_month, "2026-08") == {}
