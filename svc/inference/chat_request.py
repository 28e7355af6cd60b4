"""The fields of a chat request that may reach a model server."""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from svc.errors import ApiError
from svc.inference import cache_marks
from svc.inference.catalog import Model
from svc.inference.chat_shape import DOCUMENTED_FIELDS
from svc.inference.passed_fields import DEMANDS, OTHER_LIMITS, PASSED, bare, words


class Ignored(NamedTuple):
    """What was left out of a request: the names of fields, those of inner ones after their holder, and tools' types."""

    fields: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


def for_model(
    body: dict[str, Any], model: Model, added: Collection[str], ours: Collection[str]
) -> tuple[dict[str, Any], Collection[str], Ignored | None]:
    """Return what of the request `model` may get, the names of what the service has added, and what was left out."""
    ignored = None
    if model.paid and (limited := with_named_limit(body)) is not body:
        body, added = limited, {*added, "max_tokens"}
    if model.provider is not None and not model.byok:
        body, ignored = for_operator(body, model, ours)
        body = cache_marks.for_model(body, model, asked=True) if model.paid else body
    return body, added, ignored


def for_operator(
    body: dict[str, Any], model: Model, ours: Collection[str] = ()
) -> tuple[dict[str, Any], Ignored | None]:
    """Return what of a checked `body` may reach the operator's `model`, and what was left out, if anything.

    The fields `ours` have no input of the caller. Raises ApiError `unsupported_value`.
    """
    fields: dict[str, None] = {}
    tools: dict[str, None] = {}
    if model.paid:
        body = _only_settled(body, model.extra_fields, fields)
        if (body.get("tools") or body.get("tool_choice")) and "tools" not in model.extra_fields:
            body = _only_client_tools(body, tools, fields)
    body = drop_routing_fields(body, ours, model.extra_fields, fields)
    return body, Ignored(tuple(fields), tuple(tools)) if fields or tools else None


def for_fallback(body: dict[str, Any], lost: Collection[str]) -> dict[str, Any]:
    """Return `body` without the extra fields `lost`, which the asked model passes and its fallback does not."""
    if not lost:
        return body
    kept = {name: value for name, value in body.items() if name not in lost or name in _PLAIN}
    for name in _HOLDERS_OF_FIELDS.intersection(kept):
        if isinstance(holder := kept[name], dict):
            kept[name] = {inner: holder[inner] for inner in holder if inner not in lost or inner in _PLAIN}
    if "tools" in lost:
        try:
            return _only_client_tools(kept, {}, {})
        except ApiError:  # it demands one of the others
            return _only_client_tools({**kept, "tool_choice": "auto"}, {}, {})
    return kept


def without_place(fields: dict[str, Any], model: Model) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return those of the `fields` of another format without a place in chat that the operator passes to `model`, and
    the names of the others. Raises ApiError `unsupported_value`.
    """
    ignored: dict[str, None] = {}
    return _passed(fields, _NONE, model.extra_fields, ignored), tuple(ignored)


# --- models with a price: fields whose cost the service can settle

_CLIENT_TOOLS = ("function", "custom")  # a request may have any JSON where a type is expected
_ANY_TOOL = ("required", "any", "tool")
_NO_FOREIGN_TOOL = (None, "auto", "none", "allowed_tools", *_ANY_TOOL, *_CLIENT_TOOLS)
_TOOL_FIELDS = frozenset({"type", "function", "custom", "strict", "cache_control"})
_HOLDERS_OF_FIELDS = frozenset({"extra_body", "options"})
# vLLM reads a template of the prompt from here, too.
_TEMPLATE_FIELDS = frozenset({"chat_template", "tokenize"})
_CHECKED = frozenset({"store", "modalities", "chat_template_kwargs"}) | _HOLDERS_OF_FIELDS
_PLAIN = PASSED - _CHECKED
# A proxy would take these from `extra_body` although they were checked only at the top.
_ONLY_AT_TOP = words(
    "model messages stream stream_options max_tokens max_completion_tokens n tools tool_choice functions function_call "
    "store modalities cache_control top_logprobs n_probs"
)


def with_named_limit(body: dict[str, Any]) -> dict[str, Any]:
    """Return `body` with `max_tokens` from another name of the output limit, if it has no limit of OpenAI's."""
    if DOCUMENTED_FIELDS.issuperset(body) or any(body.get(name) for name in ("max_tokens", "max_completion_tokens")):
        return body
    found = {name: body[name] for name in OTHER_LIMITS if type(body.get(name)) is int and body[name] >= 1}
    if not found:
        return body
    return {name: body[name] for name in body if name not in found} | {"max_tokens": min(found.values())}


def _only_settled(body: dict[str, Any], extra: Collection[str], ignored: dict[str, None]) -> dict[str, Any]:
    if not _PLAIN.issuperset(body):
        body = _passed(body, PASSED, extra, ignored)
        if body.get("store") and "store" not in extra:
            body["store"] = False  # the vendor would keep what one account asked under the operator's key
    if options := body.get("stream_options"):  # a server in Go reads INCLUDE_USAGE as include_usage
        kept = {name: options[name] for name in options if name == "include_usage" or bare(name) != "includeusage"}
        body = {**body, "stream_options": kept}
    return body


def _passed(
    fields: dict[str, Any], known: Collection[str], extra: Collection[str], ignored: dict[str, None], holder: str = ""
) -> dict[str, Any]:
    """Return those of `fields` that are `known` or `extra`. Those of others are `ignored`, after their `holder`."""
    kept: dict[str, Any] = {}
    for name, value in fields.items():
        if name in extra:
            kept[name] = _without_limits(value)
        elif name in _PLAIN and name in known:
            kept[name] = value
        elif value is None:
            continue
        elif name in DEMANDS or (name == "modalities" and value not in ([], ["text"])):
            raise other_price(holder + name)
        elif name in known and (checked := _checked(name, value, extra, ignored, holder)) is not None:
            kept[name] = checked
        else:
            ignored[holder + name] = None
    return kept


def _checked(name: str, value: Any, extra: Collection[str], ignored: dict[str, None], holder: str) -> Any:
    """Return what may pass of a field's value, or None if the value has another type."""
    if name not in _HOLDERS_OF_FIELDS and name != "chat_template_kwargs":
        return value
    if not isinstance(value, dict):
        return None
    if name in _HOLDERS_OF_FIELDS:
        return _passed(value, PASSED - _ONLY_AT_TOP, extra, ignored, f"{holder}{name}.")
    ignored.update((f"{holder}{name}.{inner}", None) for inner in value if inner in _TEMPLATE_FIELDS)
    return {inner: item for inner, item in value.items() if inner not in _TEMPLATE_FIELDS}


def other_price(param: str) -> ApiError:
    message = f"{param} cannot be used with this model here: the model server charges for it apart. Leave it out."
    return ApiError("unsupported_value", message, param=param)


def _only_client_tools(body: dict[str, Any], ignored: dict[str, None], fields: dict[str, None]) -> dict[str, Any]:
    """Return `body` without tools that the model server runs. Raises ApiError if the request demands one."""
    tools, choice = body.get("tools") or (), body.get("tool_choice")
    of_client = [tool for tool in tools if tool["type"] in _CLIENT_TOOLS]
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        choice = _allowed_client_tools(choice)
        of_client = of_client if isinstance(choice, dict) else []
        body = {**body, "tool_choice": choice}
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if (kind in _ANY_TOOL and tools and not of_client) or (isinstance(choice, dict) and kind not in _NO_FOREIGN_TOOL):
        raise other_price("tool_choice")
    ignored.update((tool["type"], None) for tool in tools if tool["type"] not in _CLIENT_TOOLS)
    if tools and not of_client:
        return {name: body[name] for name in body if name not in ("tools", "tool_choice", "parallel_tool_calls")}
    if len(of_client) < len(tools) or any(not _TOOL_FIELDS.issuperset(tool) for tool in of_client):
        fields.update((f"tools.{name}", None) for tool in of_client for name in tool if name not in _TOOL_FIELDS)
        body = {**body, "tools": [{name: tool[name] for name in tool if name in _TOOL_FIELDS} for tool in of_client]}
    return body


def _allowed_client_tools(choice: dict[str, Any]) -> Any:
    """Return a choice of `allowed_tools` without those that the model server runs, or its mode if there is no other."""
    nested = isinstance(choice.get("allowed_tools"), dict)
    allowed = choice["allowed_tools"] if nested else choice
    listed = tools if isinstance(tools := allowed.get("tools"), list) else []
    if of_client := [tool for tool in listed if isinstance(tool, dict) and tool.get("type") in _CLIENT_TOOLS]:
        kept = {**allowed, "tools": of_client}
        return {**choice, "allowed_tools": kept} if nested else kept
    return "auto" if allowed.get("mode") == "auto" else "required"


# Other names of `max_tokens`, `max_completion_tokens`, `n` and `stream_options`, and what else makes an answer longer.
_LIMITS = words(
    """
    npredict numpredict maxnewtokens maxoutputtokens maxlength maxgenlen maxgeneratedtokens maxtokenstosample
    mintokens minnewtokens minlength ignoreeos bestof numreturnsequences maxtokens maxcompletiontokens n streamoptions
    """
)


def _without_limits(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_limits(item) for name, item in value.items() if bare(name) not in _LIMITS}


def check_extra_field(name: str, place: str) -> None:
    """Raise ValueError for a field that an operator's model never gets from a caller, set at this `place`."""
    if name not in _CHOSEN_ROUTES and _routes(name, at_top=True):
        raise ValueError(f"{place}.extra_fields must not have {name!r}: with it a proxy would ask another server")
    if bare(name) in _LIMITS:
        raise ValueError(f"{place}.extra_fields must not have {name!r}: max_tokens limits the output")


# --- fields that would make a proxy route the request elsewhere

# Destinations and credentials of LiteLLM and similar proxies, from the list that LiteLLM refuses in a request's body.
# Without case, `_` and `-`: proxies in Go ignore case, and those in Node use `apiKey`.
_ROUTING = words(
    """
    apibase apikey apitype apiversion baseurl authorization xapikey extraheaders defaultheaders extraquery
    defaultquery userconfig modellist deploymentid deploymenturl s3endpointurl regionname sagemakerbaseurl
    slackwebhookurl customllmprovider hfmodelname clientid clientsecret tenantid gcsbucketname gcspathserviceaccount
    providerspecificheader proxyserverrequest fallbackmodels contextwindowfallbacks contextwindowfallbackdict
    contentpolicyfallbacks mockresponse mocktimeout mocktoolcalls
    """
)
_ROUTING_PREFIX = re.compile(
    "(?:litellm|aws|vertex|azure|watsonx|oci|langfuse|langsmith|humanloop|arize|posthog|braintrust|lunary|phoenix|wandb|weave"
    "|helicone|dd)[_-]",
    re.IGNORECASE,
)
# Common words, which route only at the top level, where a proxy reads its own parameters. With OpenRouter's `models`,
# `provider` and `route`, callers could use another model at the operator's expense. `model` may be in another spelling
# or in `extra_body`.
_ROUTING_AT_TOP = words(
    "headers proxy proxies organization project fallbacks models provider route client httpclient model"
)
_CHOSEN_ROUTES = frozenset({"provider", "route", "models"})  # which the operator may allow
# In these values such a word is a name of the caller's: a property of a JSON schema, or an argument of a tool call.
_OPAQUE: Mapping[str, frozenset[str]] = {
    "tools": frozenset({"parameters", "input_schema"}),
    "functions": frozenset({"parameters"}),
    "response_format": frozenset({"schema"}),
    "messages": frozenset({"arguments", "input"}),
    "text": frozenset({"schema"}),
    "output_config": frozenset({"schema"}),
    "output_format": frozenset({"schema"}),
    "structured_outputs": frozenset({"json"}),
}
_NONE: frozenset[str] = frozenset()
_HOLDERS = frozenset({dict, list})
_OPAQUE_FIELDS = frozenset({"guided_json", "json_schema"})


def drop_routing_fields(
    body: dict[str, Any], ours: Collection[str], extra: Collection[str], dropped: dict[str, None]
) -> dict[str, Any]:
    """Return `body` without the fields, at any depth, with which a proxy would use another destination or key.

    Texts, JSON schemas and the arguments of tool calls are kept. `metadata` is not: proxies read destinations from it.
    The fields `ours`, which contain no input of the caller, and `extra` are kept. The names of others are `dropped`.
    """
    kept = body.copy()
    if not _HARMLESS.issuperset(body):
        kept = {name: body[name] for name in body if name in _HARMLESS or name in extra or not _routes(name, True)}
        if len(kept) < len(body):
            dropped.update((name, None) for name in body if name not in kept)
    for name, value in kept.items():
        if type(value) in _HOLDERS and name not in _OPAQUE_FIELDS and name not in ours:
            top = extra if name == "extra_body" else None
            kept[name] = _without_routing(value, _OPAQUE.get(name, _NONE), name, dropped, top)
    return kept


def _without_routing(
    value: Any, opaque: frozenset[str], holder: str, dropped: dict[str, None], extra: Collection[str] | None = None
) -> Any:
    """Return `value` without such fields. `extra` is set where its names are like those at the top level."""
    if type(value) is list:
        return [_without_routing(item, opaque, holder, dropped) if type(item) in _HOLDERS else item for item in value]
    at_top = extra is not None
    if not at_top and _HARMLESS.issuperset(value) and _HOLDERS.isdisjoint(map(type, value.values())):
        return value  # like most messages
    kept = {
        name: item if type(item) not in _HOLDERS or name in opaque else _without_routing(item, opaque, holder, dropped)
        for name, item in value.items()
        if (name in _HARMLESS and not at_top) or name in (extra or ()) or not _routes(name, at_top)
    }
    if len(kept) < len(value):
        dropped.update((f"{holder}.{name}", None) for name in value if name not in kept)
    return kept


# Most requests have only these names.
_HARMLESS = DOCUMENTED_FIELDS | words(
    "role content type text name tool_calls tool_call_id function description parameters strict id arguments"
)


def _routes(key: str, at_top: bool) -> bool:
    name = bare(key)
    return name in _ROUTING or bool(_ROUTING_PREFIX.match(key)) or (at_top and name in _ROUTING_AT_TOP)
