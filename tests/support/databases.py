"""Databases that tests make without opening a service."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from svc.db import Between, Database
from svc.schema import connect_prepared


def prepare(path: Path, schema: str, migrations: Sequence[str], *, may_upgrade: bool = True) -> None:
    """Create or migrate the database at `path` and close it."""
    connect_prepared(path, schema, migrations, may_upgrade=may_upgrade).close()


async def open_with_schema(path: Path, schema: str, between: Between = lambda conn: False) -> Database:
    """Open a database as `open_database` does, with another schema."""
    db = Database(path, partial(connect_prepared, path, schema, []), between, lambda jobs, seconds: None)
    await db.open()
    return db


@asynccontextmanager
async def read_only(db: Database) -> AsyncIterator[None]:
    """Let every write fail while the block runs, as on a full disk."""
    await db._writer.outside(lambda conn: conn.execute("PRAGMA query_only = 1").fetchall())
    try:
        yield
    finally:
        await db._writer.outside(lambda conn: conn.execute("PRAGMA query_only = 0").fetchall())
