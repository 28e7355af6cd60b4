"""A database, the way to public addresses, and the tools of a run that use them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from svc.agents.tools.registry import ToolContext
from svc.db import Database, open_database
from svc.outbound.addresses import public_address
from svc.outbound.client import Outbound
from tests.support.toolboxes import box_of


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    database = await open_database(tmp_path / "service.db")
    yield database
    await database.close()


@pytest.fixture
async def guarded() -> AsyncIterator[Outbound]:
    outbound = Outbound(allow=public_address)
    yield outbound
    await outbound.aclose()


@pytest.fixture
async def faults() -> list[BaseException]:
    return []


@pytest.fixture
async def box(db: Database, guarded: Outbound, faults: list[BaseException]) -> ToolContext:
    return await box_of(db, guarded, faults, "ada@example.com")
