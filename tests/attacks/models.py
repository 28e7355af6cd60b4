"""Attacks on the built-in models and on what stands between a caller and a model."""

import orjson

from tests.attacks.lab import Lab, attack
from tests.attacks.media import server_that_says
from tests.attacks.server import CHAT


@attack("8 chats at once with an own provider, each of 16 MiB of escaped text, answered with 4 MB of it")
async def escapes_passed_on(lab: Lab) -> None:
    text = b"\\n" * 2_000_000
    answer = b'{"choices": [{"message": {"role": "assistant", "content": "%b"}, "finish_reason": "stop"}]}' % text
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)
    async with server_that_says(head + answer) as port:
        await lab.post("/user/providers", {"name": "own", "base_url": f"http://127.0.0.1:{port}/v1", "models": ["x"]})
        message = b'{"role": "user", "content": "%b"}' % (b"\\n" * 30_000)
        body = b'{"model": "own/x", "messages": [%b]}' % b",".join([message] * 250)
        await lab.flood("/v1/chat/completions", body, 8)


@attack("a tool whose schema has 90,000 enum entries")
async def enum_entries(lab: Lab) -> None:
    parameters = {
        "type": "object",
        "properties": {"x": {"type": "string", "enum": [f"e{n}(a+)+$" for n in range(90_000)]}},
    }
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    await lab.flood("/v1/chat/completions", orjson.dumps({**CHAT, "tools": tools}))


@attack("10,000 nested repeat lines for the script")
async def nested_repeats(lab: Lab) -> None:
    messages = [{"role": "user", "content": "repeat 9 " * 10_000 + "say x"}]
    await lab.flood("/v1/chat/completions", orjson.dumps({"model": "builtin/script", "messages": messages}), 8)


@attack("a goal of 1 MB of digits and operators for the assistant")
async def arithmetic(lab: Lab) -> None:
    for text in ("9**" * 300_000 + "9", "(" * 500_000 + ")" * 500_000, "1 + " * 250_000 + "1", "\u0300" * 500_000):
        await lab.flood(
            "/v1/chat/completions", orjson.dumps({**CHAT, "messages": [{"role": "user", "content": text}]}), 4
        )


@attack("speech of 100,000 dots, 8 times at once")
async def dots(lab: Lab) -> None:
    await lab.fund()
    await lab.flood("/v1/audio/generate", orjson.dumps({"model": "builtin/voice", "input": "." * 100_000}), 8)


@attack("answers asked for in 128 choices of 1 MB")
async def choices(lab: Lab) -> None:
    body = {"model": "builtin/echo", "messages": [{"role": "user", "content": "x" * 1_000_000}], "n": 128}
    await lab.flood("/v1/chat/completions", orjson.dumps(body), 8)
