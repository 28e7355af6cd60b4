"""Databases that tests make without opening a service."""

from collections.abc import Sequence
from pathlib import Path

from svc.schema import connect_prepared


def prepare(path: Path, schema: str, migrations: Sequence[str], *, may_upgrade: bool = True) -> None:
    """Create or migrate the database at `path` and close it."""
    connect_prepared(path, schema, migrations, may_upgrade=may_upgrade).close()
