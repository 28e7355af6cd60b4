"""A user's own model providers (BYOK): records and a test of the connection (contract 4)."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from svc.errors import ApiError
from svc.inference import providers
from svc.outbound.addresses import AddressNotAllowed
from svc.server.bodies import read_json
from svc.server.gate import Caller
from svc.server.state import State
from svc.server.web import listing, no_content, page_after, page_limit, reply


async def create_provider(request: Request[State], caller: Caller) -> Response:
    """`{name, base_url, api_key?, models?}` -> 201. The key is never shown again."""
    state = request.state
    fields = providers.check_fields(await read_json(request), creating=True)
    await _check_places(state, fields)
    row = await state.db.write(providers.add_provider, caller.id, fields, state.key_box, state.clock())
    return reply(providers.shown(row), 201)


async def list_providers(request: Request[State], caller: Caller) -> Response:
    page = await request.state.db.read(providers.providers_page, caller.id, page_limit(request), page_after(request))
    return listing(page, providers.shown)


async def show_provider(request: Request[State], caller: Caller) -> Response:
    row = await request.state.db.read(providers.provider_by_id, caller.id, request.path_params["provider_id"])
    return reply(providers.shown(row))


async def change_provider(request: Request[State], caller: Caller) -> Response:
    """Absent fields stay; a new scheme, host or port drops the key unless a new one comes along."""
    state = request.state
    fields = providers.check_fields(await read_json(request), creating=False)
    provider_id = request.path_params["provider_id"]
    await state.db.read(providers.provider_by_id, caller.id, provider_id)
    await _check_places(state, fields)
    row = await state.db.write(providers.change_provider, caller.id, provider_id, fields, state.key_box)
    return reply(providers.shown(row))


async def delete_provider(request: Request[State], caller: Caller) -> Response:
    await request.state.db.write(providers.delete_provider, caller.id, request.path_params["provider_id"])
    return no_content()


async def test_provider(request: Request[State], caller: Caller) -> Response:
    """Asks the provider for its models -> `{ok: true, models}`; a failure is an error that tells nothing about ports."""
    state = request.state
    row = await state.db.read(providers.provider_by_id, caller.id, request.path_params["provider_id"])
    return reply({"ok": True, "models": await state.models.test(row)})


async def _check_places(state: State, fields: dict[str, Any]) -> None:
    """Refuses a name that the operator uses and an address that may not be reached."""
    if "name" in fields and state.models.catalog.has_provider(fields["name"]):
        raise ApiError("name_taken", "The operator's models go by this name. Choose another one.", param="name")
    if "base_url" in fields:
        try:
            await state.check_address(fields["base_url"])
        except AddressNotAllowed:
            raise ApiError("address_not_allowed", param="base_url") from None
