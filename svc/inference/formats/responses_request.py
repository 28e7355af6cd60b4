"""The request of `POST /v1/responses` as a chat request."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from svc.errors import ApiError, invalid_value
from svc.inference.answer.events import ascii_json
from svc.inference.formats import hosted_search
from svc.inference.formats.hosted_search import HostedSearch
from svc.inference.formats.item_memory import ItemMemory
from svc.inference.formats.request import ChatMessages, Part, Translated, image_part, text_part
from svc.inference.formats.responses_answer import NamedTool, ResponseWriter
from svc.inference.formats.responses_shape import FIELDS, OWN_TOOLS
from svc.inference.images import text_of_file
from svc.inference.passed_fields import not_null
from svc.inference.sent_body import CallerFormat
from svc.inference.server_formats import seals

_RENAMED = {
    "max_output_tokens": "max_tokens",
    **{name: name for name in ("model", "temperature", "top_p", "presence_penalty", "frequency_penalty", "user")},
}
_NAMES = {"max_tokens": "max_output_tokens", "response_format": "text.format", "messages": "input"}
_COUNTS = ("max_output_tokens", "max_tool_calls", "top_logprobs")
# What the response repeats of its request, and what it says where the request has nothing.
_ECHOED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "temperature": 1,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1,
    "user": None,
}
_FIXED = {
    "background": False,
    "previous_response_id": None,
    "service_tier": "default",
    "store": False,
    "truncation": "disabled",
}
_TOOL_NAME_CHARACTERS = 64
Tool = dict[str, Any]
_INPUT_SCHEMA = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


def translate(
    body: dict[str, Any],
    *,
    account_id: str,
    memory: ItemMemory,
    clock: Callable[[], float],
    with_seals: bool = False,
    searches: bool = False,
) -> Translated:
    """Return a checked request as a chat request, with encrypted reasoning only if `with_seals`.

    With `searches`, the service has a search engine.

    Raises ApiError `invalid_value`, `unsupported_value`, `not_found`.
    """
    sent: dict[str, Any] = {"reasoning": {}, "text": {}, "tools": [], **not_null(body, *body)}
    sent |= {name: int(sent[name]) for name in _COUNTS if name in sent}
    items = sent["input"] if isinstance(sent["input"], list) else [{"role": "user", "content": sent["input"]}]
    tools = _ToolSet(sent["tools"], items, searches=searches)
    messages = ChatMessages(with_seals=with_seals)
    if "instructions" in sent:
        messages.add_system(sent["instructions"])
    referenced = set()
    for place, item in enumerate(items):
        if item.get("type") == "item_reference" or (item.get("type") is None and "role" not in item):
            item_id, param = item["id"], f"input[{place}].id"
            if item_id in referenced:  # a small request could otherwise become gigabytes
                raise invalid_value(f"Duplicate item found with id {item_id!r}.", param)
            referenced.add(item_id)
            item = memory.item(account_id, item_id, param)
        _add_item(messages, tools, item, f"input[{place}]")
    chat = {name: sent[field] for field, name in _RENAMED.items() if field in sent}
    chat |= {"messages": messages.all(), **tools.fields(sent), **_of_text(sent)}
    if sent.get("stream"):
        chat |= {"stream": True, "stream_options": {"include_usage": True}}
    writer = partial(
        ResponseWriter,
        echo=_echo(sent, searches),
        tools=tools.offered,
        summary=sent["reasoning"].get("summary") is not None,
        clock=clock,
        remember=partial(memory.add, account_id) if sent.get("store", True) else lambda items: None,
    )
    without_place = {name: value for name, value in sent.items() if name not in FIELDS or name == "service_tier"}
    caller_format = CallerFormat(_NAMES, sent["reasoning"].get("summary"))
    return Translated(chat, tools.ignored, writer, caller_format, without_place, tools.search_of(sent))


def _of_text(sent: dict[str, Any]) -> dict[str, Any]:
    text, effort = sent["text"], sent["reasoning"].get("effort")
    found: dict[str, Any] = {"verbosity": text.get("verbosity"), "reasoning_effort": effort}
    format = text.get("format") or {"type": "text"}
    if format["type"] == "json_schema":
        schema = not_null(format, "name", "description", "schema", "strict")
        found["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif format["type"] != "text":
        found["response_format"] = {"type": format["type"]}
    if sent.get("top_logprobs") or "message.output_text.logprobs" in sent.get("include", ()):
        found |= {"logprobs": True, "top_logprobs": sent.get("top_logprobs")}
    return not_null(found, *found)


def _echo(sent: dict[str, Any], searches: bool) -> dict[str, bytes]:
    text, reasoning = sent["text"], sent["reasoning"]
    format = {"type": "text", **(text.get("format") or {})}
    if format["type"] == "json_schema":
        format = {"description": None, "strict": False, **format}
    echo = {
        **{name: sent.get(name, default) for name, default in _ECHOED.items()},
        **_FIXED,
        "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
        "text": {**not_null(text, *text), "format": format},
        "tools": [_echoed_tool(tool) for tool in sent["tools"] if _runs_here(tool, searches)],
    }
    return {name: ascii_json(value) for name, value in echo.items()}


def _runs_here(tool: Tool, searches: bool) -> bool:
    return tool["type"] in OWN_TOOLS or (searches and hosted_search.is_search(tool))


def _echoed_tool(tool: Tool) -> Tool:
    """Return a tool with the fields that OpenAI's types require."""
    if tool["type"] == "function":
        return {"description": None, "parameters": None, "strict": None, **tool}
    if tool["type"] == "namespace":
        tools = [_echoed_tool(one) for one in tool["tools"]]
        return {**tool, "description": tool.get("description") or "", "tools": tools}
    return tool


# --- items


def _add_item(messages: ChatMessages, tools: "_ToolSet", item: dict[str, Any], param: str) -> None:
    kind = item.get("type") or "message"
    if kind == "message":
        _add_message(messages, item, param)
    elif kind in ("function_call", "custom_tool_call"):
        arguments = item["arguments"] if kind == "function_call" else ascii_json({"input": item["input"]}).decode()
        messages.add_call(item["call_id"], tools.name_of(item), arguments, param)
    elif kind in ("function_call_output", "custom_tool_call_output"):
        messages.add_result(item["call_id"], _parts(item["output"], "tool", f"{param}.output"), param)
    elif kind == "reasoning":
        texts = [part["text"] for part in item.get("content") or item.get("summary") or ()]
        messages.add_reasoning("\n".join(texts), seals.of_callers_item(item))


def _add_message(messages: ChatMessages, item: dict[str, Any], param: str) -> None:
    parts = _parts(item["content"], item["role"], f"{param}.content")
    if item["role"] == "user":
        alone = len(parts) == 1 and parts[0]["type"] == "text"
        messages.add_user(parts[0]["text"] if alone else parts)
        return
    if item["role"] != "assistant":
        messages.add_system("\n".join(part["text"] for part in parts))
        return
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
    if text or not refusals:
        messages.add_said("content", text)
    for refusal in refusals:
        messages.add_said("refusal", refusal)


def _parts(content: str | list[dict[str, Any]], role: str, param: str) -> list[Part]:
    """Return the parts of a message, or with the role `tool` of a result."""
    if isinstance(content, str):
        return [text_part(content)]
    return [_chat_part(part, role, f"{param}[{place}]") for place, part in enumerate(content)]


def _chat_part(part: dict[str, Any], role: str, param: str) -> Part:
    if part["type"] == "refusal":
        if role != "assistant":
            raise invalid_value("Only a message of the assistant may hold a refusal.", param)
        return part
    if part["type"] == "input_image":
        if role not in ("user", "tool"):
            raise invalid_value("Only a user message or a result may hold an image.", param)
        return image_part(part["image_url"], f"{param}.image_url", **not_null(part, "detail"))
    if part["type"] != "input_file":
        return text_part(part["text"])
    if (text := text_of_file(part)) is not None:
        return text_part(text)
    file = not_null(part, "filename", "file_data", "file_url")
    if role not in ("user", "tool") or not file.keys() & {"file_data", "file_url"}:
        raise invalid_value("Only a user message or a result may hold a file, with file_data or file_url.", param)
    return {"type": "file", "file": file}


# --- tools


class _ToolSet:
    """The tools of a request: `offered` are those that the model server gets, by their names there."""

    def __init__(self, tools: list[Tool], items: list[dict[str, Any]], *, searches: bool) -> None:
        self.offered: dict[str, NamedTool] = {}
        self._chat: dict[str, Tool] = {}
        self._names: dict[tuple[str | None, str], str] = {}
        found = [*_placed(tools, "tools")]
        for place, item in enumerate(items):
            if item.get("type") == "additional_tools":
                found += _placed(item["tools"], f"input[{place}].tools")
        # A function of the caller with this name is the caller's.
        own = [tool for tool, *_ in found if tool.get("name") == hosted_search.NAME and tool["type"] in OWN_TOOLS]
        searches = searches and not own
        self._searches = [(tool, param) for tool, param, _ in found if searches and hosted_search.is_search(tool)]
        left_out = (tool["type"] for tool, *_ in found if not _runs_here(tool, searches))
        self.ignored = tuple(dict.fromkeys(left_out))
        found = [one for one in found if one[0]["type"] in OWN_TOOLS]
        ungrouped = {tool["name"] for tool, _, namespace in found if namespace is None}
        for tool, param, namespace in found:
            name = tool["name"]
            if namespace is not None and (name in self._chat or name in ungrouped):
                name = f"{namespace}__{name}"[-_TOOL_NAME_CHARACTERS:]
            if name in self._chat:
                raise invalid_value(f"There is another tool with the name {name[:200]}.", f"{param}.name")
            self.offered[name] = NamedTool(tool["name"], tool["type"] == "custom", namespace)
            self._names[namespace, tool["name"]] = name
            self._chat[name] = {"type": "function", "function": {"name": name, **_function(tool)}}
        if self._searches:
            self._chat[hosted_search.NAME] = hosted_search.FUNCTION

    def search_of(self, sent: dict[str, Any]) -> HostedSearch | None:
        """Return the hosted web search of the request, or None. Raises ApiError `invalid_value`."""
        search = hosted_search.of_tools(self._searches)
        if search is None:
            return None
        most_uses = min(search.most_uses, int(sent.get("max_tool_calls") or search.most_uses))
        with_sources = "web_search_call.action.sources" in sent.get("include", ())
        return search._replace(most_uses=most_uses, with_sources=with_sources)

    def name_of(self, named: dict[str, Any]) -> str:
        """Return the name at the model server of a tool that an item or a choice names."""
        name: str = named["name"]
        return self._names.get((named.get("namespace"), name)) or name

    def fields(self, sent: dict[str, Any]) -> dict[str, Any]:
        chosen, kept = sent.get("tool_choice", "auto"), self._chat
        if isinstance(chosen, dict) and chosen["type"] == "allowed_tools":
            names = {self.name_of(one): None for one in chosen["tools"] if one.get("name") is not None}
            if self._searches and any(map(hosted_search.is_search, chosen["tools"])):
                names[hosted_search.NAME] = None
            kept, chosen = {name: kept[name] for name in names if name in kept}, chosen["mode"]
        elif isinstance(chosen, dict):
            name = self.name_of(chosen) if chosen["type"] in ("function", "custom") and chosen.get("name") else None
            if self._searches and hosted_search.is_search(chosen):
                name = hosted_search.NAME
            if name not in kept:
                message = "tool_choice must name one of the functions in tools."
                raise ApiError("unsupported_value", message, param="tool_choice")
            chosen = {"type": "function", "function": {"name": name}}
        if not kept:
            if chosen == "required":
                raise ApiError("unsupported_value", "tool_choice needs a function in tools.", param="tool_choice")
            return {}
        chosen_tool = {"tool_choice": chosen} if "tool_choice" in sent else {}
        return {"tools": [*kept.values()], **chosen_tool, **not_null(sent, "parallel_tool_calls")}


def _placed(tools: list[Tool], param: str, namespace: str | None = None) -> Iterator[tuple[Tool, str, str | None]]:
    """Yield each tool with its place, and with its namespace if it is in one."""
    for place, tool in enumerate(tools):
        if tool["type"] == "namespace":
            yield from _placed(tool["tools"], f"{param}[{place}].tools", tool["name"])
        else:
            yield tool, f"{param}[{place}]", namespace


def _function(tool: Tool) -> dict[str, Any]:
    if tool["type"] == "function":
        return not_null(tool, "description", "parameters", "strict")
    texts = (tool.get("description"), (tool.get("format") or {}).get("definition"))
    return {"description": "\n\n".join(text for text in texts if text), "parameters": _INPUT_SCHEMA}
