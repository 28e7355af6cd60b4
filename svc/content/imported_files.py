"""The files of projects in an import."""

import sqlite3
from typing import Any

from svc.content import imports, project_files


def add_file(
    tx: sqlite3.Connection, account_id: str, import_id: str, source: str, head: dict[str, Any], now_seconds: float
) -> None:
    """Add an imported artifact to the files of its project, unless one of them is missing or it is there already.

    Raises what `project_files.add_file` does.
    """
    ids = {kind: str(head.get(kind)) for kind in ("project", "artifact")}
    found = {kind: imports.imported_id(tx, account_id, source, kind, source_id) for kind, source_id in ids.items()}
    project_id, artifact_id = found["project"], found["artifact"]
    if project_id is None or artifact_id is None:
        return
    new = project_files.NewFile(artifact_id)
    _, is_new = project_files.add_file(tx, account_id, project_id, new, imports.time_in(head, now_seconds))
    if is_new:
        imports.add_item(tx, account_id, import_id, source, "project_file", ids["artifact"], artifact_id, project_id)
