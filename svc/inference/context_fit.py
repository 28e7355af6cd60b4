"""The messages of a chat or a run that fit into the context of its model: the oldest exchanges are left out.

fitted() -> the messages that are sent -> refused()? -> fewer of them, once -> note(): the tokens that were counted

An exchange begins at a message of the user. Of the last one, the question and the last calls of tools always stay.
Instructions and texts of files that the service has put in stay, too.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from svc.content.given_files import FITTED_BYTES_PER_TOKEN, is_given
from svc.content.model_view import View
from svc.errors import UpstreamFault
from svc.inference.answer.normalize import text_size_bytes
from svc.inference.answer.too_long import TooLong
from svc.inference.catalog import Model
from svc.inference.context_lengths import ContextLengths
from svc.inference.sent_body import DEFAULT_OUTPUT_TOKENS
from svc.inference.tokens import json_size_bytes

_MOST_BYTES = 4  # of a character
_MEDIA_TOKENS = 1000  # of a picture or a file
_STEPS = 4  # of a context: model servers can cache the beginning of a prompt until the next step
_LIMITS = ("max_tokens", "max_completion_tokens")
_FIXED = ("system", "developer")
_WHOLE = View()
_SUMMARY = "<system-reminder>\nSummary of the earlier messages, which are left out:\n{}\n</system-reminder>\n\n"

Message = Mapping[str, Any]


class ContextFit:
    """The view that a model has of one chat or run, over all calls of an answer.

    `left_out` is the number of the oldest parts that are not sent. `sent_messages` are the messages of the conversation
    that were sent, 0 if all were. `tokens` are those of the last call, its prompt and its answer, 0 if not counted.
    """

    left_out = sent_messages = 0

    def __init__(self, lengths: ContextLengths, account_id: str, view: View = _WHOLE) -> None:
        self._lengths = lengths
        self._account_id = account_id
        self.tokens, self._viewed, summary = view
        self._summary = summary and _SUMMARY.format(summary)
        self._covered: int | None = None  # how many of the messages `tokens` counts; None: up to the last answer
        self._has_shortened = False

    def fitted(self, model: Model, body: dict[str, Any]) -> dict[str, Any]:
        """Return the request with the messages that fit. `body` has all of them, at each call of an answer."""
        self._body, self._has_shortened = body, False
        self._kept: Sequence[int] = range(len(body["messages"]))
        if self._surely_fits(model):
            return body
        self._choose(model)
        if not self.left_out:
            return body
        return {**body, "messages": self._summarized([body["messages"][place] for place in self._kept])}

    async def shortened(self, model: Model, fault: UpstreamFault, body: dict[str, Any]) -> dict[str, Any] | None:
        """Return the `body` that was sent with fewer messages if its prompt was too long, or None."""
        sizes = (fault.error or {}).get("too_long")
        if sizes is None or fault.status != 400 or self._has_shortened:
            return None
        messages = await asyncio.to_thread(self._refused, model, sizes, body["messages"])
        return None if messages is None else {**body, "messages": messages}

    def _refused(self, model: Model, sizes: TooLong, sent: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
        self._has_shortened, before = True, self._kept
        if sizes.input_tokens:
            self.tokens, self._covered = sizes.input_tokens, len(self._body["messages"])
        assumed = self.most_tokens(model)
        self._lengths.learn(model, self._account_id, sizes.most_tokens or min(assumed, self._prompt().tokens) // 2)
        self._choose(model, least_over=0 if sizes.input_tokens else 1)
        kept = set(self._kept)
        out = [message for place, message in zip(before, sent, strict=True) if place not in kept]
        messages = [message for place, message in zip(before, sent, strict=True) if place in kept]
        if not out or not self._summary or _has(messages, self._summary):
            return messages if out else None
        # The hold of the first request covers the summary, or as much that it replaces.
        covered = _has(out, self._summary) or json_size_bytes(out) > json_size_bytes(self._summary)
        return self._summarized(messages) if covered else messages

    def _summarized(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return messages of which the first one begins with the summary of what is left out.

        It is part of this message, because many chat templates refuse two messages of the user.
        """
        place = next((place for place, one in enumerate(messages) if not _is_fixed(one)), None)
        if not self._summary or place is None:
            return messages
        content = messages[place].get("content") or ""
        parts = content if isinstance(content, list) else None
        content = self._summary + content if parts is None else [{"type": "text", "text": self._summary}, *parts]
        return [*messages[:place], {**messages[place], "content": content}, *messages[place + 1 :]]

    def most_tokens(self, model: Model) -> int:
        """Return the context length of `model`."""
        return self._lengths.tokens_of(model, self._account_id)

    def note(self, usage: Mapping[str, Any] | None) -> None:
        """Note the tokens that the model server has counted for a call, or None. Reasoning is not sent again."""
        self.tokens, self._covered = 0, len(self._body["messages"]) + 1
        if usage is not None:
            reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
            self.tokens = usage["prompt_tokens"] + max(usage["completion_tokens"] - reasoning, 0)

    def _surely_fits(self, model: Model) -> bool:
        """Return quickly whether even the highest estimate fits."""
        if self.left_out or self._viewed or self._body.get("tools"):
            return False
        characters = 0
        for message in self._body["messages"]:
            content = message.get("content")
            if type(content) is not str or len(message) > 2:
                return False
            characters += len(content)
        return self.tokens + _MOST_BYTES * characters // FITTED_BYTES_PER_TOKEN <= self._budget_tokens(model)

    def _budget_tokens(self, model: Model) -> int:
        """Return the most tokens of a prompt: the context without the output limit."""
        context = self.most_tokens(model)
        default = DEFAULT_OUTPUT_TOKENS if model.paid else min(DEFAULT_OUTPUT_TOKENS, context // _STEPS)
        given = [limit for name in _LIMITS if (limit := self._body.get(name)) and limit >= 1]
        output = int(min(given, default=default))
        # A model server that adds up both refuses a limit as high as the context with any prompt.
        return context - (output if output < context else context // _STEPS)

    def _prompt(self) -> "_Prompt":
        """Return the prompt without what is left out."""
        messages = self._body["messages"]
        parts, sizes = list(_parts(messages)), [_tokens_of(message) for message in messages]
        last = max((place for place, one in enumerate(messages) if _is_spoken(one, "assistant")), default=-1)
        if self._viewed:
            spoken = [place for place, one in enumerate(messages[: last + 1]) if _is_spoken(one)]
            begin = spoken[-self._viewed] if self._viewed <= len(spoken) else 0
            self.left_out, self._viewed = sum(end <= begin for _, end in parts), 0
        offered = self._body.get("tools")
        tools = json_size_bytes(offered) // FITTED_BYTES_PER_TOKEN if offered else 0
        covered = 0 if not self.tokens else last + 1 if self._covered is None else self._covered
        left = self._left(parts)
        estimated = tools + sum(size for place, size in enumerate(sizes[:covered]) if place not in left)
        share = self.tokens / max(estimated, 1) if covered else 1.0
        sizes[:covered] = [int(size * share) for size in sizes[:covered]]
        new = sum(size for place, size in enumerate(sizes) if place >= covered and place not in left)
        return _Prompt(parts, sizes, (self.tokens if covered else tools) + new)

    def _left(self, parts: list[tuple[int, int]]) -> set[int]:
        """Return the places of the messages that are left out."""
        return {place for part in parts[: self.left_out] for place in self._movable(part)}

    def _movable(self, part: tuple[int, int]) -> list[int]:
        return [place for place in range(*part) if not _is_fixed(self._body["messages"][place])]

    def _choose(self, model: Model, least_over: int | None = None) -> None:
        """Choose the messages that are sent. After a refusal they are fewer: by a step if `least_over` is 1."""
        messages, prompt = self._body["messages"], self._prompt()
        step = max(self.most_tokens(model) // _STEPS, 1)
        over = prompt.tokens - self._budget_tokens(model)
        if least_over is None and over <= -2 * step:  # another model reads more than the last one
            over += sum(prompt.sizes[place] for place in self._left(prompt.parts))
            self.left_out = 0
        if self._summary and (over > 0 or self.left_out):
            over += -(-text_size_bytes(self._summary) // FITTED_BYTES_PER_TOKEN)
        goal = -(-max(over, least_over or 0) // step) * step
        while goal > 0 and self.left_out < len(prompt.parts):
            goal -= sum(prompt.sizes[place] for place in self._movable(prompt.parts[self.left_out]))
            self.left_out += 1
        out = self._left(prompt.parts)
        self._kept = [place for place in range(len(messages)) if place not in out]
        self.sent_messages = sum(_is_spoken(messages[place]) for place in self._kept) if self.left_out else 0


class _Prompt(NamedTuple):
    """The `parts` that may be left out, oldest first, as ranges of messages, the tokens of each message, and of all."""

    parts: list[tuple[int, int]]
    sizes: list[int]
    tokens: int


def _parts(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield the exchanges before the last one, then the calls of tools in this one with their results, but not the
    last calls.
    """
    questions = [place for place, one in enumerate(messages) if one["role"] == "user" and not _is_fixed(one)]
    if questions:
        begins = [next(place for place, one in enumerate(messages) if not _is_fixed(one)), *questions[1:]]
        yield from pairwise(begins)
    last = questions[-1] if questions else 0
    calls = [place for place in range(last, len(messages)) if messages[place].get("tool_calls")]
    yield from pairwise(calls)


def _is_fixed(message: Message) -> bool:
    return message["role"] in _FIXED or is_given(message)


def _is_spoken(message: Message, *roles: str) -> bool:
    """Return whether a conversation stores a message: not calls of tools, which belong to an answer."""
    if message["role"] not in (roles or ("user", "assistant")) or message.get("tool_calls") or is_given(message):
        return False
    content = message.get("content")
    return bool(content.strip() if isinstance(content, str) else content)


def _tokens_of(message: Message) -> int:
    """Estimate the tokens of a message."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    media = sum(_MEDIA_TOKENS for part in parts if part["type"] != "text")
    texts = [content, *(part.get("text") for part in parts if part["type"] == "text")]
    texts.append(message.get("reasoning_content"))
    size_bytes = sum(text_size_bytes(text) for text in texts if isinstance(text, str))
    size_bytes += json_size_bytes(calls) if (calls := message.get("tool_calls")) else 0
    return media - (-size_bytes // FITTED_BYTES_PER_TOKEN)


def _has(messages: Sequence[Message], summary: str) -> bool:
    """Return whether one of `messages` begins with the summary."""
    contents = (message.get("content") for message in messages)
    texts = (content[0].get("text") if isinstance(content, list) and content else content for content in contents)
    return any(isinstance(text, str) and text.startswith(summary) for text in texts)
