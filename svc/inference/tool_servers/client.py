"""The MCP client: Streamable HTTP of the stateless revision 2026-07-28, or of one with a handshake.

ToolSession.request() -> server/discover (2026-07-28), or else initialize -> one POST for each request -> JSON or events
aclose() -> DELETE, if the server gave the session an id

A server can only send data: its own requests are refused. It cannot make the client wait or read beyond the limits.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import orjson

from svc.inference.tool_servers import messages
from svc.inference.tool_servers.listed import MOST_TOOLS, ListedTool
from svc.inference.tool_servers.messages import STATELESS, RpcError, ToolServerFault
from svc.outbound.addresses import same_origin
from svc.outbound.client import Headers, Outbound
from svc.outbound.connection import Reply
from svc.outbound.errors import OutboundError, ProtocolError, TooLarge
from svc.outbound.event_stream import EventReader, parse_event

CALL_SECONDS = 30.0
_PROBE_SECONDS = 5.0
_END_SECONDS = 2.0
_ANSWER_BYTES = 1024 * 1024
_ERROR_BYTES = 64 * 1024
_MOST_PAGES = 20
_MOST_REDIRECTS = 3
_MOST_SERVER_REQUESTS = 16
_SESSION_CHARACTERS = 1_024
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_NO_ANSWER = "it did not answer as a tool server"


@dataclass(frozen=True)
class Target:
    """A tool server: its address, the headers of requests with their secrets, and the account that named it, or ""."""

    name: str
    url: str
    headers: Mapping[str, str]
    client: Outbound
    account_id: str = ""


class _Expired(Exception):
    """The server has ended the session."""


class _Refused(Exception):
    """The server answered with an HTTP status of 400 or above, and without a JSON-RPC error."""

    def __init__(self, status: int) -> None:
        super().__init__(f"it answered with the status {status}")
        self.status = status


class _Cut(Exception):
    """The answer is over the limit; `received` is its beginning."""

    def __init__(self, received: bytes) -> None:
        super().__init__("its answer is over 1 MiB")
        self.received = received


class ToolSession:
    """The requests of one run, answer or reading to one server. Sessions are never shared."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._url = target.url
        self._secrets = messages.secrets_of(target.headers)
        self._revision: str | None = None
        self._session_id: str | None = None
        self._number = 0
        self._negotiating = asyncio.Lock()

    @property
    def is_open(self) -> bool:
        """Whether the server keeps something until `aclose`."""
        return self._session_id is not None

    async def tools(self, wanted: frozenset[str] | None, seconds: float) -> tuple[list[Any], list[str]]:
        """Return the entries of the list with the `wanted` names, and a sentence if it was cut. Raises ToolServerFault.

        `wanted` is None for all names.
        """
        async with self._bounded(seconds):
            return await self._listed(wanted)

    async def call(self, tool: ListedTool, arguments: str) -> dict[str, Any]:
        """Return the result of a call with the JSON object `arguments`, sent as it is. Raises ToolServerFault."""
        headers = messages.argument_headers(tool.headers, orjson.loads(arguments))
        params = b'"name":%b,"arguments":%b' % (orjson.dumps(tool.name), arguments.encode())
        async with self._bounded(CALL_SECONDS):
            return await self._request("tools/call", params, tool.name, headers)

    async def aclose(self) -> None:
        """End the session of a server that has one."""
        session_id, self._session_id = self._session_id, None
        if session_id is not None:
            with contextlib.suppress(OutboundError, TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await (await self._send("DELETE", b"", self._kept_headers(session_id))).aclose()

    @contextlib.asynccontextmanager
    async def _bounded(self, seconds: float) -> Any:
        """Turn every fault of the block into a ToolServerFault that does not tell which ports are open."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except (OutboundError, TimeoutError):
            raise ToolServerFault(f"{self._target.name}: {_NO_ANSWER}.") from None
        except RpcError as error:
            raise ToolServerFault(f"{self._target.name}: {str(error) or 'it refused the request'}") from None
        except (_Refused, _Expired, _Cut, ToolServerFault) as fault:
            raise ToolServerFault(f"{self._target.name}: {str(fault) or 'its session has ended'}.") from None

    async def _listed(self, wanted: frozenset[str] | None) -> tuple[list[Any], list[str]]:
        found: list[Any] = []
        cursor: Any = None
        read_bytes = 0
        for _ in range(_MOST_PAGES):
            params = b"" if cursor is None else b'"cursor":%b' % orjson.dumps(cursor)
            try:
                result = await self._request("tools/list", params)
            except _Cut as cut:
                return found + _named(messages.salvaged(cut.received), wanted), ["The list of tools is over 1 MiB."]
            page = result.get("tools")
            if not isinstance(page, list):
                raise ToolServerFault("it lists no tools")
            found += _named(page, wanted)
            read_bytes += len(orjson.dumps(page))
            if read_bytes > _ANSWER_BYTES:
                return found, ["The list of tools is over 1 MiB."]
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str) or len(found) > MOST_TOOLS:
                return found, []
        return found, [f"The list of tools has over {_MOST_PAGES} pages."]

    # --- the revision

    async def _request(
        self, method: str, params: bytes, name: str = "", arguments: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the result of a request. A session that the server has ended is begun again, once."""
        for is_last in (False, True):
            async with self._negotiating:
                if self._revision is None:
                    try:
                        await self._negotiate()
                    except BaseException:
                        self._revision = None
                        raise
            try:
                return await self._exchange(method, params, name, arguments or {})
            except _Expired:
                self._revision = self._session_id = None
                if is_last:
                    raise
        raise AssertionError("unreachable")

    async def _negotiate(self) -> None:
        self._revision = STATELESS
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                found = await self._exchange("server/discover", b"", "", {})
            revisions = found.get("supportedVersions")
            if isinstance(revisions, list) and STATELESS in revisions:
                return
        except RpcError as error:
            if error.code == messages.UNSUPPORTED_REVISION and set(messages.HANDSHAKE).isdisjoint(error.supported):
                raise
        except _Refused as refusal:
            if refusal.status in (401, 403, 429):
                raise
        except (TimeoutError, ProtocolError, ToolServerFault, _Cut):
            pass  # an earlier server may answer anything to a method that it does not know
        self._revision = None
        result = await self._exchange("initialize", messages.HELLO, "", {})
        if result.get("protocolVersion") not in messages.HANDSHAKE:
            raise ToolServerFault("it speaks no revision of MCP that is known here")
        self._revision = str(result["protocolVersion"])
        await self._tell(messages.notification("notifications/initialized"))

    async def _exchange(self, method: str, params: bytes, name: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        self._number += 1
        number, stateless = self._number, self._revision == STATELESS
        headers = {**messages.routing_headers(method, name), **arguments} if stateless else self._kept_headers()
        body = messages.request(number, method, params, stateless=stateless)
        reply = await self._send("POST", body, {**_ACCEPT, **headers})
        async with contextlib.aclosing(reply):
            if method == "initialize":
                self._note_session(reply)
            return messages.outcome(await self._answer(reply, number))

    def _kept_headers(self, session_id: str | None = None) -> dict[str, str]:
        """Return the headers of a revision with a handshake."""
        session_id = session_id or self._session_id
        headers = {} if session_id is None else {"mcp-session-id": session_id}
        return headers | ({} if self._revision is None else {"mcp-protocol-version": self._revision})

    def _note_session(self, reply: Reply) -> None:
        session_id = reply.header(b"mcp-session-id")
        if session_id:
            if len(session_id) > _SESSION_CHARACTERS or not all("!" <= character <= "~" for character in session_id):
                raise ToolServerFault("the id of its session is not valid")
            self._session_id = session_id

    # --- HTTP

    async def _send(self, method: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Return the answer's head. A redirect within the server is followed; another one would take the key along."""
        target = self._target
        lines: Headers = tuple(
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in {**target.headers, **headers}.items()
        )
        url = self._url
        for _ in range(_MOST_REDIRECTS + 1):
            reply = await target.client.send(
                method, url, lines, body, timeout_seconds=CALL_SECONDS, account_id=target.account_id
            )
            if reply.status not in (301, 302, 303, 307, 308):
                self._url = url
                return reply
            await reply.aclose()
            url = _redirected(reply, url)
        raise ToolServerFault(f"it redirects more than {_MOST_REDIRECTS} times")

    async def _tell(self, body: bytes) -> None:
        reply = await self._send("POST", body, {**_ACCEPT, **self._kept_headers()})
        await reply.aclose()

    async def _answer(self, reply: Reply, number: int) -> Mapping[str, Any]:
        """Return the answer to the request `number`. Raises what `_bounded` catches."""
        if reply.status >= 400:
            await self._raise_refusal(reply)
        reply.limit(_ANSWER_BYTES, CALL_SECONDS)
        received = bytearray()
        events = None
        if reply.header(b"content-type").lower().startswith("text/event-stream"):
            events = EventReader(_ANSWER_BYTES)
        served = 0
        try:
            while chunk := await reply.more():
                received += chunk
                if events is None:
                    continue
                events.feed(chunk)
                while (lines := events.next_event()) is not None:
                    for message in self._messages(lines):
                        if is_answer(message, number):
                            return message
                        served += await self._serve(message, served)
        except TooLarge:
            raise _Cut(bytes(received)) from None
        found = [] if events else messages.parsed(bytes(received), self._secrets)
        for message in found:
            if is_answer(message, number):
                return message
        raise ToolServerFault("its answer does not belong to the request")

    def _messages(self, lines: bytes) -> list[dict[str, Any]]:
        event = parse_event(lines.removeprefix(b"\xef\xbb\xbf"))
        return messages.parsed(event[1], self._secrets) if event and event[1] else []

    async def _serve(self, message: Mapping[str, Any], served: int) -> int:
        """Answer a request of the server, which is refused unless it is a ping. Return the number of answers."""
        if not isinstance(message.get("method"), str) or not isinstance(message.get("id"), str | int):
            return 0  # a notification, or the answer to another request
        if served >= _MOST_SERVER_REQUESTS:
            raise ToolServerFault("it sends too many requests of its own")
        await self._tell(messages.answer_to(message))
        return 1

    async def _raise_refusal(self, reply: Reply) -> None:
        if reply.status == 404 and self._session_id is not None:
            raise _Expired
        with contextlib.suppress(TooLarge, ToolServerFault):
            for message in messages.parsed(await reply.read(_ERROR_BYTES), self._secrets):
                if "error" in message and isinstance(message["error"], dict):
                    raise RpcError(message["error"])
        raise _Refused(reply.status)


def _redirected(reply: Reply, url: str) -> str:
    """Return where a redirect leads within the server of `url`. Raises ToolServerFault."""
    with contextlib.suppress(ValueError):  # of an invalid address
        location = urljoin(url, reply.header(b"location"))
        if reply.status in (307, 308) and same_origin(location, url):
            return location
    raise ToolServerFault("it redirects to another address, which is not followed")


def is_answer(message: Mapping[str, Any], number: int) -> bool:
    """Return whether `message` answers the request `number`: `true` and `1.0` are equal to 1, but are no such id."""
    return message.get("id") == number and type(message["id"]) is int and "method" not in message


def _named(entries: list[Any], wanted: frozenset[str] | None) -> list[Any]:
    if wanted is None:
        return entries
    return [entry for entry in entries if isinstance(entry, dict) and entry.get("name") in wanted]
