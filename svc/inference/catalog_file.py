"""The catalog file of the operator: providers, models, the default model, the groups of accounts, the search engine."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from svc import groups
from svc.billing.prices import PRICES, REQUIRED_PRICES
from svc.builtin import provider as builtin
from svc.builtin.hearing import MODEL_FILES
from svc.config import Config
from svc.errors import ApiError, StartError
from svc.inference import catalog
from svc.inference.catalog import BUILTIN, LOCAL, LOCAL_SERVERS, Model, Offer, Provider
from svc.inference.chat_request import check_extra_field
from svc.inference.efforts import EFFORTS
from svc.inference.local.files import SUFFIX, LocalSettings
from svc.inference.passed_fields import HOSTED_TOOLS
from svc.inference.tool_servers import entries
from svc.inference.web_search import ENGINES, PRICE, search_model
from svc.shapes import Shape, boolean, filled, integer, list_of, mapping, number, one_of, required

T = TypeVar("T")
D = TypeVar("D")
_MICROS = integer(0, 10**12)
_TABLES = list_of(mapping)
_MOST_SERVERS = 64
_LOCAL_SHAPES: dict[str, Shape[Any]] = {
    "folder": filled,
    "context_length": catalog.CONTEXT_LENGTH,
    "parallel": integer(1, 64),
    "threads": integer(1, 1024),
    "gpu_layers": integer(0, 10_000),
    "idle_seconds": number(1, 10**9),
    "memory_bytes": integer(1, 10**15),
}


def on_offer(config: Config) -> Offer:
    """Return what `config` offers. Raises StartError."""
    offer = read_file(config.catalog, config.environ) if config.catalog else Offer([], [])
    if config.builtin:
        # Each has its name without a slash as an alias, unless the operator gives that to a model of the catalog.
        taken = {alias for model in offer.models for alias in model.aliases}
        built_in = []
        for name, (kind, prices, context_length, capabilities) in builtin.offered(offer.hearing_folder).items():
            aliases = () if name in taken else (name,)
            own_id = f"{BUILTIN}/{name}"
            built_in.append(Model(own_id, name, None, kind, prices, None, aliases, context_length, capabilities))
        offer = offer._replace(models=built_in + offer.models)
    return offer._replace(listed=offer.listed + local_servers()) if config.discovers else offer


def local_servers() -> list[Provider]:
    """Return the model servers that may run on this machine."""
    return [Provider(name, f"http://127.0.0.1:{port}/v1", configured=False) for name, port in LOCAL_SERVERS.items()]


def read_file(path: Path, environ: Mapping[str, str]) -> Offer:
    """Return what the catalog file offers. Raises StartError with one line for a wrong or unknown entry."""
    import tomllib  # late: a start without a catalog does not need it

    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise StartError(f"the catalog {path} cannot be read: {error}") from None
    if not document:
        raise StartError(f"the catalog {path} is empty: list providers in it, or unset SVC_CATALOG")
    try:
        return _parse(document, environ)
    except (ApiError, ValueError) as error:
        raise StartError(f"the catalog {path}: {error}") from None


def _parse(document: dict[str, Any], environ: Mapping[str, str]) -> Offer:
    known = ("default_model", "providers", "access", "groups", "search", "hearing", "local", "tool_servers")
    groups.check_keys(document, "the file", known)
    models: list[Model] = []
    listed: list[Provider] = []
    tables: list[dict[str, Any]] = _optional(document, "providers", _TABLES, [], "the file")
    for place, table in enumerate(tables, 1):
        provider = _provider(table, f"provider {place}", environ)
        if "models" in table:
            models += [_model(entry, provider) for entry in required(table, "models", _TABLES, provider.name)]
        else:
            listed.append(provider)
    local = _local(_optional(document, LOCAL, mapping, {}, "the file"))
    named = [*models, *local.models.values()]
    aliases = (alias for model in named for alias in model.aliases)
    for listing in ((table["name"] for table in tables), (model.id for model in named), aliases):
        for name, times in Counter(listing).items():
            if times > 1:
                raise ValueError(f"{name!r} is used twice")
    default_model = _optional(document, "default_model", filled, None, "the file")
    found_groups, search = groups.parse(document), _search(document, environ)
    servers = entries.parse(document, environ, found_groups)
    return Offer(models, listed, default_model, found_groups, search, _hearing_folder(document), local, servers)


def _search(document: dict[str, Any], environ: Mapping[str, str]) -> Model | None:
    """Return the search engine, if there is one."""
    table: dict[str, Any] | None = _optional(document, "search", mapping, None, "the file")
    if table is None:
        return None
    groups.check_keys(table, "search", ("engine", "base_url", "api_key", "api_key_env", PRICE))
    engine = required(table, "engine", one_of(*ENGINES), "search")
    api_key = _api_key(table, "search", environ)
    public_url = ENGINES[engine].base_url
    if public_url is None:
        base_url = required(table, "base_url", catalog.BASE_URL, "search")
    else:
        base_url = _optional(table, "base_url", catalog.BASE_URL, public_url, "search")
        if api_key is None:
            raise ValueError(f"search: {engine} needs api_key or api_key_env")
    return search_model(engine, base_url, api_key, _optional(table, PRICE, _MICROS, 0, "search"))


def _api_key(table: dict[str, Any], place: str, environ: Mapping[str, str]) -> str | None:
    """Return the key in a table, or in the environment variable that it names."""
    if (variable := _optional(table, "api_key_env", filled, None, place)) is not None:
        if "api_key" in table:
            raise ValueError(f"{place}: give api_key or api_key_env, not both")
        if not environ.get(variable):
            raise ValueError(f"{place}: the environment has no {variable}, which api_key_env names")
        table = {"api_key": environ[variable]}
    return _optional(table, "api_key", catalog.API_KEY, None, place)


def _hearing_folder(document: dict[str, Any]) -> Path | None:
    """Return the folder of `[hearing]`. Raises ValueError if it has no Whisper model."""
    if "hearing" not in document:
        return None
    table = mapping.check(document["hearing"], "hearing")
    groups.check_keys(table, "hearing", ("folder",))
    folder = Path(required(table, "folder", filled, "hearing")).expanduser()
    if missing := [name for name in MODEL_FILES if not (folder / name).is_file()]:
        raise ValueError(
            f"hearing.folder: {folder} is no CTranslate2 Whisper model, it has no {' and no '.join(missing)}"
        )
    return folder


def _local(table: dict[str, Any]) -> LocalSettings:
    """Return what `[local]` and `[[local.models]]` say about GGUF files. Raises ValueError."""
    groups.check_keys(table, LOCAL, (*_LOCAL_SHAPES, "models"))
    found = {
        name: shape.check(table[name], f"{LOCAL}.{name}") for name, shape in _LOCAL_SHAPES.items() if name in table
    }
    models: dict[str, Model] = {}
    for entry in _optional(table, "models", _TABLES, [], LOCAL):
        file = required(entry, "file", filled, f"{LOCAL}, a model")
        if not file.lower().endswith(SUFFIX) or "/" in file:
            raise ValueError(f"{LOCAL}: file must be the name of a file that ends in {SUFFIX}, not {file!r}")
        if file.lower() in models:
            raise ValueError(f"{file!r} is used twice")
        named = {"id": file[: -len(SUFFIX)], **{key: value for key, value in entry.items() if key != "file"}}
        models[file.lower()] = model = _model(named, Provider(LOCAL, ""))
        if model.kind != "chat":
            raise ValueError(f"{model.id}: GGUF files are chat models")
    folder = Path(found.pop("folder")).expanduser() if "folder" in found else None
    return LocalSettings(folder, models=models, **found)


def _provider(table: dict[str, Any], place: str, environ: Mapping[str, str]) -> Provider:
    name = required(table, "name", catalog.PROVIDER_NAME, place)
    if name == BUILTIN:
        raise ValueError(f"{place}: the name {BUILTIN!r} is taken")
    keys = ("name", "base_url", "base_urls", "api", "api_key", "api_key_env", "timeout_seconds", "models")
    groups.check_keys(table, name, (*keys, "cache_control", "extra_fields", *PRICES["chat"]))
    base_urls = _base_urls(table, name)
    timeout_seconds = _optional(table, "timeout_seconds", number(0.001, 3600), 120.0, name)
    api_key = _api_key(table, name, environ)
    given = [price for price in PRICES["chat"] if price in table]
    if "models" in table and given:
        told = "is for a provider without models; here each [[providers.models]] has its own"
        raise ValueError(f"{name}: {given[0]} {told}")
    # A server with a key is usually paid, so its models are never free by accident.
    if "models" not in table and api_key and not any(price in table for price in REQUIRED_PRICES["chat"]):
        raise ValueError(
            f"{name}: with an API key and without [[providers.models]] set the prices of the models that it lists: "
            f"{' and '.join(REQUIRED_PRICES['chat'])} (0 if they are free)"
        )
    return Provider(
        name,
        base_urls[0],
        api_key,
        timeout_seconds,
        base_urls=tuple(base_urls) if len(base_urls) > 1 else (),
        listed_prices=_prices(table, "chat", name) if given else {},
        cache_control=_optional(table, "cache_control", boolean, False, name),
        extra_fields=_extra_fields(table, name, frozenset()),
        api=_optional(table, "api", catalog.API, "chat", name),
    )


def _base_urls(table: dict[str, Any], name: str) -> list[str]:
    if "base_urls" not in table:
        return [required(table, "base_url", catalog.BASE_URL, name)]
    if "base_url" in table:
        raise ValueError(f"{name}: give base_url or base_urls, not both")
    base_urls: list[str] = list_of(catalog.BASE_URL, least=1, most=_MOST_SERVERS).check(
        table["base_urls"], f"{name}.base_urls"
    )
    if len(set(base_urls)) < len(base_urls):
        raise ValueError(f"{name}.base_urls has an address twice")
    return base_urls


def _model(table: dict[str, Any], provider: Provider) -> Model:
    name = required(table, "id", catalog.MODEL_NAME, f"{provider.name}, a model")
    place = f"{provider.name}/{name}"
    kind = _optional(table, "kind", catalog.KIND, "chat", place)
    keys = ("id", "kind", "fallback", "aliases", "context_length", "capabilities", *PRICES[kind])
    keys += (
        ("api", "efforts", "max_output_tokens", "hosted_tools", "cache_control", "extra_fields")
        if kind == "chat"
        else ()
    )
    groups.check_keys(table, place, keys)
    prices = _prices(table, kind, place)
    fallback = _optional(table, "fallback", filled, None, place)
    aliases = _optional(table, "aliases", list_of(catalog.MODEL_NAME), [], place)
    if any("/" in alias for alias in aliases):
        raise ValueError(f"{place}.aliases must be a list of names without a slash, such as ['gpt-5']")
    if fallback in (place, *aliases):
        raise ValueError(f"{place}: a model cannot be its own fallback")
    context_length = _optional(table, "context_length", catalog.CONTEXT_LENGTH, None, place)
    found = _optional(table, "capabilities", list_of(one_of(*catalog.CAPABILITIES)), None, place)
    capabilities = None if found is None else tuple(dict.fromkeys(found))
    marked = _optional(table, "cache_control", boolean, provider.cache_control, place)
    if (efforts := _optional(table, "efforts", list_of(one_of(*EFFORTS)), None, place)) == []:
        raise ValueError(f"{place}.efforts must name at least one of {', '.join(EFFORTS)}")
    return Model(
        place,
        name,
        provider,
        kind,
        prices,
        fallback,
        tuple(aliases),
        context_length,
        capabilities,
        cache_control=marked,
        extra_fields=_extra_fields(table, place, provider.extra_fields),
        api=_optional(table, "api", catalog.API, provider.api, place),
        efforts=tuple(dict.fromkeys(efforts)) if efforts else None,
        max_output_tokens=_optional(table, "max_output_tokens", catalog.CONTEXT_LENGTH, None, place),
        hosted_tools=_hosted_tools(table, place),
    )


def _hosted_tools(table: dict[str, Any], place: str) -> dict[str, int]:
    """Return the prices of the vendor's tools. Raises ValueError."""
    found = _optional(table, "hosted_tools", mapping, {}, place)
    groups.check_keys(found, f"{place}.hosted_tools", HOSTED_TOOLS)
    return {name: _MICROS.check(price, f"{place}.hosted_tools.{name}") for name, price in found.items()}


def _extra_fields(table: dict[str, Any], place: str, default: frozenset[str]) -> frozenset[str]:
    """Return the fields of requests that a table passes on beyond those that always pass. Raises ValueError."""
    if "extra_fields" not in table:
        return default
    names = list_of(filled).check(table["extra_fields"], f"{place}.extra_fields")
    for name in names:
        check_extra_field(name, place)
    return frozenset(names)


def _prices(table: dict[str, Any], kind: str, place: str) -> dict[str, int]:
    """Return the prices of a table: the required ones, 0 by default, and those others that it sets."""
    names = [name for name in PRICES[kind] if name in REQUIRED_PRICES[kind] or name in table]
    return {name: _optional(table, name, _MICROS, 0, place) for name in names}


def _optional(table: dict[str, Any], key: str, shape: Shape[T], default: D, place: str) -> T | D:
    return shape.check(table[key], f"{place}.{key}") if key in table else default
