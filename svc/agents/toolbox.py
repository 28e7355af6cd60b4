"""How an agent's tools are offered, described and called: svc/agents/tools.py holds the tools themselves.

call() -> the arguments against the tool's schema -> its function -> what JSON can carry | ToolFailure, whose text the model sees
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from svc.agents.loop import ToolFailure
from svc.agents.maker import Maker
from svc.content.artifacts import Artifact
from svc.db import Database
from svc.errors import ApiError
from svc.outbound.client import Outbound
from svc.shapes import Shape


class Offer(NamedTuple):
    """What decides which tools a run has: who asks, what the operator allows, and for which media there are models."""

    session: bool
    fetch: bool
    image: bool
    speech: bool


@dataclass
class RunContext:
    """What the tools of one run work with, bound to its account; `guarded` reaches public addresses alone."""

    account_id: str
    run_id: str
    project_id: str | None
    db: Database
    guarded: Outbound
    clock: Callable[[], float]
    maker: Maker


def file_fields(artifact: Artifact) -> dict[str, Any]:
    """What a model is told of a file."""
    return {"id": artifact.id, "name": artifact.name, "content_type": artifact.content_type, "size": artifact.size}


def always(offer: Offer) -> bool:
    return True


@dataclass(frozen=True)
class AgentTool:
    """One tool: what the model is told, the shapes of its arguments by name, and the function that does it.

    `function(run, **arguments)` gives what JSON can carry. It raises ToolFailure, ApiError or ValueError with a reason that the
    model can use. Every argument is required, so that a model leaves none out.
    """

    name: str
    description: str
    arguments: Mapping[str, Shape[Any]]
    function: Callable[..., Awaitable[Any]]
    offered: Callable[[Offer], bool] = always

    @functools.cached_property
    def as_function(self) -> dict[str, Any]:
        """The tool as a chat request's `tools` have it."""
        names = list(self.arguments)
        parameters = {
            "type": "object",
            "properties": {name: shape.schema for name, shape in self.arguments.items()},
            "required": names,
            "additionalProperties": False,
        }
        return {"type": "function", "function": {"name": self.name, "description": self.description, "parameters": parameters}}

    def checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments, checked and typed. Raises ToolFailure for an unknown one, ApiError for a wrong one."""
        for name in arguments:
            if name not in self.arguments:
                known = ", ".join(self.arguments) or "none"
                raise ToolFailure(f"{self.name} has no argument {name[:100]!r}. It takes: {known}.")
        return {name: shape.check(arguments.get(name), name) for name, shape in self.arguments.items()}


@dataclass(frozen=True)
class Toolbox:
    """The tools of one run. `on_fault` is told of a bug in a tool; the model learns its kind alone."""

    tools: Mapping[str, AgentTool]
    run: RunContext
    on_fault: Callable[[BaseException], None]

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Runs the tool `name`; its result is what JSON can carry. Raises ToolFailure with a reason that the model can use."""
        tool = self.tools.get(name)
        if tool is None:
            raise ToolFailure(f"There is no tool {name[:100]!r}. There are: {', '.join(self.tools)}.")
        try:
            return orjson.loads(orjson.dumps(await tool.function(self.run, **tool.checked(arguments))))
        except (ApiError, ValueError) as error:
            raise ToolFailure(str(error)) from None
        except (ToolFailure, asyncio.CancelledError):
            raise
        except Exception as error:
            self.on_fault(error)
            raise ToolFailure(f"The tool failed ({type(error).__name__}).") from None
