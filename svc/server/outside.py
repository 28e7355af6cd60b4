"""What the service sends requests to: model servers, the payment processor, identity providers and the mail server."""

import contextlib
from functools import partial

from svc.auth.mail import Mail
from svc.auth.oauth import SignInProvider
from svc.billing.payments import Payments
from svc.billing.stripe import Stripe
from svc.billing.usage import UsageCounter
from svc.config import Config
from svc.inference import upstream
from svc.inference.catalog import Catalog
from svc.inference.catalog_file import on_offer
from svc.inference.models import Models
from svc.inference.paid_call import Engines
from svc.outbound.addresses import check_address, public_address, public_or_private_address
from svc.outbound.client import Outbound
from svc.outbound.resolver import Resolver
from svc.secrets import derive
from svc.server.state import State


async def open_outside(state: State, stack: contextlib.AsyncExitStack) -> None:
    """Open the clients, and make what sends requests through them. No request is sent yet. Raises StartError."""
    config = state.config
    allow = public_or_private_address if config.private_addresses else public_address
    resolver = await stack.enter_async_context(contextlib.aclosing(Resolver()))
    resolve = config.resolve or resolver
    outbound = await stack.enter_async_context(contextlib.aclosing(Outbound()))
    guarded = await stack.enter_async_context(contextlib.aclosing(Outbound(allow=allow, resolve=resolve)))
    catalog = read_catalog(config, outbound)
    stack.push_async_callback(catalog.close)
    usage = UsageCounter(state.db)
    stack.push_async_callback(usage.close)
    state.check_address = partial(check_address, allow=allow, resolve=resolve)
    state.engines = Engines(catalog, outbound, guarded, state.db, usage, config.clock, state.metrics)
    state.models = Models(catalog, state.db, state.key_box, guarded)
    state.payments = await _payments(state, stack)
    state.identity_providers = await _identity_providers(config, stack)
    state.mail = _mail(state, stack)


async def _payments(state: State, stack: contextlib.AsyncExitStack) -> Payments:
    config, mode = state.config, state.config.payment_mode
    if mode != "stripe":
        secret = derive(state.folder.master, "sandbox-payments") if mode == "sandbox" else None
        return Payments(mode, config.base_url, secret)
    from svc.outbound.transport import httpx_client  # late, as below

    client = await stack.enter_async_context(httpx_client(Outbound()))
    stripe = Stripe(client, config.stripe_api, config.stripe_secret_key or "")
    return Payments(mode, config.base_url, (config.stripe_webhook_secret or "").encode(), stripe)


async def _identity_providers(config: Config, stack: contextlib.AsyncExitStack) -> dict[str, SignInProvider]:
    if not config.identity_providers:
        return {}
    # Late: without such a provider, httpx and the verification of tokens would take a fifth of the start.
    from svc.auth.github import GitHub
    from svc.auth.openid import OpenID
    from svc.outbound.transport import httpx_client

    # The operator names them, so any address is allowed.
    client = await stack.enter_async_context(httpx_client(Outbound()))
    openid = partial(OpenID, client=client, clock=config.clock, monotonic=config.monotonic)
    return {one.name: GitHub(one, client) if one.name == "github" else openid(one) for one in config.identity_providers}


def _mail(state: State, stack: contextlib.AsyncExitStack) -> Mail | None:
    if state.config.smtp_url is None:
        return None
    mail = Mail(state.config.smtp_url, state.config.base_url, state.log, count=state.metrics.mails.add)
    stack.push_async_callback(mail.close)
    return mail


def read_catalog(config: Config, outbound: Outbound) -> Catalog:
    """Return the catalog of the settings. Raises StartError."""
    return Catalog(on_offer(config), partial(upstream.models, outbound), int(config.clock()))
