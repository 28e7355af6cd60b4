"""Fields of a chat request that must not reach a model server."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from svc.inference.chat_shape import DOCUMENTED_FIELDS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# --- fields that would make an answer longer than its hold, or leave its tokens uncounted

_LIMITS = _words(
    """
    npredict numpredict maxnewtokens maxoutputtokens maxlength maxgenlen maxgeneratedtokens maxtokenstosample
    mintokens minnewtokens minlength ignoreeos bestof numreturnsequences maxtokens maxcompletiontokens n streamoptions
    """
)
# Proxies spread `extra_body` at the top, Ollama reads `options`, Gemini `generationConfig`.
_SPREAD = frozenset({"extrabody", "options", "generationconfig", "parameters", "samplingparams"})


def drop_output_limits(body: dict[str, Any]) -> dict[str, Any]:
    """Return `body` without other names of `max_tokens`, `max_completion_tokens`, `n` and `stream_options`."""
    if not DOCUMENTED_FIELDS.issuperset(body):
        body = {
            name: _without_limits(value) if _bare(name) in _SPREAD else value
            for name, value in body.items()
            if name in DOCUMENTED_FIELDS or _bare(name) not in _LIMITS
        }
    if options := body.get("stream_options"):  # a server in Go reads INCLUDE_USAGE as include_usage
        kept = {name: options[name] for name in options if name == "include_usage" or _bare(name) != "includeusage"}
        body = {**body, "stream_options": kept}
    return body


def _without_limits(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_limits(item) for name, item in value.items() if _bare(name) not in _LIMITS}


def _bare(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")  # like Go, which reads U+017F as s and U+212A as k


# --- fields that would make a proxy route the request elsewhere

# Destinations and credentials of LiteLLM and similar proxies, from the list that LiteLLM refuses in a request's body.
# Without case, `_` and `-`: proxies in Go ignore case, and those in Node use `apiKey`.
_ROUTING = _words(
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
_ROUTING_AT_TOP = _words(
    "headers proxy proxies organization project fallbacks models provider route client httpclient model"
)
# In these values such a word is a name of the caller's: a property of a JSON schema, or an argument of a tool call.
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


def drop_routing_fields(body: dict[str, Any], ours: Collection[str] = ()) -> dict[str, Any]:
    """Return `body` without the fields, at any depth, with which a proxy would use another destination or key.

    Texts, JSON schemas and the arguments of tool calls are kept. `metadata` is not: proxies read destinations from it.
    The fields `ours`, which contain no input of the caller, are kept.
    """
    kept = body.copy()
    if not _HARMLESS.issuperset(body):
        kept = {name: body[name] for name in body if name in _HARMLESS or not _routes(name, at_top=True)}
    for name, value in kept.items():
        if type(value) in _HOLDERS and name not in _OPAQUE_FIELDS and name not in ours:
            kept[name] = _without_routing(value, _OPAQUE.get(name, _NONE), name == "extra_body")
    return kept


def _without_routing(value: Any, opaque: frozenset[str], at_top: bool = False) -> Any:
    if type(value) is list:
        return [_without_routing(item, opaque) if type(item) in _HOLDERS else item for item in value]
    if not at_top and _HARMLESS.issuperset(value) and _HOLDERS.isdisjoint(map(type, value.values())):
        return value  # like most messages
    return {
        name: item if type(item) not in _HOLDERS or name in opaque else _without_routing(item, opaque)
        for name, item in value.items()
        if (name in _HARMLESS and not at_top) or not _routes(name, at_top)
    }


# Most requests have only these names.
_HARMLESS = DOCUMENTED_FIELDS | _words(
    "role content type text name tool_calls tool_call_id function description parameters strict id arguments"
)


def _routes(key: str, at_top: bool) -> bool:
    bare = _bare(key)
    return bare in _ROUTING or bool(_ROUTING_PREFIX.match(key)) or (at_top and bare in _ROUTING_AT_TOP)
