"""The tool servers of the catalog file: `[[tool_servers]]`."""

import re
from collections.abc import Mapping
from typing import Any

from svc import groups
from svc.groups import Groups
from svc.inference.catalog import API_KEY, BASE_URL
from svc.inference.tool_servers.operator_server import OperatorServer
from svc.shapes import Shape, boolean, filled, integer, list_of, mapping, matching, required

_SERVERS = list_of(mapping, most=64)
_KEYS = ("name", "url", "headers", "api_key_env", "groups", "tools", "micros_per_call", "ask")
_MICROS = integer(0, 10**12)
_TOOL = matching(re.compile(r"[A-Za-z0-9_\-]{1,64}"), "the name of a tool: letters, digits, - and _, at most 64", 64)
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]{1,100}")
_HEADER_VALUE = matching(re.compile(r"[!-~]([ -~]*[!-~])?"), "printable ASCII", 8_192)
_OWN_HEADERS = frozenset(("accept", "content-type", "content-length", "host"))


def parse(document: Mapping[str, Any], environ: Mapping[str, str], of_all: Groups | None) -> tuple[OperatorServer, ...]:
    """Return the tool servers of a catalog file. Raises ApiError and ValueError for a wrong entry."""
    tables = _SERVERS.check(document.get("tool_servers", []), "tool_servers")
    found: dict[str, OperatorServer] = {}
    for place, table in enumerate(tables, 1):
        server = _server(table, f"tool server {place}", environ, of_all)
        if server.name in found:
            raise ValueError(f"tool server {place}: the name {server.name!r} is used twice")
        found[server.name] = server
    return tuple(found.values())


def _server(table: dict[str, Any], place: str, environ: Mapping[str, str], of_all: Groups | None) -> OperatorServer:
    name = required(table, "name", groups.NAME, place)
    place = f"tool server {name}"
    groups.check_keys(table, place, _KEYS)

    def optional(key: str, shape: Shape[Any], default: Any = None) -> Any:
        return shape.check(table[key], f"{place}.{key}") if key in table else default

    named = optional("groups", list_of(groups.NAME, least=1))
    for group in named or ():
        if of_all is None or group not in of_all.by_name:
            raise ValueError(f"{place}: there is no group {group!r}")
    tools = optional("tools", list_of(_TOOL, least=1, most=64))
    return OperatorServer(
        name,
        required(table, "url", BASE_URL, place),
        _headers(table, place, environ),
        None if named is None else tuple(named),
        None if tools is None else frozenset(tools),
        optional("micros_per_call", _MICROS, 0),
        optional("ask", boolean),
    )


def _headers(table: dict[str, Any], place: str, environ: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in mapping.check(table.get("headers", {}), f"{place}.headers").items():
        name = name.lower()
        if not _HEADER_NAME.fullmatch(name) or name in _OWN_HEADERS or name.startswith("mcp-"):
            raise ValueError(f"{place}.headers: {name!r} is not allowed")
        found[name] = _HEADER_VALUE.check(value, f"{place}.headers.{name}")
    if "api_key_env" in table:
        variable = filled.check(table["api_key_env"], f"{place}.api_key_env")
        if "authorization" in found:
            raise ValueError(f"{place}: give api_key_env or the header authorization, not both")
        if not environ.get(variable):
            raise ValueError(f"{place}: the environment has no {variable}, which api_key_env names")
        found |= bearer(API_KEY.check(environ[variable], f"{place}.api_key_env"))
    return found


def bearer(api_key: str | None) -> dict[str, str]:
    """Return the header with an API key, if there is one."""
    return {} if api_key is None else {"authorization": f"Bearer {api_key}"}
