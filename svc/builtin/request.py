"""Reads a chat-completions body into what the built-in models work on, or refuses it with a 400."""

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from svc.errors import UpstreamFault

# The context of the built-in models: what one answer may have to look at, so that no request holds the event loop.
MAX_TEXT_BYTES = 4 << 20
MAX_TOOLS_BYTES = 1 << 20
MAX_FORMAT_BYTES = 1 << 18
MAX_MESSAGES = 10_000
MAX_TOOLS = 128
MAX_CHOICES = 128
MAX_STOPS = 16
MAX_STOP_CHARACTERS = 256
BYTES_PER_TOKEN = 4
# What is longer is read and planned in a thread, so that the event loop does not wait for it.
_BIG_BYTES = 64 << 10
_BIG_MESSAGES = 500


class EarlierCall(NamedTuple):
    """A tool call in the messages, and its result if there is one."""

    id: str
    name: str
    arguments: str
    result: str | None = None


class PromptMessage(NamedTuple):
    role: str
    text: str
    calls: tuple[EarlierCall, ...] = ()
    call_id: str = ""


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


class Request(NamedTuple):
    """`tools` are those that may be called now: none under `tool_choice: none`, one where it names a function."""

    messages: tuple[PromptMessage, ...]
    tools: tuple[Tool, ...]
    must_call: bool
    parallel_calls: bool
    response_format: dict[str, Any] | None
    stream: bool
    choices: int
    max_tokens: int | None
    stops: tuple[str, ...]
    prompt_tokens: int

    @property
    def before(self) -> tuple[PromptMessage, ...]:
        """The messages before the last user message."""
        return self.messages[: self._goal_index]

    @property
    def goal(self) -> str:
        """The text of the last user message without the reminders that Claude Code adds; empty if there is none."""
        text = self.messages[self._goal_index].text if self._goal_index < len(self.messages) else ""
        *closed, rest = text.split("</system-reminder>")
        return "".join(part.partition("<system-reminder>")[0] for part in closed) + rest

    @property
    def since(self) -> tuple[PromptMessage, ...]:
        """The messages after the last user message: what an agent has done about it so far."""
        return self.messages[self._goal_index + 1 :]

    @property
    def _goal_index(self) -> int:
        users = (index for index in range(len(self.messages) - 1, -1, -1) if self.messages[index].role == "user")
        return next(users, len(self.messages))


def refusal(message: str, param: str | None, code: str = "invalid_value") -> UpstreamFault:
    """The 400 with which a model server refuses a parameter."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return UpstreamFault("status", message, status=400, error=error)


def token_count(size_bytes: int) -> int:
    """The one rule by which the built-in models count: a token per 4 bytes of UTF-8, rounded up."""
    return -(-size_bytes // BYTES_PER_TOKEN)


def text_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def is_big(body: Mapping[str, Any]) -> bool:
    """Whether it takes more than a few milliseconds to read `body` and to plan an answer to it."""
    messages = body.get("messages")
    if isinstance(messages, list):
        if len(messages) > _BIG_MESSAGES:
            return True
        contents = [message.get("content") for message in messages if isinstance(message, dict)]
        if sum(len(content) for content in contents if isinstance(content, str | list)) > _BIG_BYTES:
            return True
    # What cannot be written as JSON is refused by `read_request`.
    with contextlib.suppress(TypeError):
        return len(orjson.dumps([body.get("tools"), body.get("response_format")])) > _BIG_BYTES
    return False


def read_request(body: Mapping[str, Any]) -> Request:
    """`body` as a Request; fields that are null count as absent. Raises UpstreamFault (status 400) for what is malformed."""
    messages = _messages(body.get("messages"))
    tools = _tools(body.get("tools"))
    prompt_bytes = sum(
        text_bytes(message.text) + sum(text_bytes(c.name + c.arguments) for c in message.calls) for message in messages
    )
    if prompt_bytes > MAX_TEXT_BYTES:
        message = f"The messages hold {prompt_bytes:,} bytes of text; the built-in models read at most {MAX_TEXT_BYTES:,}."
        raise refusal(message, "messages", "context_length_exceeded")
    prompt_bytes += _json_size(body["tools"], "tools", MAX_TOOLS_BYTES) if tools else 0
    usable, must_call = _choice(body.get("tool_choice"), tools)
    return Request(
        messages=messages,
        tools=usable,
        must_call=must_call,
        parallel_calls=body.get("parallel_tool_calls") is not False,
        response_format=_response_format(body.get("response_format")),
        stream=body.get("stream") is True,
        choices=_whole_number(body, "n", MAX_CHOICES) or 1,
        max_tokens=min(
            filter(None, (_whole_number(body, name) for name in ("max_tokens", "max_completion_tokens"))), default=None
        ),
        stops=_stops(body.get("stop")),
        prompt_tokens=token_count(prompt_bytes),
    )


def _whole_number(body: Mapping[str, Any], name: str, highest: int | None = None) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or value < 1 or (highest and value > highest):
        raise refusal(f"'{name}' must be a whole number from 1" + (f" to {highest}." if highest else "."), name)
    return value


def _stops(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or len(stops) > MAX_STOPS or not all(isinstance(stop, str) for stop in stops):
        raise refusal(f"'stop' must be a string or a list of at most {MAX_STOPS} strings.", "stop")
    if any(len(stop) > MAX_STOP_CHARACTERS for stop in stops):
        raise refusal(f"A stop sequence may have at most {MAX_STOP_CHARACTERS} characters.", "stop")
    return tuple(filter(None, dict.fromkeys(stops)))


def _messages(messages: Any) -> tuple[PromptMessage, ...]:
    if not isinstance(messages, list):
        raise refusal("'messages' must be a list of messages.", "messages")
    lists = (m.get(key) for m in messages[:MAX_MESSAGES] if isinstance(m, dict) for key in ("content", "tool_calls"))
    if len(messages) + sum(len(one) for one in lists if isinstance(one, list)) > MAX_MESSAGES:
        message = f"The built-in models read at most {MAX_MESSAGES:,} messages, content parts and tool calls."
        raise refusal(message, "messages", "context_length_exceeded")
    return tuple(_message(message, f"messages[{index}]") for index, message in enumerate(messages))


def _message(message: Any, where: str) -> PromptMessage:
    if not isinstance(message, dict):
        raise refusal(f"'{where}' must be an object.", where)
    role, call_id, calls = message.get("role"), message.get("tool_call_id"), message.get("tool_calls")
    return PromptMessage(
        role=role if isinstance(role, str) else "",
        text=_text(message.get("content"), f"{where}.content"),
        calls=tuple(filter(None, map(_call, calls))) if isinstance(calls, list) else (),
        call_id=call_id if isinstance(call_id, str) else "",
    )


def _text(content: Any, where: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise refusal(f"'{where}' must be a string, a list of parts or null.", where)
    return " ".join(filter(None, (_part(part, f"{where}[{index}]") for index, part in enumerate(content))))


def _part(part: Any, where: str) -> str:
    """A text part's text; what is no text is named: `[image]`, `[audio]`, `[file]`."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or not isinstance(part.get("type", "text"), str):
        raise refusal(f"'{where}' must be a content part: an object with a 'type'.", where)
    kind = part.get("type", "text")
    if kind in ("text", "refusal"):
        text = part.get(kind)
        if not isinstance(text, str):
            raise refusal(f"'{where}.{kind}' must be a string.", f"{where}.{kind}")
        return text
    return f"[{kind.removeprefix('input_').removesuffix('_url')[:40]}]"


def _call(call: Any) -> EarlierCall | None:
    """Calls in earlier turns are history, perhaps another model's: what cannot be read is passed over."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    arguments = function.get("arguments")
    return EarlierCall(
        id=call["id"] if isinstance(call.get("id"), str) else "",
        name=function["name"],
        arguments=arguments if isinstance(arguments, str) else "",
    )


def _tools(tools: Any) -> tuple[Tool, ...]:
    if tools is None:
        return ()
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS:
        raise refusal(f"'tools' must be a list of at most {MAX_TOOLS:,} tools.", "tools")
    return tuple(_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools))


def _tool(tool: Any, where: str) -> Tool:
    if not isinstance(tool, dict) or tool.get("type", "function") != "function":
        raise refusal(f"'{where}' must be an object of type 'function'; the built-in models know no other tools.", where)
    function = tool.get("function")
    if not isinstance(function, dict):
        raise refusal(f"'{where}.function' must be an object.", f"{where}.function")
    name, description, parameters = (function.get(key) for key in ("name", "description", "parameters"))
    if not isinstance(name, str) or not name:
        raise refusal(f"'{where}.function.name' must be a string that is not empty.", f"{where}.function.name")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=parameters if isinstance(parameters, dict) else {},
    )


def _choice(choice: Any, tools: tuple[Tool, ...]) -> tuple[tuple[Tool, ...], bool]:
    """The tools that may be called, and whether one of them must be."""
    if choice is None or choice == "auto":
        return tools, False
    if choice == "none":
        return (), False
    if choice == "required":
        if not tools:
            raise refusal("'tool_choice' is 'required' but there are no 'tools'.", "tool_choice")
        return tools, True
    function = choice.get("function") if isinstance(choice, dict) and choice.get("type") == "function" else None
    if not isinstance(function, dict):
        message = "'tool_choice' must be 'none', 'auto', 'required' or {\"type\": \"function\", \"function\": {\"name\": …}}."
        raise refusal(message, "tool_choice")
    named = tuple(tool for tool in tools if tool.name == function.get("name"))[:1]
    if not named:
        raise refusal("'tool_choice' names a function that is not among the 'tools'.", "tool_choice")
    return named, True


def _response_format(value: Any) -> dict[str, Any] | None:
    """The JSON schema that the answer's text has to satisfy; None when plain text will do."""
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    wrapper = value.get("json_schema") if kind == "json_schema" else None
    if not isinstance(wrapper, dict):
        message = "'response_format' must be of type 'text', 'json_object', or 'json_schema' with a 'json_schema' object."
        raise refusal(message, "response_format")
    schema = wrapper.get("schema")
    if schema is not None and not isinstance(schema, dict):
        raise refusal("'response_format.json_schema.schema' must be an object.", "response_format")
    _json_size(schema, "response_format", MAX_FORMAT_BYTES)
    return schema or {"type": "object"}


def _json_size(value: Any, name: str, highest: int) -> int:
    try:
        size = len(orjson.dumps(value))
    except TypeError:
        # orjson's own limits: 254 levels, 64-bit integers, no lone surrogates.
        raise refusal(f"'{name}' holds a value that cannot be written as JSON here.", name) from None
    if size > highest:
        raise refusal(f"'{name}' is too large: {size:,} bytes; the built-in models read at most {highest:,}.", name)
    return size
