"""What an account of the contact sheets has, in one language: chats of every kind, files, runs, keys and money."""

import base64
import json
import time
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import orjson

from svc.billing import usage, wallet
from svc.content import answers, conversations, history
from svc.content.answers import AnswerDetails
from svc.ids import new_id
from tests.support.browser import Visitor, database, new_visitor
from tests.support.server import RunningServer
from tests.support.tool_server import Asked, http

DAY_SECONDS = 86_400
AGES_DAYS = (0, 0, 1, 3, 5, 20, 60, 90)  # of the conversations, in the order of their titles
FORMULA = "$$A = P \\cdot (1 + r)^n$$"
CODE = "```python\nfor years in (10, 20, 30):\n    print(years, round(10_000 * 1.04**years))\n```"
ROWS = [(10, 12_190, 14_802), (20, 14_859, 21_911), (30, 18_114, 32_434)]
DRAWING = """```html
<!doctype html><title>84</title><body style="font: 20px sans-serif; padding: 2rem"><h1>12 &times; 7 = 84</h1>
<p>10 000 &times; 1.04<sup>18</sup> &asymp; 20 258</p></body>
```"""
WIKI = "https://en.wikipedia.org/wiki/Compound_interest"
LONG = 40  # messages of the chat that its model does not read whole


@cache
def contents() -> dict[str, dict[str, Any]]:
    """The texts of sheets.toml by language."""
    return tomllib.loads(Path(__file__).with_name("sheets.toml").read_text())


@dataclass
class Account:
    """An account with content in `language`. `ids` are those of its objects, by name."""

    language: str
    visitor: Visitor
    administrator: Visitor  # of the service
    ids: dict[str, str]

    @property
    def texts(self) -> dict[str, Any]:
        return contents()[self.language]


def answer_in(texts: dict[str, Any]) -> str:
    head = f"| {texts['columns']} |\n|--:|--:|--:|\n"
    separator = texts["question"].partition("000")[0][-1]  # of the thousands, as in 10,000
    rows = [" | ".join(f"{value:,}" for value in row).replace(",", separator) for row in ROWS]
    table = head + "\n".join(f"| {row} |" for row in rows)
    outro = texts["outro"].format(quotation=texts["advice"])
    return "\n\n".join([texts["intro"], FORMULA, table, CODE, outro, DRAWING])


# --- the model server


def _turns(texts: dict[str, Any], asked: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """The tool calls of a goal, one in a turn, and the answer."""
    if asked != texts["goal"]:
        return [], answer_in(texts) if texts["question"] in asked else texts["summary"]
    note = {"name": texts["note"], "content": texts["result"]}
    return [("calculate", {"expression": "12*(3+4)"}), ("write_artifact", note)], texts["result"]


def model(asked: Asked) -> bytes:
    """Answer in the language of the question: the answer of the sheets, steps of the goal, or a summary."""
    messages = asked.body["messages"]
    said = [str(message["content"]) for message in messages if message["role"] == "user"]
    names = ("question", "goal", "summary")
    found = [texts for texts in contents().values() if any(texts[name] in one for name in names for one in said)]
    calls, text = _turns(found[0], said[-1]) if found else ([], "84")
    turn = sum(message["role"] == "assistant" for message in messages)
    delta: dict[str, Any] = {"content": text}
    if turn < len(calls):
        name, arguments = calls[turn]
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        delta = {"tool_calls": [{"index": 0, "id": f"call_{turn}", "type": "function", "function": function}]}
    usage = {"prompt_tokens": 412, "completion_tokens": 186, "total_tokens": 598}
    chunks = [{"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": "stop"}]
    if "tool_calls" in delta:
        chunks[1]["finish_reason"] = "tool_calls"
    events = [json.dumps({"choices": [{"index": 0, **chunk}], "usage": usage}) for chunk in chunks]
    if not asked.body.get("stream"):
        whole = {
            "choices": [{"index": 0, "message": {"role": "assistant", **delta}, "finish_reason": "stop"}],
            "usage": usage,
        }
        return http(json.dumps(whole).encode())
    body = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
    return http(body.encode(), content_type="text/event-stream")


# --- the account


def fill(server: RunningServer, administrator: Visitor, language: str) -> Account:
    """Sign up and fill an account."""
    texts = contents()[language]
    visitor = new_visitor(server, f"{language}@example.com", dollars=25, model="lab/aurora")
    account = Account(language, visitor, administrator, {})
    with httpx.Client(
        base_url=server.base_url, verify=server.tls or False, headers=visitor.headers, trust_env=False, timeout=60
    ) as client:
        _settings(client, texts)
        _things(client, account)
        _project(client, account)
        _chats(server, account)
        _long_chat(server, client, account)
        _money(server, client, account)
    _name(account)
    return account


def _sent(client: httpx.Client, path: str, body: Any, method: str = "POST") -> Any:
    answer = client.request(method, path, json=body)
    assert answer.status_code < 300, (path, answer.text)
    return answer.json() if answer.content else None


def _settings(client: httpx.Client, texts: dict[str, Any]) -> None:
    _sent(client, "/user/me", {"name": texts["name"]}, "PATCH")
    _sent(client, "/user/settings", {"instructions": texts["instructions"]}, "PATCH")


def _name(account: Account) -> None:
    """Put the name into the session that the browser keeps."""
    for item in account.visitor.storage["origins"][0]["localStorage"]:
        if item["name"] == "svc.session":
            session = json.loads(item["value"])
            session["user"]["name"] = account.texts["name"]
            item["value"] = json.dumps(session)


def _things(client: httpx.Client, account: Account) -> None:
    texts, ids = account.texts, account.ids
    ids["key"] = _sent(client, "/user/api-keys", {"name": texts["key"], "monthly_limit_micros": 5_000_000})["id"]
    _sent(client, "/user/api-keys", {"name": "ci"})
    _sent(client, "/prompts", {"name": texts["prompt"], "text": texts["prompt_text"]})
    _sent(client, "/prompts", {"name": texts["titles"][2], "text": texts["question"]})
    provider = {"name": "home", "base_url": "http://127.0.0.1:9/v1", "models": ["qwen3", "gemma3"]}
    _sent(client, "/user/providers", {**provider, "api_key": "sk-1234567890abcd"})
    drawn = {"prompt": texts["picture"], "model": "builtin/paint", "size": "256x256", "n": 2, "response_format": "url"}
    _sent(client, "/v1/images/generations", drawn)
    asked = {"goal": texts["goal"], "model": "lab/aurora", "tools": ["calculate", "write_artifact"]}
    answer = client.post("/v1/agents/run", json=asked)
    assert answer.status_code == 200, answer.text
    ids["run"] = client.get("/v1/agents/runs").json()["data"][0]["id"]
    support = {"subject": texts["subject"], "message": texts["message"]}
    ids["support"] = _sent(client, "/support/conversations", support)["id"]


def _project(client: httpx.Client, account: Account) -> None:
    texts, ids = account.texts, account.ids
    ids["project"] = _sent(client, "/projects", {"name": texts["project"], "instructions": texts["instructions"]})["id"]
    text = f"# {texts['project']}\n\n{texts['advice']}.\n\n{texts['summary']}\n"
    for name, content, kind in (
        (texts["file"], text.encode(), "text/markdown"),
        ("scan.bin", bytes(range(256)), "x/y"),
    ):
        body = {"name": name, "content_base64": base64.b64encode(content).decode(), "content_type": kind}
        ids[name] = _sent(client, "/artifacts", body)["id"]
        _sent(client, f"/projects/{ids['project']}/files", {"artifact_id": ids[name]})
    files: list[dict[str, Any]] = [{"status": "reading"}]
    while any(file["status"] == "reading" for file in files):
        files = client.get(f"/projects/{ids['project']}/files").json()["data"]


def _sources(account: Account) -> list[dict[str, Any]]:
    texts, name = account.texts, account.texts["file"]
    web = {"number": 1, "kind": "web", "url": WIKI, "title": texts["titles"][0]}
    passage = {"page": None, "from_line": 3, "to_line": 3, "text": f"{texts['advice']}."}
    return [web, {"number": 2, "kind": "file", "file": account.ids[name], "name": name, **passage}]


def _chats(server: RunningServer, account: Account) -> None:
    texts, visitor, ids, now = account.texts, account.visitor, account.ids, time.time()
    with database(server) as tx:
        for number, title in reversed(list(enumerate(texts["titles"]))):
            at = now - AGES_DAYS[number] * DAY_SECONDS - number
            fields = {"title": title, "pinned": number == 2, "archived": number == 7}
            project = {"project_id": ids["project"]} if number == 0 else {}
            kept = conversations.add_conversation(tx, visitor.id, at, **fields, **project)
            ids[f"chat {number}"] = kept.id
            content = answer_in(texts) if number == 0 else texts["summary"]
            _said(tx, account, kept.id, texts["question"] if number == 0 else title, content, at)
    _detailed(server, account)


def _said(tx: Any, account: Account, chat: str, question: str, content: str, at: float) -> None:
    common = {"conversation_id": chat, "now_seconds": at}
    history.add_message(tx, account.visitor.id, role="user", content=question, **common)
    made = history.add_message(tx, account.visitor.id, role="assistant", content=content, model="lab/aurora", **common)
    account.ids[f"answer of {chat}"] = made.id
    answers.add(tx, account.visitor.id, made.id, [])


def _call(name: str, arguments: dict[str, Any], result: Any = None) -> list[dict[str, Any]]:
    call_id = f"call_{name}"
    called = {"tool_call": {"id": call_id, "name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}}
    return (
        [called]
        if result is None
        else [called, {"tool_result": {"id": call_id, "name": name, "ok": True, "result": result}}]
    )


def _detailed(server: RunningServer, account: Account) -> None:
    """The first answer has steps and sources; the second waits for an approval."""
    texts, ids = account.texts, account.ids
    steps = [
        *_call("search_web", {"query": texts["titles"][0]}, {"results": []}),
        *_call("calculate", {"expression": "10000*1.04**18"}, 20258.17),
    ]
    waits = _call("wiki__delete_page", {"title": texts["titles"][6], "lines": [1, 2]})
    waiting = {"request": {}, "calls": [["call_wiki__delete_page", "x", "wiki__delete_page", "{}"]], "rounds": 1}
    common = {
        "input_tokens": 1_412,
        "output_tokens": 386,
        "cost_micros": 7_834,
        "duration_ms": 8_200,
        "finish_reason": "stop",
    }
    details = [
        AnswerDetails(
            steps=_text(steps), sources=_text(_sources(account)), cached_input_tokens=700, saved_micros=1_200, **common
        ),
        AnswerDetails(steps=_text(waits), waiting=_text(waiting), **common),
    ]
    with database(server) as tx:
        for number, one in enumerate(details):
            answers.update(tx, account.visitor.id, ids[f"answer of {ids[f'chat {number}']}"], one)


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


def _long_chat(server: RunningServer, client: httpx.Client, account: Account) -> None:
    """A chat of which its model reads the end, with a summary."""
    texts, ids = account.texts, account.ids
    chat = ids["long"] = ids["chat 3"]
    with database(server) as tx:
        made = []
        for number in range(LONG):
            role, model_id = ("assistant", "lab/pocket") if number % 2 else ("user", None)
            fields = {"role": role, "model": model_id, "now_seconds": time.time() - 9_000 + number}
            made.append(
                history.add_message(tx, account.visitor.id, conversation_id=chat, content=texts["summary"], **fields)
            )
        answers.add(tx, account.visitor.id, made[-1].id, [])
        answers.update(tx, account.visitor.id, made[-1].id, AnswerDetails(first_sent_message_id=made[-6].id))
    _sent(client, f"/conversations/{chat}/summarize", None)


def _spend(tx: Any, account: Account, micros: int, now: float, key_id: str | None = None) -> None:
    hold_id = new_id("hold")
    wallet.hold(tx, account.visitor.id, hold_id, micros, now, key_id)
    call = {"model": "lab/aurora", "input_tokens": 12_412, "output_tokens": 3_186, "request_id": "r", "key_id": key_id}
    wallet.settle(tx, account.visitor.id, hold_id, micros, **call, now_seconds=now)


def _money(server: RunningServer, client: httpx.Client, account: Account) -> None:
    """Spending of some weeks, and shares."""
    now = time.time()
    with database(server) as tx:
        for ago in (1, 2, 5, 6, 9, 13, 20, 27):
            day = time.strftime("%Y-%m-%d", time.gmtime(now - ago * DAY_SECONDS))
            for model_id, micros in (("lab/aurora", 90_000 + 31_000 * ago), ("lab/boreal", 60_000)):
                key_id = account.ids["key"] if ago % 2 else None
                place = (account.visitor.id, key_id, model_id, day, "")
                usage.add_call(tx, place, 12_412, 3_186, micros, 9)
        _spend(tx, account, 1_665_000, now)
        _spend(tx, account, 2_455_000, now, account.ids["key"])
    shared = _sent(client, f"/conversations/{account.ids['chat 0']}/shares", {"expires_days": 30})
    account.ids["shared"] = shared["url"].partition("#")[2]
    _sent(client, f"/conversations/{account.ids['chat 4']}/shares", {"expires_days": None})
    _sent(client, "/user/settings", {"monthly_limit_micros": 5_000_000}, "PATCH")
