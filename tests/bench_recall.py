"""Measure what memory recalls, and whether it is silent where nothing was said: `python -m tests.bench_recall
[MESSAGES] [-v]`.

tests/content/recall has one file for each language. `holdout` has files that were written separately, to check what was
tuned on the first ones. `people_a`, `people_b` and `people_kept` are about people whose names are in much of the chatter. The
rules were developed on the first two, and measured once on the last. Each file has facts (`+`) and questions in equal words (`=`), in other forms (`~`) and misspelt
(`?`). Others ask by a name (`!`), such as one that is also a stop word. It also has unrelated questions (`-`) and chatter (`.`),
of which `{one|other}` makes a history of any length. Each language has its own history, and one more history holds all
languages.
"""

import random
import re
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from svc.auth import accounts
from svc.content import history, recall
from svc.content.fulltext import index_some
from svc.schema import SCHEMA

FOLDER = Path(__file__).parent / "content" / "recall"
SETS = {"tuning": FOLDER, **{name: FOLDER / name for name in ("holdout", "people_a", "people_b", "people_kept")}}
NOW = 1_790_000_000.0
KINDS = {"=": "equal words", "~": "other forms", "?": "misspelt", "!": "names"}
UNRELATED = "-"


@dataclass
class Questions:
    """The questions and the chatter of one language, or of several."""

    related: list[tuple[str, str, str]] = field(default_factory=list)  # kind, question, fact
    unrelated: list[str] = field(default_factory=list)
    chatter: list[list[str]] = field(default_factory=list)  # for each language

    @property
    def facts(self) -> list[str]:
        return list(dict.fromkeys(fact for _, _, fact in self.related))


def read_questions(path: Path) -> Questions:
    found, fact, chatter = Questions(), "", []
    for line in path.read_text().splitlines():
        sign, text = line[0], line[2:]
        if sign == "+":
            fact = text
        elif sign in KINDS:
            found.related.append((sign, text, fact))
        elif sign == UNRELATED:
            found.unrelated.append(text)
        else:
            chatter.append(text)
    return Questions(found.related, found.unrelated, [chatter])


def read_set(folder: Path) -> dict[str, Questions]:
    """The questions of each language, and of all together as `all`."""
    found = {path.stem: read_questions(path) for path in sorted(folder.glob("*.txt"))}
    together = Questions()
    for questions in found.values():
        together.related += questions.related
        together.unrelated += questions.unrelated
        together.chatter += questions.chatter
    return {**found, "all": together}


def new_account(questions: Questions, messages: int) -> tuple[sqlite3.Connection, str]:
    """Return a database in memory with one account, whose history has the facts among `messages`
    messages of chatter.
    """
    conn = sqlite3.connect(":memory:", isolation_level=None)
    conn.row_factory = sqlite3.Row
    conn.executescript(SCHEMA.read_text())
    account_id = str(accounts.add_account(conn, "ada@example.com", None, None, NOW).id)
    chance = random.Random(7)
    facts = questions.facts
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


def chatter(chance: random.Random, languages: list[list[str]]) -> str:
    """Two lines of one language, with one choice of each `{one|other}`."""
    text = " ".join(chance.sample(chance.choice(languages), 2))
    return re.sub(r"\{([^}]*)\}", lambda match: chance.choice(match[1].split("|")), text)


@dataclass
class Result:
    """How many questions of each kind were asked and answered right, over one or more histories."""

    asked: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    millis: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def share(self, kind: str) -> float:
        return self.right[kind] / self.asked[kind] if self.asked[kind] else 1.0

    def __str__(self) -> str:
        shares = [f"{name} {self.share(kind):6.1%} of {self.asked[kind]}" for kind, name in KINDS.items()]
        noise = f"noise {1 - self.share(UNRELATED):5.1%} of {self.asked[UNRELATED]}"
        millis = sorted(self.millis)
        return ", ".join([*shares, noise, f"median {millis[len(millis) // 2]:.1f} ms, most {millis[-1]:.1f} ms of CPU"])


def measure(questions: Questions, messages: int, result: Result | None = None) -> Result:
    """Ask every question over one history, and add the outcomes to `result`."""
    conn, account_id = new_account(questions, messages)
    result = result or Result()

    def recalled(question: str) -> list[str]:
        began = time.thread_time()
        passages = recall.matching_passages(conn, account_id, question)
        result.millis.append((time.thread_time() - began) * 1000)
        return [passage.text for passage in passages]

    for kind, question, fact in questions.related:
        _note(result, kind, question, fact in recalled(question))
    for question in questions.unrelated:
        _note(result, UNRELATED, question, not recalled(question))
    conn.close()
    return result


def _note(result: Result, kind: str, question: str, is_right: bool) -> None:
    result.asked[kind] += 1
    if is_right:
        result.right[kind] += 1
    else:
        result.wrong.append(f"{kind} {question}")


def measure_all(found: Iterable[Questions], messages: int) -> Result:
    result = Result()
    for questions in found:
        measure(questions, messages, result)
    return result


def main(messages: int, verbose: bool) -> None:
    """Print the shares of each set."""
    for name_of_set, folder in SETS.items():
        found = read_set(folder)
        together = found.pop("all")
        for name, result in {
            f"{len(found)} histories of {messages}": measure_all(found.values(), messages),
            "one history of facts": measure(together, len(together.facts) + 2),
            f"one history of {messages}": measure(together, messages),
        }.items():
            print(f"{name_of_set}, {name} messages: {result}")
            if verbose:
                print(*(f"    {line}" for line in result.wrong), sep="\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000, "-v" in sys.argv)
