"""What a caller asks of chat: the checks before the 200, and what may not travel to an operator's provider."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from svc.errors import ApiError

ROLES = frozenset({"developer", "system", "user", "assistant", "tool", "function"})
_TOKENS_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1

Check = Callable[[Any, str], None]


def check_chat(body: dict[str, Any]) -> None:
    """Raises ApiError `missing_field` or `invalid_value`, `param` naming the field, for a body that OpenAI would refuse too.

    The rules are wire.md's "Request of POST /chat/completions" and 16-18: any known field may be null, unknown fields are
    accepted, a bool is no number. Of words that only a provider understands (`reasoning_effort`, `service_tier`, `verbosity`)
    the type alone is checked, so that a new word needs no new version of this service.
    """
    if body.get("messages") is None:
        raise ApiError("missing_field", "Send messages: a list with at least one message.", param="messages")
    for name, check in _FIELDS.items():
        value = body.get(name)
        if value is not None:
            check(value, name)


def _wrong(param: str, expected: str) -> ApiError:
    return ApiError("invalid_value", f"{param} must be {expected}.", param=param)


def _missing(param: str) -> ApiError:
    return ApiError("missing_field", f"{param} is required.", param=param)


def _of(kind: type, expected: str) -> Check:
    def check(value: Any, param: str) -> None:
        if not isinstance(value, kind):
            raise _wrong(param, expected)

    return check


_string, _object, _list, _bool = (_of(str, "a string"), _of(dict, "an object"), _of(list, "a list"), _of(bool, "true or false"))


def _integer(low: int, high: int) -> Check:
    def check(value: Any, param: str) -> None:
        if type(value) is not int or not low <= value <= high:
            raise _wrong(param, f"a whole number from {low} to {high}")

    return check


def _number(low: float, high: float) -> Check:
    def check(value: Any, param: str) -> None:
        if type(value) not in (int, float) or not low <= value <= high:
            raise _wrong(param, f"a number from {low:g} to {high:g}")

    return check


def _filled(value: Any, param: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise _wrong(param, "a string that is not blank")


def _needed(holder: dict[str, Any], name: str, param: str, check: Check) -> Any:
    """The field `name` of the object at `param`, which must be there."""
    if holder.get(name) is None:
        raise _missing(f"{param}.{name}")
    check(holder[name], f"{param}.{name}")
    return holder[name]


def _stop(value: Any, param: str) -> None:
    if isinstance(value, str):
        return
    if not isinstance(value, list) or not 1 <= len(value) <= 4 or not all(isinstance(text, str) for text in value):
        raise _wrong(param, "a string or a list of 1 to 4 strings")


def _stream_options(value: Any, param: str) -> None:
    _object(value, param)
    for name in ("include_usage", "include_obfuscation"):
        if value.get(name) is not None:
            _bool(value[name], f"{param}.{name}")


def _tools(value: Any, param: str) -> None:
    _list(value, param)
    for position, tool in enumerate(value):
        where = f"{param}[{position}]"
        _object(tool, where)
        if _needed(tool, "type", where, _string) == "function":
            _function(_needed(tool, "function", where, _object), f"{where}.function")


def _functions(value: Any, param: str) -> None:
    _list(value, param)
    for position, function in enumerate(value):
        _object(function, f"{param}[{position}]")
        _function(function, f"{param}[{position}]")


def _function(function: dict[str, Any], where: str) -> None:
    _needed(function, "name", where, _filled)
    for name, check in (("description", _string), ("parameters", _object), ("strict", _bool)):
        if function.get(name) is not None:
            check(function[name], f"{where}.{name}")


def _tool_choice(value: Any, param: str) -> None:
    if isinstance(value, dict):
        if _needed(value, "type", param, _string) == "function":
            _needed(_needed(value, "function", param, _object), "name", f"{param}.function", _filled)
    elif value not in ("none", "auto", "required"):
        raise _wrong(param, "none, auto, required or an object that names a function")


def _function_call(value: Any, param: str) -> None:
    if isinstance(value, dict):
        _needed(value, "name", param, _filled)
    elif value not in ("none", "auto"):
        raise _wrong(param, "none, auto or an object that names a function")


def _response_format(value: Any, param: str) -> None:
    _object(value, param)
    kind = _needed(value, "type", param, _string)
    if kind == "json_schema":
        where = f"{param}.json_schema"
        schema = _needed(value, "json_schema", param, _object)
        _needed(schema, "name", where, _filled)
        for name, check in (("schema", _object), ("strict", _bool)):
            if schema.get(name) is not None:
                check(schema[name], f"{where}.{name}")
    elif kind not in ("text", "json_object"):
        raise _wrong(f"{param}.type", "text, json_object or json_schema")


def _strings(value: Any, param: str) -> None:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise _wrong(param, "a list of strings")


def _messages(value: Any, param: str) -> None:
    if not isinstance(value, list) or not value:
        raise _wrong(param, "a list with at least one message")
    for position, message in enumerate(value):
        where = f"{param}[{position}]"
        _object(message, where)
        role = _needed(message, "role", where, _string)
        if role not in ROLES:
            raise _wrong(f"{where}.role", "one of developer, system, user, assistant, tool, function")
        if role == "tool":
            _needed(message, "tool_call_id", where, _string)
        # The assistant's turn may come back without the key at all (litellm), the others' may not.
        if "content" not in message and role not in ("assistant", "function"):
            raise _missing(f"{where}.content")
        _content(message.get("content"), f"{where}.content")
        if message.get("name") is not None:
            _string(message["name"], f"{where}.name")
        if message.get("tool_calls") is not None:
            _tool_calls(message["tool_calls"], f"{where}.tool_calls")


def _content(value: Any, param: str) -> None:
    if value is None or isinstance(value, str):
        return
    if not isinstance(value, list):
        raise _wrong(param, "a string, a list of parts or null")
    for position, part in enumerate(value):
        where = f"{param}[{position}]"
        _object(part, where)
        kind = _needed(part, "type", where, _string)
        if kind == "text":
            _needed(part, "text", where, _string)
        elif kind == "image_url":
            image = _needed(part, "image_url", where, _of(dict | str, "an object with a url"))  # type: ignore[arg-type]
            if isinstance(image, dict):
                _needed(image, "url", f"{where}.image_url", _string)


def _tool_calls(value: Any, param: str) -> None:
    _list(value, param)
    for position, call in enumerate(value):
        where = f"{param}[{position}]"
        _object(call, where)
        if call.get("function") is not None:
            _object(call["function"], f"{where}.function")
            _needed(call["function"], "name", f"{where}.function", _string)
            if call["function"].get("arguments") is not None:
                _string(call["function"]["arguments"], f"{where}.function.arguments")


_FIELDS: Mapping[str, Check] = {
    "model": _filled,
    "messages": _messages,
    "stream": _bool,
    "stream_options": _stream_options,
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "max_completion_tokens": _integer(1, _TOKENS_MAX),
    "max_tokens": _integer(1, _TOKENS_MAX),
    "stop": _stop,
    "n": _integer(1, 128),
    "seed": _integer(-_INT64_MAX - 1, _INT64_MAX),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "tools": _tools,
    "tool_choice": _tool_choice,
    "parallel_tool_calls": _bool,
    "response_format": _response_format,
    "user": _string,
    "reasoning_effort": _string,
    "logprobs": _bool,
    "top_logprobs": _integer(0, 20),
    "logit_bias": _object,
    "metadata": _object,
    "store": _bool,
    "service_tier": _string,
    "verbosity": _string,
    "safety_identifier": _string,
    "prompt_cache_key": _string,
    "prompt_cache_retention": _string,
    "prompt_cache_options": _object,
    "prediction": _object,
    "modalities": _strings,
    "audio": _object,
    "web_search_options": _object,
    "functions": _functions,
    "function_call": _function_call,
}


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
_OPAQUE_FIELDS = frozenset({"guided_json", "json_schema"})


def drop_aiming_fields(body: dict[str, Any]) -> dict[str, Any]:
    """`body` without the fields by which a proxy at an operator's provider would send it elsewhere or under another key.

    Contract 4: "dropped at any depth". Text is never touched; nor are the JSON schemas of tools and `response_format` and
    the arguments of tool calls, where such a word names a property of the caller's. `metadata` is no exception: proxies do
    read destinations out of it.
    """
    return {
        key: value if key in _OPAQUE_FIELDS else _without_aim(value, _OPAQUE.get(key, frozenset()), key in _SPREAD_AT_TOP)
        for key, value in body.items()
        if not _aims(key, at_top=True)
    }


def _without_aim(value: Any, opaque: frozenset[str], at_top: bool = False) -> Any:
    if isinstance(value, list):
        return [_without_aim(item, opaque) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key in opaque else _without_aim(item, opaque) for key, item in value.items() if not _aims(key, at_top)
        }
    return value


def _aims(key: str, at_top: bool) -> bool:
    bare = key.lower().replace("_", "").replace("-", "")
    return bare in _AIMING or bool(_AIMING_PREFIX.match(key)) or (at_top and bare in _AIMING_AT_TOP)
