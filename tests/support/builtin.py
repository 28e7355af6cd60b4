"""The built-in models asked as the service asks them, and an agent run by hand."""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from svc.builtin.calculate import calculate
from svc.builtin.provider import chat
from svc.inference.answer.chunk_writer import ChunkWriter

NOW_SECONDS = 1_763_733_600.0  # Friday, 21 November 2025, 14:00 UTC


Body = dict[str, Any]


def said(*turns: str) -> list[Body]:
    """Return texts such as `user: hello` as messages."""
    return [{"role": role, "content": text} for role, text in (turn.split(": ", 1) for turn in turns)]


async def answers(model: str, messages: str | list[Body], **fields: Any) -> list[Body]:
    body = {"messages": [{"role": "user", "content": messages}] if isinstance(messages, str) else messages, **fields}
    async with contextlib.aclosing(chat(model, body, lambda: NOW_SECONDS)) as raw:
        return [answer async for answer in raw]


async def choice(model: str, messages: str | list[Body], **fields: Any) -> Body:
    return assembled(await answers(model, messages, **fields))[0]


async def text(model: str, messages: str | list[Body], **fields: Any) -> str:
    content: str = (await choice(model, messages, **fields))["message"]["content"]
    return content


def assembled(chunks: list[Body]) -> list[Body]:
    """The choices that a client gets, from chunks that are checked for their order: the usage last and alone."""
    assert [bool(chunk["choices"]) for chunk in chunks] == [True] * (len(chunks) - 1) + [False]
    assert all("usage" not in chunk for chunk in chunks[:-1])
    writer = ChunkWriter("chatcmpl-1", 0, "builtin", {})
    writer.whole = True
    for chunk in chunks:
        writer.feed(chunk)
    choices: list[Body] = writer.answer()[0]["choices"]
    return choices


def calls(message: Body) -> list[tuple[str, Any]]:
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls", [])
    ]


def tool(name: str, description: str = "", /, **properties: Body) -> Body:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


STRING = {"type": "string"}


AGENT_TOOLS = [
    tool("calculate", expression=STRING),
    tool("current_time"),
    tool("write_artifact", name=STRING, content=STRING),
    tool("read_artifact", id=STRING),
    tool("list_artifacts"),
    tool("generate_image", prompt=STRING),
    tool("generate_audio", input=STRING),
    tool("search_memory", query=STRING),
    tool("fetch_url", url=STRING),
]


WEATHER = tool(
    "get_weather", "Current temperature of a city", location=STRING, unit={"type": "string", "enum": ["c", "f"]}
)


def run_tool(name: str, arguments: Body) -> str:
    if name == "calculate":
        return json.dumps({"ok": True, "result": calculate(arguments["expression"])})
    return json.dumps({"ok": True, "result": "done"})


async def agent_run(
    goal: str, tools: list[Body] = AGENT_TOOLS, result: Callable[[str, Body], str] = run_tool, **fields: Any
) -> tuple[list[list[tuple[str, Any]]], str]:
    """The rounds of calls of an agent that runs every call, and the text that ends it."""
    messages, rounds = said(f"user: {goal}"), []
    for _ in range(12):
        message = (await choice("assistant", messages, tools=tools, **fields))["message"]
        messages.append(message)
        if "tool_calls" not in message:
            return rounds, message["content"]
        rounds.append(calls(message))
        for call, (name, arguments) in zip(message["tool_calls"], rounds[-1], strict=True):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result(name, arguments)})
    raise AssertionError("the run did not end")


async def longest_stall_seconds(work: Awaitable[Any]) -> float:
    """The longest time of CPU that the loop's thread spent without coming round, so that a busy machine counts for
    nothing.
    """
    longest = 0.0
    task = asyncio.ensure_future(work)
    before = time.thread_time()
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    await task
    return longest
