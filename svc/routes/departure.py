"""The end of an account: gone at once for its owner, its rows in slices between which others write.

begin -> no sign-in, key, link, wallet or checkout is its own any more -> go_on, until nothing is left -> what was deleted is
overwritten in the log. The next start goes on with what a process that ended has left.
"""

import sqlite3

from svc.agents import runs
from svc.auth import accounts, identities, links, oauth_flows, tokens
from svc.billing import payments, usage, wallet
from svc.content import artifacts, conversations, history, projects, support, word_runs
from svc.db import Database
from svc.errors import ApiError

_SLICES = (
    word_runs.forget_some,
    history.forget_some,
    conversations.forget_some,
    artifacts.forget_some,
    runs.forget_some,
    tokens.delete_some_keys,
    usage.forget_some,
    support.forget_some,
    projects.forget_some,
    wallet.forget_some,
)


def begin(tx: sqlite3.Connection, account_id: str) -> None:
    """Ends every way in to the account, its wallet, and what it has to do with payments."""
    accounts.begin_deletion(tx, account_id)
    identities.delete_identities(tx, account_id, but=None)
    links.end_all_of(tx, account_id)
    oauth_flows.end_all_of(tx, account_id)
    payments.leave_checkouts(tx, account_id)
    wallet.close(tx, account_id)


def go_on(tx: sqlite3.Connection, account_id: str) -> bool:
    """Delete a slice of what the account has, at the end the account; return whether there is more to do."""
    if any(forget_some(tx, account_id) for forget_some in _SLICES):
        return True
    accounts.delete_account(tx, account_id)
    return False


async def finish(db: Database, account_id: str) -> None:
    """Deletes all that is left of an account. Raises ApiError `storage_unavailable`; the next start goes on from there."""
    while await db.write_as("alone", go_on, account_id):
        pass
    await db.empty_log()  # in which it stands, too


async def finish_all(db: Database) -> None:
    """Goes on with the deletions that an earlier process has begun."""
    try:
        # On the writer, which is there: a reader would be opened for this alone, at each start.
        for account_id in await db.write(accounts.half_deleted):
            await finish(db, account_id)
    except ApiError:
        return  # the storage is full, or we end: the next start tries again
