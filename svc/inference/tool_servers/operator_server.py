"""A tool server of the operator, as the catalog has it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import orjson

from svc.groups import Group
from svc.inference.tool_servers.client import Target
from svc.outbound.client import Outbound


@dataclass(frozen=True)
class OperatorServer:
    """A tool server of the operator. `groups` and `tools` are None for all, `ask` is None for each tool's own hint."""

    name: str
    url: str
    headers: Mapping[str, str]
    groups: tuple[str, ...] | None
    tools: frozenset[str] | None
    micros_per_call: int
    ask: bool | None

    def target(self, client: Outbound) -> Target:
        return Target(self.name, self.url, self.headers, client)

    def allows(self, group: Group | None) -> bool:
        return self.groups is None or (group is not None and group.name in self.groups)

    @cached_property
    def settings(self) -> str:
        """The entry as JSON without secrets, by which a change is noticed."""
        return orjson.dumps(
            {
                "url": self.url,
                "headers": sorted(self.headers),
                "groups": self.groups,
                "tools": None if self.tools is None else sorted(self.tools),
                "micros_per_call": self.micros_per_call,
                "ask": self.ask,
            }
        ).decode()
