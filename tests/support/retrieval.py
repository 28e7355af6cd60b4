"""Measure whether a search of a project's files finds the right passage, through HTTP.

tests/content/retrieval has two sets, each with a file for each language. The rules were developed on `tuning`, and
measured once on `kept`. A document begins with `@` and its name, its questions follow a line `---`. A question has the
words of the document (`=`) or other forms of them (`~`). Others are paraphrases (`?`), ask about a name or number
(`!`), or have no answer (`-`). After `>>` are words of the one right passage. A model that calls tools may search again: after `;` are
the words that it uses then, at most twice.
"""

import asyncio
import base64
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tests.conftest import Service

FOLDER = Path(__file__).parent.parent / "content" / "retrieval"
OTHER_TEXTS = FOLDER.parent / "recall"
SETS = ("tuning", "kept")
KINDS = {"=": "same words", "~": "word forms", "?": "paraphrases", "!": "names and numbers", "-": "no answer"}
SEARCHES_IN_A_RUN = 19


class Question(NamedTuple):
    language: str
    kind: str
    searches: list[str]
    right: str | None  # words of the right passage

    def __str__(self) -> str:
        return f"{self.language} {self.kind} {self.searches[0]} >> {self.right}"


@dataclass
class RetrievalSet:
    """The documents of a set by name, and its questions."""

    documents: dict[str, str] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)


def read_set(name: str) -> RetrievalSet:
    found = RetrievalSet()
    for path in sorted((FOLDER / name).glob("*.txt")):
        for part in re.split(r"(?m)^@ ", path.read_text())[1:]:
            document, rest = part.split("\n", 1)
            found.documents[document], questions = rest.split("\n---\n")
            for line in questions.strip().split("\n"):
                asked, _, right = line[2:].partition(" >> ")
                found.questions.append(Question(path.stem, line[0], asked.split(" ; "), right or None))
    return found


@dataclass
class Outcome:
    """How many questions of each kind found the right passage. Of those without an answer, how many found nothing."""

    asked: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    first: Counter[str] = field(default_factory=Counter)  # with the right passage as the best one
    wrong: list[str] = field(default_factory=list)

    def share(self, kind: str) -> float:
        return self.right[kind] / self.asked[kind]

    def __str__(self) -> str:
        parts = [
            f"{name} {self.share(kind):.0%} of {self.asked[kind]} (first {self.first[kind]})"
            for kind, name in KINDS.items()
        ]
        return ", ".join(parts)


async def measure(service: Service) -> dict[str, Outcome]:
    """Search for the questions of all sets in one project, which has their documents and other texts, too."""
    sets = {name: read_set(name) for name in SETS}
    headers = await service.bearer()
    made = await service.client.post("/projects", json={"name": "retrieval"}, headers=headers)
    project_id = made.json()["id"]
    documents = {name: text for each in sets.values() for name, text in each.documents.items()}
    documents |= {f"other-{path.name}": path.read_text() for path in sorted(OTHER_TEXTS.glob("*.txt"))}
    for name, text in documents.items():
        await _add(service, headers, project_id, name, text)
    async with asyncio.timeout(120):
        while not await _all_ready(service, headers, project_id):
            await asyncio.sleep(0.02)
    searches = [search for each in sets.values() for question in each.questions for search in question.searches]
    found: dict[str, list[str]] = {}
    for first in range(0, len(searches), SEARCHES_IN_A_RUN):
        found |= await _found(service, headers, project_id, searches[first : first + SEARCHES_IN_A_RUN])
    return {name: _outcome(each.questions, found) for name, each in sets.items()}


def _outcome(questions: list[Question], found: dict[str, list[str]]) -> Outcome:
    outcome = Outcome()
    for question in questions:
        lists = [found[search] for search in question.searches]
        if question.right is None:
            is_right = is_first = not any(lists)
        else:
            is_right = any(question.right in text for texts in lists for text in texts)
            is_first = any(question.right in text for texts in lists for text in texts[:1])
        outcome.asked[question.kind] += 1
        outcome.right[question.kind] += is_right
        outcome.first[question.kind] += is_first
        if not is_right:
            outcome.wrong.append(str(question))
    return outcome


async def _add(service: Service, headers: dict[str, str], project_id: str, name: str, text: str) -> None:
    content = base64.b64encode(text.encode()).decode()
    made = await service.client.post("/artifacts", json={"name": name, "content_base64": content}, headers=headers)
    assert made.status_code == 201, made.text
    body = {"artifact_id": made.json()["id"]}
    added = await service.client.post(f"/projects/{project_id}/files", json=body, headers=headers)
    assert added.status_code == 201, added.text


async def _all_ready(service: Service, headers: dict[str, str], project_id: str) -> bool:
    files = (await service.client.get(f"/projects/{project_id}/files", headers=headers)).json()["data"]
    assert all(file["status"] != "failed" for file in files)
    return all(file["status"] == "ready" for file in files)


async def _found(
    service: Service, headers: dict[str, str], project_id: str, searches: list[str]
) -> dict[str, list[str]]:
    """Return the texts that `find_in_files` finds for each search, in one run of a scripted model."""
    service.clocks.advance(60)  # for the rate limit
    calls = [f"tool find_in_files {orjson.dumps({'query': search}).decode()}" for search in searches]
    goal = "\n---\n".join([*calls, "say done"])
    body: dict[str, Any] = {"goal": goal, "model": "builtin/script", "project_id": project_id, "max_steps": 20}
    answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    events = [orjson.loads(line[6:]) for line in answer.text.split("\n") if line.startswith("data: ")]
    results = [event for event in events if event["type"] == "tool_result"]
    assert len(results) == len(searches), events[-1]
    texts = [[one["text"] for one in result["result"]] if result["ok"] else [] for result in results]
    return dict(zip(searches, texts, strict=True))
