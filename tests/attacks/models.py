"""Attacks on the built-in models and on what stands between a caller and a model."""

import orjson

from tests.attacks.lab import Lab, attack
from tests.attacks.server import CHAT


@attack("a tool whose schema has 90,000 enum entries")
async def enum_entries(lab: Lab) -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "string", "enum": [f"e{n}(a+)+$" for n in range(90_000)]}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    await lab.flood("/v1/chat/completions", orjson.dumps({**CHAT, "tools": tools}))


@attack("10,000 nested repeat lines for the script")
async def nested_repeats(lab: Lab) -> None:
    messages = [{"role": "user", "content": "repeat 9 " * 10_000 + "say x"}]
    await lab.flood("/v1/chat/completions", orjson.dumps({"model": "builtin/script", "messages": messages}), 8)


@attack("a goal of 1 MB of digits and operators for the assistant")
async def arithmetic(lab: Lab) -> None:
    for text in ("9**" * 300_000 + "9", "(" * 500_000 + ")" * 500_000, "1 + " * 250_000 + "1", "\u0300" * 500_000):
        await lab.flood("/v1/chat/completions", orjson.dumps({**CHAT, "messages": [{"role": "user", "content": text}]}), 4)


@attack("speech of 100,000 dots, 8 times at once")
async def dots(lab: Lab) -> None:
    await lab.fund()
    await lab.flood("/v1/audio/generate", orjson.dumps({"model": "builtin/voice", "input": "." * 100_000}), 8)


@attack("answers asked for in 128 choices of 1 MB")
async def choices(lab: Lab) -> None:
    body = {"model": "builtin/echo", "messages": [{"role": "user", "content": "x" * 1_000_000}], "n": 128}
    await lab.flood("/v1/chat/completions", orjson.dumps(body), 8)
