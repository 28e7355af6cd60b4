"""Users' own tool servers: their records, with keys encrypted at rest."""

import contextlib
import sqlite3
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import orjson

from svc import audit, quota
from svc.errors import ApiError
from svc.ids import fields_as_json, new_id
from svc.inference.catalog import API_KEY, BASE_URL, PROVIDER_NAME
from svc.inference.providers import KeyBox, sealed_columns
from svc.inference.tool_servers.listed import ListedTool
from svc.inference.tool_servers.reading import Reading, accepted_now, columns_of, due_before, known
from svc.outbound.addresses import same_origin
from svc.shapes import ABSENT, Absent, boolean, mapping, nullable, record
from svc.tables import Table, refusals

_MOST_DUE = 64

_NAME = PROVIDER_NAME.about(
    "The prefix of its tools: `<name>__<tool>`. Unique for the caller, and not a name that the operator uses."
)
_URL = BASE_URL.about(
    "The address of its MCP endpoint: http or https, without user name, query and fragment. The server speaks "
    "Streamable HTTP of revision 2025-06-18 or 2026-07-28. All addresses of its host must be allowed, at creation and "
    "at each use. A new scheme, host or port deletes the stored key and all acceptances."
)
_API_KEY = API_KEY.about(
    "Sent as `Authorization: Bearer <key>`. It is stored encrypted and never returned. Printable ASCII without spaces; "
    "null means no key."
)
_ACCEPTED = boolean.about("`true` accepts all tools as they now are. `false` takes all acceptances back.")
_ASK = mapping.about(
    "Whether a tool needs approval, by its name. The default is `true`, unless the server says that it only reads.",
    {"delete_page": True},
)


@record("CreateToolServerRequest")
class NewToolServer(NamedTuple):
    name: Annotated[str, _NAME]
    url: Annotated[str, _URL]
    api_key: Annotated[str | None, _API_KEY] = None


@record("UpdateToolServerRequest", "Missing fields do not change.")
class ToolServerChanges(NamedTuple):
    name: Annotated[str | Absent, _NAME] = ABSENT
    url: Annotated[str | Absent, _URL] = ABSENT
    api_key: Annotated[str | Absent | None, nullable(_API_KEY)] = ABSENT
    accepted: Annotated[bool | Absent, _ACCEPTED] = ABSENT
    ask: Annotated[dict[str, Any] | Absent, _ASK] = ABSENT


TABLE = Table[sqlite3.Row]("tool_servers", lambda row: row, "tool server", "tsrv", texts=("tools",))


def as_json(row: sqlite3.Row) -> dict[str, Any]:
    """Return a tool server as the API shows it, without its key."""
    found, asks = known(row), orjson.loads(row["ask"])
    available = {tool.name for tool in found.available}
    tools = [
        {
            "name": tool.name,
            "description": tool.description,
            "ask": asks.get(tool.name, not tool.read_only),
            "accepted": tool.name in found.accepted,
            "available": tool.name in available,
            **_accepted_before(tool, found.accepted),
        }
        for tool in found.tools
    ]
    values = {**dict(row), "tools": tools, "state": found.state}
    return fields_as_json(values, "id name url api_key_hint tools state detail created_at")


def _accepted_before(tool: ListedTool, accepted: set[str]) -> dict[str, str]:
    before = None if tool.name in accepted else tool.accepted_description
    return {} if before is None else {"accepted_description": before}


def add(
    tx: sqlite3.Connection, account_id: str, new: NewToolServer, reading: Reading, box: KeyBox, now_seconds: float
) -> sqlite3.Row:
    """Store a tool server with its first `reading` and return its row.

    Raises ApiError `name_taken`, `quota_exceeded`, `invalid_value` (one too many), `invalid_api_key` (no account).
    """
    server_id = new_id("tsrv", now_seconds)
    read = columns_of(reading, None, now_seconds)
    quota.check_row(tx, account_id, new.name, new.url, read.get("tools"), read.get("accepted"), read["detail"])
    sealed = sealed_columns(tx, box, account_id, server_id, new.api_key)
    own = {"id": server_id, "account_id": account_id, "created_at": now_seconds, "name": new.name, "url": new.url}
    with _refusals():
        row = TABLE.insert(tx, {**own, **sealed, **read})
    audit.add(tx, now_seconds, account_id, "tool_server.add", account_id, {"id": server_id})
    return row


def change(
    tx: sqlite3.Connection,
    account_id: str,
    server_id: str,
    fields: Mapping[str, Any],
    reading: Reading | None,
    box: KeyBox,
    now_seconds: float,
) -> sqlite3.Row:
    """Change the given fields and return the row; `reading` is of the new address or with the new key.

    A new scheme, host or port deletes all acceptances, and the key unless a new one is given. Raises ApiError
    `not_found`, `name_taken`, `quota_exceeded`, `invalid_value`.
    """
    row = TABLE.by_id(tx, account_id, server_id)
    columns: dict[str, Any] = {name: fields.get(name, row[name]) for name in ("name", "url")}
    if not same_origin(columns["url"], row["url"]):
        fields = {"api_key": None, **fields}
        columns |= {"accepted": "{}", "tools": "[]"}
    if reading is not None:
        before = {name: columns.get(name, row[name]) for name in ("accepted", "tools")}
        columns |= columns_of(reading, now_seconds=now_seconds, **before)
    if "api_key" in fields:
        columns |= sealed_columns(tx, box, account_id, server_id, fields["api_key"])
    current = {**dict(row), **columns}
    if "accepted" in fields:
        columns["accepted"] = accepted_now(current) if fields["accepted"] else "{}"
    if "ask" in fields:
        columns["ask"] = _asks(current, fields["ask"])
    row = _update(tx, row, columns)
    audit.add(tx, now_seconds, account_id, "tool_server.change", account_id, {"id": server_id, "fields": [*fields]})
    return row


def key_of(row: sqlite3.Row, url: str, box: KeyBox) -> str | None:
    """Return the stored key for requests to `url`, or None. Raises ApiError `invalid_value` if it cannot be read."""
    sealed = row["sealed_key"]
    if sealed is None or not same_origin(url, row["url"]):
        return None
    return box.open(row["account_id"], row["id"], sealed)


def _asks(row: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    names = {tool["name"] for tool in orjson.loads(row["tools"])}
    for name, value in given.items():
        boolean.check(value, f"ask.{name[:100]}")
        if name not in names:
            raise ApiError("invalid_value", f"ask: this server has no tool {name[:100]!r}.", param="ask")
    kept = {name: value for name, value in orjson.loads(row["ask"]).items() if name in names}
    return orjson.dumps({**kept, **given}).decode()


def store(
    tx: sqlite3.Connection, account_id: str, server_id: str, before: sqlite3.Row, reading: Reading, now_seconds: float
) -> sqlite3.Row:
    """Store a reading and return the row. One of an address or a key that has changed `before` it ended is dropped.

    Raises ApiError `not_found`, `quota_exceeded`.
    """
    row = TABLE.by_id(tx, account_id, server_id)
    if (row["url"], row["sealed_key"]) != (before["url"], before["sealed_key"]):
        return row
    return _update(tx, row, columns_of(reading, row["accepted"], now_seconds, tools=row["tools"]))


def delete(tx: sqlite3.Connection, account_id: str, server_id: str, now_seconds: float) -> None:
    TABLE.delete(tx, account_id, server_id)
    audit.add(tx, now_seconds, account_id, "tool_server.delete", account_id, {"id": server_id})


def _update(tx: sqlite3.Connection, row: sqlite3.Row, columns: Mapping[str, Any]) -> sqlite3.Row:
    counted = [name for name in ("tools", "accepted", "ask", "detail", "name", "url") if name in columns]
    more = sum(len((columns[name] or "").encode()) - len((row[name] or "").encode()) for name in counted)
    quota.check_room(tx, row["account_id"], more)
    with _refusals():
        return TABLE.update(tx, row["account_id"], row["id"], columns)


def _refusals() -> contextlib.AbstractContextManager[None]:
    full = ApiError("invalid_value", "An account may have at most 10 tool servers. Delete one first.")
    taken = ApiError("name_taken", "A tool server of yours has this name. Choose another one.", param="name")
    return refusals(tool_servers_count=full, UNIQUE=taken)


def all_of(conn: sqlite3.Connection, account_id: str) -> list[sqlite3.Row]:
    """Return every tool server of the account, oldest first."""
    return conn.execute("SELECT * FROM tool_servers WHERE account_id = ? ORDER BY id", (account_id,)).fetchall()


def due(conn: sqlite3.Connection, now_seconds: float) -> list[sqlite3.Row]:
    """Return servers of active accounts that are to be read, with the `group_name` of the account."""
    query = """
        SELECT tool_servers.*, group_name FROM tool_servers JOIN accounts ON accounts.id = account_id
        WHERE read_at < ?2 AND read_at < iif(failed, ?2, ?1) AND deleting_at IS NULL AND suspended_at IS NULL
        ORDER BY read_at LIMIT ?3
    """
    return conn.execute(query, (*due_before(now_seconds), _MOST_DUE)).fetchall()
