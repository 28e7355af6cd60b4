"""The models on offer to every account: built-in ones, those of the catalog file, and those that model servers list."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from svc.builtin import provider as builtin
from svc.config import Config
from svc.errors import StartError, UpstreamFault
from svc.outbound.addresses import checked_url
from svc.outbound.errors import InvalidURL

BUILTIN = "builtin"
# The default ports of model servers.
LOCAL_SERVERS = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
PRICES = {
    "chat": ("input_micros_per_million_tokens", "output_micros_per_million_tokens"),
    "image": ("micros_per_image",),
    "speech": ("micros_per_thousand_audio_tokens",),
}
_DEAREST_MICROS = 10**12
MODEL_NAME_LENGTH = 300
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_LIST_SECONDS = 60.0
_FAILED_LIST_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 2.0  # of a request for a provider's list
_MOST_LISTED = 5_000

# The models, the providers that list their own models, and the default model.
Offer = tuple[list["Model"], list["Provider"], str | None]


@dataclass(frozen=True, slots=True)
class Provider:
    """A model server. `timeout_seconds` is to the first byte and between bytes.

    `byok` means that it belongs to the user `account_id`. `configured` is False for a local server that is only looked for.
    `listed_prices` are micros per million tokens of input and output, for the chat models that the server lists itself.
    """

    name: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 120.0
    byok: bool = False
    account_id: str = ""
    listed_prices: tuple[int, int] = (0, 0)
    configured: bool = True


@dataclass(frozen=True, slots=True)
class Model:
    """A model. `id` is `<provider>/<name>`, `provider` is None for a built-in one, `prices` are micros as in `PRICES`.

    `aliases` are further names of the model, without a slash: some clients refuse an id that has one.
    """

    id: str
    name: str
    provider: Provider | None
    kind: str
    prices: Mapping[str, int]
    fallback: str | None = None
    aliases: tuple[str, ...] = ()
    paid: bool = field(init=False)  # whether it has a price
    counted_as: str = field(init=False)  # its provider's name in metrics

    def __post_init__(self) -> None:
        provider = self.provider
        object.__setattr__(self, "paid", any(self.prices.values()))
        object.__setattr__(self, "counted_as", BUILTIN if provider is None else "byok" if provider.byok else provider.name)

    def as_json(self, created: int, alias: str | None = None) -> dict[str, Any]:
        """Return the model as an entry of GET /v1/models, under its id or under one of its aliases."""
        owner = self.provider.name if self.provider else BUILTIN
        entry = {
            "id": alias or self.id,
            "object": "model",
            "created": created,
            "owned_by": owner,
            "kind": self.kind,
            "pricing": dict(self.prices),
            "provider": owner,
            "byok": bool(self.provider and self.provider.byok),
        }
        return {**entry, "alias_of": self.id} if alias else entry

    def dearer_than(self, other: "Model") -> bool:
        """Return whether any price of this model is higher than the other's."""
        return any(price > other.prices.get(name, 0) for name, price in self.prices.items())


@dataclass
class _Listed:
    """The models that a provider has listed, and when it was asked."""

    provider: Provider
    models: dict[str, Model] = field(default_factory=dict)
    asked_at: float = float("-inf")
    answered: bool = False  # the last time
    asking: "asyncio.Task[None] | None" = None


class Catalog:
    """Finds models by id or alias. `ask(provider)` fetches the names of the models of a provider in `listed`.

    Raises StartError if the default or a fallback is not on offer or of the wrong kind.
    """

    def __init__(
        self,
        models: Iterable[Model],
        listed: Iterable[Provider],
        default_model: str | None,
        ask: Callable[[Provider], Awaitable[Sequence[str]]],
        created: int,
    ) -> None:
        self._models = list(models)
        self._by_name = {name: model for model in self._models for name in (model.id, *model.aliases)}
        # A server that is only looked for gives way to what the operator has configured under its name.
        listed = sorted(listed, key=lambda provider: not provider.configured)
        self._names = {BUILTIN, *(model.provider.name for model in self._models if model.provider)}
        self._listed: dict[str, _Listed] = {}
        for provider in listed:
            if provider.configured or provider.name not in self._names:
                self._listed[provider.name] = _Listed(provider)
                self._names.add(provider.name)
        self._ask = ask
        self.created = created
        self.default_model = default_model
        self._check_reference(default_model, "default_model", "chat")
        for model in self._models:
            self._check_reference(model.fallback, f"fallback of {model.id}", model.kind)

    def _check_reference(self, model_id: str | None, place: str, kind: str) -> None:
        model = self._by_name.get(model_id or "")
        if model is None and model_id and model_id.partition("/")[0] not in self._listed:
            raise StartError(f"the catalog: there is no model {model_id!r}, the {place}")
        if model is not None and model.kind != kind:
            raise StartError(f"the catalog: {model_id!r}, the {place}, is for {model.kind}, not for {kind}")

    def start(self) -> None:
        """Ask the providers for their lists, in the background."""
        for listed in self._listed.values():
            self._refresh(listed)

    def replace_by(self, other: "Catalog") -> None:
        """Offer what `other` offers. Unchanged providers keep their lists; running calls keep their prices."""
        for name, listed in self._listed.items():
            new = other._listed.get(name)
            if new and new.provider == listed.provider:
                other._listed[name] = listed
            elif listed.asking:
                listed.asking.cancel()
        self._models, self._by_name = other._models, other._by_name
        self._listed, self._names = other._listed, other._names
        self.default_model = other.default_model
        self.start()

    async def close(self) -> None:
        tasks = [listed.asking for listed in self._listed.values() if listed.asking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def has_provider(self, name: str) -> bool:
        """Return whether the operator uses this name for a provider, so that no user may."""
        return name in self._names

    def first(self, kind: str) -> Model | None:
        """Return the model for `kind` if a request names none: the operator's first, else the first built-in, else None."""
        of_kind = (model for model in self._models if model.kind == kind)
        return min(of_kind, key=lambda model: model.provider is None, default=None)

    async def models(self) -> list[Model]:
        """Return all models on offer, in the order of the catalog."""
        await asyncio.gather(*(self._fresh(listed, _LIST_SECONDS) for listed in self._listed.values()))
        return [*self._models, *(model for listed in self._listed.values() for model in listed.models.values())]

    def configured(self, model_id: str) -> Model | None:
        """Return the built-in or catalog model with this id or alias, or None."""
        return self._by_name.get(model_id)

    async def find(self, model_id: str) -> Model | None:
        """Return the model with this id or alias, or None.

        A model of a configured provider that does not answer is accepted unchecked.
        """
        if model := self._by_name.get(model_id):
            return model
        provider_name, _, name = model_id.partition("/")
        listed = self._listed.get(provider_name)
        if listed is None or not name:
            return None
        if model_id not in listed.models:
            await self._fresh(listed, _FAILED_LIST_SECONDS)
        if model_id not in listed.models and listed.provider.configured and not listed.answered and is_model_name(name):
            return _listed_model(listed.provider, name)
        return listed.models.get(model_id)

    async def _fresh(self, listed: _Listed, age_seconds: float) -> None:
        if not listed.answered:
            age_seconds = _FAILED_LIST_SECONDS
        if time.monotonic() - listed.asked_at >= age_seconds:
            # `wait` does not cancel the task, which other requests wait for.
            await asyncio.wait([self._refresh(listed)], timeout=_LONGEST_WAIT_SECONDS)

    def _refresh(self, listed: _Listed) -> "asyncio.Task[None]":
        if listed.asking is None:
            listed.asking = asyncio.create_task(self._ask_now(listed))
        return listed.asking

    async def _ask_now(self, listed: _Listed) -> None:
        try:
            names = await self._ask(listed.provider)
            models = [_listed_model(listed.provider, name) for name in names[:_MOST_LISTED]]
            listed.models = {model.id: model for model in models}
            listed.answered = True
        except UpstreamFault:
            listed.answered = False
        finally:
            listed.asked_at = time.monotonic()
            listed.asking = None


def is_model_name(value: Any) -> TypeGuard[str]:
    """Return whether `value` can be a provider's own name for a model: it goes into ids, records and lists."""
    return isinstance(value, str) and 0 < len(value) <= MODEL_NAME_LENGTH and value.isprintable()


def _listed_model(provider: Provider, name: str) -> Model:
    prices = dict(zip(PRICES["chat"], provider.listed_prices, strict=True))
    return Model(f"{provider.name}/{name}", name, provider, "chat", prices)


def local_servers() -> list[Provider]:
    """Return the model servers that may run on this machine."""
    return [Provider(name, f"http://127.0.0.1:{port}/v1", configured=False) for name, port in LOCAL_SERVERS.items()]


def on_offer(config: Config) -> Offer:
    """Return the models of `config`, the providers that list their own models, and the default model. Raises StartError."""
    models, listed, default_model = read_file(config.catalog, config.environ) if config.catalog else ([], [], None)
    if config.builtin:
        own = builtin.offered().items()
        models = [Model(f"{BUILTIN}/{name}", name, None, model.kind, model.prices) for name, model in own] + models
    return models, listed + local_servers() if config.discovers else listed, default_model


# --- the catalog file


def read_file(path: Path, environ: Mapping[str, str]) -> Offer:
    """Return what the catalog file offers. Raises StartError with one line for a wrong or unknown entry."""
    import tomllib  # late: a start without a catalog does not need it

    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise StartError(f"the catalog {path} cannot be read: {error}") from None
    try:
        return _parse(document, environ)
    except ValueError as error:
        raise StartError(f"the catalog {path}: {error}") from None


def _parse(document: dict[str, Any], environ: Mapping[str, str]) -> Offer:
    _only(document, "the file", "default_model", "providers")
    models: list[Model] = []
    providers: list[Provider] = []
    listed: list[Provider] = []
    for number, table in enumerate(_tables(document, "providers", "the file"), 1):
        provider = _provider(table, f"provider {number}", environ)
        providers.append(provider)
        if "models" in table:
            models += [_model(entry, provider) for entry in _tables(table, "models", provider.name)]
        else:
            listed.append(provider)
    aliases = (alias for model in models for alias in model.aliases)
    for listing in ((provider.name for provider in providers), (model.id for model in models), aliases):
        for name, times in Counter(listing).items():
            if times > 1:
                raise ValueError(f"{name!r} is used twice")
    return models, listed, _text(document, "default_model", "the file")


def _provider(table: dict[str, Any], place: str, environ: Mapping[str, str]) -> Provider:
    _only(table, place, "name", "base_url", "api_key", "api_key_env", "timeout_seconds", "models", *PRICES["chat"])
    name = _text(table, "name", place)
    if not name or not _SLUG.fullmatch(name) or name == BUILTIN:
        raise ValueError(f"{place}: name must be a slug (a-z, 0-9, - and _) other than {BUILTIN!r}")
    base_url = _text(table, "base_url", name) or ""
    try:
        checked_url(base_url)
    except InvalidURL as error:
        raise ValueError(f"{name}: base_url must be an address such as http://127.0.0.1:11434/v1. {error}") from None
    if "?" in base_url:
        raise ValueError(f"{name}: base_url must end with its path")
    key_variable = _text(table, "api_key_env", name)
    if key_variable and "api_key" in table:
        raise ValueError(f"{name}: give api_key or api_key_env, not both")
    if key_variable and not environ.get(key_variable):
        raise ValueError(f"{name}: the environment has no {key_variable}, which api_key_env names")
    api_key = environ[key_variable] if key_variable else _text(table, "api_key", name)
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        raise ValueError(f"{name}: the API key must be printable ASCII")
    timeout_seconds = table.get("timeout_seconds", 120)
    if type(timeout_seconds) not in (int, float) or not 0 < timeout_seconds <= 3600:
        raise ValueError(f"{name}: timeout_seconds must be a number over 0, up to 3600")
    given = [price for price in PRICES["chat"] if price in table]
    if "models" in table and given:
        raise ValueError(f"{name}: {given[0]} is for a provider without models; here each [[providers.models]] has its own")
    if "models" not in table and api_key and not given:  # a server with a key is usually paid, so never free by accident
        raise ValueError(
            f"{name}: with an API key and without [[providers.models]] set the prices of the models that it lists: "
            f"{' and '.join(PRICES['chat'])} (0 if they are free)"
        )
    input_price, output_price = (_price(table, price, name) for price in PRICES["chat"])
    return Provider(name, base_url.rstrip("/"), api_key, float(timeout_seconds), listed_prices=(input_price, output_price))


def _price(table: dict[str, Any], price: str, place: str) -> int:
    micros = table.get(price, 0)
    if type(micros) is not int or not 0 <= micros <= _DEAREST_MICROS:
        raise ValueError(f"{place}: {price} must be whole micros from 0 to 10^12")
    return micros


def _model(table: dict[str, Any], provider: Provider) -> Model:
    name = _text(table, "id", f"{provider.name}, a model") or ""
    if not is_model_name(name):
        raise ValueError(f"{provider.name}: each model needs an id, the upstream's name for it")
    place = f"{provider.name}/{name}"
    kind = table.get("kind", "chat")
    if not isinstance(kind, str) or kind not in PRICES:
        raise ValueError(f"{place}: kind must be one of {', '.join(PRICES)}")
    _only(table, place, "id", "kind", "fallback", "aliases", *PRICES[kind])
    prices = {price: _price(table, price, place) for price in PRICES[kind]}
    fallback = _text(table, "fallback", place)
    aliases = table.get("aliases", [])
    if not isinstance(aliases, list) or not all(is_model_name(alias) and "/" not in alias for alias in aliases):
        raise ValueError(f"{place}: aliases must be a list of names without a slash, such as ['gpt-5']")
    if fallback in (place, *aliases):
        raise ValueError(f"{place}: a model cannot be its own fallback")
    return Model(place, name, provider, kind, prices, fallback, tuple(aliases))


def _only(table: dict[str, Any], place: str, *known: str) -> None:
    for key in table:
        if key not in known:
            raise ValueError(f"{place}: {key!r} is not known; known are {', '.join(known)}")


def _text(table: dict[str, Any], key: str, place: str) -> str | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError(f"{place}: {key} must be a string that is not empty")
    return value


def _tables(table: dict[str, Any], key: str, place: str) -> list[dict[str, Any]]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f"{place}: {key} must be a list of tables, [[{key}]]")
    return value
