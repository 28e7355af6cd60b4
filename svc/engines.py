"""What every call of a model needs of the process, and who pays for it."""

from collections.abc import Callable
from dataclasses import dataclass

from svc.catalog import Catalog, Provider
from svc.db import Database
from svc.outbound import Outbound
from svc.usage import UsageCounter


@dataclass(frozen=True)
class Engines:
    """`outbound` is the way to the operator's model servers, `guarded` the one to the users' own; `clock` gives Unix seconds."""

    catalog: Catalog
    outbound: Outbound
    guarded: Outbound
    db: Database
    usage: UsageCounter
    clock: Callable[[], float]

    def way_to(self, provider: Provider) -> Outbound:
        """The client through which a provider is asked: whoever its owner is decides which addresses it may have."""
        return self.guarded if provider.byok else self.outbound


@dataclass(frozen=True)
class Payer:
    """Whose wallet pays, and under which request and key it stands in the ledger."""

    account_id: str
    request_id: str
    key_id: str | None
