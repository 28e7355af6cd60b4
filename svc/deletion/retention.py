"""Delete what the operator does not keep any longer: at start and every hour, in slices."""

import asyncio
import contextlib

from svc.agents import runs
from svc.config import Config
from svc.content import artifacts, conversations
from svc.db import Database
from svc.errors import ApiError

_DAY_SECONDS = 24 * 3600
_PAUSE_SECONDS = 3600.0


async def delete_old_hourly(db: Database, config: Config) -> None:
    """Delete what is too old, until cancelled, if the settings limit anything."""
    while any((config.keep_conversations_days, config.keep_runs_days, config.keep_files_days)):
        with contextlib.suppress(ApiError):  # the storage is full, or the server stops
            await delete_old(db, config)
        await asyncio.sleep(_PAUSE_SECONDS)


async def delete_old(db: Database, config: Config) -> None:
    """Delete conversations, ended runs and files whose last use is older than they are kept."""
    kinds = (
        (conversations.delete_old, config.keep_conversations_days),
        (runs.delete_old, config.keep_runs_days),
        (artifacts.delete_old, config.keep_files_days),
    )
    for delete_some, days in kinds:
        while days is not None and await db.write_as("alone", delete_some, config.clock() - days * _DAY_SECONDS):
            pass
    await db.empty_log()  # it holds the deleted rows, too
