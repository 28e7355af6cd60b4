"""A model server of the tests that speaks all three formats: chat completions, Responses and Messages.

    async with FormatServer() as server:
        server.base_url + "/responses"         # and "/messages", "/chat/completions"
        server.requests[-1].body               # checked_request(api, body) of tests/support/sdk_types.py validates it

The commands in the model's name are those of tests/support/model_server.py, in the format of the request's path. More:

    cassette-<NAME>      plays tests/support/cassettes/<NAME>.json as it was recorded: a refusal, an answer or its events
    then-<NAME>          plays this one if the last message of the request is the result of a tool
    tools-need-none      chat: 400 for tools without `reasoning_effort: "none"`, in the words of GPT-5.4
    no-budgets           Messages: 400 for a budget of thinking, in the words of Claude 5
    cut-after-<N>-pieces    closes the connection before the next piece of text, reasoning or arguments: the caller of
                         each format has the same
`server.said[NAME] = Said(...)` plays an answer that the test makes, as `said-<NAME>`.
"""

import argparse
import asyncio
import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from tests.support.format_events import APIS, PATHS, Json, Said, answer_of, chat_form, events_of, said_of
from tests.support.model_answers import Wanted
from tests.support.model_server import Answer, Connection, Hangup, ModelServer, Seen

CASSETTES = Path(__file__).parent / "cassettes"
# The second words are OpenAI's since GPT-5.4.
NEEDS_NONE = (
    "Function tools with reasoning_effort are not supported for this model in /v1/chat/completions. To use function "
    "tools, use /v1/responses or set reasoning_effort to 'none'."
)
NO_BUDGETS = (
    '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" '
    "to control thinking behavior."
)
_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_PIECES = ("content", "reasoning_content", "refusal", "delta", "text", "thinking", "partial_json")


@cache
def cassette(name: str) -> dict[str, Json]:
    """Return a recording: for each format its `request`, and its `answer` and `events`, or `status` and `answer`."""
    found: dict[str, Json] = json.loads((CASSETTES / f"{name}.json").read_text("utf-8"))
    return found


def cassettes() -> list[str]:
    return sorted(path.stem for path in CASSETTES.glob("*.json"))


class FormatServer(ModelServer):
    """The server; `said` are answers by name, and `played` are the bytes of answers: `plays-<NAME>` sends them."""

    def __init__(self, port: int = 0, models: tuple[str | dict[str, object], ...] = ("ok", "tools")) -> None:
        super().__init__(port, models)
        self.said: dict[str, Said] = {}
        self.played: dict[str, bytes] = {}

    def answer(self, connection: Connection, seen: Seen) -> Answer:
        return FormatAnswer(connection, seen, self)


class FormatAnswer(Answer):
    """One answer in the format of the request's path."""

    paths = (*Answer.paths, PATHS["responses"], PATHS["messages"])

    def __init__(self, connection: Connection, seen: Seen, server: FormatServer) -> None:
        super().__init__(connection, seen)
        self.api = next((api for api in APIS if seen.path.split("?")[0].endswith(PATHS[api])), "chat")
        self.body: Json = seen.body if isinstance(seen.body, dict) else {}
        chat = chat_form(self.api, self.body)
        self.wanted = Wanted(chat, seen.headers)
        self.wanted.commands = self.commands
        name, then = self.wanted.given(r"cassette-(.+)"), self.wanted.given(r"then-(.+)")
        if then and chat.get("messages") and chat["messages"][-1]["role"] == "tool":
            name = then
        self.recorded: Json | None = cassette(name)[self.api] if name else None
        self.played = server.played.get(self.wanted.given(r"plays-(.+)") or "")
        self.own: Said | None = server.said.get(self.wanted.given(r"said-(.+)") or "")

    def _refusal(self, asked_before: bool) -> tuple[int, bytes, bytes] | None:
        if self.recorded and self.recorded.get("status"):
            return self.recorded["status"], json.dumps(self.recorded["answer"]).encode(), b""
        refusal = (
            self._needs_none() or self._refused_budget() or self._refused_field() or self.wanted.refusal(asked_before)
        )
        if refusal is None or self.api != "messages":
            return refusal
        status, body, extra = refusal
        return status, _as_anthropic_error(status, body), extra

    def _needs_none(self) -> tuple[int, bytes, bytes] | None:
        if "tools-need-none" not in self.commands or self.api != "chat":
            return None
        if not self.body.get("tools") or self.body.get("reasoning_effort") == "none":
            return None
        error = {"message": NEEDS_NONE, "type": "invalid_request_error", "param": "reasoning_effort", "code": None}
        return 400, json.dumps({"error": error}).encode(), b""

    def _refused_budget(self) -> tuple[int, bytes, bytes] | None:
        if "no-budgets" not in self.commands or (self.body.get("thinking") or {}).get("type") != "enabled":
            return None
        return 400, json.dumps({"error": {"message": NO_BUDGETS, "type": "invalid_request_error"}}).encode(), b""

    def _refused_field(self) -> tuple[int, bytes, bytes] | None:
        name = self.wanted.given(r"refuses-(.+)")
        if self.api == "chat" or name not in self.body:
            return None
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        error = {"message": message, "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"}
        return 400, json.dumps({"error": error}).encode(), b""

    async def _answer(self) -> None:
        if self.played is not None:
            kind = "application/json" if self.played.lstrip().startswith(b"{") else "text/event-stream"
            await self._reply(200, self.played, content_type=kind)
        elif self.recorded is None and self.own is None and self.api == "chat":
            await super()._answer()
        elif self.body.get("stream"):
            await self._stream()
        elif self.recorded is not None:
            if self.recorded.get("ends") == "cut":
                raise Hangup
            await self._reply(200, json.dumps({**self.recorded["answer"], "model": self.wanted.model}).encode())
        else:
            await self._reply(200, json.dumps(answer_of(self.api, self._said(), self.wanted.model)).encode())

    def _said(self) -> Said:
        return replace(self.own or said_of(self.wanted.completion()), number=len(self.server.requests))

    def _events(self, end: bytes) -> Iterator[bytes]:
        if self.recorded is not None:
            yield from self._framed(self.recorded["events"], end)
            if self.recorded.get("ends") == "cut":
                raise Hangup
            if self.api == "chat":
                yield b"data: [DONE]"
        elif self.own is not None or self.api != "chat":
            yield from self._framed(self._with_faults(events_of(self.api, self._said(), self.wanted.model)), end)
            if self.api == "chat" and "no-done" not in self.commands:
                yield b"data: [DONE]"
        else:
            yield from super()._events(end)

    def _with_faults(self, events: list[Json]) -> Iterator[Json]:
        ends = {"no-done": 1, "no-finish": 2 if self.api == "messages" else 1}
        left_out = max((ends[command] for command in ends.keys() & self.commands), default=0)
        if self.api != "chat" and left_out:
            events = events[:-left_out]
        middle = 4 if "error-mid-stream" in self.commands else None
        yield from events[:middle]
        if middle is None:
            return
        message = "the model fell over"
        if self.api == "responses":
            yield {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": 4}
        else:
            error = {"error": {"type": "api_error", "message": message}}
            yield {"type": "error", **error} if self.api == "messages" else error

    def _framed(self, events: Iterable[Json], end: bytes) -> Iterator[bytes]:
        most = self.wanted.given(r"cut-after-(\d+)-pieces")
        pieces = 0
        for number, event in enumerate(events):
            pieces += _is_piece(event)
            if most is not None and pieces > int(most):
                raise Hangup
            data = json.dumps(event, ensure_ascii=False).encode()
            data = data[: len(data) // 2] if number == 2 and "broken-json" in self.commands else data
            yield (b"" if self.api == "chat" else b"event: %b%b" % (event["type"].encode(), end)) + b"data: " + data


def _is_piece(event: Json) -> bool:
    """Return whether an event of a stream has a piece of what the model says."""
    choices = event.get("choices")
    delta: Any = choices[0]["delta"] if choices else event.get("delta")
    if isinstance(delta, str):
        return bool(delta)
    if not isinstance(delta, dict):
        return False
    calls = delta.get("tool_calls") or [{"function": {}}]
    return bool(calls[0]["function"].get("arguments")) or any(delta.get(name) for name in _PIECES)


def _as_anthropic_error(status: int, body: bytes) -> bytes:
    """Return an error of OpenAI's form in Anthropic's; another one stays as it is."""
    with contextlib.suppress(ValueError):
        error = json.loads(body)
        if isinstance(error, dict) and isinstance(error.get("error"), dict) and error.get("type") != "error":
            kind = _ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
            told = {"type": kind, "message": error["error"].get("message", "")}
            return json.dumps({"type": "error", "error": told, "request_id": "req_1"}).encode()
    return body


async def _main() -> None:
    parser = argparse.ArgumentParser(description="A model server for tests that speaks three formats.")
    parser.add_argument("--port", type=int, default=0)
    server = FormatServer(parser.parse_args().port)
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
