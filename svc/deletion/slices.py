"""Delete rows in slices: those of an account, and what is older than the operator keeps it.

An account is gone at once for its owner. begin_deletion: no sign-in, key, link, wallet or checkout -> continue_deletion
until nothing is left -> the log, which holds the deleted rows, is emptied. The next start continues an unfinished
deletion.
"""

import asyncio
import contextlib
import sqlite3
import time

from svc import audit
from svc.agents import run_records
from svc.auth import accounts, given, identities, links, oauth_flows, sign_ins, tokens
from svc.billing import payments, usage, wallet
from svc.config import Config
from svc.content import (
    artifact_contents,
    artifacts,
    conversations,
    history,
    idempotency,
    imports,
    project_files,
    projects,
    prompts,
    shares,
    support,
    word_runs,
)
from svc.db import AFTER_START_SECONDS, Database
from svc.errors import ApiError
from svc.inference.formats.item_memory import ItemMemory
from svc.server.sse import Drain

SLICES = (
    word_runs.delete_some,
    shares.delete_some,
    history.delete_some,
    conversations.TABLE.delete_some,
    project_files.delete_some,
    project_files.delete_texts_some,
    artifacts.TABLE.delete_some,
    artifact_contents.delete_some,
    idempotency.delete_some,
    run_records.delete_some,
    tokens.TABLE.delete_some,
    sign_ins.TABLE.delete_some,
    usage.delete_some,
    support.MESSAGES.delete_some,
    support.TABLE.delete_some,
    projects.TABLE.delete_some,
    prompts.TABLE.delete_some,
    imports.delete_items_some,
    imports.delete_entries_some,
    imports.TABLE.delete_some,
    wallet.delete_some,
)
_POLL_SECONDS = 1.0
_PAUSES = 3  # times the duration of the last slice
_DAY_SECONDS = 24 * 3600
_OLD_ROWS_SECONDS = 3600.0  # between two deletions of what is too old


def begin_deletion(tx: sqlite3.Connection, account_id: str, now_seconds: float, actor: str | None) -> None:
    """End every way to sign in to the account, its wallet, and its part in payments.

    `actor` is an administrator's id or OPERATOR, None for the owner. Raises ApiError `not_found`, `last_admin`.
    """
    if actor != audit.OPERATOR:
        accounts.check_admin_remains(tx, account_id, or_nobody=actor is None)
    if actor is not None:
        accounts.existing_account(tx, account_id)
    if accounts.account_by_id(tx, account_id):  # else another request of the owner has just deleted it
        audit.add(tx, now_seconds, actor or account_id, "user.delete", account_id)
    given.remember(tx, account_id)
    accounts.mark_deleting(tx, account_id, now_seconds)
    identities.delete_identities(tx, account_id, but=None)
    links.delete_links(tx, account_id)
    oauth_flows.delete_flows(tx, account_id)
    payments.detach_checkouts(tx, account_id)
    wallet.close(tx, account_id)


def continue_deletion(tx: sqlite3.Connection, account_id: str) -> bool:
    """Delete a slice of the account's rows, after the last one the account; return whether there is more."""
    if any(delete_some(tx, account_id) for delete_some in SLICES):
        return True
    accounts.delete_account(tx, account_id)
    return False


async def delete_account(
    db: Database, drain: Drain, account_id: str, now_seconds: float, *, actor: str | None = None
) -> None:
    """Delete an account and end its open answers. Raises what `begin_deletion` does, and ApiError
    `storage_unavailable`: then the next start continues.
    """
    await db.write(begin_deletion, account_id, now_seconds, actor)
    drain.end_all_of(account_id, "account_deleted")
    await _finish(db, account_id)


def delete_beside_server(tx: sqlite3.Connection, account_id: str, now_seconds: float, *, served: bool) -> None:
    """Delete an account for the operator, in transactions with pauses if a server uses the database.

    A transaction must be open, and one is open at the end.
    """
    began, more = time.monotonic(), True
    begin_deletion(tx, account_id, now_seconds, audit.OPERATOR)
    while more:
        tx.execute("COMMIT")
        if served:  # the server polls for the lock, and must find it free most of the time
            time.sleep(_PAUSES * (time.monotonic() - began))
        tx.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        more = continue_deletion(tx, account_id)


async def _finish(db: Database, account_id: str) -> None:
    while await db.write_as("alone", continue_deletion, account_id):
        pass
    await db.empty_log()  # it has copies of the deleted rows


async def finish_deletions(db: Database) -> None:
    """Complete the deletions that an earlier process has left unfinished."""
    await asyncio.sleep(AFTER_START_SECONDS)
    with contextlib.suppress(ApiError):  # the storage is full, or the server stops: the next start tries again
        for account_id in await db.read(accounts.accounts_being_deleted):
            await _finish(db, account_id)


async def end_answers(db: Database, drain: Drain, memory: ItemMemory) -> None:
    """End the open answers of accounts that a command deletes or suspends; empty the `memory` of deleted ones."""
    while True:
        await asyncio.sleep(_POLL_SECONDS)
        if owners := drain.owners() | memory.owners():
            with contextlib.suppress(ApiError):  # the storage does not answer: ask again
                for account_id, reason in await db.read(accounts.ended_accounts, owners):
                    drain.end_all_of(account_id, reason)
                    if reason == "account_deleted":
                        memory.delete_account(account_id)


async def delete_old_hourly(db: Database, config: Config) -> None:
    """Delete what is too old, until cancelled."""
    await asyncio.sleep(AFTER_START_SECONDS)
    while True:
        with contextlib.suppress(ApiError):  # the storage is full, or the server stops
            await delete_old(db, config)
        await asyncio.sleep(_OLD_ROWS_SECONDS)


async def delete_old(db: Database, config: Config) -> None:
    """Delete conversations, ended runs and files whose last use is older than they are kept, expired answers, and
    what was given in earlier months.
    """
    kinds = (
        (idempotency.delete_old, idempotency.KEPT_SECONDS / _DAY_SECONDS),
        (sign_ins.delete_old, sign_ins.KEPT_DAYS),
        (imports.delete_old, imports.KEPT_DAYS),
        (shares.delete_expired, 0),
        (conversations.delete_old, config.keep_conversations_days),
        (run_records.delete_old, config.keep_runs_days),
        (artifacts.delete_old, config.keep_files_days),
    )
    for delete_some, days in kinds:
        while days is not None and await db.write_as("alone", delete_some, config.clock() - days * _DAY_SECONDS):
            pass
    if await db.read(given.has_old, config.clock()):
        while await db.write_as("alone", given.delete_old, config.clock()):
            pass
    await db.empty_log()  # it has copies of the deleted rows
