"""What may not travel to an operator's provider, and what a priced request may not hold."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from svc.inference.chat_shape import DOCUMENTED_FIELDS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# --- what would make a priced answer longer than was paid for, or leave its tokens uncounted

_LIMITS = _words(
    """
    npredict numpredict maxnewtokens maxoutputtokens maxlength maxgenlen maxgeneratedtokens maxtokenstosample
    mintokens minnewtokens minlength ignoreeos bestof numreturnsequences maxtokens maxcompletiontokens n streamoptions
    """
)
# Proxies spread `extra_body` at the top, Ollama reads `options`, Gemini `generationConfig`.
_SPREAD = frozenset({"extrabody", "options", "generationconfig", "parameters", "samplingparams"})


def drop_output_limits(body: dict[str, Any]) -> dict[str, Any]:
    """Return `body` without the fields that servers read in place of `max_tokens`, `max_completion_tokens`, `n` and
    `stream_options`, or beside them."""
    options = body.get("stream_options") or {}
    kept = {
        name: value if name in DOCUMENTED_FIELDS or _bare(name) not in _SPREAD else _without_limits(value)
        for name, value in body.items()
        if name in DOCUMENTED_FIELDS or _bare(name) not in _LIMITS
    }
    if options:  # a server in Go takes INCLUDE_USAGE for include_usage
        kept["stream_options"] = {
            name: value for name, value in options.items() if name == "include_usage" or _bare(name) != "includeusage"
        }
    return kept


def _without_limits(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _without_limits(item) for name, item in value.items() if _bare(name) not in _LIMITS}


def _bare(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")  # as Go does, which takes U+017F for s and U+212A for k


# --- what would re-aim a proxy

# Keys in any spelling (Go proxies match without case, Node ones say `apiKey`), without `_` and `-`: the destination and the
# credentials of LiteLLM and its kin, out of the list that its proxy refuses in a request's body.
_AIMING = _words(
    """
    apibase apikey apitype apiversion baseurl authorization xapikey extraheaders defaultheaders extraquery
    defaultquery userconfig modellist deploymentid deploymenturl s3endpointurl regionname sagemakerbaseurl
    slackwebhookurl customllmprovider hfmodelname clientid clientsecret tenantid gcsbucketname gcspathserviceaccount
    providerspecificheader proxyserverrequest fallbackmodels contextwindowfallbacks contextwindowfallbackdict
    contentpolicyfallbacks mockresponse mocktimeout mocktoolcalls
    """
)
_AIMING_PREFIX = re.compile(
    "(?:litellm|aws|vertex|azure|watsonx|oci|langfuse|langsmith|humanloop|arize|posthog|braintrust|lunary|phoenix|wandb|weave"
    "|helicone|dd)[_-]",
    re.IGNORECASE,
)
# Words of everyday use: they aim only where a proxy reads its own parameters, that is at the top (or in what is spread there).
# `models`, `provider` and `route` are OpenRouter's: another model at the operator's expense. `model` may be spelt otherwise, or
# be in extra_body.
_AIMING_AT_TOP = _words("headers proxy proxies organization project fallbacks models provider route client httpclient model")
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
    return {
        key: value
        if type(value) not in _HOLDERS or key in _OPAQUE_FIELDS or key in ours
        else _without_aim(value, _OPAQUE.get(key, _NONE), key in _SPREAD_AT_TOP)
        for key, value in body.items()
        if key in _HARMLESS or not _aims(key, at_top=True)
    }


def _without_aim(value: Any, opaque: frozenset[str], at_top: bool = False) -> Any:
    if isinstance(value, list):
        return [_without_aim(item, opaque) for item in value]
    if isinstance(value, dict):
        if not at_top and _HARMLESS.issuperset(value) and _HOLDERS.isdisjoint(map(type, value.values())):
            return value  # as most messages
        return {
            key: item if type(item) not in _HOLDERS or key in opaque else _without_aim(item, opaque)
            for key, item in value.items()
            if (key in _HARMLESS and not at_top) or not _aims(key, at_top)
        }
    return value


# The documented names, which most requests have and no other, need no closer look.
_HARMLESS = DOCUMENTED_FIELDS | _words(
    "role content type text name tool_calls tool_call_id function description parameters strict id arguments"
)


def _aims(key: str, at_top: bool) -> bool:
    bare = _bare(key)
    return bare in _AIMING or bool(_AIMING_PREFIX.match(key)) or (at_top and bare in _AIMING_AT_TOP)
