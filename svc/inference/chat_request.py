"""What a caller asks of chat: the checks before the 200, and what may not travel to an operator's provider."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from svc.checks import (
    Check,
    boolean,
    filled,
    integer,
    known,
    list_of,
    mapping,
    number,
    one_of,
    optional,
    refusal,
    required,
    string,
)

ROLES = ("developer", "system", "user", "assistant", "tool", "function")
_TOKENS_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1
_CONTENT = "a string, a list of parts or null"
_ROLE = one_of(*ROLES)
_PLAIN_ROLES = tuple(role for role in ROLES if role != "tool")


def check_chat(body: dict[str, Any]) -> dict[str, Any]:
    """`body`. Raises ApiError `missing_field` or `invalid_value`, `param` naming the field, for one that no server could take.

    Any known field may be null, unknown fields are accepted. Of what only a provider understands (`reasoning_effort`, kinds of
    `tool_choice` and `response_format`, `max_tokens: -1`) the type alone is checked: a new word needs no new version of this
    service. What the built-in models take is `check_for_builtin`'s.
    """
    _messages(body.get("messages"), "messages")
    known(body, _FIELDS)
    return body


def check_for_builtin(body: dict[str, Any]) -> None:
    """Raises ApiError `invalid_value` or `missing_field` for what OpenAI would refuse in a checked `body`, too."""
    known(body, _BUILTIN_FIELDS)


def _whole(value: Any, param: str) -> None:
    """A whole number of any size: -1 and 0 mean "no limit" to some servers."""
    if type(value) is not int and not (type(value) is float and value.is_integer()):
        raise refusal(value, param, "a whole number")


def _stop(value: Any, param: str) -> None:
    if not isinstance(value, str):
        list_of(string)(value, param)


def _builtin_stop(value: Any, param: str) -> None:
    if not isinstance(value, str):
        list_of(string, least=1, most=4)(value, param)


def _stream_options(value: Any, param: str) -> None:
    options = mapping(value, param)
    optional(options, "include_usage", boolean, None, param)
    optional(options, "include_obfuscation", boolean, None, param)


def _tool(value: Any, param: str) -> None:
    tool = mapping(value, param)
    if required(tool, "type", string, param) == "function":
        required(tool, "function", _function, param)


def _function(value: Any, param: str) -> None:
    function = mapping(value, param)
    required(function, "name", filled, param)
    optional(function, "description", string, None, param)
    optional(function, "parameters", mapping, None, param)
    optional(function, "strict", boolean, None, param)


def _tool_choice(value: Any, param: str) -> None:
    if not isinstance(value, str | dict):
        raise refusal(value, param, "a string or an object")


def _builtin_tool_choice(value: Any, param: str) -> None:
    if isinstance(value, dict):
        if required(value, "type", string, param) == "function":
            required(value, "function", _named, param)
    elif value not in ("none", "auto", "required"):
        raise refusal(value, param, "none, auto, required or an object that names a function")


def _function_call(value: Any, param: str) -> None:
    if isinstance(value, dict):
        _named(value, param)
    elif value not in ("none", "auto"):
        raise refusal(value, param, "none, auto or an object that names a function")


def _named(value: Any, param: str) -> None:
    required(mapping(value, param), "name", filled, param)


def _builtin_response_format(value: Any, param: str) -> None:
    wanted = mapping(value, param)
    if required(wanted, "type", one_of("text", "json_object", "json_schema"), param) == "json_schema":
        required(wanted, "json_schema", _schema, param)


def _schema(value: Any, param: str) -> None:
    _named(value, param)
    optional(value, "schema", mapping, None, param)
    optional(value, "strict", boolean, None, param)


def _are_plain(messages: list[Any]) -> bool:
    """Whether each is a text by somebody, and nothing else, as most messages are: then there is nothing more to look at."""
    for message in messages:
        if type(message) is not dict or len(message) != 2 or type(message.get("content")) is not str:
            return False
        if message.get("role") not in _PLAIN_ROLES:
            return False
    return True


def _messages(value: Any, param: str) -> None:
    if type(value) is not list or not value or not _are_plain(value):
        list_of(_message, least=1)(value, param)


def _message(value: Any, param: str) -> None:
    message = mapping(value, param)
    role = required(message, "role", _ROLE, param)
    if role == "tool":
        required(message, "tool_call_id", string, param)
    # The assistant's turn may come back without the key at all (litellm), the others' may not.
    if "content" not in message and role not in ("assistant", "function"):
        raise refusal(None, f"{param}.content", _CONTENT)
    known(message, _MESSAGE_FIELDS, param)


def _content(value: Any, param: str) -> None:
    if isinstance(value, str):
        return
    if not isinstance(value, list):
        raise refusal(value, param, _CONTENT)
    list_of(_part)(value, param)


def _part(value: Any, param: str) -> None:
    part = mapping(value, param)
    kind = required(part, "type", string, param)
    if kind == "text":
        required(part, "text", string, param)
    elif kind == "image_url":
        required(part, "image_url", _image, param)


def _image(value: Any, param: str) -> None:
    if not isinstance(value, str):
        required(mapping(value, param), "url", string, param)


def _tool_call(value: Any, param: str) -> None:
    optional(mapping(value, param), "function", _called, None, param)


def _called(value: Any, param: str) -> None:
    function = mapping(value, param)
    required(function, "name", string, param)
    optional(function, "arguments", string, None, param)


_MESSAGE_FIELDS: Mapping[str, Check[Any]] = {"content": _content, "name": string, "tool_calls": list_of(_tool_call)}
_FIELDS: Mapping[str, Check[Any]] = {
    "model": filled,
    "stream": boolean,
    "stream_options": _stream_options,
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "max_completion_tokens": _whole,
    "max_tokens": _whole,
    "stop": _stop,
    "n": integer(1, 128),
    "seed": _whole,
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "tools": list_of(_tool),
    "tool_choice": _tool_choice,
    "parallel_tool_calls": boolean,
    "response_format": mapping,
    "user": string,
    "reasoning_effort": string,
    "logprobs": boolean,
    "top_logprobs": integer(0, 20),
    "logit_bias": mapping,
    "metadata": mapping,
    "store": boolean,
    "service_tier": string,
    "verbosity": string,
    "safety_identifier": string,
    "prompt_cache_key": string,
    "prompt_cache_retention": string,
    "prompt_cache_options": mapping,
    "prediction": mapping,
    "modalities": list_of(string),
    "audio": mapping,
    "web_search_options": mapping,
    "functions": list_of(_function),
    "function_call": _function_call,
}
_BUILTIN_FIELDS: Mapping[str, Check[Any]] = {
    "max_completion_tokens": integer(1, _TOKENS_MAX),
    "max_tokens": integer(1, _TOKENS_MAX),
    "stop": _builtin_stop,
    "seed": integer(-_INT64_MAX - 1, _INT64_MAX),
    "tool_choice": _builtin_tool_choice,
    "response_format": _builtin_response_format,
}


# These need no closer look: `max_tokens`, `max_completion_tokens` and `n` are the limits that count, and no other is one.
_DOCUMENTED = frozenset({*_FIELDS, "messages"})


# --- what would make a priced answer longer than was paid for

_OTHER_LIMITS = frozenset(
    {
        *("npredict", "numpredict", "maxnewtokens", "maxoutputtokens", "maxlength", "maxgenlen", "maxgeneratedtokens"),
        *("maxtokenstosample", "mintokens", "minnewtokens", "minlength", "ignoreeos", "bestof", "numreturnsequences"),
    }
)
_LIMITS = frozenset({"maxtokens", "maxcompletiontokens", "n"})
# Proxies spread `extra_body` at the top, Ollama reads `options`, Gemini `generationConfig`.
_SPREAD = frozenset({"extrabody", "options", "generationconfig", "parameters", "samplingparams"})


def drop_output_limits(body: dict[str, Any]) -> dict[str, Any]:
    """`body` without what servers read in the place of `max_tokens`, `max_completion_tokens` and `n`, or beside them."""
    if _DOCUMENTED.issuperset(body):
        return body
    return {
        name: value if name in _DOCUMENTED or _bare(name) not in _SPREAD else _without_limits(value)
        for name, value in body.items()
        if name in _DOCUMENTED or (_bare(name) not in _OTHER_LIMITS and _bare(name) not in _LIMITS)
    }


def _without_limits(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: _without_limits(item)
        for name, item in value.items()
        if _bare(name) not in _OTHER_LIMITS and _bare(name) not in _LIMITS
    }


def _bare(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


# --- what would re-aim a proxy

# Keys in any spelling (Go proxies match without case, Node ones say `apiKey`), without `_` and `-`: the destination and the
# credentials of LiteLLM and its kin, out of the list that its proxy refuses in a request's body.
_AIMING = frozenset(
    {
        *("apibase", "apikey", "apitype", "apiversion", "baseurl", "authorization", "xapikey", "extraheaders", "defaultheaders"),
        *(
            "extraquery",
            "defaultquery",
            "userconfig",
            "modellist",
            "deploymentid",
            "deploymenturl",
            "s3endpointurl",
            "regionname",
        ),
        *("sagemakerbaseurl", "slackwebhookurl", "customllmprovider", "hfmodelname", "clientid", "clientsecret", "tenantid"),
        *("gcsbucketname", "gcspathserviceaccount", "providerspecificheader", "proxyserverrequest", "fallbackmodels"),
        *("contextwindowfallbacks", "contextwindowfallbackdict", "contentpolicyfallbacks"),
        *("mockresponse", "mocktimeout", "mocktoolcalls"),
    }
)
_AIMING_PREFIX = re.compile(
    "(?:litellm|aws|vertex|azure|watsonx|oci|langfuse|langsmith|humanloop|arize|posthog|braintrust|lunary|phoenix|wandb|weave"
    "|helicone|dd)[_-]",
    re.IGNORECASE,
)
# Words of everyday use: they aim only where a proxy reads its own parameters, that is at the top (or in what is spread there).
# `models`, `provider` and `route` are OpenRouter's: another model at the operator's expense.
_AIMING_AT_TOP = frozenset(
    {"headers", "proxy", "proxies", "organization", "project", "fallbacks", "models", "provider", "route", "client", "httpclient"}
)
_SPREAD_AT_TOP = frozenset({"extra_body"})
# Where such a word is the caller's own: the properties of a JSON schema, or the arguments of a call that a model made.
_OPAQUE: Mapping[str, frozenset[str]] = {
    "tools": frozenset({"parameters", "input_schema"}),
    "functions": frozenset({"parameters"}),
    "response_format": frozenset({"schema"}),
    "messages": frozenset({"arguments"}),
    "structured_outputs": frozenset({"json"}),
}
_NONE: frozenset[str] = frozenset()
_HOLDERS = frozenset({dict, list})
_OPAQUE_FIELDS = frozenset({"guided_json", "json_schema"})


def drop_aiming_fields(body: dict[str, Any], ours: Collection[str] = ()) -> dict[str, Any]:
    """`body` without the fields, at any depth, by which a proxy at an operator's provider would send it elsewhere or under
    another key. Text is never touched; nor are the JSON schemas of tools and `response_format` and
    the arguments of tool calls, where such a word names a property of the caller's. `metadata` is no exception: proxies do
    read destinations out of it. The fields `ours`, which no caller wrote, are left as they are.
    """
    if _HARMLESS.issuperset(body) and _has_plain_messages_alone(body):
        return body
    return {
        key: value
        if type(value) not in _HOLDERS or key in _OPAQUE_FIELDS or key in ours
        else _without_aim(value, _OPAQUE.get(key, _NONE), key in _SPREAD_AT_TOP)
        for key, value in body.items()
        if key in _HARMLESS or not _aims(key, at_top=True)
    }


def _has_plain_messages_alone(body: dict[str, Any]) -> bool:
    """Whether no other field is more than one value."""
    messages, kinds = body.get("messages"), [*map(type, body.values())]
    return type(messages) is list and kinds.count(list) == 1 and dict not in kinds and _are_plain(messages)


def _without_aim(value: Any, opaque: frozenset[str], at_top: bool = False) -> Any:
    if isinstance(value, list):
        return [_without_aim(item, opaque) for item in value]
    if isinstance(value, dict):
        if _HARMLESS.issuperset(value) and _HOLDERS.isdisjoint(map(type, value.values())):
            return value  # as most messages
        return {
            key: item if type(item) not in _HOLDERS or key in opaque else _without_aim(item, opaque)
            for key, item in value.items()
            if key in _HARMLESS or not _aims(key, at_top)
        }
    return value


# The documented names, which most requests have and no other, need no closer look.
_HARMLESS = frozenset(
    {
        *(*_FIELDS, "messages", "role", "content", "type", "text", "name", "tool_calls", "tool_call_id"),
        *("function", "description", "parameters", "strict", "id", "arguments"),
    }
)


def _aims(key: str, at_top: bool) -> bool:
    bare = _bare(key)
    return bare in _AIMING or bool(_AIMING_PREFIX.match(key)) or (at_top and bare in _AIMING_AT_TOP)
