"""The encrypted keys of users' providers and tool servers while the master secret changes."""

from svc.inference import sealed_keys
from svc.inference.providers import KeyBox
from svc.inference.tool_servers import records
from svc.secrets import set_master
from tests.conftest import Service
from tests.support.byok import add_provider


async def test_keys_of_providers_and_tool_servers_are_encrypted_again_and_dropped(service: Service) -> None:
    headers, db = await service.bearer(), service.state["db"]
    await add_provider(service, headers, "http://127.0.0.1:9/v1", api_key="key-0123456789-abcd")
    body = {"name": "wiki", "url": "http://127.0.0.1:9/mcp", "api_key": "key-9876543210-abcd"}
    made = (await service.client.post("/user/tool-servers", json=body, headers=headers)).json()
    assert await db.read(sealed_keys.count) == 2
    account_id = (await service.client.get("/user/me", headers=headers)).json()["id"]
    before = await db.read(records.TABLE.by_id, account_id, made["id"])
    new = b"n" * 32
    service.state["key_box"].add(new)
    await db.write(set_master, new)
    assert await db.write(sealed_keys.seal_again, service.state["key_box"]) == 2
    after = await db.read(records.TABLE.by_id, account_id, made["id"])
    assert after["sealed_key"] != before["sealed_key"]
    assert records.key_of(after, after["url"], KeyBox(new)) == "key-9876543210-abcd"
    await db.write(sealed_keys.drop)
    assert await db.read(sealed_keys.count) == 0
    shown = (await service.client.get(f"/user/tool-servers/{made['id']}", headers=headers)).json()
    assert shown["api_key_hint"] is None
