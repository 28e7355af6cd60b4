"""`[[tool_servers]]` of the catalog file."""

from pathlib import Path
from typing import Any

import pytest

from svc.errors import StartError
from svc.inference.catalog_file import read_file
from svc.inference.tool_servers.operator_server import OperatorServer
from tests.support.cases import each

ENVIRON = {"WIKI_KEY": "key-0123456789", "EMPTY": ""}


def parsed(tmp_path: Path, text: str) -> tuple[OperatorServer, ...]:
    path = tmp_path / "catalog.toml"
    path.write_text(text)
    return read_file(path, ENVIRON).tool_servers


def test_entry_has_defaults_and_every_key(tmp_path: Path) -> None:
    plain, full = parsed(
        tmp_path,
        """
        [[groups]]
        name = "staff"
        [[tool_servers]]
        name = "open"
        url = "http://127.0.0.1:9/mcp/"
        [[tool_servers]]
        name = "wiki"
        url = "https://wiki.example.com/mcp"
        headers = { X-Tenant = "seven" }
        api_key_env = "WIKI_KEY"
        groups = ["staff"]
        tools = ["search", "read-page"]
        micros_per_call = 2500
        ask = false
        """,
    )
    assert plain == OperatorServer("open", "http://127.0.0.1:9/mcp", {}, None, None, 0, None)
    assert full.headers == {"x-tenant": "seven", "authorization": "Bearer key-0123456789"}
    assert (full.groups, full.tools) == (("staff",), frozenset(("search", "read-page")))
    assert (full.micros_per_call, full.ask) == (2500, False)
    assert "key-0123456789" not in full.settings and "seven" not in full.settings


@each(
    "line",
    [
        "nme = 1",
        'groups = ["nobody"]',
        "groups = []",
        "tools = []",
        'tools = ["a b"]',
        "micros_per_call = -1",
        'ask = "yes"',
        'api_key_env = "MISSING"',
        'api_key_env = "EMPTY"',
        "headers = { host = 'x' }",
        "headers = { Mcp-Session-Id = 'x' }",
        "headers = { 'a b' = 'x' }",
        'headers = { a = "x\\ny" }',
        "headers = { a = 1 }",
        'headers = { authorization = "Bearer x" }\napi_key_env = "WIKI_KEY"',
        'url = "ftp://x"',
        'name = "A"',
        'name = "twice"\nurl = "http://x/"\n[[tool_servers]]\nname = "twice"\nurl = "http://x/"',
    ],
)
def test_wrong_entry_stops_the_start_with_its_place(tmp_path: Path, line: str) -> None:
    given: dict[str, Any] = {"name": 'name = "wiki"', "url": 'url = "http://x.example/mcp"'}
    given = {key: text for key, text in given.items() if not line.startswith(key)}
    if line.startswith('name = "twice'):
        given = {}
    with pytest.raises(StartError, match="tool server"):
        parsed(tmp_path, "[[tool_servers]]\n" + "\n".join((*given.values(), line)))
