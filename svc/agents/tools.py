"""The tools of agents: how they are described and called, and a function for each. Files are artifacts.

call() -> the arguments are checked -> the tool's function -> a value for JSON | ToolFailure, whose text the model reads
"""

import asyncio
import codecs
import contextlib
import functools
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO, Literal

import orjson

from svc import quota
from svc.agents.loop import ToolFailure
from svc.builtin import calculate as arithmetic
from svc.content import artifact_contents, artifacts, recall
from svc.content.artifacts import Artifact, Home
from svc.errors import ApiError
from svc.ids import timestamp
from svc.inference.catalog import Model
from svc.inference.image_call import MOST_SIDE, ImageCall, ImageRequest
from svc.inference.media_engines import MediaEngines, store
from svc.inference.model_call import Engines, ModelCall, Payer
from svc.inference.speech_call import DEFAULT_AUDIO_TOKENS, SpeechCall, SpeechRequest
from svc.outbound.errors import OutboundError
from svc.server.sse import Interrupt
from svc.shapes import Shape, text

_VOICE = "alloy"
_READ_BYTES = 64 * 1024
_LISTED = 50
_FETCH_SECONDS = 20.0
# What a tool may need: a session, the operator's permission to fetch, a model for images or for speech.
Need = Literal["session", "fetch", "image", "speech"]
Function = Callable[..., Awaitable[Any]]


@dataclass
class RunContext:
    """The run that calls `tools`. `media_models` are by kind, `image` and `speech`, as far as there are any.

    `media_calls` grows. `also` is written with each of their settlements. `interrupt` is the run's. `on_fault`
    receives the exception of a bug in a tool; the model sees only its class.
    """

    tools: "Mapping[str, AgentTool]"
    home: Home
    payer: Payer
    engines: Engines
    media: MediaEngines
    media_models: Mapping[str, Model]
    media_calls: list[ModelCall]
    also: Callable[[sqlite3.Connection], None]
    interrupt: Interrupt
    on_fault: Callable[[BaseException], None]

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Return the result of the tool `name`, a value for JSON. Raises ToolFailure."""
        tool = self.tools.get(name)
        if tool is None:
            raise ToolFailure(f"There is no tool {name[:100]!r}. There are: {', '.join(self.tools)}.")
        try:
            return orjson.loads(orjson.dumps(await tool.function(self, **tool.checked(arguments))))
        except (ApiError, ValueError, ToolFailure) as error:
            raise ToolFailure(str(error)) from None
        except Exception as error:
            self.on_fault(error)
            raise ToolFailure(f"The tool failed ({type(error).__name__}).") from None


def file_fields(artifact: Artifact) -> dict[str, Any]:
    """Return the fields of a file that a model sees."""
    return {"id": artifact.id, "name": artifact.name, "content_type": artifact.content_type, "size": artifact.size}


@dataclass(frozen=True)
class AgentTool:
    """A tool: its description for the model, the shapes of its arguments by name, and its function.

    `function(run, **arguments)` returns a value for JSON. It raises ToolFailure, ApiError or ValueError with a reason
    that the model can use. Every argument is required, so that models omit none.
    """

    name: str
    description: str
    arguments: Mapping[str, Shape[Any]]
    function: Function
    needs: Need | None = None

    @functools.cached_property
    def as_function(self) -> dict[str, Any]:
        """The tool in the form of a chat request's `tools`."""
        parameters = {
            "type": "object",
            "properties": {name: shape.schema for name, shape in self.arguments.items()},
            "required": list(self.arguments),
            "additionalProperties": False,
        }
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}

    def checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the typed arguments. Raises ToolFailure for an unknown one, ApiError for a wrong one."""
        for name in arguments:
            if name not in self.arguments:
                known = ", ".join(self.arguments) or "none"
                raise ToolFailure(f"{self.name} has no argument {name[:100]!r}. It takes: {known}.")
        return {name: shape.check(arguments.get(name), name) for name, shape in self.arguments.items()}


TOOLS: dict[str, AgentTool] = {}


def tool(description: str, needs: Need | None = None) -> Callable[[Function], Function]:
    """Add a function to TOOLS. Its arguments after the run are annotated with shapes."""

    def add(function: Function) -> Function:
        hints = function.__annotations__.items()
        shapes = {name: hint.__metadata__[0] for name, hint in hints if hasattr(hint, "__metadata__")}
        TOOLS[function.__name__] = AgentTool(function.__name__, description, shapes, function, needs)
        return function

    return add


@tool("Computes an arithmetic expression exactly: + - * / // % ** ().")
async def calculate(
    run: RunContext, expression: Annotated[str, text(1_000, least=1).about("for instance 12 * (3 + 4)")]
) -> str:
    return await asyncio.to_thread(arithmetic.calculate, expression)


@tool("Returns the current date and time in UTC.")
async def current_time(run: RunContext) -> str:
    return timestamp(run.engines.clock())


@tool("Lists the newest files of the user: id, name, type and size.")
async def list_artifacts(run: RunContext) -> list[dict[str, Any]]:
    newest = await run.engines.db.read(artifacts.TABLE.page, run.home.account_id, _LISTED, None)
    return [file_fields(row) for row in newest.items]


@tool("Reads a text file of the user, its first 64 KiB.")
async def read_artifact(run: RunContext, id: Annotated[str, text(100, least=1).about("the file's id, art_...")]) -> str:
    def read(conn: sqlite3.Connection) -> tuple[Artifact, bytes]:
        found = artifacts.TABLE.by_id(conn, run.home.account_id, id)
        return found, artifact_contents.content_chunk(
            conn, run.home.account_id, id, found.sha256, 0
        ) if found.size else b""

    artifact, content = await run.engines.db.read(read)
    try:
        # The last character may be cut.
        return codecs.getincrementaldecoder("utf-8")().decode(content[:_READ_BYTES], final=artifact.size <= _READ_BYTES)
    except UnicodeDecodeError:
        raise ToolFailure(f"This file is not text ({artifact.content_type}).") from None


@tool("Writes a new text file for the user.")
async def write_artifact(
    run: RunContext,
    name: Annotated[str, text(artifacts.NAME_LENGTH, least=1).about("a file name such as note.md")],
    content: Annotated[str, text(1_000_000)],
) -> dict[str, Any]:
    artifact = await artifacts.add_artifact(
        run.engines.db,
        run.home,
        content.encode("utf-8", "replace"),
        name=name,
        content_type="text/plain; charset=utf-8",
        now_seconds=run.engines.clock(),
    )
    return file_fields(artifact)


@tool("Draws a picture, kept as a file of the user.", "image")
async def generate_image(
    run: RunContext, prompt: Annotated[str, text(4_000, least=1).about("what the picture shows")]
) -> dict[str, Any]:
    model = run.media_models["image"]
    call = ImageCall(model, ImageRequest(prompt, 1, MOST_SIDE, MOST_SIDE, {"prompt": prompt}), run.media, run.payer)
    async with _paid(run, call, model) as file:
        (picture,) = call.pictures
        artifact = await store(run.media, run.home, prompt, picture.content(file))
    revised = {} if picture.revised_prompt is None else {"revised_prompt": picture.revised_prompt}
    return file_fields(artifact) | revised


@tool("Speaks a text, kept as a file of the user.", "speech")
async def generate_audio(
    run: RunContext, input: Annotated[str, text(10_000, least=1).about("the text to speak")]
) -> dict[str, Any]:
    model = run.media_models["speech"]
    request = SpeechRequest(input, "wav", _VOICE, 1.0, DEFAULT_AUDIO_TOKENS, {"voice": _VOICE})
    call = SpeechCall(model, request, run.media, run.payer)
    async with _paid(run, call, model) as file:
        file.seek(0)
        content = await asyncio.to_thread(file.read)
        return file_fields(await store(run.media, run.home, input, content, spoken_as=call.track.content_type))


@contextlib.asynccontextmanager
async def _paid(run: RunContext, call: ImageCall | SpeechCall, model: Model) -> AsyncIterator[BinaryIO]:
    """Reserve room for the artifact of `call`, hold its cost and yield a file with its answer; then settle it."""
    call.also = run.also
    run.media_calls.append(call)
    async with quota.room(run.engines.db, run.home.account_id, call.most_bytes, artifacts=1), call:
        with run.media.slots(model).taken(run.home.account_id), run.media.spool() as file:
            try:
                await call.make(file)
                yield file
            except asyncio.CancelledError:  # also after TOOL_SECONDS
                call.note_early_end(of_caller=run.interrupt.is_of_caller)
                raise


@tool("Finds passages of earlier conversations.", "session")
async def search_memory(run: RunContext, query: Annotated[str, text(1_000, least=1)]) -> list[dict[str, Any]]:
    found = await run.engines.db.heavy_read(recall.matching_passages, run.home.account_id, query)
    return [passage.as_json() for passage in found]


@tool("Reads a public web page or text file, 64 KiB.", "fetch")
async def fetch_url(
    run: RunContext, url: Annotated[str, text(2_000, least=8).about("http:// or https://")]
) -> dict[str, Any]:
    headers = ((b"accept", b"text/*, application/json"),)
    content = b""
    try:
        async with asyncio.timeout(_FETCH_SECONDS):
            reply = await run.engines.guarded.send(
                "GET", url, headers, timeout_seconds=_FETCH_SECONDS, account_id=run.home.account_id
            )
            async with contextlib.aclosing(reply):
                while len(content) < _READ_BYTES and (chunk := await reply.more()):
                    content += chunk
    except (OutboundError, TimeoutError):
        # One text for every fault: it must not reveal which ports of the network are open.
        raise ToolFailure("This address cannot be read. Only public http and https pages can.") from None
    content_type = reply.header(b"content-type")[:200]
    if b"\0" in content:
        raise ToolFailure(f"The content of this address is not text ({content_type}).")
    page = content[:_READ_BYTES].decode("utf-8", "replace")
    return {"status": reply.status, "content_type": content_type, "text": page}


def tools_for(needs: Mapping[str, object]) -> dict[str, AgentTool]:
    """Return the tools that a run may use, by name; `needs` are true if they are met."""
    return {name: tool for name, tool in TOOLS.items() if tool.needs is None or needs[tool.needs]}
