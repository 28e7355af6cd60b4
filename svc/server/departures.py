"""Accounts that a command deletes beside this server: their open answers end, as they do when a person deletes their own."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from svc.auth import accounts
from svc.db import Database
from svc.errors import ApiError
from svc.server.sse import Drain

_EVERY_SECONDS = 1.0


@contextlib.asynccontextmanager
async def departures_noticed(db: Database, drain: Drain) -> AsyncIterator[None]:
    """Looks once a second, while the block runs, which accounts with open answers are still there: one query for them all."""
    looking = asyncio.create_task(_look(db, drain))
    try:
        yield
    finally:
        looking.cancel()


async def _look(db: Database, drain: Drain) -> None:
    while True:
        await asyncio.sleep(_EVERY_SECONDS)
        owners = drain.owners()
        if not owners:
            continue
        with contextlib.suppress(ApiError):  # storage that does not answer: it is asked again
            for account_id in await db.read(accounts.missing_accounts, owners):
                drain.end_all_of(account_id, "account_deleted")
