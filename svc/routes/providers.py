"""The caller's own model providers (BYOK)."""

from functools import partial

from svc.errors import ApiError
from svc.inference import providers
from svc.inference.catalog import API, APIS, KIND, MODEL_NAME
from svc.inference.providers import NewProvider, ProviderChanges
from svc.outbound.errors import AddressNotAllowed
from svc.routes.schemas.common import NO_ROOM, OWN_PROVIDERS_DISABLED, PERHAPS_RETRY_AFTER, TIMESTAMP, id_of
from svc.server.guards import Caller
from svc.server.interface import Answer, Operation, Refusal, paged
from svc.server.state import State
from svc.server.web import Request, read_page
from svc.shapes import boolean, by_type, given, json_object, list_of, nullable, string

describes = partial(Operation, "Providers")
_NAME = MODEL_NAME.about(example="llama3.2")
_OWN_MODEL = by_type("a model", {str: _NAME, dict: json_object("OwnModel", id=_NAME, kind=KIND)})
_PROVIDER = json_object(
    "Provider",
    id=id_of("prov"),
    name="mine",
    base_url=string.about("The normalized address.", "https://api.example.com/v1"),
    api=API.about("The format in which its chat models are asked.", "chat"),
    api_key_hint=nullable(string).about("The last characters of the key. Null means that there is no key.", "…x4Qz"),
    models=nullable(list_of(_OWN_MODEL)).about("The models that are offered. Null means all that the provider lists."),
    created_at=TIMESTAMP,
)
_PROVIDER_TEST = json_object(
    "ProviderTest",
    ok=boolean.about(const=True),
    models=list_of(string).about("The models that the provider lists, at most 500.", ["small", "large"]),
    formats=json_object(
        "ProviderFormats", **{api: nullable(boolean).about("Null means that it is not clear.", True) for api in APIS}
    ).about("The formats that the provider answers, as values of `api`."),
)
_ADDRESS_NOT_ALLOWED = Refusal(
    "address_not_allowed",
    param="base_url",
    when="The address is private, loopback, link-local, multicast or reserved. The operator may allow private and "
    "loopback ones.",
)
_NAME_TAKEN = Refusal(
    "name_taken",
    "A provider of yours has this name. Choose another one.",
    "name",
    when="The caller or the operator has a provider with this name.",
)
_TOO_OFTEN = Refusal(
    "rate_limit_exceeded",
    when="More than 30 in a minute. New and changed `base_url`s, tests, and requests for a list of models count "
    "together.",
)
_OF_CHANGES = (_ADDRESS_NOT_ALLOWED, _NAME_TAKEN, NO_ROOM, _TOO_OFTEN)


@describes(
    "Add a provider",
    "An account may have 100 providers. Requests for its models are sent there with this key. Redirects are not "
    "followed.",
    examples={
        "all": {"name": "mine", "base_url": "https://api.example.com/v1", "api_key": "sk-a-key-of-yours-x4Qz"},
        "narrowed": {"name": "home", "base_url": "https://models.example.com/v1", "models": ["llama3.2"]},
        "messages": {"name": "claude", "base_url": "https://api.example.com/v1", "api": "messages"},
    },
    answer=Answer("The provider.", _PROVIDER, 201),
    errors=[
        Refusal(
            "invalid_value",
            "An account may have at most 100 providers. Delete one first.",
            when="A field is wrong (`param` names it), or the account has 100 providers.",
        ),
        OWN_PROVIDERS_DISABLED,
        *_OF_CHANGES,
    ],
)
async def create_provider(request: Request, caller: Caller, body: NewProvider) -> object:
    state = request.state
    providers.check_allowed(caller.group)
    await _check_name_and_address(state, caller.id, body)
    row = await state.db.write(providers.add_provider, caller.id, body._asdict(), state.key_box, state.clock())
    return providers.as_json(row)


@describes("List the providers", answer=paged("A page of providers.", "ProviderList", _PROVIDER))
async def list_providers(request: Request, caller: Caller) -> object:
    return (await read_page(request, providers.TABLE.page, caller.id)).of(providers.as_json)


@describes("Show a provider", answer=Answer("The provider.", _PROVIDER))
async def get_provider(request: Request, caller: Caller, provider_id: str) -> object:
    return providers.as_json(await request.state.db.read(providers.TABLE.by_id, caller.id, provider_id))


@describes(
    "Change a provider",
    examples={"models": {"models": ["small", "large"]}, "key": {"api_key": "sk-another-key-of-yours-x4Qz"}},
    answer=Answer("The changed provider.", _PROVIDER),
    errors=_OF_CHANGES,
)
async def update_provider(request: Request, caller: Caller, provider_id: str, body: ProviderChanges) -> object:
    state = request.state
    await state.db.read(providers.TABLE.by_id, caller.id, provider_id)
    await _check_name_and_address(state, caller.id, body)
    row = await state.db.write(providers.change_provider, caller.id, provider_id, given(body), state.key_box)
    return providers.as_json(row)


@describes("Delete a provider", answer=Answer("The provider and its key are deleted."))
async def delete_provider(request: Request, caller: Caller, provider_id: str) -> None:
    await request.state.db.write(providers.TABLE.delete, caller.id, provider_id)


@describes(
    "Test a provider",
    "Requests the provider's list of models, for at most 3 seconds. Then it sends an empty request in each format, for "
    "at most 3 seconds. The refusal shows whether the provider answers the format, and costs no tokens. The test does "
    "not count as a chat request.",
    answer=Answer("The provider works.", _PROVIDER_TEST),
    errors=[
        Refusal(
            "invalid_value",
            "The stored key cannot be read any more. Set it again.",
            when="The stored key cannot be read any more.",
        ),
        OWN_PROVIDERS_DISABLED,
        _ADDRESS_NOT_ALLOWED,
        _TOO_OFTEN,
        Refusal(
            "invalid_api_key",
            "mine: Incorrect API key provided: ***.",
            when="The provider's own 401, 403 or 429, with its error object. The message begins with the provider's "
            "name.",
            status="4XX",
            headers={"retry-after": PERHAPS_RETRY_AFTER},
            type="invalid_request_error",
        ),
        Refusal(
            "upstream_error",
            "mine did not answer as a model server.",
            when="The address is not a model server. A refused connection and no answer give the same error after "
            "the same time.",
        ),
    ],
)
async def test_provider(request: Request, caller: Caller, provider_id: str) -> object:
    """Return the provider's models. An error must not reveal which ports are open."""
    row = await request.state.db.read(providers.TABLE.by_id, caller.id, provider_id)
    providers.check_allowed(caller.group)
    request.state.limits.take("ask_provider", caller.id)
    names, formats = await request.state.models.test(row)
    return {"ok": True, "models": names, "formats": formats}


async def _check_name_and_address(state: State, account_id: str, body: NewProvider | ProviderChanges) -> None:
    """Raise ApiError for a name that the operator uses, or an address that is not allowed."""
    if isinstance(body.name, str) and state.models.catalog.has_provider(body.name):
        raise ApiError("name_taken", "A provider of the operator has this name. Choose another one.", param="name")
    if isinstance(body.base_url, str):
        state.limits.take("ask_provider", account_id)
        try:
            await state.engines.guarded.check_address(body.base_url, account_id)
        except AddressNotAllowed:
            raise ApiError("address_not_allowed", param="base_url") from None
