"""The models that one account can use: the catalog's, and those of the account's own providers."""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from itertools import islice

from svc.config import Config
from svc.db import Database
from svc.errors import ApiError, UpstreamFault, invalid_value
from svc.groups import Group
from svc.inference import providers, upstream
from svc.inference.answer import upstream_errors
from svc.inference.catalog import (
    BUILTIN,
    Catalog,
    ListedModels,
    Model,
    Provider,
    is_model_name,
    listed_models,
)
from svc.inference.file_names import is_file, path_to
from svc.inference.server_formats import probe
from svc.outbound.client import Outbound

_LIST_SECONDS = 60.0
_FAILED_LIST_SECONDS = 2.0
_MOST_LISTS = 256

_ListKey = tuple[str, str, str, bytes | None]


@dataclass
class _List:
    """The models that a user's provider listed, none if it failed."""

    models: ListedModels = field(default_factory=dict)
    fresh_until: float = float("-inf")
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


class Models:
    """Finds and lists models. `guarded` is the client for the users' own providers, which checks addresses."""

    def __init__(
        self, catalog: Catalog, db: Database, box: providers.KeyBox, guarded: Outbound, config: Config
    ) -> None:
        self.catalog = catalog
        self._db = db
        self._box = box
        self._guarded = guarded
        self._answer_seconds, self._monotonic = config.list_seconds, config.monotonic
        self._lists: dict[_ListKey, _List] = {}  # the lists of models, by `_list_key`

    async def chosen(
        self, account_id: str, default_model: str | None, wanted: str | None, kind: str, group: Group | None
    ) -> Model:
        """Return the model that a request names, else `default` for chat, and `first` for media.

        Raises ApiError `invalid_value`, `model_not_found`, `own_providers_disabled`.
        """
        if wanted is None and kind != "chat":
            first = await self.first(account_id, kind, group)
            if first is None:
                message = f"There is no model for {kind} here. Name one of your own providers'."
                raise ApiError("model_not_found", message, param="model")
            return first
        model_id = self.default(default_model, group) if wanted is None else wanted
        model = self.catalog.configured(model_id) if group is None else None  # no search: most chats
        model = model or await self.find(account_id, model_id, group, kind)
        if model is None:
            message = f"There is no model {model_id[:200]!r}. GET /v1/models lists them."
            raise ApiError("model_not_found", message, param="model")
        if model.kind != kind:
            raise invalid_value(f"{model_id!r} is a model for {model.kind}, not for {kind}.", "model")
        return model

    def default(self, default_model: str | None, group: Group | None) -> str:
        """Return the id of the model for chat requests without `model`, of an account with this `default_model`."""
        name = default_model or self.catalog.default_model(group) or f"{BUILTIN}/assistant"
        model = self.catalog.configured(name)
        return model.id if model else name

    async def first(self, account_id: str, kind: str, group: Group | None) -> Model | None:
        """Return the model for images or speech if a request names none, without asking a provider for its list.

        That is the operator's first, else the built-in one, else one of the account's own providers.
        """
        if model := self.catalog.first(kind, group):
            return self._within(group, model)
        for row in await self._own_providers(account_id, group):
            for name, own_kind in (await self._narrowed(row)).items():
                if own_kind == kind:
                    return self._provider(row).model(name, kind)
        return None

    async def find(self, account_id: str, model_id: str, group: Group | None, kind: str = "chat") -> Model | None:
        """Return the model with this id or alias, or None if the account has none.

        `kind` is that of the request, for an own model whose kind its owner has not set.
        Raises ApiError `own_providers_disabled`.
        """
        name, _, own_name = model_id.partition("/")
        operators = self.catalog.has_provider(name)
        if group is not None and operators and is_model_name(own_name) and not group.allows(model_id):
            return None  # before its provider is asked for a list
        model = await self.catalog.find(model_id)
        if model is not None or not own_name or operators:
            return self._within(group, model)
        row = await self._db.read(providers.provider_by_name, account_id, name)
        if row is None or not is_model_name(own_name):
            return None
        own = providers.own_models(row)
        listed = self._lists.get(_list_key(row), _List()).models
        if own is None and own_name not in listed and is_file(own_name):
            listed = await self._asked(row, lambda: True)
        offered = listed if own is None else own
        path = None if own_name in offered else path_to(own_name, offered)
        if own is not None and own_name not in own and path is None:
            return None
        providers.check_allowed(group)
        real = path or own_name
        model = self._provider(row).model(real, (own or {}).get(real) or kind, listed.get(real))
        return replace(model, aliases=(model_id,)) if path else model

    def _within(self, group: Group | None, model: Model | None) -> Model | None:
        """Return the operator's model, without a fallback that the group may not use. None if it may not use it."""
        if group is None or model is None:
            return model
        if not group.allows(model.id):
            return None
        fallback = self.catalog.configured(model.fallback or "")  # an alias, or a model that its provider lists
        allowed = model.fallback is None or group.allows(fallback.id if fallback else model.fallback)
        return model if allowed else replace(model, fallback=None)

    async def pages(
        self, account_id: str, may_ask: Callable[[], bool], group: Group | None
    ) -> AsyncGenerator[list[Model], None]:
        """Yield every model that the account can use, in pages.

        An own provider without a list of models is asked for it while `may_ask()`. One that does not answer has none.
        """
        rows = await self._own_providers(account_id, group)
        asking = {row["id"]: asyncio.ensure_future(self._asked(row, may_ask)) for row in rows if not row["narrowed"]}
        try:
            shared = await self.catalog.models()
            for start in range(0, len(shared), providers.MOST_MODELS):
                page = shared[start : start + providers.MOST_MODELS]
                yield [model for model in page if group is None or group.allows(model.id)]
                await asyncio.sleep(0)  # a group may have many patterns, and all pages are in memory
            for row in rows:
                provider = Provider(row["name"], row["base_url"], byok=True, api=row["api"])
                if row["id"] in asking:
                    listed = await asking[row["id"]]
                    yield listed_models(provider, listed)
                else:
                    yield [provider.model(name, kind or "chat") for name, kind in (await self._narrowed(row)).items()]
        finally:
            for own in asking.values():
                own.cancel()

    async def test(self, row: sqlite3.Row) -> tuple[list[str], dict[str, bool | None]]:
        """Ask a provider for the names of its models, and which formats it answers.

        Raises ApiError, with a reason only for its 401, 403 and 429.
        """
        began = time.monotonic()
        try:
            names = list(await self._listed(row))
            return names, await probe.formats(self._guarded, self._provider(row), self._answer_seconds)
        except (UpstreamFault, TimeoutError) as fault:
            if isinstance(fault, UpstreamFault) and fault.kind == "status" and fault.status in (401, 403, 429):
                raise upstream_errors.caller_error(fault, provider=row["name"], byok=True) from fault
        # Every other fault has the same error after the same time, so that it does not reveal which ports are open.
        await asyncio.sleep(began + self._answer_seconds - time.monotonic())
        raise ApiError("upstream_error", f"{row['name']} did not answer as a model server.")

    async def _own_providers(self, account_id: str, group: Group | None) -> list[sqlite3.Row]:
        """Return the providers that the account may use, except those whose name the operator uses by now."""
        if group is not None and not group.own_providers:
            return []
        rows = await self._db.read(providers.all_providers, account_id)
        return [row for row in rows if not self.catalog.has_provider(row["name"])]

    async def _narrowed(self, row: sqlite3.Row) -> dict[str, str | None]:
        with contextlib.suppress(ApiError):  # it was deleted
            whole = await self._db.read(providers.TABLE.by_id, row["account_id"], row["id"])
            return providers.own_models(whole) or {}
        return {}

    async def _asked(self, row: sqlite3.Row, may_ask: Callable[[], bool]) -> ListedModels:
        with contextlib.suppress(ApiError, UpstreamFault, TimeoutError):
            return await self._listed(row, may_ask)
        return {}

    async def _listed(self, row: sqlite3.Row, may_ask: Callable[[], bool] | None = None) -> ListedModels:
        """Return the models that a provider lists, asked once a minute while `may_ask()`, and without it always.

        Raises ApiError, UpstreamFault and TimeoutError; for 2 s after such a failure the list is empty.
        """
        known = self._lists.setdefault(_list_key(row), _List())
        if len(self._lists) > _MOST_LISTS:
            del self._lists[next(iter(self._lists))]
        try:
            async with asyncio.timeout(self._answer_seconds), known.asking:
                if may_ask is None or (self._monotonic() >= known.fresh_until and may_ask()):
                    listed = await upstream.models(self._guarded, self._provider(row))
                    known.models = dict(islice(listed.items(), providers.MOST_MODELS))
                    known.fresh_until = self._monotonic() + _LIST_SECONDS
        except (ApiError, UpstreamFault, TimeoutError):
            known.models = {}
            known.fresh_until = self._monotonic() + _FAILED_LIST_SECONDS
            raise
        return known.models

    def _provider(self, row: sqlite3.Row) -> Provider:
        sealed = row["sealed_key"]
        api_key = None if sealed is None else self._box.open(row["account_id"], row["id"], sealed)
        own = {"byok": True, "account_id": row["account_id"], "api": row["api"]}
        return Provider(row["name"], row["base_url"], api_key, **own)


def _list_key(row: sqlite3.Row) -> _ListKey:
    return row["id"], row["base_url"], row["api"], row["sealed_key"]
