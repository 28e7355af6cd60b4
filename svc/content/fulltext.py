"""The index of words in titles, and in messages in chunks of up to 1,000 characters.

The words of a chunk have the place number * 128 + chunk, those of a title number * 128 + version (word_runs.py).

add_message_words -> the first chunks, and for a long text a row of `unindexed` -> index_some, between other writes
"""

import asyncio
import contextlib
import sqlite3
import time

from svc.content.word_runs import CHUNKS, MESSAGES, TITLES, tidy_some
from svc.content.words import indexed_words, is_cut_anew, words_of
from svc.db import Database
from svc.errors import ApiError

INDEXED_CHARACTERS = 100_000
CHUNK_CHARACTERS = 1_000
_CHUNKS_AT_ONCE = 4
_INDEX_SECONDS = 0.002
_PURGE_SECONDS = 10.0


def chunks_of(text: str) -> list[str]:
    """Return the chunks of the first 100,000 characters of `text`, cut between words where possible."""
    chunks: list[str] = []
    start, end = 0, min(len(text), INDEXED_CHARACTERS)
    while start < end:
        cut = min(start + CHUNK_CHARACTERS, end)
        if cut < end:
            blank = text.rfind(" ", start + CHUNK_CHARACTERS * 4 // 5, cut)
            cut = blank if blank > 0 else cut
        chunks.append(text[start:cut])
        start = cut
    return chunks


def distinct_words(text: str) -> list[str]:
    return list(dict.fromkeys(words_of(text)))


def add_message_words(tx: sqlite3.Connection, account_id: str, number: int, text: str) -> None:
    """Index a message. For a long one `index_some` does the rest."""
    chunks = chunks_of(text)
    if len(chunks) > _CHUNKS_AT_ONCE:
        tx.execute("INSERT INTO unindexed (number, next_chunk) VALUES (?, ?)", (number, _CHUNKS_AT_ONCE))
    for chunk, part in enumerate(chunks[:_CHUNKS_AT_ONCE]):
        MESSAGES.add(tx, account_id, number * CHUNKS + chunk, indexed_words(part))


def index_answers_later(tx: sqlite3.Connection) -> None:
    """Let `index_some` index the answers in progress."""
    tx.execute("INSERT OR REPLACE INTO unindexed SELECT number, 0 FROM messages WHERE status = 'in_progress'")


def index_some(tx: sqlite3.Connection) -> bool:
    """Index more chunks of a long message, or tidy the index, for some milliseconds; return whether there was work."""
    ends = time.monotonic() + _INDEX_SECONDS
    indexed = _index_chunks(tx, ends) or _reindex_some(tx, ends)
    if indexed and time.monotonic() > ends:
        return True
    return tidy_some(tx) or indexed


def _index_chunks(tx: sqlite3.Connection, ends: float) -> bool:
    query = """
        SELECT unindexed.number, next_chunk, account_id, content
        FROM unindexed JOIN messages USING (number) ORDER BY next_chunk, unindexed.number LIMIT 1 -- all advance alike
    """
    row = tx.execute(query).fetchone()
    if row is None:
        return False
    number, next_chunk, account_id, content = row
    chunks = chunks_of(content)
    for part in chunks[next_chunk:]:
        add = MESSAGES.add if next_chunk else MESSAGES.add_again  # the first chunk is added with the message
        add(tx, account_id, number * CHUNKS + next_chunk, indexed_words(part))
        next_chunk += 1
        if time.monotonic() > ends:
            break
    if next_chunk < len(chunks):
        tx.execute("UPDATE unindexed SET next_chunk = ? WHERE number = ?", (next_chunk, number))
    else:
        tx.execute("DELETE FROM unindexed WHERE number = ?", (number,))
    return True


def _reindex_some(tx: sqlite3.Connection, ends: float) -> bool:
    """Index texts again that an older release has indexed, for some milliseconds; return whether there may be more."""
    row = tx.execute("SELECT texts, below FROM reindexing LIMIT 1").fetchone()
    if row is None:
        return False
    texts, below = row
    again = _title_again if texts == "titles" else _message_again
    below = again(tx, below)  # at least one, so that each call gets on
    while below is not None and time.monotonic() < ends:
        below = again(tx, below)
    if below is None:
        tx.execute("DELETE FROM reindexing WHERE texts = ?", (texts,))
    else:
        tx.execute("UPDATE reindexing SET below = ? WHERE texts = ?", (below, texts))
    return True


def _message_again(tx: sqlite3.Connection, below: int) -> int | None:
    """Read the newest message with a number below `below`, and return its number or None."""
    query = "SELECT number, substr(content, 1, ?) FROM messages WHERE number < ? ORDER BY number DESC LIMIT 1"
    number, text = tx.execute(query, (INDEXED_CHARACTERS, below)).fetchone() or (None, "")
    if is_cut_anew(text):  # the old words stay as well, until the message is deleted
        statement = "INSERT INTO unindexed (number, next_chunk) VALUES (?, 0) ON CONFLICT DO UPDATE SET next_chunk = 0"
        tx.execute(statement, (number,))
    return number


def _title_again(tx: sqlite3.Connection, below: int) -> int | None:
    query = """
        SELECT number, account_id, number * ? + title_version, ifnull(title, '') FROM conversations
        WHERE number < ? ORDER BY number DESC LIMIT 1
    """
    number, account_id, place, title = tx.execute(query, (CHUNKS, below)).fetchone() or (None, "", 0, "")
    if is_cut_anew(title):
        TITLES.add_again(tx, account_id, place, indexed_words(title))
    return number


async def purge_in_time(db: Database) -> None:
    """Wake the writer every 10 seconds for due purges. Otherwise it checks them only when something is written."""
    while True:
        await asyncio.sleep(_PURGE_SECONDS)
        with contextlib.suppress(ApiError):  # a full disk
            await db.write(lambda tx: None)


def remove_message_words(tx: sqlite3.Connection, account_id: str, number: int) -> None:
    """Remove the words of a message that this transaction deletes."""
    size = "SELECT length(CAST(content AS BLOB)) FROM messages WHERE account_id = ? AND number = ?"
    size_bytes = tx.execute(size, (account_id, number)).fetchone()[0]
    MESSAGES.remove(tx, account_id, number * CHUNKS, (number + 1) * CHUNKS, size_bytes)
