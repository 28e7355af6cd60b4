"""The request of `POST /v1/responses` as a chat request."""

from collections.abc import Callable
from functools import partial
from typing import Any

from svc.inference.blocks import ascii_json
from svc.inference.formats.request import ChatMessages, Translated
from svc.inference.formats.responses_answer import ResponseWriter
from svc.shapes import boolean, by_type, filled, list_of, mapping, passed_on, string

RESPONSE_REQUEST = passed_on(
    {"model": filled, "input": by_type("a string or a list", {str: string, list: list_of(mapping)}), "stream": boolean},
    required=("input",),
).named("ResponseRequest")
_ECHOED: dict[str, Any] = {
    "background": False,
    "frequency_penalty": 0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1,
    "truncation": "disabled",
    "user": None,
}


def translate(body: dict[str, Any], clock: Callable[[], float]) -> Translated:
    messages = ChatMessages()
    items = body["input"]
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        messages.add_user(str(item.get("content")))
    chat: dict[str, Any] = {"messages": messages.all()}
    if body.get("stream"):
        chat |= {"stream": True, "stream_options": {"include_usage": True}}
    writer = partial(
        ResponseWriter, echo=ascii_json(_ECHOED)[1:-1], tools={}, summary=False, clock=clock, remember=lambda items: None
    )
    return Translated(chat, frozenset({"stream_options"}), (), writer)
