"""The models on offer to every account: built-in ones, those of the catalog file, and those that model servers list."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from svc import groups
from svc.billing.prices import PRICES, REQUIRED_PRICES, dearer
from svc.errors import StartError, UpstreamFault
from svc.groups import Group, Groups
from svc.inference.file_names import file_of, path_to
from svc.inference.local.files import LocalSettings
from svc.inference.servers import OnDemand, Servers
from svc.inference.tool_servers.operator_server import OperatorServer
from svc.outbound.addresses import checked_url
from svc.outbound.client import Headers, RequestHead
from svc.outbound.errors import InvalidURL
from svc.shapes import Shape, integer, matching, one_of, refusal

BUILTIN, LOCAL = "builtin", "local"  # LOCAL: of GGUF files on this machine
# The default ports of model servers.
LOCAL_SERVERS = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
CAPABILITIES = ("vision", "tools")
# The formats of a model server: chat completions, Responses or Messages.
APIS = ("chat", "responses", "messages")
MODEL_NAME_LENGTH = 300
_URL_LENGTH = 2_000
_LIST_SECONDS = 60.0
_FAILED_LIST_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 2.0  # of a request for a provider's list
_MOST_LISTED = 5_000

# The names of the models that a server lists, each with its context length in tokens if the server tells it.
ListedModels = Mapping[str, int | None]


def is_model_name(value: Any) -> TypeGuard[str]:
    """Return whether `value` can be a provider's own name for a model: it goes into ids, records and lists."""
    return isinstance(value, str) and 0 < len(value) <= MODEL_NAME_LENGTH and value.isprintable()


def listed_models(provider: "Provider", listed: ListedModels) -> "list[Model]":
    """Return the models that a provider lists. The path of a file has the file's name as an alias if only it has."""
    counts = Counter(map(file_of, listed))
    models = []
    for name, context_length in listed.items():
        model, file = provider.model(name, context_length=context_length), file_of(name)
        alone = file is not None and counts[file] == 1 and file not in listed
        models.append(replace(model, aliases=(f"{provider.name}/{file}",)) if alone else model)
    return models


def _check_model_name(value: Any, param: str) -> str:
    if not is_model_name(value):
        raise refusal(value, param, MODEL_NAME.expected)
    return value


def _check_base_url(value: Any, param: str) -> str:
    try:
        if not isinstance(value, str) or len(value) > _URL_LENGTH or "?" in value:
            raise InvalidURL
        return str(checked_url(value)).rstrip("/")
    except InvalidURL:
        raise refusal(value, param, BASE_URL.expected) from None


PROVIDER_NAME = groups.NAME
BASE_URL = Shape(
    _check_base_url,
    "an address such as https://api.example.com/v1, without user name, query and fragment",
    {"type": "string", "maxLength": _URL_LENGTH, "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\\\]+(/[^?#]*)?$"},
)
API_KEY = matching(re.compile(r"[!-~]{1,4096}"), "printable ASCII without spaces, or null for none", 4096)
KIND = one_of(*PRICES)
API = one_of(*APIS)
MODEL_NAME = Shape(
    _check_model_name,
    f"the provider's own name for a model, of 1 to {MODEL_NAME_LENGTH} characters, or an object with it",
    {"type": "string", "minLength": 1, "maxLength": MODEL_NAME_LENGTH},
)
CONTEXT_LENGTH = integer(1, 10**9)


@dataclass(frozen=True, slots=True)
class Provider:
    """A model server. `timeout_seconds` is to the first byte and between bytes.

    `byok` means that it belongs to the user `account_id`. `configured` is False for a local server that is only looked
    for. `listed_prices` are those of the models that the server lists, in micros per million tokens.
    `cache_control`, `extra_fields` and `api` are for these models. With several `base_urls`, `base_url` is the first,
    and each of the `servers` is a provider with one of them. One `on_demand` has no address. `heads` keeps those of its
    requests: to make one takes 7 % of a free chat's CPU.
    """

    name: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 120.0
    byok: bool = False
    account_id: str = ""
    listed_prices: Mapping[str, int] = field(default_factory=dict, hash=False)
    configured: bool = True
    cache_control: bool = False
    extra_fields: frozenset[str] = frozenset()
    api: str = "chat"
    base_urls: tuple[str, ...] = ()
    on_demand: "OnDemand[Provider] | None" = field(default=None, repr=False, compare=False)
    servers: "Servers[Provider] | None" = field(init=False, default=None, repr=False, compare=False)
    heads: dict[tuple[str, bytes, Headers], RequestHead] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.base_urls:
            each = (replace(self, base_url=base_url, base_urls=()) for base_url in self.base_urls)
            object.__setattr__(self, "servers", Servers(each))

    def model(self, name: str, kind: str = "chat", context_length: int | None = None) -> "Model":
        """Return a model that the catalog does not have: one that the provider lists, or that its owner has named."""
        prices = {**dict.fromkeys(REQUIRED_PRICES[kind], 0), **self.listed_prices}
        return Model(
            f"{self.name}/{name}",
            name,
            self,
            kind,
            prices,
            context_length=context_length,
            cache_control=self.cache_control,
            extra_fields=self.extra_fields,
            api=self.api,
        )


@dataclass(frozen=True, slots=True)
class Model:
    """A model. `id` is `<provider>/<name>`, `provider` is None for a built-in one, `prices` are micros as in `PRICES`.

    `aliases` are further names of the model, without a slash: some clients refuse an id that has one. `context_length`
    is in tokens, None if it is unknown. `capabilities` are None if they are unknown. `cache_control`: its server gets
    the marks of what to cache. `extra_fields` of requests reach it although their cost is unknown. `api` is the format
    in which its server is asked. `efforts` are the words for `reasoning_effort` that it takes, None for all.
    `hosted_tools` are the prices in micros of a call of those tools of its vendor that requests may use.
    """

    id: str
    name: str
    provider: Provider | None
    kind: str
    prices: Mapping[str, int]
    fallback: str | None = None
    aliases: tuple[str, ...] = ()
    context_length: int | None = None
    capabilities: tuple[str, ...] | None = None
    cache_control: bool = False
    extra_fields: frozenset[str] = frozenset()
    api: str = "chat"
    efforts: tuple[str, ...] | None = None
    max_output_tokens: int | None = None
    hosted_tools: Mapping[str, int] = field(default_factory=dict)
    paid: bool = field(init=False)  # whether it has a price
    counted_as: str = field(init=False)  # its provider's name in metrics

    def __post_init__(self) -> None:
        if self.api == "messages":  # marks are a part of the format
            object.__setattr__(self, "cache_control", True)
        object.__setattr__(self, "paid", any(self.prices.values()) or any(self.hosted_tools.values()))
        object.__setattr__(self, "counted_as", "byok" if self.byok else self.owner)

    @property
    def owner(self) -> str:
        return self.provider.name if self.provider else BUILTIN

    @property
    def byok(self) -> bool:
        return self.provider is not None and self.provider.byok

    def as_json(self, created: int, alias: str | None = None) -> dict[str, Any]:
        """Return the model as an entry of GET /v1/models, under its id or under one of its aliases."""
        entry = {
            "id": alias or self.id,
            "object": "model",
            "created": created,
            "owned_by": self.owner,
            "kind": self.kind,
            "pricing": dict(self.prices),
            "context_length": self.context_length,
            "capabilities": list(self.capabilities or ()),
            "provider": self.owner,
            "byok": self.byok,
        }
        if self.provider is not None and self.provider.on_demand is not None:
            entry["state"] = self.provider.on_demand.state
        return {**entry, "alias_of": self.id} if alias else entry

    def dearer_than(self, other: "Model") -> bool:
        hosted, others = self.hosted_tools, other.hosted_tools
        return dearer(self.prices, other.prices) or any(hosted[name] > others.get(name, 0) for name in hosted)


class Offer(NamedTuple):
    """The models, the providers that list their own models, the default model, the groups, the search engine and the
    tool servers, if there are any. `hearing_folder` has another built-in model for speech recognition. `local` is for
    GGUF files.
    """

    models: list[Model]
    listed: list[Provider]
    default_model: str | None = None
    groups: Groups | None = None
    search: Model | None = None
    hearing_folder: Path | None = None
    local: LocalSettings = LocalSettings()
    tool_servers: tuple[OperatorServer, ...] = ()


@dataclass
class _Listed:
    """The models that a provider has listed, by their names there, and when it was asked."""

    provider: Provider
    models: dict[str, Model] = field(default_factory=dict)
    asked_at: float = float("-inf")  # by the clock of the event loop
    answered: bool = False  # the last time
    asking: "asyncio.Task[None] | None" = None

    def named(self, name: str) -> Model | None:
        """Return the model with this name, or with the path of this file."""
        model = self.models.get(name)
        if model is None and (path := path_to(name, self.models)) is not None:
            model = self.models[path]
        return model


def _by_name(models: list[Model]) -> dict[str, Model]:
    return {name: model for model in models for name in (model.id, *model.aliases)}


class Catalog:
    """Finds models by id or alias. `ask(provider)` fetches the names of a provider's models and their context lengths.

    Raises StartError if the default or a fallback is not on offer or of the wrong kind.
    """

    def __init__(self, offer: Offer, ask: Callable[[Provider], Awaitable[ListedModels]], created: int) -> None:
        self._ask = ask
        self.created = created
        self._listed: dict[str, _Listed] = {}
        self._local: list[Model] = []
        self.load(offer)

    def load(self, offer: Offer) -> None:
        """Offer this. Unchanged providers keep their lists; running calls keep their prices. Raises StartError."""
        by_name = _by_name([*offer.models, *offer.local.models.values()])
        names = {BUILTIN, *(model.owner for model in offer.models)}
        listed: dict[str, _Listed] = {}
        # A configured provider replaces a local server of the same name.
        for provider in sorted(offer.listed, key=lambda provider: not provider.configured):
            if provider.configured or provider.name not in names:
                known = self._listed.get(provider.name)
                listed[provider.name] = known if known and known.provider == provider else _Listed(provider)
                names.add(provider.name)
        references = [(offer.default_model, "default_model", "chat")]
        references += [(model.fallback, f"fallback of {model.id}", model.kind) for model in offer.models]
        for model_id, place, kind in references:
            model = by_name.get(model_id or "")
            if model is None and model_id and model_id.partition("/")[0] not in (*listed, LOCAL):
                raise StartError(f"the catalog: there is no model {model_id!r}, the {place}")
            if model is not None and model.kind != kind:
                raise StartError(f"the catalog: {model_id!r}, the {place}, is for {model.kind}, not for {kind}")
        for name, one in self._listed.items():
            if one.asking and listed.get(name) is not one:
                one.asking.cancel()
        self._own_models, _, self._default_model, self.groups, self.search, self.hearing_folder, self.local = offer[:7]
        self.tool_servers = {server.name: server for server in offer.tool_servers}
        self._names, self._listed = names, listed
        self.offer_local(self._local)

    def offer_local(self, models: "list[Model]") -> None:
        """Offer the models of these files as well."""
        self._local = models
        self._models = self._own_models + models
        self._by_name = _by_name(models) | _by_name(self._own_models)

    def start(self) -> None:
        for listed in self._listed.values():
            self._refresh(listed)

    async def close(self) -> None:
        tasks = [listed.asking for listed in self._listed.values() if listed.asking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def default_model(self, group: Group | None = None) -> str | None:
        """Return the default model: that of the catalog, else the first of a file that the group may use."""
        usable = (model.id for model in self._local if group is None or group.allows(model.id))
        return self._default_model or next(usable, None)

    def has_provider(self, name: str) -> bool:
        """Return whether the operator uses this name for a provider, so that no user may."""
        return name in self._names or (name == LOCAL and bool(self._local))

    def first(self, kind: str, group: Group | None = None) -> Model | None:
        """Return the model for `kind` if a request names none: the operator's first, else the first built-in one."""
        of_kind = (model for model in self._models if model.kind == kind and (group is None or group.allows(model.id)))
        return min(of_kind, key=lambda model: model.provider is None, default=None)

    async def models(self) -> list[Model]:
        await asyncio.gather(*(self._fresh(listed, _LIST_SECONDS) for listed in self._listed.values()))
        return [*self._models, *(model for listed in self._listed.values() for model in listed.models.values())]

    def providers(self) -> dict[str, tuple[int, bool | None]]:
        """Return for each provider the number of its models, and whether it answered the last time, if it is asked."""
        counts = Counter(model.owner for model in self._models if model.provider)
        found: dict[str, tuple[int, bool | None]] = {name: (number, None) for name, number in counts.items()}
        listed = [one for one in self._listed.values() if one.provider.configured]
        return found | {one.provider.name: (len(one.models), one.answered) for one in listed}

    def servers(self) -> list[tuple[Provider, bool]]:
        """Return the operator's model servers and the local ones that answer, each with whether it lists its models."""
        own = {model.provider.name: (model.provider, False) for model in self._own_models if model.provider}
        listed = (one for one in self._listed.values() if one.provider.configured or one.models)
        return [*own.values(), *((one.provider, True) for one in listed)]

    def offered(self) -> list[tuple[Model, str]]:
        """Return the known models, each with its source: `builtin`, `catalog`, `local`, or `listed` by its server."""
        own = [(model, "catalog" if model.provider else BUILTIN) for model in self._own_models]
        own += [(model, LOCAL) for model in self._local]
        return [*own, *((model, "listed") for one in self._listed.values() for model in one.models.values())]

    def dearer_fallbacks(self) -> list[tuple[str, str]]:
        """Return the ids of models and of their fallbacks that cost more, which `_try_again` never asks."""
        pairs = ((model, self._by_name.get(model.fallback or "")) for model in self._models)
        return [(model.id, fallback.id) for model, fallback in pairs if fallback and fallback.dearer_than(model)]

    def configured_ids(self) -> list[str]:
        """Return the ids of the built-in and catalog models."""
        return [model.id for model in self._models]

    def listed_names(self) -> list[str]:
        """Return the names of the providers that list their own models."""
        return list(self._listed)

    def configured(self, model_id: str) -> Model | None:
        """Return the built-in or catalog model with this id or alias."""
        return self._by_name.get(model_id)

    def known(self, model_id: str) -> Model | None:
        """Return the model with this id or alias, also an unchecked one of a provider that lists its own."""
        provider_name, _, name = model_id.partition("/")
        listed = self._listed.get(provider_name)
        return self._by_name.get(model_id) or (listed.provider.model(name) if listed else None)

    async def find(self, model_id: str) -> Model | None:
        """Return the model with this id or alias, or None.

        A model of a configured provider that does not answer is accepted unchecked.
        """
        if model := self._by_name.get(model_id):
            return model
        provider_name, _, name = model_id.partition("/")
        listed = self._listed.get(provider_name)
        if listed is None or not is_model_name(name):
            return None
        if (model := listed.named(name)) is None:
            await self._fresh(listed, _FAILED_LIST_SECONDS)
            model = listed.named(name)
        accepted = listed.provider.configured and not listed.answered
        return model or (listed.provider.model(name) if accepted else None)

    async def _fresh(self, listed: _Listed, age_seconds: float) -> None:
        age = asyncio.get_running_loop().time() - listed.asked_at
        if age >= (age_seconds if listed.answered else _FAILED_LIST_SECONDS):
            # `wait` does not cancel the task, which other requests wait for.
            await asyncio.wait([self._refresh(listed)], timeout=_LONGEST_WAIT_SECONDS)

    def _refresh(self, listed: _Listed) -> "asyncio.Task[None]":
        if listed.asking is None:
            listed.asking = asyncio.create_task(self._ask_now(listed))
        return listed.asking

    async def _ask_now(self, listed: _Listed) -> None:
        try:
            found = dict(islice((await self._ask(listed.provider)).items(), _MOST_LISTED))
            listed.models = {model.name: model for model in listed_models(listed.provider, found)}
            listed.answered = True
        except UpstreamFault:
            listed.answered = False
        finally:
            listed.asked_at = asyncio.get_running_loop().time()
            listed.asking = None
