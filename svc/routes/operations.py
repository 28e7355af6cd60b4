"""What administrators do instead of commands: credits, debits, a backup, a reload, and the catalog as it is in use."""

import asyncio
from functools import partial
from typing import Any

from svc import audit
from svc.admin import catalog_notes, users
from svc.auth import accounts
from svc.billing.prices import PRICES
from svc.errors import StartError
from svc.groups import Group, Groups
from svc.inference.catalog import Model
from svc.inference.catalog_file import on_offer
from svc.inference.web_search import ENGINES, PRICE
from svc.routes.admin import BACKUPS
from svc.routes.billing import LEDGER_ENTRY
from svc.routes.chat import PRICING
from svc.routes.schemas.common import COUNT
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Refusal
from svc.server.state import State
from svc.server.web import Request, Response, reply
from svc.shapes import anything, boolean, json_object, list_of, nullable, one_of, string

describes = partial(Operation, "Administration")
_BOOKED = Answer("The new row of the ledger.", LEDGER_ENTRY, 201)
_BOOKED_BEFORE = Answer("The row that the same id has booked before.", LEDGER_ENTRY, 200)
_MISMATCH = Refusal("booking_mismatch", param="id", when="The id was used for another amount or the other direction.")
_NAMES = list_of(string)
_GROUP = json_object(
    "CatalogGroup",
    'What accounts may do. `[access]` has the name "".',
    name=string.about(example="research"),
    emails=_NAMES.about("Patterns of addresses that join.", ["*@research.example"]),
    claims=_NAMES.about("Values of the identity provider's claim that join.", []),
    models=_NAMES.about("Patterns of model ids.", ["*"]),
    allowance_micros=COUNT,
    own_providers=boolean,
    chats_per_minute=nullable(COUNT).about("Null: that of the tier.", None),
    sharing=boolean.about("Whether they may share conversations by link.", False),
)
_SERVER = json_object(
    "CatalogServer",
    name="openai",
    base_url=string.about("The first of its addresses.", "https://api.example.com/v1"),
    base_urls=list_of(string).about("All addresses of its servers.", ["https://api.example.com/v1"]),
    has_key=boolean.about("Whether requests to it have a key, which is never shown."),
    timeout_seconds=anything.about("To the first byte, and between bytes.", 120, type="number"),
    lists_models=boolean.about("Whether the server lists its own models."),
)
_MODEL = json_object(
    "CatalogModel",
    id=string.about(example="openai/gpt-5"),
    kind=one_of(*PRICES),
    source=one_of("catalog", "builtin", "local", "listed").about(
        "`local`: a GGUF file of this machine. `listed`: the model server lists it."
    ),
    pricing=PRICING.about(example={"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 0}),
    fallback=nullable(string).about(example=None),
    aliases=_NAMES.about(example=["gpt-5"]),
    context_length=nullable(COUNT).about(example=400000),
)
_SEARCH = json_object(
    "CatalogSearch",
    engine=one_of(*ENGINES),
    base_url="https://api.search.brave.com",
    has_key=boolean.about("Whether requests to it have a key, which is never shown."),
    micros_per_search=COUNT,
)
_CATALOG = json_object(
    "Catalog",
    file=nullable(string).about(
        "The path of the catalog file on the server. Null: there is none.", "/etc/svc/catalog.toml"
    ),
    default_model=nullable(string).about("Null: the built-in assistant.", None),
    providers=list_of(_SERVER),
    models=list_of(_MODEL),
    search=nullable(_SEARCH).about("The search engine of the tool `search_web`. Null: there is none."),
    access=nullable(_GROUP).about("For accounts without a group. Null: the catalog has no groups."),
    groups=list_of(_GROUP),
    admin_claims=_NAMES.about("Values of the claim that make administrators.", []),
    max_days_without_sign_in=nullable(COUNT).about(example=None),
    users_may_delete_themselves=boolean,
    contact=nullable(string).about("Whom users ask for more funds.", None),
)
_RELOADED = json_object(
    "Reloaded",
    errors=_NAMES.about("What is wrong, so that it stays as it was. Empty: everything was read again.", []),
    notes=_NAMES.about("What the catalog probably does not mean.", ["group guests: it has no accounts"]),
)


@describes(
    "Add funds to a wallet",
    "As `svc credit` does. The id prevents that a repeated request is booked twice.",
    answer=_BOOKED,
    others=[_BOOKED_BEFORE],
    errors=[
        _MISMATCH,
        Refusal("invalid_value", "A wallet holds at most $1000000000.00.", when="The wallet would be over its bound."),
    ],
)
async def create_credit(request: Request, caller: Caller, account_id: str, body: users.Booking) -> Response:
    return await _book(request, caller, account_id, body.amount_micros, body)


@describes(
    "Take funds from a wallet",
    "As `svc debit` does. A wallet never goes below zero, and what running requests hold cannot be taken.",
    answer=_BOOKED,
    others=[_BOOKED_BEFORE],
    errors=[_MISMATCH, Refusal("insufficient_funds", when="The wallet has less that is not held.")],
)
async def create_debit(request: Request, caller: Caller, account_id: str, body: users.Booking) -> Response:
    return await _book(request, caller, account_id, -body.amount_micros, body)


async def _book(request: Request, caller: Caller, account_id: str, micros: int, booking: users.Booking) -> Response:
    state = request.state
    row, is_new = await state.db.write(users.book, caller.id, account_id, micros, booking, state.clock())
    return reply(row, 201 if is_new else 200)


@describes(
    "Start a backup",
    "In the background, into the folder of `SVC_BACKUP_DIR`: the archive that `svc backup` writes, with all secrets. "
    "`GET /admin/status` shows its progress and its result.",
    answer=Answer("The backup has begun.", BACKUPS, 202),
    errors=[
        Refusal("backup_not_set_up", when="The operator has not set `SVC_BACKUP_DIR`, or the folder is missing."),
        Refusal("already_active", "A backup is being made. Wait until it has ended.", when="One is being made."),
    ],
)
async def create_backup(request: Request, caller: Caller) -> object:
    state = request.state
    await state.backups.check()
    await state.db.write(audit.add, state.clock(), caller.id, "backup")
    await state.backups.start()
    return state.backups.as_json()


@describes(
    "Read the catalog again",
    "As `svc reload` does, with the certificate of `SVC_TLS=files`. If the file is wrong, models and groups stay.",
    answer=Answer("What was found.", _RELOADED),
)
async def reload_catalog(request: Request, caller: Caller) -> object:
    state = request.state
    found = await state.reload()
    counts = {name: len(texts) for name, texts in found.items()}
    await state.db.write(audit.add, state.clock(), caller.id, "reload", None, counts)
    return found


@describes(
    "Show the catalog",
    "The model servers, models, prices and groups in use, without keys. Only the catalog file changes them.",
    answer=Answer("The catalog.", _CATALOG),
)
async def get_catalog(request: Request, caller: Caller) -> object:
    catalog, file = request.state.models.catalog, request.state.config.catalog
    groups = catalog.groups
    of_all = groups or Groups(Group(), {})
    return {
        "file": file and str(file.absolute()),
        "default_model": catalog.default_model(),
        "providers": [
            {
                "name": provider.name,
                "base_url": provider.base_url,
                "base_urls": list(provider.base_urls) or [provider.base_url],
                "has_key": provider.api_key is not None,
                "timeout_seconds": provider.timeout_seconds,
                "lists_models": lists_models,
            }
            for provider, lists_models in catalog.servers()
        ],
        "models": [
            {
                "id": model.id,
                "kind": model.kind,
                "source": source,
                "pricing": dict(model.prices),
                "fallback": model.fallback,
                "aliases": list(model.aliases),
                "context_length": model.context_length,
            }
            for model, source in catalog.offered()
        ],
        "search": catalog.search and _search(catalog.search),
        "access": groups and _group(groups.access),
        "groups": [_group(group) for group in of_all.by_name.values()],
        "admin_claims": list(of_all.admin_claims),
        "max_days_without_sign_in": of_all.max_days_without_sign_in,
        "users_may_delete_themselves": of_all.users_may_delete_themselves,
        "contact": of_all.contact,
    }


def _search(model: Model) -> dict[str, Any]:
    assert model.provider is not None
    return {
        "engine": model.name,
        "base_url": model.provider.base_url,
        "has_key": model.provider.api_key is not None,
        "micros_per_search": model.prices[PRICE],
    }


def _group(group: Group) -> dict[str, Any]:
    values = group._asdict()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


async def read_catalog(state: State) -> dict[str, list[str]]:
    """Read the catalog again, and log and return errors and notes. If it is invalid, models and groups stay."""
    if state.config.catalog is None or state.drain.draining:
        await state.local_models.reload()
        return {"errors": [], "notes": []}
    catalog = state.models.catalog
    try:
        catalog.load(await asyncio.to_thread(on_offer, state.config))
    except StartError as error:
        state.log("catalog", level="warning", message=f"the catalog is not replaced: {error}")
        await state.local_models.reload()
        return {"errors": [str(error)], "notes": []}
    catalog.start()
    await state.tool_servers.reload()
    state.engines.field_support.forget()
    await state.local_models.reload()
    found = catalog_notes.notes(catalog, await state.db.heavy_read(accounts.groups_in_use))
    notes = [f"{note.about}: {note.text}" for note in found]
    state.log("catalog", message="the catalog was read again", notes=notes)
    return {"errors": [], "notes": notes}
