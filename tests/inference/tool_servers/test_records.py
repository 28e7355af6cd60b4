"""Records of users' tool servers."""

from typing import Any

import pytest

from svc import quota
from svc.auth import accounts
from svc.errors import ApiError
from svc.inference.providers import KeyBox
from svc.inference.tool_servers import records
from svc.inference.tool_servers.listed import usable
from svc.inference.tool_servers.reading import Reading
from svc.inference.tool_servers.records import NewToolServer
from svc.schema import connect, newest_schema
from tests.support.databases import prepare
from tests.support.tool_server import tool

NOW = 1_790_000_000.0
NEW = NewToolServer("wiki", "http://wiki.example/mcp", "key-0123456789-abcd")
BOX = KeyBox(b"k" * 32)


@pytest.fixture
def tx(tmp_path: Any) -> Any:
    path = tmp_path / "service.db"
    prepare(path, *newest_schema())
    conn = connect(path)
    yield conn
    conn.close()


@pytest.fixture
def owner(tx: Any) -> str:
    return accounts.add_account(tx, "ada@example.com", None, None, NOW).id


def reading(*tools: dict[str, Any]) -> Reading:
    return Reading(usable(tools)[0])


def test_key_is_sealed_and_not_sent_to_another_origin(tx: Any, owner: str) -> None:
    row = records.add(tx, owner, NEW, reading(tool()), BOX, NOW)
    assert b"key-0123456789" not in row["sealed_key"] and row["api_key_hint"] == "…abcd"
    assert records.key_of(row, "http://wiki.example/other", BOX) == NEW.api_key
    assert records.key_of(row, "https://wiki.example/mcp", BOX) is None
    with pytest.raises(ApiError, match="cannot be read"):
        records.key_of(row, row["url"], KeyBox(b"x" * 32))


def test_reading_of_an_earlier_address_is_dropped(tx: Any, owner: str) -> None:
    row = records.add(tx, owner, NEW, reading(tool()), BOX, NOW)
    records.change(tx, owner, row["id"], {"url": "http://wiki.example/v2"}, reading(tool("b")), BOX, NOW)
    after = records.store(tx, owner, row["id"], row, reading(tool("c")), NOW)
    assert [one["name"] for one in records.as_json(after)["tools"]] == ["b"]


def test_list_that_does_not_fit_the_quota_is_refused(tx: Any, owner: str) -> None:
    row = records.add(tx, owner, NEW, reading(), BOX, NOW)
    quota.set_limit(tx, 3_000)
    large = reading(tool(description="x" * 3_500))
    with pytest.raises(ApiError, match="storage"):
        records.store(tx, owner, row["id"], row, large, NOW)
    with pytest.raises(ApiError, match="storage"):
        records.add(tx, owner, NEW._replace(name="other"), large, BOX, NOW)


def test_due_servers_are_those_of_active_accounts(tx: Any, owner: str) -> None:
    row = records.add(tx, owner, NEW, reading(tool()), BOX, NOW)
    failed = records.add(tx, owner, NEW._replace(name="b"), Reading(None, "x"), BOX, NOW)

    def due(seconds: float) -> list[str]:
        return [found["id"] for found in records.due(tx, NOW + seconds)]

    assert (due(899), due(901), due(3_601)) == ([], [failed["id"]], [row["id"], failed["id"]])
    accounts.update_account(tx, owner, {"suspended_at": NOW})
    assert due(3_601) == []
