"""The state of the application, `request.state` in handlers. The lifespan of app.py makes it."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope

from svc.auth.mail import Mail
from svc.auth.oauth import SignInProvider
from svc.auth.passwords import Passwords
from svc.billing.payments import Payments
from svc.builtin.processes import ProcessPool
from svc.config import Config
from svc.db import Database
from svc.inference.formats.item_memory import ItemMemory
from svc.inference.media_engines import MediaEngines, Slots
from svc.inference.models import Models
from svc.inference.paid_call import Engines
from svc.inference.providers import KeyBox
from svc.log import Log
from svc.metrics import Metrics
from svc.secrets import DataFolder
from svc.server.body_budget import BodyBudget
from svc.server.head import Context
from svc.server.limits import Limits
from svc.server.offload import Offload
from svc.server.session_answer import SessionAnswer
from svc.server.sse import Drain, Interrupt
from svc.write_buffer import WriteBuffer

_MANY_ANSWERS = (
    "rate_limit_exceeded",
    "This account has 4 answers in progress that continue without a client. Wait for one of them, or stop it.",
    5,
)
_MANY_TEXTS = ("overloaded", "Too many texts are being read. Try again in a few seconds.", 5)


class OpenRun(NamedTuple):
    """An agent run in progress: what ends it from outside, and its events until now as JSON."""

    interrupt: Interrupt
    events: Sequence[bytes]


def long_answer_slots(most: int = 8) -> Slots:
    """Return the limit of long answers that one account may have open."""
    message = f"This account has {most} long answers open. Read one of them to its end first."
    return Slots(most, math.inf, ("rate_limit_exceeded", message, 1))


class State:
    """What handlers share. `Request` has it as its typed `state`, so that a misspelt name fails the type check.

    The constructor makes what needs no storage. The lifespan of app.py opens the rest, the attributes declared here.
    `check_address(url, account_id)` is for URLs that users name. `interface` returns the interface document in JSON,
    which is built at the first call.
    """

    folder: DataFolder
    db: Database
    derived_keys: dict[str, bytes]  # a key for each purpose, derived from the master key of the data folder
    key_box: KeyBox
    check_address: Callable[[str, str], Awaitable[None]]
    engines: Engines
    models: Models
    payments: Payments
    identity_providers: Mapping[str, SignInProvider]
    mail: Mail | None
    key_uses: WriteBuffer[tuple[str, str], float]  # (account id, key id or '') -> minute in Unix seconds
    offload: Offload
    passwords: Passwords
    process_pools: Mapping[str, ProcessPool]
    media: MediaEngines
    interface: Callable[[], bytes]
    started_at: float

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
        self.long_answers = long_answer_slots()
        self.continued_answers = Slots(4, math.inf, _MANY_ANSWERS)  # without a client
        self.open_texts = Slots(4, 32, _MANY_TEXTS)


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
