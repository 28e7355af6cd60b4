"""Live support within its bounds: one active conversation, 200 messages."""

import asyncio
from typing import Any

import pytest

from svc import audit, quota
from svc.auth import accounts
from svc.billing import wallet
from svc.content import support
from tests.billing.test_wallet import empty_database
from tests.conftest import Service, bearer

PATH = "/support/conversations"


async def pro(service: Service) -> dict[str, str]:
    session = await service.sign_up()
    await service.state["db"].write(
        wallet.book, session["user"]["id"], 5_000_000, description="", now_seconds=service.clocks.now
    )
    return bearer(session["access_token"])


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return await pro(service)


async def post(service: Service, headers: dict[str, str], path: str = "", body: Any = None, status: int = 201) -> Any:
    answer = await service.client.post(PATH + path, json=body or {}, headers=headers)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_one_of_50_simultaneous_requests_becomes_active(service: Service, headers: dict[str, str]) -> None:
    answers = await asyncio.gather(*(service.client.post(PATH, json={}, headers=headers) for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 49
    assert {answer.json()["error"]["code"] for answer in answers if answer.status_code == 409} == {"already_active"}
    (first,) = (await service.client.get(PATH, headers=headers)).json()["data"]
    await post(service, headers, f"/{first['id']}/close", status=200)
    second = await post(service, headers)
    listed = (await service.client.get(PATH, headers=headers)).json()["data"]
    assert {item["id"]: item["status"] for item in listed} == {first["id"]: "closed", second["id"]: "active"}
    await post(service, await pro(service))  # an active one of another account does not count


async def test_a_conversation_ends_at_200_messages(service: Service, headers: dict[str, str]) -> None:
    made = await post(service, headers, body={"message": "0"})
    for number in range(1, 200):
        await post(service, headers, f"/{made['id']}/messages", {"content": str(number)})
    answer = await post(service, headers, f"/{made['id']}/messages", {"content": "one more"}, status=413)
    assert answer["error"]["code"] == "PAYLOAD_TOO_LARGE"
    shown = (await service.client.get(f"{PATH}/{made['id']}", headers=headers)).json()
    assert [message["content"] for message in shown["messages"]] == [str(number) for number in range(200)]


async def test_support_messages_count_as_stored_bytes(service: Service, headers: dict[str, str]) -> None:
    made = await post(service, headers, body={"subject": "höher", "message": "größer"})
    await post(service, headers, f"/{made['id']}/messages", {"content": "x" * 10_000})
    assert (await service.client.get("/billing/account", headers=headers)).json()[
        "stored_bytes"
    ] == 256 + 6 + 256 + 8 + 256 + 10_000
    await service.state["db"].write(quota.set_limit, 10_800)
    refused = await post(service, headers, f"/{made['id']}/messages", {"content": "x"}, status=413)
    assert refused["error"]["code"] == "quota_exceeded"
    assert (await service.client.post(f"{PATH}/{made['id']}/close", headers=headers)).status_code == 200
    assert (await post(service, headers, body={"subject": "x"}, status=413))["error"]["code"] == "quota_exceeded"
    assert (await post(service, headers, status=413))["error"]["code"] == "quota_exceeded"


def test_conversation_waits_until_the_operator_has_answered() -> None:
    conn = empty_database()
    ada = accounts.add_account(conn, "ada@example.com", None, None, 1.0).id
    support_id = support.add_support(conn, ada, support.NewSupport("Help", None), 1.0)["id"]
    waiting = []
    for role in (None, "user", "operator", "user"):
        if role == "operator":
            support.reply(conn, audit.OPERATOR, support_id, "yes?", 1.0)
        elif role:
            support.add_message(conn, ada, support_id, role, "hello", 1.0)
        waiting.append(support.inbox_page(conn, "active", 20, None).items[0]["waiting"])
    assert waiting == [True, True, False, True]
    conn.close()
