"""The chunks of an answer with tools: those of its model calls as one answer, the steps, and what readers get later."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from svc.inference.answer import said
from svc.inference.answer.events import Chunk, TextChunks
from svc.inference.chat_call import ChatCall

STEPS_BYTES = 256 * 1024  # of the steps that are stored
BETWEEN = "\n\n"  # the texts of two calls
_STORED_RESULT_CHARACTERS = 4_000


class Shown(NamedTuple):
    """Chunks of a model call that the caller gets."""

    chunks: list[Chunk | TextChunks]


class ToolChunks:
    """Makes one answer of the chunks of several model calls, under `head`.

    `is_ours` is whether a call of the model is for a tool of the service. With `apart`, the texts of two calls stay
    apart by an empty line. `known` is what the caller of a continued answer has, for `parts_after`.
    """

    def __init__(self, head: dict[str, Any], is_ours: Callable[[dict[str, Any]], bool], *, apart: bool) -> None:
        self.head = head
        self.closing: list[Chunk] = []
        self.known: dict[str, Any] = {}
        self.steps: list[dict[str, Any]] = []
        self.earlier_steps = 0  # before the current round
        self.steps_bytes = 0
        self._is_ours, self._apart = is_ours, apart
        # For readers, in their order: the calls, and the fields of other chunks.
        self._items: list[ChatCall | dict[str, Any]] = []
        self._foreign: dict[int, bool] = {}  # whether the caller runs a call of the current round, by its index
        self._spoke = False  # a round before has said something
        self._speaks = False  # the current round has said something
        self._begun = False

    def estimated_input(self) -> int:
        """Return the estimated input tokens of the first call."""
        calls = (item for item in self._items if not isinstance(item, dict))
        return next((call.chunk_writer.estimated_input() for call in calls), 0)

    def go_on(self, text: str, steps: list[dict[str, Any]]) -> None:
        """Begin after what the caller has."""
        self.steps, self._spoke, self._begun = [*steps], bool(text), True
        said_before = [{"delta": {"content": text}}] if text else []
        self._items += [*said_before, *({"delta": {}, "service": step} for step in steps)]
        self.known = {"place": len(self._items), **({"spoke": 0} if text else {})}

    def begin(self, call: ChatCall) -> None:
        """Begin the next round."""
        call.chunk_writer.head = self.head
        self._foreign, self._spoke, self._speaks = {}, self._spoke or self._speaks, False
        self._items.append(call)
        self.earlier_steps = len(self.steps)

    def step(self, kind: str, fields: dict[str, Any]) -> Chunk:
        """Note a step, a `tool_call` or a `tool_result`, and return its chunk."""
        step = {kind: fields}
        self.steps.append(step)
        self._items.append({"delta": {}, "service": step})
        self.steps_bytes += len(orjson.dumps(step))
        self._begun = True
        return {**self._chunk({}), "service": step}

    def _chunk(self, delta: dict[str, Any]) -> Chunk:
        return {**self.head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}

    def shown(self, together: Sequence[Chunk | TextChunks]) -> Shown | None:
        """Return the chunks that are sent: without ends, calls of the service's tools, and a second role."""
        shown: list[Chunk | TextChunks] = []
        for chunk in together:
            if isinstance(chunk, TextChunks):
                self._space(shown)
                shown.append(chunk)
            elif chunk["choices"] and (kept := self._kept(chunk)) is not None:
                if said.text(kept["choices"][0]["delta"]):
                    self._space(shown)
                shown.append(kept)
        return Shown(shown) if shown else None

    def _space(self, shown: list[Any]) -> None:
        if not self._speaks and self._apart and self._spoke:
            shown.append(self._chunk({"content": BETWEEN}))
        self._speaks = True

    def _kept(self, chunk: Chunk) -> Chunk | None:
        choice = chunk["choices"][0]
        delta = choice["delta"]
        kept = {name: value for name, value in delta.items() if name not in ("tool_calls", "role")}
        if foreign := [call for call in delta.get("tool_calls") or () if not self._is_hidden(call)]:
            kept["tool_calls"] = foreign
        if "role" in delta and not self._begun:
            kept["role"] = delta["role"]
        if not any(kept.values()):
            return None
        self._begun = True
        sent = {**chunk, "choices": [{**choice, "delta": kept, "finish_reason": None}]}
        sent.pop("service", None)  # no model server makes a step
        return sent

    def _is_hidden(self, call: dict[str, Any]) -> bool:
        index = call["index"]
        if index not in self._foreign:
            self._foreign[index] = not self._is_ours(call)
        return not self._foreign[index]

    def parts_after(self, sent: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the texts and the steps since `sent`, which it changes, as the fields of chunks."""
        found: list[dict[str, Any]] = []
        place = sent.setdefault("place", 0)
        while place < len(self._items):
            item = self._items[place]
            if isinstance(item, dict):
                found.append(item)
                sent |= {"spoke": place} if item["delta"] else {}
            elif delta := item.chunk_writer.texts_after(sent.setdefault("texts", {})):
                if "content" in delta and self._apart and sent.get("spoke", place) != place:
                    delta["content"] = BETWEEN + delta["content"]
                if "content" in delta:
                    sent["spoke"] = place
                found.append({"delta": delta})
            if place == len(self._items) - 1 and not isinstance(item, dict):
                break
            place += 1
            sent["texts"] = {}
        sent["place"] = place
        return found


def stored_steps(steps: list[dict[str, Any]]) -> str | None:
    """Return steps as JSON with short results, or None without steps. Beyond STEPS_BYTES the oldest are left out."""
    written = [orjson.dumps(_short(step)) for step in steps]
    while sum(map(len, written)) + len(written) + 2 > STEPS_BYTES:
        del written[:2]
    return (b"[%b]" % b",".join(written)).decode() if written else None


def _short(step: dict[str, Any]) -> dict[str, Any]:
    if (fields := step.get("tool_result")) is None:
        return step
    result = fields["result"]
    text = result if isinstance(result, str) else orjson.dumps(result).decode()
    if len(text) <= _STORED_RESULT_CHARACTERS:
        return step
    return {"tool_result": {**fields, "result": text[: _STORED_RESULT_CHARACTERS - 1] + "\u2026"}}
