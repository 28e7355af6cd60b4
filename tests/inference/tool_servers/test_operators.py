"""What is stored of the operator's tool servers."""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from svc.errors import ApiError
from svc.inference.tool_servers import operators
from svc.inference.tool_servers.listed import usable
from svc.inference.tool_servers.operator_server import OperatorServer
from svc.inference.tool_servers.reading import Known, Reading, known
from svc.schema import connect, newest_schema
from tests.support.databases import prepare
from tests.support.tool_server import tool

NOW = 1_790_000_000.0
WIKI = OperatorServer("wiki", "http://wiki.example/mcp", {"x-key": "a-secret-of-the-operator"}, None, None, 5, None)


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "service.db"
    prepare(path, *newest_schema())
    with contextlib.closing(connect(path)) as conn:
        yield conn


def reading(*tools: dict[str, Any]) -> Reading:
    return Reading(usable(tools)[0])


def state(tx: sqlite3.Connection) -> Known:
    (row,) = operators.rows(tx)
    return known(row)


def actions(tx: sqlite3.Connection) -> list[tuple[str, str]]:
    return [tuple(row) for row in tx.execute("SELECT action, subject FROM audit ORDER BY seq")]


def test_changes_of_the_catalog_are_in_the_audit_log_without_secrets(tx: sqlite3.Connection) -> None:
    operators.sync(tx, [WIKI], NOW)
    operators.sync(tx, [WIKI], NOW)
    operators.sync(tx, [replace(WIKI, micros_per_call=6), replace(WIKI, name="lab")], NOW)
    operators.sync(tx, [], NOW)
    assert actions(tx) == [
        ("tool_server.add", "wiki"),
        ("tool_server.change", "wiki"),
        ("tool_server.add", "lab"),
        ("tool_server.delete", "lab"),
        ("tool_server.delete", "wiki"),
    ]
    details = [row[0] for row in tx.execute("SELECT details FROM audit ORDER BY seq")]
    assert orjson.loads(details[1])["micros_per_call"] == 6 and "a-secret" not in "".join(details)


def test_changed_and_new_tools_wait_over_a_restart_until_they_are_accepted(tx: sqlite3.Connection) -> None:
    operators.sync(tx, [WIKI], NOW)
    operators.store(tx, WIKI, reading(tool("a"), tool("b")), NOW)
    assert (state(tx).state, len(state(tx).available)) == ("ready", 2)
    operators.sync(tx, [WIKI], NOW)  # a restart
    assert operators.store(tx, WIKI, reading(tool("a", description="Steers."), tool("b"), tool("c")), NOW)
    assert state(tx).state == "changed" and [found.name for found in state(tx).available] == ["b"]
    assert operators.accept(tx, "wiki", NOW) == 3 and state(tx).state == "ready"
    assert actions(tx)[-1] == ("tool_server.accept", "wiki")
    assert not operators.store(tx, WIKI, reading(tool("a", description="Steers."), tool("b"), tool("c")), NOW)
    with pytest.raises(ApiError, match="no tool server 'lab'"):
        operators.accept(tx, "lab", NOW)


def test_new_tool_that_the_catalog_names_is_accepted(tx: sqlite3.Connection) -> None:
    named = replace(WIKI, tools=frozenset(("a", "b")))
    operators.sync(tx, [WIKI], NOW)
    operators.store(tx, WIKI, reading(tool("a")), NOW)
    operators.sync(tx, [named], NOW)
    operators.store(tx, named, reading(tool("a", description="Steers."), tool("b")), NOW)
    assert [found.name for found in state(tx).available] == ["b"]


def test_new_address_begins_again(tx: sqlite3.Connection) -> None:
    operators.sync(tx, [WIKI], NOW)
    operators.store(tx, WIKI, reading(tool("a")), NOW)
    path, moved = (replace(WIKI, url=url) for url in ("http://wiki.example/v2", "http://other.example/mcp"))
    operators.sync(tx, [path], NOW)
    operators.store(tx, path, reading(tool("a", description="Steers.")), NOW)
    assert state(tx).state == "changed"
    operators.sync(tx, [moved], NOW)
    assert state(tx).tools == []
    operators.store(tx, path, reading(tool("late")), NOW)
    assert state(tx).tools == [], "a reading of the earlier address is dropped"
    operators.store(tx, moved, reading(tool("a", description="Steers.")), NOW)
    assert state(tx).state == "ready"


def test_failed_reading_keeps_the_tools_and_is_repeated_sooner(tx: sqlite3.Connection) -> None:
    operators.sync(tx, [WIKI], NOW)
    assert operators.due(tx, NOW) == ["wiki"]
    operators.store(tx, WIKI, reading(tool("a")), NOW)
    assert operators.due(tx, NOW + 3_599) == [] and operators.due(tx, NOW + 3_601) == ["wiki"]
    operators.store(tx, WIKI, Reading(None, "wiki: it did not answer."), NOW)
    assert state(tx).state == "failed" and state(tx).available == [] and len(state(tx).tools) == 1
    assert operators.due(tx, NOW + 899) == [] and operators.due(tx, NOW + 901) == ["wiki"]
