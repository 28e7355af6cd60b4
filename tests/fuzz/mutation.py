"""What becomes of a good request: values, fields and bytes changed, dropped, doubled and mixed up."""

import copy
import random
from typing import Any

MARKS = "a" + "\u0301\u0323" * 2_000
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, 6.0, 1e308, -0.0, 2**31, 2**53 + 1, 2**63, 2**64, 10**400),
    *("", " ", "\0", "a\0b", "\u200b", "\ud800", "\U0001f642", "\u2028", "\r\n", "%00", "'; --"),
    *("data: [DONE]", "../../etc/passwd"),
    *(
        "null",
        "1",
        "NaN",
        "9" * 400,
        "x" * 5_000,
        "\\" * 500,
        "." * 500,
        "(" * 500,
        MARKS,
        "a@b.c",
        "https://127.0.0.1:1/v1",
    ),
    *("builtin/echo", "builtin/assistant", "builtin/script", "builtin/assistant-paid", "no/such"),
    *("user", "assistant", "tool", "auto"),
    *([], {}, [[]], [None], {"": ""}, [{}] * 50, {"type": "text", "text": "x"}),
    {"type": "image_url", "image_url": {"url": "data:,"}},
)


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def mutated_json(value: Any, rnd: random.Random) -> Any:
    """A copy of `value` with one to three changes somewhere in it."""
    value = copy.deepcopy(value)
    for _ in range(rnd.randrange(1, 4)):
        value = _changed(value, rnd)
    return value


def _changed(value: Any, rnd: random.Random) -> Any:
    if isinstance(value, dict) and value and rnd.random() < 0.8:
        name = rnd.choice(list(value))
        way = rnd.random()
        if way < 0.1:
            del value[name]
        elif way < 0.2:
            value[rnd.choice(["", "id", "model", "stream", "n", "tools", "x" * 300])] = _any(rnd)
        else:
            value[name] = _changed(value[name], rnd)
        return value
    if isinstance(value, list) and value and rnd.random() < 0.8:
        place = rnd.randrange(len(value))
        way = rnd.random()
        if way < 0.1:
            del value[place]
        elif way < 0.2:
            value.extend(copy.deepcopy(value[place]) for _ in range(rnd.choice([1, 30])))
        else:
            value[place] = _changed(value[place], rnd)
        return value
    if isinstance(value, str) and rnd.random() < 0.3:
        return value[: rnd.randrange(len(value) + 1)] + rnd.choice(["", "\0", "\u200b", "\u0301", "\\", " ", value])
    return _any(rnd)


def _any(rnd: random.Random) -> Any:
    return deep(rnd.choice([3, 99, 101, 200])) if rnd.random() < 0.02 else copy.deepcopy(rnd.choice(VALUES))


TOKENS = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b"\xff", b"%", b"%00", b"?", b"#"),
    *(b"//", b"{", b'"', b"\xed\xa0\x80"),
    *(
        b"Content-Length: 5\r\n",
        b"Content-Length: 99999999999999999999\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"0\r\n\r\n",
    ),
    *(
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Host: a\r\n",
        b"Expect: 100-continue\r\n",
        b"Connection: close\r\n",
        b"HTTP/1.0",
    ),
    *(
        b"Upgrade: websocket\r\n",
        b"Range: bytes=0-\r\n",
        b"Content-Encoding: gzip\r\n",
        b"x: " + b"y" * 3_000 + b"\r\n",
    ),
    *(
        b"ffffffff\r\n",
        b"Authorization: Bearer x\r\n",
        b'Cookie: a=\\\\"\r\n',
        b"If-None-Match: *\r\n",
        b"Origin: null\r\n",
    ),
    b"X-Request-Id: a b\r\n",
)


def mutated_bytes(data: bytes, rnd: random.Random) -> bytes:
    """`data` with none to three changes somewhere in it."""
    for _ in range(rnd.choice([0, 1, 1, 1, 2, 3])):
        place = rnd.randrange(len(data) + 1)
        end = min(place + rnd.choice([1, 2, 8, 40]), len(data))
        way = rnd.randrange(6)
        if way == 0:
            data = data[:place] + bytes([rnd.randrange(256)]) + data[place + 1 :]
        elif way == 1:
            data = data[:place] + data[end:]
        elif way == 2:
            data = data[:end] + data[place:]
        elif way == 3:
            data = data[:place] + data[place:end] * rnd.choice([2, 50]) + data[end:]
        else:
            data = data[:place] + rnd.choice(TOKENS) + data[place:]
    return data
