"""The registry of tools: how a tool is described, and called by a run, a chat or another tool.

call() -> a place -> the arguments are checked -> the tool's function -> a value for JSON, cut to RESULT_BYTES
       | ToolFailure, whose text the model reads

The modules beside this one have the tools. offered.py says which of them a caller may use.
"""

import asyncio
import contextlib
import functools
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from svc.agents.tools.sources import Sources
from svc.builtin.processes import ProcessPool
from svc.content.artifacts import Home
from svc.errors import ApiError
from svc.fair_queue import OwnPlaces
from svc.ids import new_id
from svc.inference.catalog import Model
from svc.inference.media_engines import MediaEngines
from svc.inference.model_call import Engines, ModelCall, Payer
from svc.server.sse import Interrupt
from svc.shapes import Shape

# What a tool may need: a session, the operator's permission to fetch, a model for images or for speech, a search
# engine, the extra `python`, a project with files.
Need = Literal["session", "fetch", "image", "speech", "search", "python", "files"]
Function = Callable[..., Awaitable[Any]]
SERVICE = "service"  # the source of the service's own tools
RESULT_BYTES = 32 * 1024
_INNER_RESULT_BYTES = 4 * 1024
_CUT = "\n[This result is longer. It is cut here.]"
OWN_SERVERS = "(users' tool servers)"  # as which their tools are counted: users choose the names


class ToolFailure(Exception):
    """A tool failed. The model gets the text of this exception as the tool's result."""


@dataclass
class ToolContext:
    """Who calls `tools`, and with what. `media_models` are by kind, `image` and `speech`, as far as there are any.

    `places` limit the calls at once. `paid_calls` grows. `also` is written with each of their settlements. `interrupt`
    is that of the run or the answer. `on_fault` receives the exception of a bug in a tool; the model sees only its
    class. `pools` run helper processes: `python`, `pages` and `documents`.
    `on_inner_step` receives a `tool_call` and a `tool_result` for each call that the code of run_python makes.
    `sources` numbers what tools have found.
    """

    tools: "Mapping[str, AgentTool]"
    home: Home
    payer: Payer
    engines: Engines
    media: MediaEngines
    media_models: Mapping[str, Model]
    places: OwnPlaces
    paid_calls: list[ModelCall]
    also: Callable[[sqlite3.Connection], None]
    interrupt: Interrupt
    on_fault: Callable[[BaseException], None]
    pools: Mapping[str, ProcessPool]
    on_inner_step: Callable[[dict[str, Any]], None]
    sources: Sources = field(default_factory=Sources)
    kept: dict[str, Any] = field(default_factory=dict)  # by tools, for further calls
    closers: list[Callable[[], None]] = field(default_factory=list)  # for `close`
    _counted: int = 0  # of `paid_calls`

    async def call(self, name: str, arguments: dict[str, Any], written: str | None = None) -> Any:
        """Return the result of the tool `name`, a value for JSON. Raises ToolFailure.

        `written` is the JSON of the arguments as the model wrote it. A tool server gets it byte by byte. In a run, the
        ApiError of a tool that the account cannot pay ends the run.
        """
        try:
            async with self.places.taken(self.home.account_id):
                result = await self._run(name, arguments, written)
        except TimeoutError:
            raise ToolFailure("The service is busy with the tools of others. Try again in a few seconds.") from None
        return orjson.loads(result) if self.tools[name].cuts_itself else _cut(result, RESULT_BYTES)

    async def call_inner(self, name: str, arguments: dict[str, Any]) -> bytes:
        """Call a tool within another one, in the place of that one. Return the whole result as JSON.

        Raises what `call` raises. The steps are cut more than results are, because there may be a hundred.
        """
        step = {"id": new_id("call", self.engines.clock()), "name": name}
        self.on_inner_step({"type": "tool_call", **step, "arguments": arguments})
        try:
            result = await self._run(name, arguments, None)
        except (ApiError, ToolFailure) as failure:
            reason = _cut_text(str(failure), _INNER_RESULT_BYTES)
            self.on_inner_step({"type": "tool_result", **step, "ok": False, "result": reason})
            raise
        shown = _cut(result, _INNER_RESULT_BYTES)
        self.on_inner_step({"type": "tool_result", **step, "ok": True, "result": shown})
        return result

    async def _run(self, name: str, arguments: dict[str, Any], written: str | None) -> bytes:
        """Return the result as JSON. Raises what `call` raises."""
        tool = self.tools.get(name)
        if tool is None:
            raise ToolFailure(f"There is no tool {name[:100]!r}. There are: {', '.join(self.tools)}.")
        failed = True
        try:
            result = orjson.dumps(await tool.run(self, arguments, written))
            failed = False
            return result
        except (ApiError, ValueError, ToolFailure) as error:
            if isinstance(error, ApiError) and error.status == 402 and self.home.run_id is not None:
                raise
            text = str(error)
            raise ToolFailure(text if tool.cuts_itself else _cut_text(text, RESULT_BYTES)) from None
        except Exception as error:
            self.on_fault(error)
            raise ToolFailure(f"The tool failed ({type(error).__name__}).") from None
        finally:
            self._count(tool, failed)

    def _count(self, tool: "AgentTool", failed: bool) -> None:
        """Count a call with what it has cost; calls within it have counted theirs before."""
        cost_micros = sum(call.cost_micros for call in self.paid_calls[self._counted :])
        self._counted = len(self.paid_calls)
        engines, name = self.engines, OWN_SERVERS if tool.own else tool.name
        engines.usage.tools.count(name, engines.clock(), failed=failed, cost_micros=cost_micros)

    def is_by_others(self, name: str) -> bool:
        """Return whether others have written the results of the tool `name`."""
        tool = self.tools.get(name)
        return tool is not None and tool.by_others

    def close(self) -> None:
        """End what tools keep for further calls, such as sessions of tool servers, without waiting for it."""
        for close in self.closers:
            close()
        self.closers.clear()

    @contextlib.asynccontextmanager
    async def paying(self, call: ModelCall) -> AsyncIterator[None]:
        """Hold the cost of `call` before the block, and settle it after. Raises ApiError."""
        call.also = self.also
        self.paid_calls.append(call)
        async with call:
            try:
                yield
            except asyncio.CancelledError:  # also after TOOL_SECONDS
                call.note_early_end(of_caller=self.interrupt.is_of_caller)
                raise


@dataclass(frozen=True)
class AgentTool:
    """A tool: its description for the model, the shapes of its arguments by name, and its function.

    `function(context, **arguments)` returns a value for JSON. It raises ToolFailure, ApiError or ValueError with a
    reason that the model can use. Every argument is required, so that models omit none. A tool with `ask` runs only
    after a person has approved the call. `source` is SERVICE, or the name of the tool server that has it, which is the
    user's `own` one or the operator's. A tool that `cuts_itself` has its own limit for its result. A tool of a server
    has a JSON `schema` that the server checks. Its function takes the JSON of the arguments instead of them.
    One `by_others` returns what others have written. Another `version` of a tool is not the one that was approved.
    """

    name: str
    description: str
    arguments: Mapping[str, Shape[Any]]
    function: Function
    needs: Need | None = None
    ask: bool = False
    price_micros: int = 0
    source: str = SERVICE
    cuts_itself: bool = False
    by_others: bool = False
    version: str = ""
    schema: dict[str, Any] | None = None
    own: bool = False

    async def run(self, context: ToolContext, arguments: Mapping[str, Any], written: str | None) -> Any:
        """Call the function. Raises what it raises, and what `checked` does."""
        if self.schema is None:
            return await self.function(context, **self.checked(arguments))
        return await self.function(context, orjson.dumps(arguments).decode() if written is None else written)

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        if self.schema is not None:
            return self.schema
        return {
            "type": "object",
            "properties": {name: shape.schema for name, shape in self.arguments.items()},
            "required": list(self.arguments),
            "additionalProperties": False,
        }

    @property
    def as_function(self) -> dict[str, Any]:
        """The tool in the form of a chat request's `tools`."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the typed arguments. Raises ToolFailure for an unknown one, ApiError for a wrong one."""
        for name in arguments:
            if name not in self.arguments:
                known = ", ".join(self.arguments) or "none"
                raise ToolFailure(f"{self.name} has no argument {name[:100]!r}. It takes: {known}.")
        return {name: shape.check(arguments.get(name), name) for name, shape in self.arguments.items()}


def _cut(written: bytes, most_bytes: int) -> Any:
    """Return a result that is given as JSON. One beyond `most_bytes` becomes a text that says that it is cut."""
    if len(written) > most_bytes and not written.startswith(b'"'):
        return _cut_text(written.decode(), most_bytes)
    value = orjson.loads(written)
    return _cut_text(value, most_bytes) if isinstance(value, str) else value


def _cut_text(text: str, most_bytes: int) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= most_bytes:
        return text
    return encoded[: most_bytes - len(_CUT)].decode("utf-8", "ignore") + _CUT


TOOLS: dict[str, AgentTool] = {}


def tool(
    description: str, needs: Need | None = None, *, cuts_itself: bool = False, by_others: bool = False
) -> Callable[[Function], Function]:
    """Add a function to TOOLS. Its arguments after the context are annotated with shapes."""

    def add(function: Function) -> Function:
        hints = function.__annotations__.items()
        shapes = {name: hint.__metadata__[0] for name, hint in hints if hasattr(hint, "__metadata__")}
        TOOLS[function.__name__] = AgentTool(
            function.__name__, description, shapes, function, needs, cuts_itself=cuts_itself, by_others=by_others
        )
        return function

    return add
