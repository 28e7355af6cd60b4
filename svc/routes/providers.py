"""A user's own model providers (BYOK): records and a test of the connection."""

from starlette.requests import Request
from starlette.responses import Response

from svc.errors import ApiError
from svc.inference import providers
from svc.inference.providers import NEW_PROVIDER, PROVIDER_CHANGES, NewProvider, ProviderChanges
from svc.outbound.errors import AddressNotAllowed
from svc.routes.schemas.models import PROVIDER, PROVIDER_LIST, PROVIDER_TEST
from svc.routes.schemas.refusals import NO_ROOM, PERHAPS_RETRY_AFTER
from svc.server.gate import Caller
from svc.server.interface import Answer, Refusal, describes, path_id
from svc.server.state import State
from svc.server.web import listing, no_content, page_after, page_limit, reply
from svc.shapes import given

_TOO_MANY = Refusal(
    "invalid_value",
    "An account may have at most 100 providers. Delete one first.",
    when="A field is wrong: `param` names it; or there are 100 providers already.",
)
_ADDRESS_NOT_ALLOWED = Refusal(
    "address_not_allowed",
    param="base_url",
    when="The address is private, loopback, link-local, multicast or reserved in any of its forms (the operator "
    "may allow private and loopback ones).",
)
_NAME_TAKEN = Refusal(
    "name_taken",
    "A provider of yours has this name. Choose another one.",
    "name",
    when="The caller has a provider of this name, or the operator has.",
)
_TOO_OFTEN = Refusal(
    "rate_limit_exceeded",
    when="More than 30 in a minute. New and changed `base_url`s, tests, and requests for a list of models count together.",
)
_PROVIDER_ID = path_id("provider_id", "The provider's id.", "prov_01m3250v3vn4qvxnatpwzmywwn")
_NOT_FOUND = Refusal("not_found", "There is no such provider.", when="The account has no such provider.")


@describes(
    "Providers",
    "createProvider",
    "Add a provider",
    "An account may have 100. Requests for its models go there with this key and nothing else of the "
    "caller's; redirects are not followed.",
    body=NEW_PROVIDER,
    examples={
        "all": {"name": "mine", "base_url": "https://api.example.com/v1", "api_key": "sk-a-key-of-yours-x4Qz"},
        "narrowed": {"name": "home", "base_url": "https://models.example.com/v1", "models": ["llama3.2"]},
    },
    answers={201: Answer("The provider.", PROVIDER)},
    errors=[_TOO_MANY, _ADDRESS_NOT_ALLOWED, _NAME_TAKEN, NO_ROOM, _TOO_OFTEN],
)
async def create_provider(request: Request[State], caller: Caller, body: NewProvider) -> Response:
    """The key is never shown again."""
    state = request.state
    await _check_places(state, caller.id, body)
    row = await state.db.write(providers.add_provider, caller.id, body._asdict(), state.key_box, state.clock())
    return reply(providers.as_json(row), 201)


@describes(
    "Providers", "listProviders", "List the providers", answers={200: Answer("A page of providers.", PROVIDER_LIST)}, paged=True
)
async def list_providers(request: Request[State], caller: Caller) -> Response:
    page = await request.state.db.read(providers.providers_page, caller.id, page_limit(request), page_after(request))
    return listing(page, providers.as_json)


@describes(
    "Providers",
    "getProvider",
    "Show one provider",
    parameters=[_PROVIDER_ID],
    answers={200: Answer("The provider.", PROVIDER)},
    errors=[_NOT_FOUND],
)
async def show_provider(request: Request[State], caller: Caller) -> Response:
    row = await request.state.db.read(providers.provider_by_id, caller.id, request.path_params["provider_id"])
    return reply(providers.as_json(row))


@describes(
    "Providers",
    "updateProvider",
    "Change a provider",
    body=PROVIDER_CHANGES,
    examples={"models": {"models": ["small", "large"]}, "key": {"api_key": "sk-another-key-of-yours-x4Qz"}},
    parameters=[_PROVIDER_ID],
    answers={200: Answer("The provider as it is now.", PROVIDER, {**PROVIDER.example, "models": ["small", "large"]})},
    errors=[_ADDRESS_NOT_ALLOWED, _NOT_FOUND, _NAME_TAKEN, NO_ROOM, _TOO_OFTEN],
)
async def change_provider(request: Request[State], caller: Caller, body: ProviderChanges) -> Response:
    """An absent field stays; a new scheme, host or port drops the key unless a new one comes along."""
    state, provider_id = request.state, request.path_params["provider_id"]
    await state.db.read(providers.provider_by_id, caller.id, provider_id)
    await _check_places(state, caller.id, body)
    row = await state.db.write(providers.change_provider, caller.id, provider_id, given(body), state.key_box)
    return reply(providers.as_json(row))


@describes(
    "Providers",
    "deleteProvider",
    "Delete a provider",
    parameters=[_PROVIDER_ID],
    answers={204: Answer("The provider and its key are gone.")},
    errors=[_NOT_FOUND],
)
async def delete_provider(request: Request[State], caller: Caller) -> Response:
    await request.state.db.write(providers.delete_provider, caller.id, request.path_params["provider_id"])
    return no_content()


@describes(
    "Providers",
    "testProvider",
    "Test a provider",
    "Asks the provider for its models, for at most 3 seconds. Takes nothing from the chat bucket.",
    parameters=[_PROVIDER_ID],
    answers={200: Answer("It answered with its models.", PROVIDER_TEST)},
    errors=[
        Refusal(
            "invalid_value",
            "The provider's stored key cannot be read any more. Set it again.",
            when="The stored key cannot be read any more: set it again.",
        ),
        _ADDRESS_NOT_ALLOWED,
        _NOT_FOUND,
        _TOO_OFTEN,
        Refusal(
            "invalid_api_key",
            "mine: Incorrect API key provided: ***.",
            when="The provider's own 401, 403 or 429, with its error object and its name in front of the message.",
            status="4XX",
            headers={"retry-after": PERHAPS_RETRY_AFTER},
            type="invalid_request_error",
        ),
        Refusal(
            "upstream_error",
            "mine did not answer as an OpenAI-compatible model server.",
            when="It did not answer as a model server does. Refused, silent and foreign ones get this same answer after "
            "the same time.",
        ),
    ],
)
async def test_provider(request: Request[State], caller: Caller) -> Response:
    """Asks the provider for its models -> `{ok: true, models}`; a failure is an error that tells nothing about ports."""
    state = request.state
    row = await state.db.read(providers.provider_by_id, caller.id, request.path_params["provider_id"])
    state.limits.take_by_account("ask_provider", caller.id)
    return reply({"ok": True, "models": await state.models.test(row)})


async def _check_places(state: State, account_id: str, body: NewProvider | ProviderChanges) -> None:
    """Refuse a name that the operator uses and an address that may not be reached."""
    if isinstance(body.name, str) and state.models.catalog.has_provider(body.name):
        raise ApiError("name_taken", "The operator's models go by this name. Choose another one.", param="name")
    if isinstance(body.base_url, str):
        state.limits.take_by_account("ask_provider", account_id)
        try:
            await state.check_address(body.base_url, account_id)
        except AddressNotAllowed:
            raise ApiError("address_not_allowed", param="base_url") from None
