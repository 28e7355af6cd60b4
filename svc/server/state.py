"""The state of the application, `request.state` in handlers, and the parts of it that send requests."""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope

from svc.auth.mail import Mail
from svc.auth.oauth import GitHub, SignInProvider
from svc.auth.passwords import Passwords
from svc.auth.tokens import mark_keys_used
from svc.billing.payments import Payments
from svc.billing.stripe import Stripe
from svc.billing.usage import UsageCounter
from svc.builtin.hearing import Hearing
from svc.builtin.processes import ProcessPool
from svc.builtin.voice import Voice
from svc.config import Config
from svc.db import Database
from svc.fair_queue import OwnPlaces
from svc.inference import upstream
from svc.inference.catalog import Catalog
from svc.inference.catalog_file import on_offer
from svc.inference.claim import Claims
from svc.inference.context_lengths import ContextLengths
from svc.inference.field_support import FieldSupport
from svc.inference.formats.item_memory import ItemMemory
from svc.inference.local.downloads import Downloads
from svc.inference.local.models import LocalModels
from svc.inference.media_engines import MediaEngines, Slots
from svc.inference.model_call import Engines
from svc.inference.models import Models
from svc.inference.providers import KeyBox
from svc.inference.tool_servers.servers import ToolServers
from svc.log import Log
from svc.metrics import Metrics
from svc.outbound.addresses import public_address, public_or_private_address
from svc.outbound.client import Outbound
from svc.outbound.resolver import Resolver
from svc.secrets import DataFolder, derive
from svc.server.backup import Backups
from svc.server.http.head import Context
from svc.server.importing import Importing
from svc.server.limits import BodyBudget, Limits
from svc.server.offload import Offload
from svc.server.reading import FileReading
from svc.server.session_answer import SessionAnswer
from svc.server.sse import Drain, Interrupt
from svc.write_buffer import WriteBuffer

_PURPOSES = ("session", "checkout", "oauth", "content")  # of keys that are derived from the master key
MANY_LONG = ("rate_limit_exceeded", "This account has 8 long answers open. Read one of them to its end first.", 1)
_MANY_ANSWERS = (
    "rate_limit_exceeded",
    "This account has 4 answers in progress that continue without a client. Wait for one of them, or stop it.",
    5,
)
_MANY_IMPORTS = ("overloaded", "Other imports are in progress. Try again in a minute.", 60)
_MANY_TEXTS = ("overloaded", "Too many texts are being read. Try again in a few seconds.", 5)


class OpenRun(NamedTuple):
    """An agent run in progress: what ends it from outside, and its events until now as JSON."""

    interrupt: Interrupt
    events: Sequence[bytes]


class State:
    """What handlers share. `Request` has it as its typed `state`, so that a misspelt name fails the type check.

    The constructor makes what needs no storage. The lifespan of app.py sets the attributes declared here.
    `interface` returns the interface document in JSON, which is built at the first call.
    """

    folder: DataFolder
    db: Database
    interface: Callable[[], bytes]
    reload: Callable[[], Awaitable[dict[str, list[str]]]]

    def __init__(self, config: Config) -> None:
        self.config = config
        self.clock = config.clock  # Unix seconds
        self.log = Log(config.log_fd)
        self.metrics = Metrics()
        self.drain = Drain()
        self.rotating = asyncio.Lock()
        self.bodies = BodyBudget()
        self.limits = Limits(config)
        self.item_memory = ItemMemory()
        self.open_runs: dict[str, OpenRun] = {}
        self.open_answers: dict[str, SessionAnswer] = {}  # by the ids of their conversations
        self.long_answers = Slots(8, math.inf, MANY_LONG)
        self.continued_answers = Slots(4, math.inf, _MANY_ANSWERS)  # without a client
        self.open_texts = Slots(4, 32, _MANY_TEXTS)
        self.tool_places = OwnPlaces(most=32, most_of_one=4)
        self.open_imports: dict[str, Importing] = {}  # by their ids
        self.import_slots = Slots(1, 4, _MANY_IMPORTS)
        self.title_tasks: set[asyncio.Task[None]] = set()
        self.claims = Claims()
        self.backups = Backups(config, self.log)

    async def open(self, stack: contextlib.AsyncExitStack) -> None:
        """Open the clients and workers, after the storage. No request is sent yet. Raises StartError."""
        config, master = self.config, self.folder.master
        self.key_box = KeyBox(master)
        self.derived_keys = {purpose: derive(master, purpose) for purpose in _PURPOSES}
        allow = public_or_private_address if config.private_addresses else public_address
        resolver = await stack.enter_async_context(contextlib.aclosing(Resolver()))
        resolve = config.resolve or resolver
        outbound, to_payments, to_identities = Outbound(), Outbound(), Outbound()
        guarded = Outbound(allow=allow, resolve=resolve)
        for client in (outbound, to_payments, to_identities, guarded):
            stack.push_async_callback(client.aclose)
        catalog = read_catalog(config, outbound)
        stack.push_async_callback(catalog.close)
        usage = UsageCounter(self.db)
        stack.push_async_callback(usage.close)
        self.payments = payments(config, to_payments, derive(master, "sandbox-payments"))
        parts = (catalog, outbound, guarded, self.db, usage, config.clock, self.metrics, ContextLengths(config.clock))
        self.engines = Engines(*parts, FieldSupport(self.log), payments=self.payments.mode != "none")
        self.models = Models(catalog, self.db, self.key_box, guarded, config)
        self.tool_servers = ToolServers(catalog, self.db, self.key_box, outbound, guarded, config, self.log)
        stack.push_async_callback(self.tool_servers.close)
        self.identity_providers = identity_providers(config, to_identities)
        if self.payments.stripe or self.identity_providers:
            import_module("svc.outbound.json_requests")  # later, httpx would hold the event loop for 50 ms
        self.mail: Mail | None = None
        if config.smtp_url is not None:
            self.mail = Mail(config.smtp_url, config.base_url, self.log, count=self.metrics.mails.add)
            stack.push_async_callback(self.mail.close)
        # (account id, key id or '') -> minute in Unix seconds
        self.key_uses = WriteBuffer[tuple[str, str], float](self.db, mark_keys_used, "unsynced")
        stack.push_async_callback(self.key_uses.close)
        self.offload = stack.enter_context(contextlib.closing(Offload()))
        passwords = Passwords(config.argon2_memory_kib, config.argon2_time_cost)
        self.passwords = stack.enter_context(contextlib.closing(passwords))
        painter, speaker = ProcessPool("svc.builtin.painter.paint"), ProcessPool("svc.builtin.speak")
        reader = ProcessPool("svc.builtin.pdf", seconds=30.0, wait_seconds=10.0)
        listener = ProcessPool("svc.builtin.hear", seconds=600.0, wait_seconds=30.0, waits_for_others=True)
        measurer = ProcessPool("svc.builtin.hear", seconds=60.0)
        self.process_pools = {"pictures": painter, "speech": speaker, "documents": reader}
        self.process_pools |= {"transcriptions": listener, "audio_lengths": measurer}
        self.process_pools["passages"] = ProcessPool("svc.builtin.passages")
        self.process_pools["imports"] = ProcessPool("svc.builtin.imports.reader", seconds=900.0)
        # As many at once as there may be tool calls.
        for name, module in (("python", "svc.builtin.sandbox"), ("pages", "svc.builtin.page")):
            self.process_pools[name] = ProcessPool(module, at_once=32)
        for pool in self.process_pools.values():
            stack.push_async_callback(pool.close)
        hearing = Hearing(listener, measurer)
        self.local_models = LocalModels(config, catalog, self.log)
        stack.push_async_callback(self.local_models.close)
        await self.local_models.start()
        allowed = public_or_private_address if config.local_posture else public_address
        self.fetching = Outbound(allow=allowed, resolve=resolve)
        stack.push_async_callback(self.fetching.aclose)
        self.downloads = Downloads(self.fetching, self.local_models.scan)
        stack.push_async_callback(self.downloads.stop)
        self.media = MediaEngines(self.engines, painter, Voice(speaker), hearing, self.folder.path)
        self.file_reading = FileReading(self.db, self.process_pools["passages"], self.media.spool, self.log)
        self.started_at = config.monotonic()


class Request(HTTPConnection[Any]):
    """Starlette's request with `state`, `receive` and `context` as attributes: its properties take five times as long.

    It has no body: svc/server/bodies.py reads that from `receive`.
    """

    __slots__ = ("context", "receive", "state")
    context: Context
    receive: Receive
    state: State

    def __init__(self, scope: Scope, receive: Receive, state: State) -> None:
        self.scope = scope  # all that the constructor of Starlette does
        self.context, self.receive, self.state = scope["svc"], receive, state


def payments(config: Config, outbound: Outbound, secret: bytes) -> Payments:
    """Return the processor; `secret` signs the events of the sandbox."""
    mode = config.payment_mode
    if mode != "stripe":
        return Payments(mode, config.base_url, secret if mode == "sandbox" else None)
    stripe = Stripe(outbound, config.stripe_api, config.stripe_secret_key or "")
    return Payments(mode, config.base_url, (config.stripe_webhook_secret or "").encode(), stripe)


def identity_providers(config: Config, outbound: Outbound) -> dict[str, SignInProvider]:
    """Return the identity providers by name. The operator names them, so `outbound` may allow any address."""
    if not config.identity_providers:
        return {}
    from svc.auth.openid import OpenID  # late: the verification of tokens would delay the start of other services

    openid = partial(OpenID, client=outbound, clock=config.clock, monotonic=config.monotonic)
    providers = config.identity_providers
    return {one.name: GitHub(one, outbound) if one.name == "github" else openid(one) for one in providers}


def read_catalog(config: Config, outbound: Outbound) -> Catalog:
    """Return the catalog of the settings. Raises StartError."""
    return Catalog(on_offer(config), partial(upstream.models, outbound), int(config.clock()))
