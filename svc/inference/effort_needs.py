"""What model servers demand of reasoning in a request. A refusal shows it, and it is remembered like a refused field.

`NO_EFFORT`: a chat server takes tools only with `reasoning_effort: "none"`, as OpenAI's models since GPT-5.4 do, also
without the field (https://github.com/openai/openai-openapi/issues/541).
`BY_EFFORT`: a Messages server takes an effort, and no budget of tokens, as Claude since 4.7 does
(https://platform.claude.com/docs/en/build-with-claude/thinking).
"""

import re
from collections.abc import Collection
from typing import Any, NamedTuple

from svc.errors import UpstreamFault
from svc.inference.catalog import Model
from svc.inference.efforts import EFFORTS
from svc.inference.server_formats.chat_parts import BY_EFFORT

NO_EFFORT = "tools without reasoning_effort none"
ADVICE = (
    "its server takes tools in chat completions only with reasoning_effort none, which is sent instead. Set "
    'api = "responses" at this model'
)


class _Need(NamedTuple):
    """What a refusal is about, and one of which words it has, or has as its `param`. With `most_bytes` more the request
    is sent again.
    """

    about: str
    words: tuple[str, ...]
    most_bytes: int


NEEDS = {
    NO_EFFORT: _Need(r"(?i)\b(?:tool|function)(?:s|\b)", ("reasoning_effort", "/v1/responses"), 26),
    BY_EFFORT: _Need(r"(?i)\bnot supported|unsupported|adaptive", ("thinking.type.enabled", "budget_tokens"), 60),
}
_NONE: frozenset[str] = frozenset()
_NO_EFFORT, _BY_EFFORT = frozenset({NO_EFFORT}), frozenset({BY_EFFORT})


def needs_of(model: Model, body: dict[str, Any]) -> frozenset[str]:
    """Return what the model's server may demand of this chat request."""
    if model.api == "chat":
        return _NO_EFFORT if body.get("tools") or body.get("functions") else _NONE
    has_budget = model.api == "messages" and not model.efforts and body.get("reasoning_effort")
    return _BY_EFFORT if has_budget else _NONE


def demanded(fault: UpstreamFault, needs: Collection[str]) -> frozenset[str]:
    """Return which of the `needs` the fault is about."""
    if not needs or fault.status not in (400, 422) or fault.error is None:
        return _NONE
    param, message = str(fault.error.get("param")), str(fault.error.get("message"))
    found = {name for name in needs if any(word in message or word == param for word in NEEDS[name].words)}
    return frozenset(name for name in found if re.search(NEEDS[name].about, message))


def is_certain(need: str, body: dict[str, Any], text: bytes) -> bool:
    """Return whether a refusal is certainly the server's own. `text` is the JSON of the caller's `body` in lower case,
    without its effort: a refusal may quote it.
    """
    if body.get("reasoning_effort") not in (None, *EFFORTS):
        return False
    return not any(word.encode() in text for word in NEEDS[need].words)


def fulfilled(body: dict[str, Any], needs: Collection[str]) -> dict[str, Any]:
    """Return the chat request as the server demands it."""
    if NO_EFFORT in needs and (body.get("tools") or body.get("functions")):
        body = {**body, "reasoning_effort": "none"}
    return {**body, BY_EFFORT: True} if BY_EFFORT in needs else body
