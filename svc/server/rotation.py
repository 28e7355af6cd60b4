"""Replace the master secret of the data folder: every session, link and cookie ends, and providers' keys are encrypted again.

master.key.new -> one transaction -> the server's own keys -> master.key.old and master.key. After a crash the next start finds
out which secret the database needs, and completes the rest (svc/secrets.py).
"""

import asyncio
import os
import sqlite3
from typing import Any

from svc import audit, secrets
from svc.auth import links, oauth_flows
from svc.errors import ApiError, StartError
from svc.inference.providers import KeyBox, count_sealed, drop_sealed, seal_again
from svc.secrets import DataFolder, derive
from svc.server.state import State


def rotate_stopped(tx: sqlite3.Connection, folder: DataFolder, now_seconds: float) -> int:
    """Rotate in the transaction of a command, which calls `keep_master` after it. Return the number of encrypted keys.

    Raises StartError if the folder's master secret is not the one of the database.
    """
    secrets.check_master(tx, folder, None, count_sealed, drop_sealed)
    folder.keep_master()
    box, master = KeyBox(folder.master), _new_master(folder)
    box.add(master)
    count = _rotate(tx, box, master, now_seconds)
    folder.master, folder.rotated = master, True
    return count


class Rotation:
    """Rotates the secrets of a running server."""

    def __init__(self, state: State, folder: DataFolder) -> None:
        self._state, self._folder = state, folder
        self._lock = asyncio.Lock()

    async def __call__(self) -> dict[str, Any]:
        """Return the number of `provider_keys`, or the `error` that stopped or followed the change of the database."""
        async with self._lock:
            try:
                return {"provider_keys": await self._rotate()}
            except (StartError, ApiError, OSError) as error:
                return {"error": f"{error}"}

    async def _rotate(self) -> int:
        state, folder = self._state, self._folder
        folder.keep_master()  # if the files of the last rotation could not be renamed
        master = await asyncio.to_thread(_new_master, folder)
        state.key_box.add(master)
        count = await state.db.write_as("alone", _rotate, state.key_box, master, state.clock())
        state.derived_keys.update({purpose: derive(master, purpose) for purpose in state.derived_keys})
        if state.payments.mode == "sandbox":
            state.payments.secret = derive(master, "sandbox-payments")
        folder.master, folder.rotated = master, True
        await asyncio.to_thread(folder.keep_master)
        await state.db.empty_log()  # it holds what the old secret encrypted
        state.log("secrets", message="the secrets were rotated: every session has ended", provider_keys=count)
        return count


def _new_master(folder: DataFolder) -> bytes:
    """Store a new master secret beside the old one, and return it. Raises OSError."""
    master = os.urandom(secrets.MASTER_BYTES)
    secrets.write_private(folder.path / secrets.NEW_MASTER, master)
    return master


def _rotate(tx: sqlite3.Connection, box: KeyBox, master: bytes, now_seconds: float) -> int:
    secrets.set_master(tx, master)
    count = seal_again(tx, box)
    links.delete_outstanding(tx)
    oauth_flows.delete_all(tx)
    details = {"provider_keys": count}
    audit.add(tx, now_seconds, audit.OPERATOR, "secrets.rotate", secrets.installation_id(tx), details)
    return count
