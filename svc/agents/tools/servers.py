"""The tools of tool servers (MCP), as tools of a run or a chat."""

import base64
import binascii
import sqlite3
from collections.abc import Iterable
from functools import partial
from typing import Any

import orjson

from svc.agents.tools.account import file_fields
from svc.agents.tools.registry import AgentTool, ToolContext, ToolFailure
from svc.content import artifacts
from svc.errors import ApiError
from svc.inference.catalog import Model
from svc.inference.media_engines import picture_type
from svc.inference.model_call import Bill, Engines, ModelCall, Payer
from svc.inference.tool_servers.client import ToolSession
from svc.inference.tool_servers.listed import full_name
from svc.inference.tool_servers.messages import ToolServerFault
from svc.inference.tool_servers.servers import OfferedTool

_FAILURE_CHARACTERS = 4_000
_KIND_CHARACTERS = 200
_PRICE = "micros_per_call"


def server_tools(offered: Iterable[OfferedTool]) -> dict[str, AgentTool]:
    """Return the tools by name. If two have one name, that of the first is used."""
    found: dict[str, AgentTool] = {}
    for one in offered:
        name = full_name(one.target.name, one.tool.name)
        tool = AgentTool(
            name,
            one.tool.description,
            {},
            partial(_call, one, name),
            ask=one.ask,
            price_micros=one.price_micros,
            source=one.target.name,
            schema=one.tool.schema,
            own=one.own,
            by_others=True,
            version=f"{one.target.url} {one.tool.digest}",
        )
        found.setdefault(name, tool)
    return found


class ToolCall(ModelCall):
    """One call of a tool with a price. It costs that once it is `made`, and nothing if it failed."""

    def __init__(self, name: str, price_micros: int, engines: Engines, payer: Payer) -> None:
        super().__init__(Model(name, name, None, "tool", {_PRICE: price_micros}), engines, payer)
        self.made = False

    def hold_in(self, tx: sqlite3.Connection) -> None:
        self.hold(tx, self._first_model.prices[_PRICE])

    def bill(self) -> Bill:
        calls = int(self.made)
        return Bill(0, 0, calls * self._model.prices[_PRICE], f"{self._model.id}: {calls} call{'s' * (1 - calls)}")


async def _call(offered: OfferedTool, name: str, context: ToolContext, arguments: str) -> Any:
    if not offered.price_micros:
        return await _result(offered, context, arguments)
    call = ToolCall(name, offered.price_micros, context.engines, context.payer)
    async with context.paying(call):
        result = await _result(offered, context, arguments)
        call.made = True
    return result


async def _result(offered: OfferedTool, context: ToolContext, arguments: str) -> Any:
    """Ask the server, in the session that the run or the answer has there."""
    key = f"session of {offered.target.name}"
    session = context.kept.get(key)
    if session is None:
        session = context.kept[key] = ToolSession(offered.target)
        context.closers.append(partial(offered.end_soon, session))
    try:
        found = await session.call(offered.tool, arguments)
    except ToolServerFault as fault:
        raise ToolFailure(str(fault)) from None
    return await _value(found, offered.tool.name, context)


async def _value(found: dict[str, Any], name: str, context: ToolContext) -> Any:
    """Return the text of a result, or an object if it has more than that."""
    content = found.get("content")
    texts, files, others = [], [], []
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind == "image" and (file := await _stored(part, name, context)) is not None:
            files.append(file)
        else:
            others.append(_named(part))
    text = "\n".join(texts)
    if found.get("isError") is True:
        raise ToolFailure(text[:_FAILURE_CHARACTERS] or "The tool failed and gives no reason.")
    structured = found.get("structuredContent")
    value = {"text": text, "structured_content": structured, "files": files, "left_out": others}
    if isinstance(structured, dict) and _is_json_of(text, structured):
        del value["text"]
    value = {key: one for key, one in value.items() if one or one == {}}
    return text if value.keys() <= {"text"} else value


def _is_json_of(text: str, structured: dict[str, Any]) -> bool:
    """Return whether the text repeats the structured content, as servers do for old clients."""
    try:
        return bool(orjson.loads(text) == structured)
    except orjson.JSONDecodeError:
        return False


async def _stored(part: dict[str, Any], name: str, context: ToolContext) -> dict[str, Any] | None:
    """Store a picture as an artifact and return its fields, or None if it is none or there is no room."""
    try:
        content = base64.b64decode(part["data"], validate=True)
        content_type = picture_type(content)
        if content_type is None:
            return None
        artifact = await artifacts.add_artifact(
            context.engines.db,
            context.home,
            content,
            name=f"{name}.{content_type.removeprefix('image/')}",
            content_type=content_type,
            now_seconds=context.engines.clock(),
        )
    except (KeyError, TypeError, binascii.Error, ValueError, ApiError):
        return None
    return file_fields(artifact)


def _named(part: Any) -> str:
    """Return the kind of a part that is not passed on, with its type or address."""
    part = part if isinstance(part, dict) else {}
    about = part.get("resource") if isinstance(part.get("resource"), dict) else part
    words = [part.get("type"), about.get("uri"), about.get("mimeType")]
    return " ".join(word for word in words if isinstance(word, str))[:_KIND_CHARACTERS] or "unknown content"
