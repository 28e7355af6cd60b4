"""The request side that all formats share: a chat request, and the messages of one."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from svc.errors import ApiError, invalid_value
from svc.inference.chat_call import ChatCall
from svc.inference.formats.answer import AnswerWriter
from svc.inference.formats.hosted_search import HostedSearch
from svc.inference.sent_body import CallerFormat
from svc.inference.server_formats.seals import FIELD, Seal
from svc.shapes import Shape

Part = dict[str, Any]
# Fields that a format names differently: a model server that refuses one is asked again without it, and with the other
# name of `max_tokens`.
ADDED = frozenset({"max_tokens", "stream_options", "reasoning_effort", "verbosity", "top_k", "parallel_tool_calls"})


def only(allowed: Any, code: str, message: str, **more: Any) -> Shape[Any]:
    """Return the shape of a field that may have this value only. The ApiError of another one has `more`."""

    def check(value: Any, param: str) -> Any:
        if value is not allowed:
            raise ApiError(code, message, param=param, **more)
        return value

    return Shape(check, str(allowed), {"const": allowed})


def text_part(text: str, **mark: Any) -> Part:
    return {"type": "text", "text": text, **mark}


def image_part(url: str, param: str, **detail: str) -> Part:
    """Return the part of an image. Raises ApiError `invalid_value` if the address is neither https nor `data:`."""
    if re.match("https://|data:", url, re.IGNORECASE) is None:
        raise invalid_value(f"{param} must begin with https:// or data:.", param)
    return {"type": "image_url", "image_url": {"url": url, **detail}}


class Translated(NamedTuple):
    """A request of another format, as the chat request `chat`.

    `ignored_tools` are the types of the hosted tools that were left out. `writer` makes the writer of the answer.
    `format` has the caller's names of fields that are called differently in `chat`. Fields that chat lacks are
    `without_place`. `search` is the hosted web search that the service runs.
    """

    chat: dict[str, Any]
    ignored_tools: tuple[str, ...]
    writer: Callable[[ChatCall], AnswerWriter]
    format: CallerFormat
    without_place: dict[str, Any]
    search: HostedSearch | None = None


class ChatMessages:
    """Builds the messages of a chat request from the items or blocks of another format, in their order.

    System texts are joined into the first message. Reasoning, texts and tool calls of one turn become one assistant
    message. Texts that are given as parts stay parts. Every `param` is the place of an item in the caller's request.
    Seals of reasoning are kept only `with_seals`, for servers that know them.
    Raises ApiError `invalid_value` for a tool result without its call, and for a tool call without its result.
    """

    def __init__(self, *, with_seals: bool = False) -> None:
        self._seals = with_seals
        self._system: list[str | Part] = []
        self._messages: list[dict[str, Any]] = []  # those of the assistant with a list of texts for each field
        self._open_calls: dict[str, str] = {}  # the id of each call without a result, and its place
        self._late: list[dict[str, Any]] = []  # user messages that follow the results of the open calls

    def add_system(self, text: str | Part) -> None:
        self._system.append(text)

    def add_user(self, content: str | list[Part]) -> None:
        """Add a user message. One between a tool call and its result follows the result."""
        self._late.append({"role": "user", "content": content})
        self._add_late()

    def add_said(self, field: str, text: str | Part) -> None:
        """Add what the assistant said, for a field of its message: `content`, `reasoning_content` or `refusal`."""
        self._of_turn(field).append(text)

    def add_reasoning(self, text: str, sealed: list[Seal]) -> None:
        """Add what the assistant thought, and the seals of it."""
        if text:
            self.add_said("reasoning_content", text)
        if sealed and self._seals:
            self._of_turn(FIELD).extend(sealed)

    def add_call(self, call_id: str, name: str, arguments: str, param: str, **mark: Any) -> None:
        calls = self._of_turn("tool_calls")
        if call_id in self._open_calls:
            raise invalid_value(f"{param}: there is another tool call with the id {call_id[:200]}.", param)
        self._open_calls[call_id] = param
        function = {"name": name, "arguments": arguments}
        calls.append({"id": call_id, "type": "function", "function": function, **mark})

    def add_result(self, call_id: str, parts: list[Part], param: str, *, apart: bool = False) -> None:
        """Add the result of a tool call, its texts joined or `apart`.

        Its images follow as a user message: a tool message holds text alone.
        """
        if self._open_calls.pop(call_id, None) is None:
            raise invalid_value(f"{param}: there is no tool call with the id {call_id[:200]} before it.", param)
        texts = [part if apart else part["text"] for part in parts if part["type"] == "text"]
        self._messages.append({"role": "tool", "tool_call_id": call_id, "content": _content(texts, "\n")})
        if images := [part for part in parts if part["type"] != "text"]:
            self._late.append({"role": "user", "content": images})
        self._add_late()

    def all(self) -> list[dict[str, Any]]:
        """Return all messages. Raises ApiError `invalid_value` for a tool call without a result."""
        self._check_results()
        leading = [{"role": "system", "content": _content(self._system, "\n\n")}] if self._system else []
        return leading + [_joined(message) for message in self._messages]

    def _add_late(self) -> None:
        if not self._open_calls:
            self._messages += self._late
            self._late = []

    def _of_turn(self, field: str) -> list[Any]:
        if not self._messages or self._messages[-1]["role"] != "assistant":
            self._check_results()
            self._messages.append({"role": "assistant"})
        found: list[Any] = self._messages[-1].setdefault(field, [])
        return found

    def _check_results(self) -> None:
        for call_id, param in self._open_calls.items():
            raise invalid_value(f"{param}: the tool call {call_id[:200]} has no result.", param)


def _content(texts: list[str | Part], between: str) -> str | list[Part]:
    """Return the content of a message: its parts, or one text."""
    parts = [text for text in texts if isinstance(text, dict) and text["text"]]
    return parts or between.join(text for text in texts if isinstance(text, str))


def _joined(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] != "assistant":
        return message
    lists = {field: message[field] for field in ("tool_calls", FIELD) if field in message}
    texts = {field: _content(said, "\n") for field, said in message.items() if field not in ("role", *lists)}
    return {"role": "assistant", "content": None if "tool_calls" in lists else "", **texts, **lists}
