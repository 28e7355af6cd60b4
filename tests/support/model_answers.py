"""What the tests' model server says on each command (tests/support/model_server.py lists them)."""

import base64
import contextlib
import json
import re
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

from tests.support.too_long_errors import TOO_LONG

WORDS = ("Hello", ", ", "wor", "ld", "!")
TEXT = "".join(WORDS)
UNICODE = (
    "line\nline\r\n",
    "data: x\n\n",
    "\u2028\u2029\u0085",
    "\x00\x7f",
    "é",
    "日本語",
    "👩\u200d👩\u200d👧",
    "\\\"'<>",
)
USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
ODD_USAGE = {"prompt_tokens": -3, "completion_tokens": 2.5, "total_tokens": "many", "prompt_tokens_details": None}
ARGUMENTS = {"city": "Zürich", "days": 3}
ERROR_BODIES = {
    "error-text": b'{"error": "no such thing as text"}',
    "error-detail": b'{"detail": "no such thing as detail"}',
    "error-list": b'{"detail": [{"loc": ["body", "messages"], "msg": "no such thing as a list", "type": "missing"}]}',
    "error-message": b'{"message": "no such thing as a message", "code": 40001}',
    "error-bare": b"no such thing as bare text",
    "error-errors": b'{"errors": [{"message": "no such thing as errors", "code": 7}]}',
    "error-capital": b'{"Message": "no such thing as a capital", "__type": "x"}',
    "error-nested": b'{"detail": {"error": {"message": "no such thing as a nest", "type": "nested"}}}',
    "error-raw": b'{"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '
    b'"{\\"error\\": {\\"message\\": \\"no such thing as raw\\"}}"}}}',
    "error-inner": b'{"error": {"message": "Filtered", "code": "content_filter", "innererror": {"message": "for its words"}}}',
    "error-html": b"<html><body>no such thing</body></html>",
    "error-huge": b'{"error": {"message": "' + b"x" * 3_000_000 + b'"}}',
    "error-empty": b"",
}
# What real servers add to a message and to its calls (Groq, OpenAI's search, LiteLLM, Gemini).
ODD_FIELDS = {
    "reasoning": "Hm.",
    "annotations": [{"type": "x"}],
    "audio": {"id": "x"},
    "provider_specific_fields": {"a": 1},
}
ODD_CALL_FIELDS = {"index": 0, "provider_specific_fields": {"a": 1}}
STANDARD = {
    "system": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "refusal", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
_ERROR = {"message": "the test asked for it", "type": "test_error", "param": "model", "code": "on_command"}


class Wanted:
    """The answer to one request, as the commands in its model's name want it."""

    def __init__(self, request: dict[str, Any], headers: dict[str, str]) -> None:
        self.request = request
        self.headers = headers
        self.model = str(request.get("model", ""))
        self.commands = frozenset(self.model.split("+"))

    def given(self, pattern: str) -> str | None:
        """The value in a command of that form."""
        found = (re.fullmatch(pattern, command) for command in self.commands)
        return next((match[1] for match in found if match), None)

    def _too_long(self) -> tuple[int, bytes, bytes] | None:
        status, error, _ = TOO_LONG.get(self.given(r"too-long-([\w-]+)") or "", (200, None, None))
        most, tokens = int(self.given(r"context-(\d+)") or 0), len(json.dumps(self.request)) // 4
        if most and tokens > most:
            status, error, _ = TOO_LONG["llamacpp"]
            error = json.loads(json.dumps(error).replace("9412", str(tokens)).replace("8192", str(most)))
        output = self.request.get("max_tokens") or 0
        if (window := int(self.given(r"window-(\d+)") or 0)) and tokens + output > window:
            status, error, _ = TOO_LONG["vllm-limit"]
            text = json.dumps(error).replace("5000", str(output)).replace("4000", str(tokens))
            error = json.loads(text.replace("8192", str(window)))
        return None if status == 200 else (status, json.dumps(error).encode(), b"")

    def refusal(self, asked_before: bool) -> tuple[int, bytes, bytes] | None:
        """Status, body and further header lines of a refusal, if one is wanted."""
        body = json.dumps({"error": _ERROR}).encode()
        if status := self.given(r"status-(\d\d\d)"):
            return int(status), body, b""
        if "fail-once" in self.commands and not asked_before:
            return 503, body, b""
        if "refuse-429" in self.commands:
            return 429, body, b""
        if value := self.given(r"retry-after-(.+)"):
            value = formatdate(time.time() + 3, usegmt=True) if value == "date" else value
            return 429, body, f"retry-after: {value}\r\n".encode()
        if "quote-key" in self.commands:
            quoted = f"Incorrect API key provided: {self.headers.get('authorization')}."
            return 401, json.dumps({"error": {"message": quoted, "code": quoted}}).encode(), b""
        if "redirect" in self.commands:
            return 302, b"", b"location: http://127.0.0.1:9/v1/elsewhere\r\n"
        if refusal := self._too_long():
            return refusal
        limit = max(self.request.get("max_tokens") or 0, self.request.get("max_completion_tokens") or 0)
        if "too-large" in self.commands or ("small-output" in self.commands and limit > 1024):
            told = f"max_tokens is too large: {limit}. This model supports at most 1024 completion tokens."
            return 400, json.dumps({"error": {**_ERROR, "message": told, "param": "max_tokens"}}).encode(), b""
        field = self.given(r"refuses-(.+)")
        if field is not None and any(field in holder for holder in (self.request, *self.request["messages"])):
            told = f"Unsupported parameter: '{field}' is not supported with this model."
            return 400, json.dumps({"error": {**_ERROR, "message": told, "param": field}}).encode(), b""
        if "strict" in self.commands and (told := next(self._unusual(), None)):
            return 400, json.dumps({"error": {"message": told, "type": "invalid_request_error"}}).encode(), b""
        if "quotes" in self.commands and (said := self.said()) and not asked_before:
            words, _, param = said.partition("|")
            return 400, json.dumps({"error": {**_ERROR, "message": words, "param": param}}).encode(), b""
        if command := next(iter(ERROR_BODIES.keys() & self.commands), None):
            return 400, ERROR_BODIES[command], b""
        if "then-503" in self.commands:
            return 503, body, b""
        return None

    def said(self) -> str:
        """What a key or a value anywhere in the request says behind `SAY:`; or there behind `base64,`."""
        found = re.search(r'SAY:((?:[^"\\]|\\.)*)', json.dumps(self.request, ensure_ascii=False))
        said = str(json.loads(f'"{found[1]}"')) if found else ""
        return base64.b64decode(said.removeprefix("base64,")).decode() if said.startswith("base64,") else said

    def _unusual(self) -> Iterator[str]:
        """What a strict server would not take in the messages, in the words of Groq and OpenAI."""
        for number, message in enumerate(self.request["messages"]):
            for name in message.keys() - STANDARD[message["role"]]:
                yield f"property 'messages.{number}.{name}' is unsupported"
            for place, call in enumerate(message.get("tool_calls") or []):
                where, function = f"messages[{number}].tool_calls[{place}]", call.get("function") or {}
                for name in call.keys() - {"id", "type", "function"}:
                    yield f"property 'messages.{number}.tool_calls.{place}.{name}' is unsupported"
                if call["type"] != "function" or function.keys() != {"name", "arguments"}:
                    yield f"Invalid '{where}.function'."
                if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", function["name"]):
                    yield f"Invalid '{where}.function.name': string does not match pattern."
                with contextlib.suppress(ValueError):
                    if isinstance(json.loads(function["arguments"]), dict):
                        continue
                yield "Failed to parse tool call arguments as JSON"

    def _usual_pieces(self) -> list[dict[str, Any]]:
        if "bad-calls" in self.commands:
            bodies = ({"name": "no such: tool! " * 9, "arguments": '{"a": '}, {"name": "ünknown", "arguments": "[1]"})
            return [
                {"tool_calls": [{"index": n, "id": f"call_{n}", "function": body}]} for n, body in enumerate(bodies)
            ]
        if "script" in self.commands:
            thoughts = [{"reasoning_content": "Let me think."}] if "reasoning" in self.commands else []
            return [*thoughts, *self._played()]
        if "tools" in self.commands or "tools-bare" in self.commands:
            return self._calls()
        if "echo" in self.commands:
            texts = [message["content"] for message in self.request["messages"] if message["role"] == "user"]
            return [{"content": word} for word in re.findall(r"\s*\S+\s*", texts[-1])]
        if "unicode" in self.commands:
            return [{"content": text} for text in UNICODE]
        if "halves" in self.commands:
            return [{"content": "a\ud83d"}, {"content": "\ude00b"}]
        if "echo-key" in self.commands:
            return [{"content": f"You sent {self.headers.get('authorization')}"}]
        thoughts = [{"reasoning_content": "Let me think."}] if "reasoning" in self.commands else []
        return [*thoughts, *({"content": word} for word in WORDS)]

    def pieces(self) -> list[dict[str, Any]]:
        """The deltas of the answer."""
        pieces = self._usual_pieces()
        if "returned" in self.commands:
            pieces[0] |= {"reasoning_content": "Hm.", "reasoning_details": [{"type": "x"}]}
            for call in pieces[0].get("tool_calls") or []:
                call["extra_content"] = {"google": {"thought_signature": "x"}}
        if "odd-fields" in self.commands:
            pieces[0] |= ODD_FIELDS
            for call in pieces[0].get("tool_calls") or []:
                call |= {**ODD_CALL_FIELDS, **call}
        if "refusal" in self.commands:
            pieces = [{"refusal" if name == "content" else name: piece[name] for name in piece} for piece in pieces]
        return pieces

    def _played(self) -> list[dict[str, Any]]:
        """The next section of the script in the last user message: one for each assistant message since. A client that
        shortens its conversation gets a summary."""
        messages = self.request["messages"]
        texts = {}
        for number, message in enumerate(messages):
            content = message["content"] or ""
            text = content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
            if message["role"] == "user" and re.search(r"^(say|tool|quote) ", text, re.MULTILINE):
                texts[number] = text
        asks = messages[-1]["role"] == "user" and len(messages) - 1 not in texts
        if asks and self.given(r"context-(\d+)") and "summary" in text:
            return [{"content": "<summary>The summary.</summary>"}]
        if not texts:  # it was summarized
            return [{"content": "All done."}]
        last = max(texts)
        sections = [
            re.findall(r"^(say|tool|quote) (.+)$", section, re.MULTILINE)
            for section in re.split(r"(?m)^---$", texts[last])
        ]
        played = sum(message["role"] == "assistant" for message in messages[last:])
        deltas: list[dict[str, Any]] = []
        for word, rest in sections[played] if played < len(sections) else [("say", "All done.")]:
            if word == "quote":  # what the result of the last tool has of this pattern
                found = re.search(rest, str(messages[-1]["content"]))
                rest = found[0] if found else f"Nothing is like {rest}."
            if word != "tool":
                deltas.append({"content": rest})
                continue
            name, _, arguments = rest.partition(" ")
            index, middle = sum("tool_calls" in delta for delta in deltas) // 3, len(arguments) // 2
            head = {"id": f"call_{played}_{index}", "type": "function", "function": {"name": name, "arguments": ""}}
            rests = [{"function": {"arguments": part}} for part in (arguments[:middle], arguments[middle:])]
            deltas += [{"tool_calls": [{"index": index, **part}]} for part in (head, *rests)]
        return deltas

    def _calls(self) -> list[dict[str, Any]]:
        tools = self.request.get("tools") or [{"function": {"name": "look_up"}}]
        name, text = tools[0]["function"]["name"], json.dumps(ARGUMENTS)
        if "tools-bare" in self.commands:
            call = {"function": {"name": name, "arguments": ARGUMENTS}}
            return [{"tool_calls": [call]}, {"tool_calls": [call]}]
        deltas: list[dict[str, Any]] = []
        for index in (0, 1):
            first = {
                "index": index,
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": name, "arguments": ""},
            }
            rest = [{"index": index, "function": {"arguments": piece}} for piece in (text[:5], text[5:])]
            deltas += [{"tool_calls": [call]} for call in (first, *rest)]
        return deltas

    def usage(self) -> dict[str, Any] | None:
        if "bills-bytes" in self.commands:
            return {"prompt_tokens": int(self.headers["content-length"]), "completion_tokens": 1}
        if tokens := self.given(r"usage-(\d+)"):
            return {"prompt_tokens": int(tokens), "completion_tokens": 0}
        return None if "no-usage" in self.commands else ODD_USAGE if "odd-usage" in self.commands else USAGE

    def _finish_reason(self) -> str | None:
        if "no-finish" in self.commands:
            return None
        return next(
            (reason for reason in ("length", "content_filter") if reason in self.commands), self._usual_finish_reason()
        )

    def _usual_finish_reason(self) -> str:
        if "script" in self.commands:
            return "tool_calls" if any("tool_calls" in delta for delta in self._played()) else "stop"
        return "tool_calls" if "tools" in self.commands else "stop"

    def _head(self, kind: str) -> dict[str, Any]:
        bare = "no-ids" in self.commands
        return {} if bare else {"id": "upstream-1", "object": kind, "created": 1, "model": f"path/{self.model}@main"}

    def completion(self) -> dict[str, Any]:
        message: dict[str, Any] = {} if "no-ids" in self.commands else {"role": "assistant", "content": None}
        for delta in self.pieces():
            for name, value in delta.items():
                if name != "tool_calls":
                    message[name] = (message.get(name) or "") + value if isinstance(value, str) else value
                elif "tools-bare" in self.commands:
                    message.setdefault(name, []).extend(value)
                elif "script" in self.commands and "id" in value[0]:
                    message.setdefault(name, []).append(json.loads(json.dumps(value[0])))
                elif "script" in self.commands:
                    message[name][-1]["function"]["arguments"] += value[0]["function"]["arguments"]
        if "tools" in self.commands:
            calls = [delta["tool_calls"][0] for delta in self.pieces() if "id" in delta["tool_calls"][0]]
            message["tool_calls"] = [
                {**call, "function": {**call["function"], "arguments": json.dumps(ARGUMENTS)}} for call in calls
            ]
        numbered = [
            {} if "no-ids" in self.commands else {"index": index} for index in range(self.request.get("n") or 1)
        ]
        choices = [{**index, "message": message, "finish_reason": self._finish_reason()} for index in numbered]
        usage = {} if self.usage() is None else {"usage": self.usage()}
        return {**self._head("chat.completion"), "choices": choices, **usage}

    def _chunks(self) -> list[dict[str, Any]]:
        head = self._head("chat.completion.chunk")
        bare = "no-ids" in self.commands
        extra = {"usage": self.usage()} if "usage-always" in self.commands else {}
        indices = [{} if bare else {"index": index} for index in range(self.request.get("n") or 1)]
        deltas = [*([] if bare else [{"role": "assistant", "content": ""}]), *self.pieces()]
        chunks = [
            {**head, "choices": [{**index, "delta": delta, "finish_reason": None}], **extra}
            for delta in deltas
            for index in indices
        ]
        chunks += [
            {**head, "choices": [{**index, "delta": {}, "finish_reason": self._finish_reason()}], **extra}
            for index in indices
        ]
        asked = (self.request.get("stream_options") or {}).get("include_usage")
        return [*chunks, *([{**head, "choices": [], "usage": self.usage()}] if asked and self.usage() else [])]

    def events(self) -> Iterator[bytes]:
        """The data of the stream's events."""
        if "error-mid-stream" in self.commands:
            for chunk in self._chunks()[:2]:
                yield json.dumps(chunk).encode()
            yield b'{"error": {"message": "the model fell over", "code": 500}}'
            return
        if "endless" in self.commands:
            text = "on and " * int(self.given(r"times-(\d+)") or 1)
            while True:
                yield json.dumps(
                    {**self._head("chat.completion.chunk"), "choices": [{"index": 0, "delta": {"content": text}}]}
                ).encode()
        for number, chunk in enumerate(self._chunks(), 1):
            data = json.dumps(chunk, ensure_ascii="halves" in self.commands).encode()
            broken = number == 3 and "broken-json" in self.commands
            bad = number == 3 and "bad-utf8" in self.commands
            yield b'{"choices": [{"del' if broken else data.replace(b"He", b"\xff\xfe") if bad else data
        for _ in range(0 if "no-done" in self.commands else 2 if "two-done" in self.commands else 1):
            yield b"[DONE]"
