"""The request side that all formats share: a chat request, and the messages of one."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from svc.errors import ApiError
from svc.inference.chat_call import ChatCall
from svc.inference.formats.answer import AnswerWriter

Part = dict[str, Any]


def image_part(url: str, param: str, **detail: str) -> Part:
    """Return the part of an image. Raises ApiError `invalid_value` if the address is neither https nor `data:`."""
    if re.match("https://|data:", url, re.IGNORECASE) is None:
        raise ApiError("invalid_value", f"{param} must begin with https:// or data:.", param=param)
    return {"type": "image_url", "image_url": {"url": url, **detail}}


class Translated(NamedTuple):
    """A request of another format, as the chat request `chat`.

    `added` names the fields of `chat` that are left out for a model server that refuses them. `ignored_tools` are the types of
    the hosted tools that were left out. `writer` makes the writer of the answer. `names` has the caller's names of fields that
    are called differently in `chat`.
    """

    chat: dict[str, Any]
    added: frozenset[str]
    ignored_tools: tuple[str, ...]
    writer: Callable[[ChatCall], AnswerWriter]
    names: Mapping[str, str]


class ChatMessages:
    """Builds the messages of a chat request from the items or blocks of another format, in their order.

    System texts are joined into the first message. Reasoning, texts and tool calls of one turn become one assistant message.
    Every `param` is the place of an item in the caller's request. Raises ApiError `invalid_value` for a tool result without its
    call, and for a tool call without its result.
    """

    def __init__(self) -> None:
        self._system: list[str] = []
        self._messages: list[dict[str, Any]] = []
        self._turn: _Turn | None = None
        self._open_calls: dict[str, str] = {}  # the id of each call without a result, and its place
        self._late: list[dict[str, Any]] = []  # user messages that follow the results of the open calls

    def add_system(self, text: str) -> None:
        self._system.append(text)

    def add_user(self, content: str | list[Part]) -> None:
        """Add a user message. One between a tool call and its result follows the result."""
        self._late.append({"role": "user", "content": content})
        self._add_late()

    def add_reasoning(self, text: str) -> None:
        self._assistant().reasoning.append(text)

    def add_text(self, text: str) -> None:
        self._assistant().texts.append(text)

    def add_refusal(self, text: str) -> None:
        self._assistant().refusals.append(text)

    def add_call(self, call_id: str, name: str, arguments: str, param: str) -> None:
        calls = self._assistant().calls
        if call_id in self._open_calls:
            raise ApiError("invalid_value", f"{param}: there is another tool call with the id {call_id[:200]}.", param=param)
        self._open_calls[call_id] = param
        calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}})

    def add_result(self, call_id: str, content: str | list[Part], param: str) -> None:
        """Add the result of a tool call. Images in it follow as a user message, because a tool message holds text alone."""
        if self._open_calls.pop(call_id, None) is None:
            raise ApiError("invalid_value", f"{param}: there is no tool call with the id {call_id[:200]} before it.", param=param)
        self._end_turn()
        text = content if isinstance(content, str) else "\n".join(part["text"] for part in content if part["type"] == "text")
        self._messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
        images = [] if isinstance(content, str) else [part for part in content if part["type"] != "text"]
        if images:
            self._late.append({"role": "user", "content": images})
        self._add_late()

    def all(self) -> list[dict[str, Any]]:
        """Return all messages. Raises ApiError `invalid_value` for a tool call without a result."""
        self._check_results()
        self._end_turn()
        leading = [{"role": "system", "content": "\n\n".join(self._system)}] if self._system else []
        return leading + self._messages

    def _add_late(self) -> None:
        if self._late and not self._open_calls:
            self._end_turn()
            self._messages += self._late
            self._late = []

    def _assistant(self) -> "_Turn":
        if self._turn is None:
            self._check_results()
            self._turn = _Turn([], [], [], [])
        return self._turn

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._messages.append(self._turn.message())
            self._turn = None

    def _check_results(self) -> None:
        for call_id, param in self._open_calls.items():
            raise ApiError("invalid_value", f"{param}: the tool call {call_id[:200]} has no result.", param=param)


class _Turn(NamedTuple):
    """What the assistant said in one turn."""

    reasoning: list[str]
    texts: list[str]
    refusals: list[str]
    calls: list[dict[str, Any]]

    def message(self) -> dict[str, Any]:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "\n".join(self.texts) if self.texts or not self.calls else None,
        }
        if self.reasoning:
            message["reasoning_content"] = "\n".join(self.reasoning)
        if self.refusals:
            message["refusal"] = "\n".join(self.refusals)
        if self.calls:
            message["tool_calls"] = self.calls
        return message
