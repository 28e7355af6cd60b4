"""What an agent may call: the tools' names, schemas, argument checks and work. Files are written as artifacts."""

import asyncio
import codecs
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from svc.agents.loop import ToolFailure
from svc.builtin.calculate import calculate
from svc.content import artifacts, history
from svc.content.artifacts import Artifact
from svc.db import Database
from svc.errors import ApiError
from svc.ids import timestamp
from svc.outbound.client import Outbound

_NAME = {"type": "string", "minLength": 1, "maxLength": 255}
_READ_BYTES = 64 * 1024
_LISTED = 50


def _schema(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


# name: (what the model is told, the schema of the arguments). Every property is required, so that a model leaves none out.
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "calculate": (
        "Computes an arithmetic expression exactly: numbers, + - * / // % ** and parentheses.",
        _schema(expression={"type": "string", "minLength": 1, "maxLength": 1000, "description": "for instance 12 * (3 + 4)"}),
    ),
    "current_time": ("Tells the current date and time in UTC.", _schema()),
    "list_artifacts": ("Lists the newest files of the user: id, name, type and size.", _schema()),
    "read_artifact": (
        "Reads a text file of the user, its first 64 KiB.",
        _schema(id={"type": "string", "minLength": 1, "maxLength": 100, "description": "the file's id, art_..."}),
    ),
    "write_artifact": (
        "Writes a new text file for the user.",
        _schema(name={**_NAME, "description": "a file name such as note.md"}, content={"type": "string", "maxLength": 1_000_000}),
    ),
    "generate_image": (
        "Draws a picture and keeps it as a file of the user.",
        _schema(prompt={"type": "string", "minLength": 1, "maxLength": 4000, "description": "what the picture is to show"}),
    ),
    "generate_audio": (
        "Speaks a text and keeps the sound as a file of the user.",
        _schema(input={"type": "string", "minLength": 1, "maxLength": 10_000, "description": "the text to be spoken"}),
    ),
    "search_memory": (
        "Finds what the user said or was told before, by words.",
        _schema(query={"type": "string", "minLength": 1, "maxLength": 1000}),
    ),
    "fetch_url": (
        "Reads a public web page or text file, its first 64 KiB.",
        _schema(url={"type": "string", "minLength": 8, "maxLength": 2000, "description": "http:// or https://"}),
    ),
}
_FETCH_SECONDS = 20.0


def offered(*, session: bool, fetch: bool, image: bool, speech: bool) -> list[str]:
    """The tools of a run: memory is for sessions alone, `fetch_url` only where the operator allows it, and media where there
    is a model for them."""
    possible = {"search_memory": session, "fetch_url": fetch, "generate_image": image, "generate_audio": speech}
    return [name for name in TOOLS if possible.get(name, True)]


# Makes a picture or speech of a text and keeps it: the artifact's row. Raises ApiError.
Make = Callable[[str], Awaitable[Artifact]]


def described(names: list[str]) -> list[dict[str, Any]]:
    """The tools `names` as a chat request's `tools`."""
    functions = [{"name": name, "description": TOOLS[name][0], "parameters": TOOLS[name][1]} for name in names]
    return [{"type": "function", "function": function} for function in functions]


@dataclass
class Toolbox:
    """The tools of one run, bound to its account; `guarded` reaches public addresses alone.

    `written` collects the artifacts that it made.
    """

    names: list[str]
    account_id: str
    run_id: str
    project_id: str | None
    db: Database
    guarded: Outbound
    clock: Callable[[], float]
    on_fault: Callable[[BaseException], None]
    draw: Make
    speak: Make
    written: list[dict[str, Any]] = field(default_factory=list)

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Runs the tool `name`; its result is what JSON can carry. Raises ToolFailure with a reason that the model can use."""
        if name not in self.names:
            raise ToolFailure(f"There is no tool {name[:100]!r}. There are: {', '.join(self.names)}.")
        _check(name, arguments)
        try:
            return orjson.loads(orjson.dumps(await getattr(self, f"_{name}")(**arguments)))
        except ApiError as error:
            raise ToolFailure(str(error)) from None
        except ValueError as error:
            raise ToolFailure(str(error)) from None
        except (ToolFailure, asyncio.CancelledError):
            raise
        except Exception as error:
            self.on_fault(error)
            raise ToolFailure(f"The tool failed ({type(error).__name__}).") from None

    async def _calculate(self, expression: str) -> str:
        return await asyncio.to_thread(calculate, expression)

    async def _current_time(self) -> str:
        return timestamp(self.clock())

    async def _list_artifacts(self) -> list[dict[str, Any]]:
        newest = await self.db.read(artifacts.artifacts_page, self.account_id, _LISTED, None, None, None)
        return [_brief(row) for row in newest.items]

    async def _read_artifact(self, id: str) -> str:
        def read(conn: sqlite3.Connection) -> tuple[Artifact, bytes]:
            artifact = artifacts.artifact_by_id(conn, self.account_id, id)
            return artifact, artifacts.content_piece(conn, self.account_id, id, artifact.sha256, 0) if artifact.size else b""

        artifact, content = await self.db.read(read)
        try:
            # The cut may go through a character.
            return codecs.getincrementaldecoder("utf-8")().decode(content[:_READ_BYTES], final=artifact.size <= _READ_BYTES)
        except UnicodeDecodeError:
            raise ToolFailure(f"This file is no text ({artifact.content_type}).") from None

    async def _write_artifact(self, name: str, content: str) -> dict[str, Any]:
        artifact = await self.db.write(
            artifacts.add_artifact,
            self.account_id,
            name=name,
            content_type="text/plain; charset=utf-8",
            content=content.encode("utf-8", "replace"),
            project_id=self.project_id,
            run_id=self.run_id,
            now_seconds=self.clock(),
        )
        made = _brief(artifact)
        self.written.append(made)
        return made

    async def _generate_image(self, prompt: str) -> dict[str, Any]:
        return self._made(await self.draw(prompt))

    async def _generate_audio(self, input: str) -> dict[str, Any]:
        return self._made(await self.speak(input))

    def _made(self, artifact: Artifact) -> dict[str, Any]:
        made = _brief(artifact)
        self.written.append(made)
        return made

    async def _search_memory(self, query: str) -> list[dict[str, Any]]:
        return await self.db.read(history.matching_passages, self.account_id, query)

    async def _fetch_url(self, url: str) -> dict[str, Any]:
        headers = [(b"accept", b"text/*, application/json"), (b"user-agent", b"svc")]
        content = b""
        try:
            async with asyncio.timeout(_FETCH_SECONDS):
                reply = await self.guarded.send("GET", url, headers, timeout_seconds=_FETCH_SECONDS)
                async with contextlib.aclosing(reply):
                    async for piece in reply:
                        content += piece
                        if len(content) >= _READ_BYTES:
                            break
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError):
            # One text for every fault: it must not tell which ports of the network answer.
            raise ToolFailure("This address cannot be read. Only public http and https pages can.") from None
        content_type = reply.headers.get("content-type", "")[:200]
        if b"\0" in content:
            raise ToolFailure(f"What is at this address is no text ({content_type}).")
        return {"status": reply.status, "content_type": content_type, "text": content[:_READ_BYTES].decode("utf-8", "replace")}


def _brief(artifact: Artifact) -> dict[str, Any]:
    return {"id": artifact.id, "name": artifact.name, "content_type": artifact.content_type, "size": artifact.size}


def _check(name: str, arguments: dict[str, Any]) -> None:
    """Holds `arguments` against the tool's schema. Raises ToolFailure."""
    properties = TOOLS[name][1]["properties"]
    for key in arguments:
        if key not in properties:
            raise ToolFailure(f"{name} has no argument {key[:100]!r}. It takes: {', '.join(properties) or 'none'}.")
    for key, rule in properties.items():
        value = arguments.get(key)
        if not isinstance(value, str):
            raise ToolFailure(f"{name} needs the argument {key!r}, a string.")
        if not rule.get("minLength", 0) <= len(value) <= rule["maxLength"]:
            raise ToolFailure(f"{key!r} must have {rule.get('minLength', 0)} to {rule['maxLength']} characters.")
