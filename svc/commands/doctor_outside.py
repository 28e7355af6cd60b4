"""What `svc doctor` asks of others: the catalog's model servers, mail, payments, identity providers, and what time they have.

No text of theirs is shown, and none of ours that holds a secret: only statuses, and the names that stand in the settings.
"""

import asyncio
import contextlib
import math
import smtplib
import ssl
import time
from collections.abc import AsyncIterator, Coroutine
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

import httpx

from svc.auth.github import GitHub
from svc.auth.mail import Mail
from svc.auth.openid import OpenID
from svc.billing.stripe import Stripe
from svc.builtin import provider as builtin
from svc.commands.finding import Finding, fine, look, wrong
from svc.config import Config, IdentityProvider, MailServer
from svc.errors import ApiError, StartError, UpstreamFault
from svc.inference import upstream
from svc.inference.catalog import Catalog, Model, Provider, on_offer
from svc.log import Log
from svc.outbound.client import Outbound
from svc.outbound.errors import OutboundError
from svc.outbound.resolver import Resolver
from svc.outbound.transport import httpx_client

_SKEW_SECONDS = 60
_CLOCK_SECONDS = 10.0

Probe = tuple[str, Coroutine[Any, Any, list[Finding]]]


@contextlib.asynccontextmanager
async def probes(config: Config) -> AsyncIterator[list[Probe]]:
    """Everything to ask, each with what it is about; none has begun."""
    resolver = Resolver()
    outbound = Outbound(resolve=config.resolve or resolver)
    async with contextlib.aclosing(resolver), httpx_client(outbound) as client:
        found = _model_servers(config, outbound)
        if config.smtp_url is not None:
            found.append(("mail", _mail(config, config.smtp_url)))
        if config.payment_mode == "stripe":
            stripe = Stripe(client, config.stripe_api, config.stripe_secret_key or "")
            found.append(("payments", _stripe(config, stripe)))
        else:
            found.append(("payments", _no_processor(config)))
        found += [(f"identity provider {one.name}", _identity_provider(config, one, client)) for one in config.identity_providers]
        found.append(("clock", _clock(config, outbound)))
        yield found


# --- model servers


def _model_servers(config: Config, outbound: Outbound) -> list[Probe]:
    try:
        models, listed, default_model = on_offer(config)
        Catalog(models, listed, default_model, partial(upstream.models, outbound), 0)  # judges what refers to one another
    except StartError as error:
        return [("catalog", _one(wrong("catalog", str(error))))]
    named: dict[str, tuple[Provider, list[Model]]] = {}
    for model in models:
        if model.provider is not None:
            named.setdefault(model.provider.name, (model.provider, []))[1].append(model)
    probes: list[Probe] = []
    for provider, own in named.values():
        probes.append((f"provider {provider.name}", _configured(outbound, provider, own)))
    for provider, is_configured in listed:
        ask = _configured(outbound, provider, []) if is_configured else _looked_for(outbound, provider)
        probes.append((f"provider {provider.name}", ask))
    if config.builtin and "voice" not in builtin.offered():
        todo = "Install espeak-ng, or the extra 'voice'"
        probes.append(("speech", _one(look("speech", "there is no eSpeak NG, so builtin/voice is not offered", todo))))
    if not models and not listed:
        probes.append(("models", _one(wrong("models", "there is none", "Set SVC_CATALOG, or SVC_BUILTIN=1"))))
    return probes


async def _one(finding: Finding) -> list[Finding]:
    return [finding]


async def _configured(outbound: Outbound, provider: Provider, models: list[Model]) -> list[Finding]:
    """A provider of the catalog; its `models` as that names them, none where it is asked for its own."""
    about = f"provider {provider.name}"
    try:
        offered = {entry["id"] for entry in await upstream.models(outbound, provider)}
    except UpstreamFault as fault:
        return [_fault(about, provider, fault)]
    missing = [model.name for model in models if model.name not in offered and f"{model.name}:latest" not in offered]
    if missing:
        # Some servers list only a part of what they answer as.
        return [look(about, f"it does not list {', '.join(missing[:5])}", "Hold the catalog against its list of models")]
    if not offered:
        return [wrong(about, "it answers, and has no model", "Load one there")]
    return [fine(about, f"it answers and has {'all ' if models else ''}{len(models) or len(offered)} models")]


def _fault(about: str, provider: Provider, fault: UpstreamFault) -> Finding:
    if fault.kind == "status" and fault.status in (401, 403):
        what = "the API key is refused" if provider.api_key else "it wants an API key"
        return wrong(about, f"{what} (status {fault.status})", "Set api_key or api_key_env in the catalog")
    if fault.kind == "status" and fault.status in (404, 405):
        return look(
            about, "it answers, and has no list of models to compare", "Where chat fails: see that base_url ends as it should"
        )
    told = {
        "status": f"it answers with status {fault.status}",
        "timeout": "it does not answer in time",
        "invalid": "what answers there is no model server",
        "cut": "it ends the connection",
    }
    text = told.get(fault.kind, f"it cannot be reached: {fault}")
    return wrong(about, text, f"See that it runs, and that {provider.base_url} is its address as seen from here")


async def _looked_for(outbound: Outbound, provider: Provider) -> list[Finding]:
    try:
        return [fine(f"provider {provider.name}", f"found, with {len(await upstream.models(outbound, provider))} models")]
    except UpstreamFault:
        return [fine(f"provider {provider.name}", "not on this machine (looked for because there is no catalog)")]


# --- mail, payments, identity providers


async def _mail(config: Config, server: MailServer) -> list[Finding]:
    place = f"{server.host} port {server.port}"
    error = await Mail(server, config.base_url, Log()).check()
    if error is None:
        return [fine("mail", f"{place} takes our greeting{' and our password' if server.user else ''}")]
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return [wrong("mail", f"{place} refuses user and password (code {error.smtp_code})", "Set both anew in SVC_SMTP_URL")]
    if isinstance(error, ssl.SSLError):
        todo = "Use the name of its certificate, and the right one of smtp:// and smtps://"
        return [wrong("mail", f"TLS with {place} fails: {error.reason or 'no certificate to trust'}", todo)]
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return [wrong("mail", f"{place} offers no STARTTLS, or no way to sign in", "Use smtps://, or another port")]
    reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return [wrong("mail", f"{place} cannot be reached: {reason}", "See host, port and firewall in SVC_SMTP_URL")]


async def _stripe(config: Config, stripe: Stripe) -> list[Finding]:
    try:
        status = await stripe.check()
    except (httpx.HTTPError, TimeoutError):
        return [wrong("payments", f"{config.stripe_api} cannot be reached", "See that this machine may connect there")]
    if status != 200:
        what = {401: "refuses SVC_STRIPE_SECRET_KEY", 403: "says that SVC_STRIPE_SECRET_KEY may not use Checkout Sessions"}
        return [wrong("payments", f"Stripe {what.get(status, 'fails')} (status {status})", "Take a key from Stripe's dashboard")]
    hook = f"Stripe's dashboard must have a webhook to {config.base_url}/billing/webhook, with the secret that is set here"
    found = [fine("payments", f"Stripe takes the key; {hook}")]
    if "_test_" in (config.stripe_secret_key or ""):
        found.append(look("payments", "the key is one for test money", "Take the live one when you are ready"))
    if not (config.stripe_webhook_secret or "").startswith("whsec_"):
        found.append(
            look("payments", "SVC_STRIPE_WEBHOOK_SECRET does not begin with whsec_", "Take the webhook's signing secret")
        )
    return found


async def _no_processor(config: Config) -> list[Finding]:
    if config.payment_mode == "sandbox" and not config.local_posture:
        text = "whoever signs in here can give themselves test money"
        return [look("payments", text, "Set SVC_PAYMENTS=stripe, or none")]
    return [fine("payments", "none are taken" if config.payment_mode == "none" else "test money alone (sandbox)")]


async def _identity_provider(config: Config, settings: IdentityProvider, client: httpx.AsyncClient) -> list[Finding]:
    about = f"identity provider {settings.name}"
    try:
        if settings.name == "github":
            await GitHub(settings, client).check()
            return [fine(about, "it knows the client and its secret")]
        await OpenID(settings, client, config.clock, config.monotonic).check()
    except ApiError as error:
        return [wrong(about, str(error), f"See SVC_OAUTH_{settings.name.upper()}_*, and that this machine may connect there")]
    callback = f"{config.base_url}/auth/oauth/{settings.name}/callback"
    return [fine(about, f"discovery and keys are there; it must let people come back to {callback}")]


# --- the time that others have


async def _clock(config: Config, outbound: Outbound) -> list[Finding]:
    """This machine's clock against the first of the configured places that tells the time."""
    places = [config.stripe_api] if config.payment_mode == "stripe" else []
    places += [one.issuer for one in config.identity_providers]
    with contextlib.suppress(StartError):
        models, listed, _ = on_offer(config)
        places += [model.provider.base_url for model in models if model.provider]
        places += [provider.base_url for provider, is_configured in listed if is_configured]
    answers = await asyncio.gather(*(_seconds_ahead(outbound, place) for place in dict.fromkeys(places[:5])))
    told = [seconds for seconds in answers if not math.isnan(seconds)]
    if not told:
        return [
            fine("clock", f"it says {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} UTC; nobody is configured who could tell")
        ]
    ahead = min(told, key=abs)
    if abs(ahead) > _SKEW_SECONDS:
        text = f"it is {abs(ahead):.0f} seconds {'ahead' if ahead > 0 else 'behind'}"
        return [wrong("clock", text, "Keep it right with NTP: sessions, certificates and payments rely on it")]
    return [fine("clock", f"within {max(abs(ahead), 1):.0f} seconds of what others have")]


async def _seconds_ahead(outbound: Outbound, url: str) -> float:
    """How far our clock is ahead of the `Date` of an answer, whatever its status; not a number where there is none."""
    try:
        async with asyncio.timeout(_CLOCK_SECONDS):
            reply = await outbound.send("GET", url, [(b"user-agent", b"svc")], timeout_seconds=_CLOCK_SECONDS)
            await reply.aclose()
        dates = [value.decode("latin-1") for name, value in reply.raw_headers if name.lower() == b"date"]
        return time.time() - parsedate_to_datetime(dates[0]).timestamp()
    except (OutboundError, TimeoutError, ValueError, IndexError):
        return math.nan
