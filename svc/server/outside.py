"""What the service sends requests to: model servers, the payment processor, identity providers and the mail server."""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

from svc.auth.mail import Mail
from svc.auth.oauth import SignInProvider
from svc.billing.payments import Payments
from svc.billing.stripe import Stripe
from svc.config import Config
from svc.inference import upstream
from svc.inference.catalog import Catalog
from svc.inference.catalog_file import on_offer
from svc.log import Log
from svc.metrics import Metrics
from svc.outbound.addresses import check_address, public_address, public_or_private_address
from svc.outbound.client import Outbound
from svc.outbound.resolver import Resolver
from svc.secrets import DataFolder, derive


class Outside(NamedTuple):
    """What sends requests: `outbound` to hosts of the operator's settings, `guarded` to hosts that users name."""

    outbound: Outbound
    guarded: Outbound
    check_address: Callable[[str, str], Awaitable[None]]
    catalog: Catalog
    payments: Payments
    identity_providers: Mapping[str, SignInProvider]
    mail: Mail | None


async def open_outside(
    config: Config, log: Log, metrics: Metrics, folder: DataFolder, stack: contextlib.AsyncExitStack
) -> Outside:
    """Return the clients and the catalog. No request is sent yet. Raises StartError."""
    allow = public_or_private_address if config.private_addresses else public_address
    resolver = await stack.enter_async_context(contextlib.aclosing(Resolver()))
    resolve = config.resolve or resolver
    outbound = await stack.enter_async_context(contextlib.aclosing(Outbound()))
    guarded = await stack.enter_async_context(contextlib.aclosing(Outbound(allow=allow, resolve=resolve)))
    catalog = read_catalog(config, outbound)
    stack.push_async_callback(catalog.close)
    return Outside(
        outbound,
        guarded,
        partial(check_address, allow=allow, resolve=resolve),
        catalog,
        await _payments(config, folder, stack),
        await _identity_providers(config, stack),
        _mail(config, log, metrics, stack),
    )


async def _payments(config: Config, folder: DataFolder, stack: contextlib.AsyncExitStack) -> Payments:
    mode = config.payment_mode
    if mode != "stripe":
        return Payments(mode, config.base_url, derive(folder.master, "sandbox-payments") if mode == "sandbox" else None)
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


def _mail(config: Config, log: Log, metrics: Metrics, stack: contextlib.AsyncExitStack) -> Mail | None:
    if config.smtp_url is None:
        return None
    mail = Mail(config.smtp_url, config.base_url, log, count=metrics.mails.add)
    stack.push_async_callback(mail.close)
    return mail


def read_catalog(config: Config, outbound: Outbound) -> Catalog:
    """Return the catalog of the settings. Raises StartError."""
    return Catalog(on_offer(config), partial(upstream.models, outbound), int(config.clock()))
