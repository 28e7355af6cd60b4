"""Reads a chat-completions body for the built-in models.

svc/inference/chat_shape.py has checked the types of its fields. Bounds and unsupported values are refused here, with
status 400.
"""

import ast
import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from svc.errors import UpstreamFault

# The most that one answer has to read, so that no request holds the event loop.
MAX_TEXT_BYTES = 4 << 20
MAX_TOOLS_BYTES = 1 << 20
MAX_FORMAT_BYTES = 1 << 18
MAX_MESSAGES = 10_000
MAX_TOOLS = 128
MAX_STOPS = 16
MAX_STOP_CHARACTERS = 256
BYTES_PER_TOKEN = 4
# Larger requests are read and planned in a thread.
_BIG_BYTES = 64 << 10
_BIG_MESSAGES = 500
# smolagents has no tool messages. It writes calls and their results as texts.
_TASK, _CALLS, _RESULTS = "New task:\n", "Calling tools:\n", "Observation:\n"
_MAX_WRITTEN_CALLS = 20_000
_NAMES_ALONE = r"(?:\[[^\[\]]*\] ?)*"


class EarlierCall(NamedTuple):
    id: str
    name: str
    arguments: str
    result: str | None = None


class _Message(NamedTuple):
    """A message as text. A user message without text that follows a tool's result has the role `attachment`."""

    role: str
    text: str
    calls: list[EarlierCall]
    call_id: str
    reminders: list[str]


class Tool(NamedTuple):
    name: str
    description: str
    parameters: dict[str, Any]

    @property
    def properties(self) -> dict[str, Any]:
        found = self.parameters.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def required(self) -> list[str]:
        found = self.parameters.get("required")
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


class BuiltinRequest(NamedTuple):
    """A request whose `goal` is the text of the last user message, empty if there is none.

    `earlier` are the texts of users and operators before it, and the reminders in it. `calls` and `turns` are the tool
    calls and the number of assistant messages after it. `tools` are those that may be called: none with
    `tool_choice: none`, one if it names a function.
    """

    goal: str
    earlier: list[str]
    calls: list[EarlierCall]
    turns: int
    tools: tuple[Tool, ...]
    must_call: bool
    parallel_calls: bool
    response_format: dict[str, Any] | None
    stream: bool
    choices: int
    max_tokens: int | None
    stops: tuple[str, ...]
    prompt_tokens: int


def refusal(message: str, param: str, code: str = "invalid_value") -> UpstreamFault:
    """Return the 400 with which a model server refuses a parameter."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return UpstreamFault("status", message, status=400, error=error)


def token_count(size_bytes: int) -> int:
    return -(-size_bytes // BYTES_PER_TOKEN)


def text_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def is_big(body: Mapping[str, Any]) -> bool:
    """Return whether it takes more than a few milliseconds to read `body` and to plan an answer."""
    contents = [message.get("content") or "" for message in body["messages"]]
    size = sum(
        len(one)
        if isinstance(one, str)
        else sum(len(part["text"]) + 1 if part["type"] == "text" else 1 for part in one)
        for one in contents
    )
    if len(contents) > _BIG_MESSAGES or size > _BIG_BYTES:  # to write 16 MiB as JSON takes 100 ms
        return True
    with contextlib.suppress(TypeError):  # `read_request` refuses what cannot be written as JSON
        return len(orjson.dumps([body.get("tools"), body.get("response_format")])) > _BIG_BYTES
    return False


def read_request(body: Mapping[str, Any]) -> BuiltinRequest:
    """Return a checked `body` as a BuiltinRequest; a null field counts as absent. Raises UpstreamFault (status 400)."""
    messages = _messages(body["messages"])
    called = (call.name + call.arguments for one in messages for call in one.calls)
    prompt_bytes = sum(map(text_bytes, (*called, *(one.text for one in messages))))
    if prompt_bytes > MAX_TEXT_BYTES:
        read = f"the built-in models read at most {MAX_TEXT_BYTES:,}."
        message = f"The messages hold {prompt_bytes:,} bytes of text; {read}"
        raise refusal(message, "messages", "context_length_exceeded")
    tools = _tools(body.get("tools") or [])
    prompt_bytes += _json_size(body["tools"], "tools", MAX_TOOLS_BYTES) if tools else 0
    usable, must_call = _choice(body.get("tool_choice"), tools)
    limits = [int(body.get(name) or 0) for name in ("max_tokens", "max_completion_tokens")]
    last_user = max((index for index, one in enumerate(messages) if one.role == "user"), default=len(messages))
    since = messages[last_user + 1 :]
    results = {one.call_id: one.text for one in since if one.role == "tool"}
    return BuiltinRequest(
        goal="".join(one.text for one in messages[last_user : last_user + 1]),
        earlier=[one.text for one in messages[:last_user] if one.role in ("user", "system", "developer")]
        + [reminder for one in messages[last_user : last_user + 1] for reminder in one.reminders],
        calls=[call._replace(result=results.get(call.id)) for one in since for call in one.calls],
        turns=sum(one.role == "assistant" for one in since),
        tools=usable,
        must_call=must_call,
        parallel_calls=body.get("parallel_tool_calls") is not False,
        response_format=_response_format(body.get("response_format") or {"type": "text"}),
        stream=body.get("stream") is True,
        choices=int(body.get("n") or 1),
        max_tokens=min((limit for limit in limits if limit > 0), default=None),
        stops=_stops(body.get("stop") or []),
        prompt_tokens=token_count(prompt_bytes),
    )


def _messages(messages: Sequence[dict[str, Any]]) -> list[_Message]:
    lists = (message.get(name) for message in messages for name in ("content", "tool_calls"))
    if len(messages) + sum(len(one) for one in lists if isinstance(one, list)) > MAX_MESSAGES:
        text = f"The built-in models read at most {MAX_MESSAGES:,} messages, content parts and tool calls."
        raise refusal(text, "messages", "context_length_exceeded")
    read: list[_Message] = []
    for message in messages:
        role, content = message["role"], message.get("content") or ""
        text = " ".join(filter(None, map(_part, content))) if isinstance(content, list) else content
        text, reminders = _apart_from_reminders(text) if role == "user" else (text, [])
        text = text.removeprefix(_TASK)
        if role == "user" and read and read[-1].role in ("tool", "attachment") and re.fullmatch(_NAMES_ALONE, text):
            role = "attachment"
        calls = message.get("tool_calls") or [] if role == "assistant" else []
        functions = [(call.get("id") or "", call["function"]) for call in calls if call.get("function")]
        made = [EarlierCall(id, one["name"], one.get("arguments") or "") for id, one in functions]
        if role == "assistant" and text.startswith(_CALLS):
            made += _written_calls(text.removeprefix(_CALLS))
        if role == "user" and text.startswith(_RESULTS) and read and read[-1].calls:
            read += _written_results(text.removeprefix(_RESULTS), read[-1].calls)
            continue
        read.append(_Message(role, text, made, message["tool_call_id"] if role == "tool" else "", reminders))
    return read


def _written_calls(text: str) -> list[EarlierCall]:
    """Return the calls in the form of a Python list of OpenAI's tool calls; none for another text."""
    try:
        calls = ast.literal_eval(text) if len(text) <= _MAX_WRITTEN_CALLS else []
        return [
            EarlierCall(str(call["id"]), str(one["name"]), orjson.dumps(one["arguments"]).decode())
            for call in calls
            if (one := call["function"])
        ]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        return []


def _written_results(text: str, calls: Sequence[EarlierCall]) -> list[_Message]:
    """Return the results of `calls`: a line for each, or else all of the text for each."""
    lines = text.splitlines()
    lines = lines if len(lines) == len(calls) else [text] * len(calls)
    return [_Message("tool", line, [], call.id, []) for call, line in zip(calls, lines, strict=True)]


def _apart_from_reminders(text: str) -> tuple[str, list[str]]:
    """Return a user message without its <system-reminder> blocks, and these: Claude Code adds them, and memory does."""
    *closed, rest = text.split("</system-reminder>")
    if not closed:
        return text, []
    parts = [one.partition("<system-reminder>") for one in closed]
    said = "".join(before for before, _, _ in parts) + rest.strip()
    return said.strip(), [inside for _, _, inside in parts if inside]


def _part(part: dict[str, Any]) -> str:
    """Return the text of a part, or the name of another kind: `[image]`, `[audio]`, `[file]`."""
    kind: str = part["type"]
    text = part.get(kind)
    if kind in ("text", "refusal") and isinstance(text, str):
        return text
    return f"[{kind.removeprefix('input_').removesuffix('_url')[:40]}]"


def _tools(tools: list[dict[str, Any]]) -> tuple[Tool, ...]:
    if len(tools) > MAX_TOOLS:
        raise refusal(f"'tools' must be a list of at most {MAX_TOOLS} tools.", "tools")
    for index, tool in enumerate(tools):
        if tool["type"] != "function":
            name = f"tools[{index}]"
            raise refusal(f"'{name}' must be of type 'function'; the built-in models know no other tools.", name)
    functions = [tool["function"] for tool in tools]
    return tuple(Tool(one["name"], one.get("description") or "", one.get("parameters") or {}) for one in functions)


def _choice(choice: Any, tools: tuple[Tool, ...]) -> tuple[tuple[Tool, ...], bool]:
    """Return the tools that may be called, and whether one of them must be."""
    if choice == "none":
        return (), False
    if choice == "required" and not tools:
        raise refusal("'tool_choice' is 'required' but there are no 'tools'.", "tool_choice")
    function = choice.get("function") if isinstance(choice, dict) else None
    if not isinstance(function, dict):
        return tools, choice == "required"
    named = tuple(tool for tool in tools if tool.name == function.get("name"))[:1]
    if not named:
        raise refusal("'tool_choice' names a function that is not among the 'tools'.", "tool_choice")
    return named, True


def _stops(value: str | list[str]) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else value
    if len(stops) > MAX_STOPS or any(len(stop) > MAX_STOP_CHARACTERS for stop in stops):
        most = f"at most {MAX_STOPS} strings of at most {MAX_STOP_CHARACTERS} characters"
        raise refusal(f"'stop' may have {most}.", "stop")
    return tuple(filter(None, dict.fromkeys(stops)))


def _response_format(value: dict[str, Any]) -> dict[str, Any] | None:
    """Return the JSON schema that the answer's text must satisfy, or None for plain text."""
    if value.get("type") == "text":
        return None
    wrapper = value.get("json_schema")
    schema = wrapper.get("schema") if isinstance(wrapper, dict) else None
    _json_size(schema, "response_format", MAX_FORMAT_BYTES)
    return schema if schema and isinstance(schema, dict) else {"type": "object"}


def _json_size(value: Any, name: str, highest: int) -> int:
    try:
        size = len(orjson.dumps(value))
    except TypeError:  # orjson writes at most 254 levels, 64-bit integers and no lone surrogates
        raise refusal(f"'{name}' holds a value that cannot be written as JSON here.", name) from None
    if size > highest:
        raise refusal(f"'{name}' is too large: {size:,} bytes; the built-in models read at most {highest:,}.", name)
    return size
