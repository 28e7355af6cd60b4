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
from dataclasses import dataclass
from typing import Any, Literal

import orjson

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
# engine, the extra `python`.
Need = Literal["session", "fetch", "image", "speech", "search", "python"]
Function = Callable[..., Awaitable[Any]]
SERVICE = "service"  # the source of the service's own tools
RESULT_BYTES = 32 * 1024
_INNER_RESULT_BYTES = 4 * 1024
_CUT = "\n[This result is longer. It is cut here.]"


class ToolFailure(Exception):
    """A tool failed. The model gets the text of this exception as the tool's result."""


@dataclass
class ToolContext:
    """Who calls `tools`, and with what. `media_models` are by kind, `image` and `speech`, as far as there are any.

    `places` limit the calls at once. `paid_calls` grows. `also` is written with each of their settlements. `interrupt`
    is that of the run or the answer.
    `on_fault` receives the exception of a bug in a tool; the model sees only its class. `sandbox` runs Python.
    `on_inner_step` receives a `tool_call` and a `tool_result` for each call that the code of run_python makes.
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
    sandbox: ProcessPool
    on_inner_step: Callable[[dict[str, Any]], None]

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return the result of the tool `name`, a value for JSON. Raises ToolFailure.

        In a run, the ApiError of a tool that the account cannot pay ends the run.
        """
        try:
            async with self.places.taken(self.home.account_id):
                written = await self._written(name, arguments)
        except TimeoutError:
            raise ToolFailure("The service is busy with the tools of others. Try again in a few seconds.") from None
        return orjson.loads(written) if self.tools[name].cuts_itself else _cut(written, RESULT_BYTES)

    async def call_inner(self, name: str, arguments: dict[str, Any]) -> bytes:
        """Call a tool within another one, in the place of that one. Return the whole result as JSON.

        Raises what `call` raises. The steps are cut more than results are, because there may be a hundred.
        """
        step = {"id": new_id("call", self.engines.clock()), "name": name}
        self.on_inner_step({"type": "tool_call", **step, "arguments": arguments})
        try:
            written = await self._written(name, arguments)
        except (ApiError, ToolFailure) as failure:
            result = _cut_text(str(failure), _INNER_RESULT_BYTES)
            self.on_inner_step({"type": "tool_result", **step, "ok": False, "result": result})
            raise
        result = _cut(written, _INNER_RESULT_BYTES)
        self.on_inner_step({"type": "tool_result", **step, "ok": True, "result": result})
        return written

    async def _written(self, name: str, arguments: dict[str, Any]) -> bytes:
        """Return the result as JSON. Raises what `call` raises."""
        tool = self.tools.get(name)
        if tool is None:
            raise ToolFailure(f"There is no tool {name[:100]!r}. There are: {', '.join(self.tools)}.")
        try:
            return orjson.dumps(await tool.function(self, **tool.checked(arguments)))
        except (ApiError, ValueError, ToolFailure) as error:
            if isinstance(error, ApiError) and error.status == 402 and self.home.run_id is not None:
                raise
            text = str(error)
            raise ToolFailure(text if tool.cuts_itself else _cut_text(text, RESULT_BYTES)) from None
        except Exception as error:
            self.on_fault(error)
            raise ToolFailure(f"The tool failed ({type(error).__name__}).") from None

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
    after a person has approved the call. `source` is SERVICE, or the name of the tool server that has it. A tool that
    `cuts_itself` has its own limit for its result.
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

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
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


def tool(description: str, needs: Need | None = None, *, cuts_itself: bool = False) -> Callable[[Function], Function]:
    """Add a function to TOOLS. Its arguments after the context are annotated with shapes."""

    def add(function: Function) -> Function:
        hints = function.__annotations__.items()
        shapes = {name: hint.__metadata__[0] for name, hint in hints if hasattr(hint, "__metadata__")}
        TOOLS[function.__name__] = AgentTool(
            function.__name__, description, shapes, function, needs, cuts_itself=cuts_itself
        )
        return function

    return add
