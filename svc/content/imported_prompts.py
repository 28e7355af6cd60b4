"""The saved prompts in an import of this service's own export."""

import sqlite3
from typing import Any

from svc.content import imports, prompts
from svc.tables import storable


def add_prompt(
    tx: sqlite3.Connection, account_id: str, import_id: str, source: str, head: dict[str, Any], now_seconds: float
) -> None:
    """Import a saved prompt, unless it is there.

    Raises ApiError `name_taken` if the account has another text with its name, and `quota_exceeded`.
    """
    source_id, text = str(head.get("id")), head.get("text")
    name = imports.label_of(head.get("name"), prompts.NAME_LENGTH)
    text = storable(text, prompts.TEXT_LENGTH) if isinstance(text, str) else ""
    if name is None or not text.strip() or imports.imported_id(tx, account_id, source, "prompt", source_id) is not None:
        return
    if prompts.has_prompt(tx, account_id, name, text):
        return
    new = prompts.add_prompt(tx, account_id, prompts.NewPrompt(name, text), now_seconds)
    created, updated = (imports.time_in({"created": head.get(name)}, now_seconds) for name in ("created", "updated"))
    prompts.TABLE.update(tx, account_id, new.id, {"created_at": created, "updated_at": max(created, updated)})
    imports.add_item(tx, account_id, import_id, source, "prompt", source_id, new.id)
