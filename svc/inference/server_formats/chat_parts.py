"""What of a chat request the requests of Responses and Messages have in common: messages, tools and their choice."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from svc.errors import ApiError
from svc.inference.cache_marks import NAME as MARK

# Fields that this service adds to a chat request for such servers: to get reasoning sealed, and in words; and to ask
# Messages servers for an effort instead of a budget.
SEALED, SUMMARY, BY_EFFORT = "reasoning.encrypted_content", "reasoning.summary", "thinking by effort"
NO_SCHEMA = {"type": "object", "properties": {}}

Block = dict[str, Any]
Convert = Callable[[dict[str, Any], str], Block]


def refusal_of(param: str, problem: str = "cannot be used with this model. Leave it out.") -> ApiError:
    return ApiError("unsupported_value", f"{param} {problem}", param=param)


def mark_of(*holders: Any) -> dict[str, Any]:
    """Return the first mark of what to cache in these `holders`, as Messages has it, or nothing."""
    for holder in holders:
        mark = holder.get(MARK) if isinstance(holder, dict) else None
        if isinstance(mark, dict) and mark.get("type") == "ephemeral":
            ttl = {"ttl": mark["ttl"]} if mark.get("ttl") in ("5m", "1h") else {}
            return {MARK: {"type": "ephemeral", **ttl}}
    return {}


def stops_of(chat: dict[str, Any]) -> list[str]:
    stops = chat.get("stop") or []
    return [stop for stop in ([stops] if isinstance(stops, str) else stops) if stop]


def limit_of(chat: dict[str, Any]) -> int | None:
    """Return the output limit. Numbers below 1 mean none."""
    limits = [chat[name] for name in ("max_completion_tokens", "max_tokens") if (chat.get(name) or 0) >= 1]
    return int(min(limits)) if limits else None


def schema_of(chat: dict[str, Any]) -> dict[str, Any] | None:
    """Return the named schema that the answer's text must follow, or None."""
    wanted = chat.get("response_format") or {}
    if wanted.get("type") in (None, "text", "json_object"):
        return None
    if wanted["type"] != "json_schema" or not isinstance(wanted.get("json_schema"), dict):
        raise refusal_of("response_format", "must be of the type json_schema, json_object or text.")
    schema: dict[str, Any] = wanted["json_schema"]
    return {**schema, "schema": schema["schema"] if isinstance(schema.get("schema"), dict) else {"type": "object"}}


# --- messages


def parts_of(content: Any, convert: Convert, param: str) -> list[Block]:
    """Return the parts of a message's content that are not empty, as `convert` makes them."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    places = enumerate(content or ())
    return [convert(part, f"{param}.content[{place}]") for place, part in places if part.get("text") != ""]


def url_of(part: dict[str, Any]) -> str:
    image = part["image_url"]
    return image if isinstance(image, str) else str(image["url"])


def base64_of(url: Any) -> tuple[str, str] | None:
    """Return the media type and the base64 of a `data:` address, or None for another address."""
    head, _, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    head = head.lower()
    return (head[5:].partition(";")[0], data) if head.startswith("data:") and head.endswith(";base64") else None


def file_of(part: dict[str, Any], param: str) -> dict[str, Any]:
    """Return the fields of a file with its data or its address."""
    file = part.get("file") if part["type"] == "file" else None
    if not isinstance(file, dict):
        raise refusal_of(param, f"is of the type {part['type'][:100]!r}, which this model cannot read.")
    if not isinstance(file.get("file_url"), str) and base64_of(file.get("file_data")) is None:
        raise refusal_of(f"{param}.file", "must have file_data, as a data: address in base64.")
    return file


def calls_of(message: dict[str, Any], param: str) -> Iterable[tuple[str, str, str, dict[str, Any]]]:
    """Yield the kind, the name, the text of the arguments, and the whole of each tool call of a message."""
    if message.get("function_call"):
        raise refusal_of(f"{param}.function_call", "must be in tool_calls.")
    for place, call in enumerate(message.get("tool_calls") or ()):
        kind = "custom" if isinstance(call.get("custom"), dict) else "function"
        body = call.get(kind) or {}
        name, text = body.get("name"), body.get("input" if kind == "custom" else "arguments") or ""
        if not isinstance(name, str) or not isinstance(text, str):
            raise refusal_of(f"{param}.tool_calls[{place}]", "must have a function with a name.")
        yield kind, name, text, call


def text_and_refusal(message: dict[str, Any]) -> tuple[str, str]:
    """Return the text and the refusal of a message of the assistant."""
    content, refusal = message.get("content") or "", message.get("refusal") or ""
    if isinstance(content, str):
        return content, refusal
    refusals = [part["refusal"] for part in content if isinstance(part.get("refusal"), str)]
    return "".join(part["text"] for part in content if part["type"] == "text"), "".join([refusal, *refusals])


# --- tools


class Tools(NamedTuple):
    """The tools that a server can offer to its model: the kind and the definition of each, by name.

    `mode` is `none`, `auto` or `required`, or None if the request chooses nothing. The choice is `among` some of them,
    or is the `one`.
    """

    offered: dict[str, tuple[str, dict[str, Any]]]
    mode: str | None
    among: tuple[str, ...] | None = None
    one: str | None = None


def tools_of(chat: dict[str, Any], kinds: tuple[str, ...]) -> Tools:
    offered: dict[str, tuple[str, dict[str, Any]]] = {}
    for place, tool in enumerate(chat.get("tools") or ()):
        kind, body = tool["type"], tool.get(tool["type"])
        if kind in ("function", "custom") and not (kind in kinds and isinstance(body, dict) and body.get("name")):
            raise refusal_of(f"tools[{place}]", f"of the type {kind} cannot be used with this model.")
        if kind in kinds and isinstance(body, dict):
            offered[str(body["name"])] = (kind, {**body, **mark_of(tool, body)})
    choice = chat.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        found = choice["allowed_tools"] if isinstance(choice.get("allowed_tools"), dict) else choice
        listed: Any = found.get("tools")
        listed = listed if isinstance(listed, list) else []
        among = tuple(name for name in map(_named, listed) if name in offered)
        return _checked_choice(Tools(offered, "required" if found.get("mode") == "required" else "auto", among), among)
    if isinstance(choice, dict):
        name = _named(choice)
        return _checked_choice(Tools(offered, "required", one=name), name in offered)
    mode = {"any": "required"}.get(choice, choice) if choice else None
    if mode not in (None, "none", "auto", "required"):
        raise refusal_of("tool_choice", "must be none, auto, required or name a function.")
    return _checked_choice(Tools(offered, mode), offered)


def _named(tool: Any) -> str:
    """Return the name of a tool in a choice, which has it as chat or as Responses puts it."""
    if not isinstance(tool, dict):
        return ""
    body = tool.get(tool["type"]) if isinstance(tool.get("type"), str) else None
    name = (body if isinstance(body, dict) else tool).get("name")
    return name if isinstance(name, str) else ""


def _checked_choice(tools: Tools, found: Any) -> Tools:
    if tools.mode == "required" and not found:
        raise refusal_of("tool_choice", "demands a tool that this model does not have.")
    return tools
