"""Measure what the index of words costs for ordinary and for hostile texts: `python -m tests.bench_words [--megabytes
1]`.

For each kind of words, an account stores a text in messages of 100,000 characters, each in a conversation, and 1,000
short messages. It deletes all conversations at once, stores the text again, and is deleted. It prints the growth of the
database file against what the account's quota counts. CPU seconds for each MB of text and the longest transaction are
those of the writer's thread.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from svc import db as database
from svc import quota
from svc.auth import accounts
from svc.content import conversations, fulltext
from svc.db import Database
from svc.deletion.slices import delete_account
from svc.server.sse import Drain

NOW = 1_790_000_000.0
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ALPHABETS = ((0x3B1, 0x3C9), (0x430, 0x44F), (0x561, 0x586), (0x5D0, 0x5EA))
_TWO_BYTES = [chr(code) for start, end in _ALPHABETS for code in range(start, end)]
_SQUARES = [chr(code) for code in range(0x3300, 0x3358)]  # each is several signs when it is folded
_CHANCE = random.Random(0)
_COMMON = ["".join(_CHANCE.choices(_LETTERS, k=number % 9 + 2)) for number in range(20_000)]


def _random(letters: str | list[str], low: int, high: int) -> Callable[[random.Random], str]:
    return lambda chance: "".join(chance.choices(letters, k=chance.randint(low, high)))


def _lookalike(chance: random.Random) -> str:
    letters = list("restaurantkeeper")
    for _ in range(3):
        letters[chance.randrange(len(letters))] = chance.choice(_LETTERS)
    return "".join(letters)


# How a word of each kind is made, and what stands between two of them.
KINDS: dict[str, tuple[Callable[[random.Random], str], str]] = {
    "ordinary": (lambda chance: _COMMON[int(chance.paretovariate(0.5)) % len(_COMMON)], " "),
    "distinct, 5 letters": (_random(_LETTERS + "0123456789", 5, 5), " "),
    "short, 2 letters": (_random(_LETTERS + "0123456789", 2, 2), " "),
    "short, 3 letters": (_random(_LETTERS + "0123456789", 3, 3), " "),
    "one letter": (_random(_TWO_BYTES, 1, 1), " "),
    "look-alikes": (_lookalike, " "),
    "long": (_random(_LETTERS, 64, 64), " "),
    "Chinese": (lambda chance: chr(chance.randrange(0x4E00, 0x9FA5)), ""),
    "squares": (_random(_SQUARES, 1, 1), ""),
}


def text_of(kind: str, chance: random.Random, size_bytes: int) -> str:
    """A text of at least `size_bytes` in UTF-8."""
    make, between = KINDS[kind]
    words, size = [], 0
    while size < size_bytes:
        words.append(make(chance) + between)
        size += len(words[-1].encode())
    return "".join(words)


@dataclass
class Measured:
    """What one kind of words costs."""

    kind: str
    counted_bytes: int
    grown_bytes: int
    indexing_seconds: float  # of CPU for each MB of text, as the next one
    deleting_seconds: float
    longest_ms: dict[str, float]  # transaction

    @property
    def growth(self) -> float:
        return self.grown_bytes / self.counted_bytes

    def __str__(self) -> str:
        longest = ", ".join(f"{name} {ms:.1f}" for name, ms in self.longest_ms.items())
        return (
            f"{self.kind:<20} counted {self.counted_bytes / 1e6:5.2f} MB, grown {self.grown_bytes / 1e6:5.2f} MB "
            f"({self.growth:.1f}x); CPU s/MB: indexing {self.indexing_seconds:.2f}, deletion "
            f"{self.deleting_seconds:.2f}; "
            f"longest ms: {longest}"
        )


def note_transactions() -> list[float]:
    """A list to which the CPU seconds of each transaction of the writer are added from now on."""
    noted: list[float] = []
    run = database._Transactions.run

    def timed(*arguments: Any) -> Any:
        began = time.thread_time()
        try:
            return run(*arguments)
        finally:
            noted.append(time.thread_time() - began)

    database._Transactions.run = timed
    return noted


async def measure(kind: str, megabytes: float, noted: list[float], folder: Path) -> Measured:
    path = folder / "service.db"
    text = text_of(kind, random.Random(kind), int(megabytes * 1e6))
    took: dict[str, list[float]] = {}

    async def ended(name: str, db: Database) -> None:
        await _idle(db)
        took[name] = noted.copy()
        noted.clear()

    db = await database.open_database(path, between=fulltext.index_some)
    account_id = (await db.write(accounts.add_account, "ada@example.com", None, None, NOW)).id
    await ended("the start", db)
    await db.empty_log()
    empty = path.stat().st_size
    conversation_ids = await _store(db, account_id, text)
    await ended("indexing", db)
    counted = (await db.read(quota.stored, account_id)).stored_bytes
    await db.empty_log()
    grown = path.stat().st_size - empty
    for start in range(0, min(len(text), 20_000), 20):
        short = {"role": "user", "content": text[start : start + 20], "now_seconds": NOW}
        await db.write(conversations.add_message, account_id, conversation_ids[0], **short)
    await ended("short messages", db)
    await asyncio.gather(*(_delete(db, account_id, conversation_id) for conversation_id in conversation_ids))
    await db.write(lambda tx: tx.execute("UPDATE word_purges SET due_at = 0"))
    await ended("deletion", db)
    left = await db.read(lambda conn: conn.execute("SELECT count(*) FROM word_blocks").fetchone()[0])
    assert left == 0, "the words go with the text"
    await _store(db, account_id, text)
    await ended("indexing again", db)
    await delete_account(db, Drain(), account_id, NOW)
    await ended("the account's end", db)
    await db.close()
    del took["the start"]
    return Measured(
        kind,
        counted,
        grown,
        sum(took["indexing"]) / megabytes,
        sum(took["deletion"]) / megabytes,
        {name: max(seconds) * 1000 for name, seconds in took.items()},
    )


async def _store(db: Database, account_id: str, text: str) -> list[str]:
    """The ids of the conversations."""
    ids = []
    for start in range(0, len(text), fulltext.INDEXED_CHARACTERS):
        ids.append((await db.write(conversations.add_conversation, account_id, NOW)).id)
        part = text[start : start + fulltext.INDEXED_CHARACTERS]
        await db.write(conversations.add_message, account_id, ids[-1], role="user", content=part, now_seconds=NOW)
    return ids


async def _delete(db: Database, account_id: str, conversation_id: str) -> None:
    while await db.write_as("alone", conversations.delete_conversation, account_id, conversation_id):
        pass


async def _idle(db: Database) -> None:
    await db._writer._idle.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=1.0)
    parser.add_argument("kinds", nargs="*", help="; ".join(KINDS))
    arguments = parser.parse_args()
    noted = note_transactions()
    for kind in arguments.kinds or KINDS:
        with tempfile.TemporaryDirectory() as folder:
            print(asyncio.run(measure(kind, arguments.megabytes, noted, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
