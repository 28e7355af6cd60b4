"""Measure what the index of words costs for ordinary and for hostile texts: `python -m tests.bench_words [--megabytes 1]`.

For each kind of words one account stores the text in messages of 100,000 characters, and then deletes the conversation. Printed:
the growth of the database file against what the account's quota counts, CPU seconds for each MB of text, and the longest
transaction in CPU time of the writer's thread, of indexing and of deletion.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from svc import db as database
from svc import quota
from svc.auth import accounts
from svc.content import conversations, fulltext
from svc.errors import ApiError

NOW = 1_790_000_000.0
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ALPHABETS = ((0x3B1, 0x3C9), (0x430, 0x44F), (0x561, 0x586), (0x5D0, 0x5EA))
_TWO_BYTES = [chr(code) for start, end in _ALPHABETS for code in range(start, end)]
_SQUARES = [chr(code) for code in range(0x3300, 0x3358)]  # each is several signs when it is folded
_COMMON = ["".join(random.Random(number).choices(_LETTERS, k=number % 9 + 2)) for number in range(20_000)]


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
class Noted:
    """The CPU seconds of each transaction of the writer, of all threads but its own folding."""

    seconds: list[float] = field(default_factory=list)

    def summary(self, megabytes: float) -> tuple[float, float]:
        """CPU seconds for each MB, and the longest in ms."""
        found = sum(self.seconds) / megabytes, max(self.seconds, default=0.0) * 1000
        self.seconds.clear()
        return found


def note_transactions() -> Noted:
    noted, run = Noted(), database._run_transaction

    def timed(*arguments: Any) -> Any:
        began = time.thread_time()
        try:
            return run(*arguments)
        finally:
            noted.seconds.append(time.thread_time() - began)

    database._run_transaction = timed
    return noted


async def measure(kind: str, megabytes: float, noted: Noted, folder: Path) -> str:
    """One line of the table."""
    path = folder / "service.db"
    text = text_of(kind, random.Random(kind), int(megabytes * 1e6))
    db = await database.open_database(path, between=fulltext.index_some)
    account_id = (await db.write(accounts.add_account, "ada@example.com", None, None, NOW)).id
    await db.close()
    empty = path.stat().st_size
    noted.seconds.clear()

    db = await database.open_database(path, between=fulltext.index_some)
    made = await db.write(conversations.add_conversation, account_id, NOW)
    for start in range(0, len(text), fulltext.INDEXED_CHARACTERS):
        part = text[start : start + fulltext.INDEXED_CHARACTERS]
        await db.write(conversations.add_message, account_id, made.id, role="user", content=part, now_seconds=NOW)
    await db.close()  # it goes on until nothing waits
    db = await database.open_database(path, between=fulltext.index_some)
    while not db._writer._idle.is_set():
        await asyncio.sleep(0.05)
    counted = (await db.read(quota.stored, account_id)).stored_bytes
    indexing, longest = noted.summary(megabytes)
    await db.close()
    grown = path.stat().st_size - empty

    db = await database.open_database(path, between=fulltext.index_some)
    noted.seconds.clear()
    try:
        while await db.write(conversations.delete_some, account_id, made.id):
            pass
    except ApiError as error:
        raise SystemExit(str(error)) from error
    while not db._writer._idle.is_set():
        await asyncio.sleep(0.05)
    deleting, longest_deleting = noted.summary(megabytes)
    await db.close()
    return (
        f"{kind:<20} counted {counted / 1e6:5.2f} MB, grown {grown / 1e6:6.2f} MB ({grown / counted:4.1f}x); indexing "
        f"{indexing:5.2f} s/MB, longest {longest:5.1f} ms; deletion {deleting:5.2f} s/MB, longest {longest_deleting:5.1f} ms"
    )


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
