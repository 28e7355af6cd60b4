"""The model server of tests/bench.py: answers at once, costs little, and lets the load decide how much a read brings.

It is no test of anything: tests/support/model_server.py is the one that misbehaves.
"""

import asyncio
from collections import deque
from typing import Any, cast

import orjson

from tests.support.format_events import Said, answer_of, events_of

EVENTS = 96
RUN_EVENTS = 37  # of an agent run: started, step, tool_call, tool_result, step, its deltas, final
_RUN_DELTAS = RUN_EVENTS - 6
_ENDING = 3  # finish reason, usage, [DONE]
_HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "ok"}
_USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
_MESSAGE = {"role": "assistant", "content": "Hello there, this is an answer of some words."}
_ANSWER = orjson.dumps(
    {
        **_HEAD,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": _MESSAGE, "finish_reason": "stop"}],
        "usage": _USAGE,
    }
)


def _json(answer: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)
    return head + answer


_JSON = _json(_ANSWER)
_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _event(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return b"data: %b\n\n" % orjson.dumps({**_HEAD, "choices": [choice], **more})


def _answer(deltas: list[dict[str, Any]], finish_reason: str) -> list[bytes]:
    count = b"data: %b\n\n" % orjson.dumps({**_HEAD, "choices": [], "usage": _USAGE})
    return [
        _event({"role": "assistant", "content": ""}),
        *(_event(delta) for delta in deltas),
        _event({}, finish_reason),
        count,
        b"data: [DONE]\n\n",
    ]


_TEXT = _answer([{"content": " word"}] * (EVENTS - 3), "stop")
_CALL = {"name": "calculate", "arguments": '{"expression": "6*7"}'}
_TOOL = _answer([{"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": _CALL}]}], "tool_calls")
_RESULT = _answer([{"content": " word"}] * _RUN_DELTAS, "stop")


_SAID = Said([{"text": str(_MESSAGE["content"])}])
_ANSWERS = {api: _json(orjson.dumps(answer_of(api, _SAID, "ok"))) for api in ("responses", "messages")}


def _streamed(api: str) -> list[bytes]:
    """A stream with as many events as that of chat."""
    few = len(events_of(api, Said([{"text": " "}], piece=1), "ok"))
    events = events_of(api, Said([{"text": " " * (EVENTS + 1 - few)}], piece=1), "ok")
    for event in events:
        if event.get("delta") == " ":
            event["delta"] = " word"
        elif isinstance(event.get("delta"), dict) and "text" in event["delta"]:
            event["delta"]["text"] = " word"
    return [b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event)) for event in events]


_STREAMS = {api: _streamed(api) for api in ("responses", "messages")}


class BenchModel:
    """Run the server in the process of the load. `arrived(number, count)` reports how many events of a stream have
    arrived, where `number` is the `user` of its request. Then the next `burst` of events is sent.

    A stream without a number sends a burst each turn of the loop. `port` is where it listens.
    """

    def __init__(self) -> None:
        self.port = 0
        self.burst = 8
        self._streams: dict[str, _Connection] = {}
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Connection(self), "127.0.0.1", 0, backlog=2048
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    def arrived(self, number: str, count: int) -> None:
        connection = self._streams.get(number)
        if connection is not None and count >= connection.sent:
            connection.send_burst()

    def open(self, number: str, connection: "_Connection") -> None:
        self._streams[number] = connection

    def close(self, number: str) -> None:
        self._streams.pop(number, None)


class _Connection(asyncio.Protocol):
    def __init__(self, model: BenchModel) -> None:
        self._model = model
        self._received = b""
        self._left: deque[bytes] = deque()
        self._number = ""
        self.sent = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        length = int((head.lower().partition(b"content-length:")[2] or b"0").partition(b"\r\n")[0])
        if len(body) >= length:
            self._received = b""
            path = head.partition(b" HTTP/")[0]
            api = next((api for api in _STREAMS if path.endswith(api.encode())), "chat")
            self._answer(orjson.loads(body), api)

    def _answer(self, request: dict[str, Any], api: str) -> None:
        if not request.get("stream"):
            self._transport.write(_ANSWERS.get(api, _JSON))
            return
        events = _STREAMS.get(api, _TEXT)
        if request["model"] == "agent":
            events = _RESULT if request["messages"][-1]["role"] == "tool" else _TOOL
        elif request["model"] == "silent":
            self._transport.write(_STREAM + _chunk(_TEXT[0]))
            return
        self._left.extend(events)
        self.sent = 0
        self._number = str(request.get("user") or "")
        self._transport.write(_STREAM)
        if self._number:
            self._model.open(self._number, self)
            self.send_burst()
        else:
            self._send_all()

    def send_burst(self) -> None:
        """The next few events in one write. The last of them, which need not all come through, go with the end."""
        size = self._model.burst if len(self._left) > self._model.burst + _ENDING else len(self._left)
        burst = b"".join(self._left.popleft() for _ in range(size))
        self.sent += size
        if self._left:
            self._transport.write(_chunk(burst))
        elif burst:
            self._model.close(self._number)
            self._transport.write(_chunk(burst) + b"0\r\n\r\n")

    def _send_all(self) -> None:
        self.send_burst()
        if self._left:
            asyncio.get_running_loop().call_soon(self._send_all)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
