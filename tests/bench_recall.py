"""What memory recalls of long histories, and whether it is silent where nothing was said: `python -m tests.bench_recall`.

For each of six languages tests/content/recall has facts (`+`) with questions in equal words (`=`), other forms (`~`) and misspelt
(`?`), requests that have nothing to do with them (`-`), and chatter (`.`), of which `{one|other}` makes a history of any length.
"""

import random
import re
import sqlite3
import statistics
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from svc.auth import accounts
from svc.content import history, recall
from svc.content.fulltext import index_some
from svc.schema import SCHEMA

FOLDER = Path(__file__).parent / "content" / "recall"
NOW = 1_790_000_000.0
KINDS = {"=": "equal words", "~": "other forms", "?": "near spellings"}


@dataclass
class Questions:
    """One language's file."""

    related: list[tuple[str, str, str]] = field(default_factory=list)  # kind, question, fact
    unrelated: list[str] = field(default_factory=list)
    chatter: list[str] = field(default_factory=list)


def read_questions(path: Path) -> Questions:
    found, fact = Questions(), ""
    for line in path.read_text().splitlines():
        sign, text = line[0], line[2:]
        if sign == "+":
            fact = text
        elif sign in KINDS:
            found.related.append((sign, text, fact))
        elif sign == "-":
            found.unrelated.append(text)
        else:
            found.chatter.append(text)
    return found


def new_account(questions: Questions, messages: int) -> tuple[sqlite3.Connection, str]:
    """A database in memory with one account, which said the facts somewhere among `messages` of chatter."""
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.row_factory = sqlite3.Row
    conn.executescript(SCHEMA.read_text())
    account_id = str(accounts.add_account(conn, "ada@example.com", None, None, NOW).id)
    chance = random.Random(7)
    facts = list(dict.fromkeys(fact for _, _, fact in questions.related))
    said = [(number % 2, chatter(chance, questions.chatter)) for number in range(messages - len(facts))]
    for fact in facts:
        said.insert(chance.randrange(len(said) + 1), (0, fact))
    conn.execute("BEGIN")
    for number, (speaker, text) in enumerate(said):
        role = ("user", "assistant")[speaker]
        history.add_message(conn, account_id, role=role, content=text, now_seconds=NOW + number, run_id="run_1")
    while index_some(conn):
        pass
    conn.execute("COMMIT")
    return conn, account_id


def chatter(chance: random.Random, lines: list[str]) -> str:
    """Two of `lines`, with one choice of each `{one|other}`."""
    text = " ".join(chance.sample(lines, 2))
    return re.sub(r"\{([^}]*)\}", lambda match: chance.choice(match[1].split("|")), text)


@dataclass
class Result:
    """What one history recalled."""

    asked: Counter[str] = field(default_factory=Counter)
    hits: Counter[str] = field(default_factory=Counter)
    millis: list[float] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    noise: list[str] = field(default_factory=list)


def measure(questions: Questions, messages: int) -> Result:
    """Asks every question over one history."""
    conn, account_id = new_account(questions, messages)
    result = Result()

    def asked(question: str) -> list[str]:
        began = time.perf_counter()
        passages = recall.matching_passages(conn, account_id, question)
        result.millis.append((time.perf_counter() - began) * 1000)
        return [passage.text for passage in passages]

    for kind, question, fact in questions.related:
        result.asked[kind] += 1
        if fact in asked(question):
            result.hits[kind] += 1
        else:
            result.missed.append(f"{kind} {question}")
    for question in questions.unrelated:
        result.asked["-"] += 1
        found = asked(question)
        if found:
            result.noise.append(f"{question} -> {found[0]}")
        else:
            result.hits["-"] += 1
    conn.close()
    return result


def main(messages: int, verbose: bool) -> None:
    """Prints the shares for each language and for all."""
    total: defaultdict[str, Counter[str]] = defaultdict(Counter)
    took: list[float] = []
    for path in sorted(FOLDER.glob("*.txt")):
        result = measure(read_questions(path), messages)
        took += result.millis
        for kind, count in result.asked.items():
            total["asked"][kind] += count
            total["hits"][kind] += result.hits[kind]
        shares = ", ".join(f"{kind} {result.hits[kind]}/{count}" for kind, count in result.asked.items())
        print(f"{path.stem}: {shares}; median {statistics.median(result.millis):.1f} ms, most {max(result.millis):.1f} ms")
        if verbose:
            print(*(f"    missed {line}" for line in result.missed), *(f"    noise {line}" for line in result.noise), sep="\n")
    for kind, name in {**KINDS, "-": "unrelated, silent"}.items():
        hits, count = total["hits"][kind], total["asked"][kind]
        print(f"{name:<20} {hits:>4} of {count:>4}  {hits / count:6.1%}")
    related = [sum(total[part][kind] for kind in KINDS) for part in ("hits", "asked")]
    print(f"{'all facts':<20} {related[0]:>4} of {related[1]:>4}  {related[0] / related[1]:6.1%}")
    print(f"{messages} messages each; median {statistics.median(took):.1f} ms, slowest {max(took):.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000, "-v" in sys.argv)
