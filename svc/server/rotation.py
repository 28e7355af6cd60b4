"""Replace the master secret of the data folder: every session, link and cookie ends, and providers' keys are encrypted
again.

master.key.new -> one transaction -> the server's own keys -> master.key.old and master.key. After a crash the next
start finds out which secret the database needs, and completes the rest.
"""

import asyncio
import os
import sqlite3
from typing import Any

from svc import audit, secrets
from svc.auth import links, oauth_flows
from svc.errors import ApiError, StartError
from svc.inference import sealed_keys
from svc.inference.providers import KeyBox
from svc.secrets import DataFolder, derive
from svc.server.state import State


def check_master(tx: sqlite3.Connection, folder: DataFolder, given_up: str | None = None) -> str | None:
    """Check the folder's master secret against the database. A new one is accepted, with a warning, if nothing is
    encrypted.

    If a rotation was interrupted, the secret of the file NEW_MASTER may be the one of the database.

    Raises StartError if encrypted values would be lost, unless `given_up` is the id of this installation. The id then
    changes, so that the same setting cannot accept a later loss.
    """
    new = folder.path / secrets.NEW_MASTER
    if not secrets.fits(tx, folder.master) and new.exists() and secrets.fits(tx, new.read_bytes()):
        folder.master = new.read_bytes()
    if secrets.fits(tx, folder.master):
        if secrets.key_check(tx) is None:
            secrets.set_master(tx, folder.master)
        return None
    sealed, installation = sealed_keys.count(tx), secrets.installation_id(tx)
    if sealed and given_up != installation:
        key = folder.path / secrets.MASTER
        wrong = "is not the one" if key.exists() else "is missing"
        raise StartError(
            f"{key} {wrong} with which {sealed} provider keys in the database are encrypted: "
            f"restore the file from a backup, or set SVC_NEW_SECRETS={installation} to delete these keys"
        )
    sealed_keys.drop(tx)
    secrets.set_master(tx, folder.master, os.urandom(4).hex() if sealed else None)
    return f"master.key is a new one: every session has ended, and {sealed} provider keys were deleted"


def rotate_stopped(tx: sqlite3.Connection, folder: DataFolder, now_seconds: float) -> int:
    """Rotate in the transaction of a command, which calls `keep_master` after it. Return the number of encrypted keys.

    Raises StartError if the folder's master secret is not the one of the database.
    """
    check_master(tx, folder)
    folder.keep_master()
    box, master = KeyBox(folder.master), _new_master(folder)
    box.add(master)
    folder.master = master
    return _rotate(tx, box, master, now_seconds)


async def rotate_running(state: State) -> dict[str, Any]:
    """Rotate the secrets of a running server. Return the number of `provider_keys`, or the `error`."""
    folder = state.folder
    async with state.rotating:
        try:
            folder.keep_master()  # if the files of the last rotation could not be renamed
            master = await asyncio.to_thread(_new_master, folder)
            state.key_box.add(master)
            count = await state.db.write_as("alone", _rotate, state.key_box, master, state.clock())
            state.derived_keys.update({purpose: derive(master, purpose) for purpose in state.derived_keys})
            if state.payments.mode == "sandbox":
                state.payments.secret = derive(master, "sandbox-payments")
            folder.master = master
            await asyncio.to_thread(folder.keep_master)
            await state.db.empty_log()  # it holds what the old secret encrypted
        except (StartError, ApiError, OSError) as error:
            return {"error": f"{error}"}
        state.log("secrets", message="the secrets were rotated: every session has ended", provider_keys=count)
        return {"provider_keys": count}


def _new_master(folder: DataFolder) -> bytes:
    """Store a new master secret beside the old one, and return it. Raises OSError."""
    master = os.urandom(secrets.MASTER_BYTES)
    secrets.write_private(folder.path / secrets.NEW_MASTER, master)
    return master


def _rotate(tx: sqlite3.Connection, box: KeyBox, master: bytes, now_seconds: float) -> int:
    secrets.set_master(tx, master)
    count = sealed_keys.seal_again(tx, box)
    links.delete_outstanding(tx)
    oauth_flows.delete_all(tx)
    details = {"provider_keys": count}
    audit.add(tx, now_seconds, audit.OPERATOR, "secrets.rotate", secrets.installation_id(tx), details)
    return count
