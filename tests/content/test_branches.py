"""A replaced message is kept as a version. Lists, search and memory use the current branch, everything else all
versions.
"""

import asyncio
import contextlib
import io
import json
import re
import sqlite3
import time
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc.content import branches, conversations, history, word_runs
from svc.schema import connect, newest_schema
from tests.conftest import Service
from tests.support.databases import prepare
from tests.support.server import ROOT

CONVERSATION, REPLACES = "x-service-conversation", "x-service-replaces"


@dataclass
class Talk:
    """A conversation with the model that repeats the question."""

    service: Service
    headers: dict[str, str]
    id: str = ""
    page: int = 100

    async def ask(
        self, text: str, replaces: str | None = None, model: str = "echo", status: int = 200
    ) -> httpx.Response:
        headers = {
            **self.headers,
            **({CONVERSATION: self.id} if self.id else {}),
            **({REPLACES: replaces} if replaces else {}),
        }
        body = {"model": f"builtin/{model}", "messages": [{"role": "user", "content": text}]}
        answer = await self.service.client.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == status, answer.text
        self.id = answer.headers.get(CONVERSATION, self.id)
        return answer

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self.service.client.get(path, headers=self.headers, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def messages(self) -> list[dict[str, Any]]:
        """The current branch, oldest first."""
        listed: list[dict[str, Any]] = []
        after: dict[str, str] = {}
        while True:
            page = await self.get(f"/conversations/{self.id}/messages", limit=self.page, **after)
            listed += page["data"]
            if not page["has_more"]:
                return listed[::-1]
            after = {"after": listed[-1]["id"]}

    async def switch(self, message_id: str | None) -> httpx.Response:
        body = {"current_message_id": message_id}
        return await self.service.client.patch(f"/conversations/{self.id}", json=body, headers=self.headers)

    async def texts(self) -> str:
        return " ".join(message["content"] for message in await self.messages())

    async def found(self, words: str) -> list[str]:
        return [one["id"] for one in (await self.get("/conversations", q=words))["data"]]


@pytest.fixture
async def talk(service: Service) -> Talk:
    talk = Talk(service, await service.bearer())
    for text in ("one", "two", "three"):
        await talk.ask(text)
    return talk


async def test_edited_question_is_a_new_version_of_it(talk: Talk) -> None:
    before = await talk.messages()
    await talk.ask("zwei", before[2]["id"])
    after = await talk.messages()
    assert [message["content"] for message in after] == ["one", "one", "zwei", "zwei"]
    assert after[2]["versions"] == [before[2]["id"], after[2]["id"]]
    assert [after[number]["versions"] for number in (0, 1, 3)] == [[], [], []]
    await talk.ask("drei")
    assert await talk.texts() == "one one zwei zwei drei drei"


async def test_regenerated_answer_is_a_new_version_and_its_question_is_not_stored_again(talk: Talk) -> None:
    before = await talk.messages()
    for _ in range(2):
        await talk.ask("again", (await talk.messages())[3]["id"])
    after = await talk.messages()
    assert [message["content"] for message in after] == ["one", "one", "two", "again"]
    assert [message["id"] for message in after[:3]] == [message["id"] for message in before[:3]]
    first, _, newest = after[3]["versions"]
    assert (first, newest) == (before[3]["id"], after[3]["id"])


async def test_first_question_can_be_replaced(talk: Talk) -> None:
    first = (await talk.messages())[0]["id"]
    await talk.ask("eins", first)
    assert await talk.texts() == "eins eins" and (await talk.messages())[0]["versions"][0] == first


async def test_search_and_memory_use_the_current_branch(talk: Talk) -> None:
    await talk.ask("My zebra is called Zora.")
    await talk.ask("My zebra is called Zelda.", (await talk.messages())[6]["id"])
    assert await talk.found("zora") == [] and await talk.found("zelda") == [talk.id]
    other = Talk(talk.service, talk.headers)
    await other.ask("What is the zebra called?")
    (_, answer) = await other.messages()
    assert {passage["text"] for passage in answer["answer"]["memory"]} == {"My zebra is called Zelda."}


async def test_switch_shows_the_newest_message_after_the_named_one(talk: Talk) -> None:
    before = await talk.messages()
    await talk.ask("zwei", before[2]["id"])
    edited = (await talk.messages())[2]["id"]
    assert (await talk.switch(before[2]["id"])).status_code == 200
    assert await talk.messages() == [{**one, "versions": [one["id"], edited] * (one == before[2])} for one in before]
    await talk.ask("four")
    assert (await talk.switch(edited)).status_code == 200 and await talk.texts() == "one one zwei zwei"
    assert (await talk.switch(before[3]["id"])).status_code == 200
    assert await talk.texts() == "one one two two three three four four"


async def test_only_a_message_of_the_conversation_becomes_current(talk: Talk) -> None:
    other = Talk(talk.service, talk.headers)
    await other.ask("other")
    for message_id in ((await other.messages())[0]["id"], "msg_none", ""):
        answer = await talk.switch(message_id)
        assert (answer.status_code, answer.json()["error"]["param"]) == (404, "current_message_id")
    assert (await talk.switch(None)).status_code == 400
    made = await talk.service.client.post(
        "/conversations", json={"current_message_id": "msg_none"}, headers=talk.headers
    )
    assert made.status_code == 201


async def test_branch_is_not_switched_during_an_answer(talk: Talk) -> None:
    first = (await talk.messages())[0]["id"]
    answer = asyncio.create_task(talk.ask("wait 300\nsay done", model="script"))
    while not (await talk.get(f"/conversations/{talk.id}"))["answering"]:
        await asyncio.sleep(0.01)
    refused = await talk.switch(first)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "already_active")
    assert (await talk.switch("msg_none")).status_code == 404
    await answer
    assert (await talk.switch(first)).status_code == 200 and (await talk.texts()).endswith("done")


async def test_failed_answer_is_a_version_and_the_earlier_one_can_be_shown_again(talk: Talk) -> None:
    before = await talk.messages()
    await talk.ask("fail 500 broken", before[5]["id"], model="script", status=502)
    assert [one["status"] for one in await talk.messages()] == ["complete"] * 5 + ["failed"]
    assert (await talk.switch(before[5]["id"])).status_code == 200
    assert [one["id"] for one in await talk.messages()] == [one["id"] for one in before]


async def test_refused_question_adds_no_version(talk: Talk) -> None:
    before = await talk.messages()
    await talk.ask("paid", before[5]["id"], model="assistant-paid", status=402)
    assert await talk.messages() == before


async def test_search_and_memory_follow_a_switch(talk: Talk) -> None:
    await talk.ask("My zebra is called Zora.")
    zora = (await talk.messages())[6]["id"]
    await talk.ask("My zebra is called Zelda.", zora)
    for _ in range(2):
        await talk.switch(zora)
        assert await talk.found("zora") == [talk.id] and await talk.found("zelda") == []
        await talk.switch((await talk.messages())[6]["versions"][1])
        assert await talk.found("zora") == [] and await talk.found("zelda") == [talk.id]
        await talk.service.state["db"].write(purge, talk.id)


def nested_versions(tx: sqlite3.Connection, conversation_id: str, count: int, text: str) -> None:
    """Replace the newest message, and then each new version's successor."""
    (account_id,) = tx.execute("SELECT account_id FROM conversations").fetchone()
    add = partial(history.add_message, tx, account_id, conversation_id=conversation_id, role="assistant", now_seconds=1)
    (newest,) = history.CURRENT.page(tx, account_id, 1, None, conversation_id=conversation_id).items
    for _ in range(count):
        add(content=text, replaces=newest.id)
        newest = add(content=text)


async def test_conversation_has_at_most_1000_versions_and_is_switched_in_8_ms(talk: Talk) -> None:
    db, (first, *_, newest) = talk.service.state["db"], await talk.messages()
    await db.write(nested_versions, talk.id, 1_000, "deep")
    before = await talk.messages()
    refused = await talk.ask("one more", first["id"], status=413)
    assert refused.json()["error"]["code"] == "quota_exceeded" and "1,000" in refused.json()["error"]["message"]
    assert await talk.messages() == before and len(before) == 1006
    await talk.ask("one more")

    def switch(tx: sqlite3.Connection, message_id: str) -> float:
        began = time.thread_time()
        account_id = tx.execute("SELECT account_id FROM conversations").fetchone()[0]
        conversations.change_conversation(tx, account_id, talk.id, {"current_message_id": message_id}, 1)
        return time.thread_time() - began

    durations = [await db.write(switch, message["id"]) for message in (newest, first) * 4]
    assert min(durations[::2]) < 0.008 and min(durations[1::2]) < 0.008, durations
    assert len(await talk.messages()) == 1008


async def test_replaced_messages_do_not_displace_others(talk: Talk) -> None:
    await talk.ask("My zebra is called Zora.")
    newest = (await talk.messages())[-1]["id"]
    await talk.ask("Nothing of that kind.")
    await talk.service.state["db"].write(nested_versions, talk.id, 400, "zebra")
    assert (await talk.switch(newest)).status_code == 200
    await talk.ask("Nothing at all.", (await talk.messages())[8]["id"])
    other = Talk(talk.service, talk.headers)
    await other.ask("What is the zebra called?")
    assert [passage["text"] for passage in (await other.messages())[-1]["answer"]["memory"]] == [
        "My zebra is called Zora."
    ]


async def test_conversation_with_versions_is_deleted_whole(talk: Talk) -> None:
    db = talk.service.state["db"]
    before = await db.read(lambda conn: conn.execute("SELECT bytes FROM stored").fetchone()[0])
    for message in await talk.messages():
        await talk.ask("again", message["id"])
    assert await db.read(lambda conn: conn.execute("SELECT bytes FROM stored").fetchone()[0]) > before
    assert (await talk.service.client.delete(f"/conversations/{talk.id}", headers=talk.headers)).status_code == 204
    tables = ("messages", "branches", "conversations", "answers")
    assert (
        await db.read(lambda conn: [conn.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables])
        == [0] * 4
    )
    assert await db.read(lambda conn: conn.execute("SELECT bytes FROM stored").fetchone()[0]) == 0


async def test_account_export_has_all_versions(talk: Talk) -> None:
    await talk.ask("drei", replaced := (await talk.messages())[4]["id"])
    exported = await talk.service.client.get("/user/export", headers=talk.headers)
    with zipfile.ZipFile(io.BytesIO(exported.content)) as archive:
        messages, branches = (
            [json.loads(line) for line in archive.open(f"{kind}.jsonl")] for kind in ("messages", "branches")
        )
    assert [(one["content"], one["branch"]) for one in messages[4:]] == [
        ("three", 0),
        ("three", 0),
        ("drei", 1),
        ("drei", 1),
    ]
    first = {
        "conversation_id": talk.id,
        "branch": 0,
        "parent": None,
        "first_id": None,
        "replaces_id": None,
        "current": False,
    }
    new = {"current": True, "branch": 1, "parent": 0, "first_id": messages[6]["id"], "replaces_id": replaced}
    assert branches == [first, first | new]


async def test_markdown_has_the_current_branch_and_then_the_other_versions(talk: Talk) -> None:
    await talk.ask("drei", (await talk.messages())[4]["id"])
    exported = await talk.service.client.get(f"/conversations/{talk.id}/export", headers=talk.headers)
    at, echo = "2026-09-21T14:13:20.000Z", "Assistant, builtin/echo"

    def pair(text: str, further: str = "") -> str:
        return f"\n## User, {at}{further}\n\n{text}\n\n## {echo}, {at}\n\n{text}\n"

    current = pair("one") + pair("two") + pair("drei", ", version 2 of 2")
    assert exported.text == f"# one\n{current}\n# Other versions\n{pair('three', ', version 1 of 2')}"


async def test_conversation_of_an_older_version_keeps_its_order(tmp_path: Path) -> None:
    script, migrations = newest_schema()
    released = ROOT / "tests" / "schemas" / "5.sql"
    prepare(tmp_path / "service.db", released.read_text(), [])
    with contextlib.closing(connect(tmp_path / "service.db")) as conn:
        conn.execute("INSERT INTO accounts (id, email, email_key, created_at) VALUES ('a', 'a@x', 'a@x', 1)")
        for name in ("y", "z"):
            conn.execute(
                "INSERT INTO conversations (id, account_id, created_at, updated_at) VALUES (?, 'a', 1, 1)", (name,)
            )
        for number in range(8):
            row = (f"m{number}", "yz"[number % 2], f"text {number}")
            columns = "id, conversation_id, content, account_id, role, created_at"
            conn.execute(f"INSERT INTO messages ({columns}) VALUES (?, ?, ?, 'a', 'user', 1)", row)
    prepare(tmp_path / "service.db", script, migrations)
    with contextlib.closing(connect(tmp_path / "service.db")) as conn:

        def shown(conversation: str) -> list[str]:
            return [
                message.id for message in history.CURRENT.page(conn, "a", 100, None, conversation_id=conversation).items
            ][::-1]

        assert (shown("y"), shown("z")) == (["m0", "m2", "m4", "m6"], ["m1", "m3", "m5", "m7"])
        add_message = partial(history.add_message, conn, "a", role="user", content="new", now_seconds=1)
        new = add_message(conversation_id="y", replaces="m4").id
        assert (shown("y"), shown("z")) == (["m0", "m2", new], ["m1", "m3", "m5", "m7"])
        assert branches.versions_of(conn, "a", "y") == {"m4": ["m4", new], new: ["m4", new]}


# --- any order of requests


class Node(NamedTuple):
    """A message of the model of a conversation. Nodes compare by `number`, which is the order of their creation."""

    number: int
    id: str
    role: str
    text: str
    parent: "Node | None"

    def path(self) -> "list[Node]":
        return [*(self.parent.path() if self.parent else ()), self]


class Tree:
    """A conversation as a simple tree, to which each request is applied, too."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.leaf: Node | None = None

    def path(self) -> list[Node]:
        return self.leaf.path() if self.leaf else []

    def versions(self, node: Node) -> list[str]:
        same = [other.id for other in self.nodes if other.parent is node.parent]
        return same if len(same) > 1 else []

    def show(self, node: Node) -> None:
        self.leaf = max(other for other in self.nodes if node in other.path())


STEPS = st.tuples(
    st.sampled_from(["ask", "ask", "edit", "regenerate", "switch", "delete", "purge"]), st.integers(0, 999)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=3, max_size=20))
async def test_any_order_of_requests_is_like_in_a_tree(service: Service, steps: list[tuple[str, int]]) -> None:
    headers = await service.bearer()
    talk, tree, count = Talk(service, headers, await new_conversation(service, headers), page=7), Tree(), 0
    for step, choice in steps:
        role = {"edit": "user", "regenerate": "assistant"}.get(step, "")
        named = [node for node in tree.nodes if role in (node.role, "")]
        if step == "delete":
            assert (await service.client.delete(f"/conversations/{talk.id}", headers=headers)).status_code == 204
            talk.id, tree = await new_conversation(service, headers), Tree()
        elif step == "purge":
            await service.state["db"].write(purge, talk.id)
        elif step == "switch" and named:
            node = named[choice % len(named)]
            assert (await talk.switch(node.id)).status_code == 200
            tree.show(node)
        elif step != "switch":
            replaced = named[choice % len(named)] if named and step != "ask" else None
            service.clocks.ticks += 60  # of the rate limit, not of the session
            await talk.ask(f"w{count}x", replaced.id if replaced else None)
            shown = await talk.messages()
            parent = replaced.parent if replaced else tree.leaf
            for message in shown[-1 if step == "regenerate" and replaced else -2 :]:
                parent = Node(len(tree.nodes), message["id"], message["role"], f"w{count}x", parent)
                tree.nodes.append(parent)
            tree.leaf, count = parent, count + 1
        expected = [(node.id, node.role, node.text, tree.versions(node)) for node in tree.path()]
        shown = await talk.messages()
        assert [(one["id"], one["role"], one["content"], one["versions"]) for one in shown] == expected
    current = {node.text for node in tree.path()}
    for text in {node.text for node in tree.nodes}:
        assert await talk.found(f"{text} ") == [talk.id] * (text in current)
    exported = (await service.client.get(f"/conversations/{talk.id}/export", headers=headers)).text
    assert sorted(re.findall("^w[0-9]+x$", exported, re.MULTILINE)) == sorted(node.text for node in tree.nodes)


def purge(tx: sqlite3.Connection, conversation_id: str) -> None:
    """Remove the words of deleted texts from the index."""
    (account_id,) = tx.execute("SELECT account_id FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
    word_runs._make_run(tx, account_id)
    tx.execute("INSERT OR IGNORE INTO word_purges (account_id, due_at, deleted_bytes) VALUES (?, 0, 0)", (account_id,))
    while word_runs.tidy_some(tx):
        pass


async def new_conversation(service: Service, headers: dict[str, str]) -> str:
    made = await service.client.post("/conversations", json={"title": "Any"}, headers=headers)
    return str(made.json()["id"])
