"""Live support: a pro account's one active conversation, and the operator's side on the command line."""

import asyncio
import re
from typing import Any

import pytest

from svc import quota
from svc.billing import wallet
from tests.conftest import JSON, Service, bearer
from tests.support.cases import each
from tests.support.people import command_on

PATH = "/support/conversations"
FIELDS = {"id", "status", "subject", "created_at", "updated_at", "closed_at"}


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


async def test_free_account_is_403_for_any_body(service: Service) -> None:
    free = await service.bearer()
    for content in (b"{}", b"no json"):
        answer = await service.client.post(PATH, content=content, headers={**free, **JSON})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "pro_required")
    assert (await service.client.get(PATH, headers=free)).json() == {"object": "list", "data": [], "has_more": False}


async def test_conversation_is_returned_as_created_and_listed_without_messages(
    service: Service, headers: dict[str, str]
) -> None:
    made = await post(service, headers, body={"subject": "Help 🙂", "message": "It is\nbroken."})
    assert set(made) == FIELDS | {"messages"} and re.fullmatch(r"sup_[0-9a-z]{26}", made["id"])
    assert (made["status"], made["subject"], made["closed_at"]) == ("active", "Help 🙂", None)
    (message,) = made["messages"]
    assert set(message) == {"id", "role", "content", "created_at"}
    assert (message["role"], message["content"]) == ("user", "It is\nbroken.")
    assert (await service.client.get(f"{PATH}/{made['id']}", headers=headers)).json() == made
    (listed,) = (await service.client.get(PATH, headers=headers)).json()["data"]
    assert listed == {field: made[field] for field in FIELDS}


async def test_messages_are_added_until_close(service: Service, headers: dict[str, str]) -> None:
    made = await post(service, headers)
    service.clocks.advance(1)
    said = [await post(service, headers, f"/{made['id']}/messages", {"content": text}) for text in ("one", "two")]
    service.clocks.advance(1)
    closed = await post(service, headers, f"/{made['id']}/close", status=200)
    assert closed["status"] == "closed" and closed["closed_at"] == closed["updated_at"] > said[0]["created_at"]
    assert closed["messages"] == said
    for path, body in (("messages", {"content": "three"}), ("close", {})):
        answer = await post(service, headers, f"/{made['id']}/{path}", body, status=409)
        assert answer["error"]["code"] == "already_ended"
    assert (await service.client.get(f"{PATH}/{made['id']}", headers=headers)).json() == closed


@pytest.mark.parametrize("value", [None, "", " \n", 5, True, ["x"], {}, "x" * 10_001])
async def test_wrong_message_is_400_and_not_stored(service: Service, headers: dict[str, str], value: Any) -> None:
    made = await post(service, headers)
    answer = await post(service, headers, f"/{made['id']}/messages", {"content": value}, status=400)
    assert answer["error"]["param"] == "content"
    assert (await service.client.get(f"{PATH}/{made['id']}", headers=headers)).json() == made


@each(
    ("field", "value"),
    [("subject", ""), ("subject", 5), ("subject", "a\nb"), ("subject", "x" * 201), ("message", ""), ("message", 5)],
)
async def test_wrong_conversation_is_400_and_not_stored(
    service: Service, headers: dict[str, str], field: str, value: Any
) -> None:
    answer = await post(service, headers, body={field: value}, status=400)
    assert answer["error"]["param"] == field
    assert (await service.client.get(PATH, headers=headers)).json()["data"] == []


async def test_one_of_50_simultaneous_requests_becomes_active(service: Service, headers: dict[str, str]) -> None:
    answers = await asyncio.gather(*(service.client.post(PATH, json={}, headers=headers) for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 49
    assert {answer.json()["error"]["code"] for answer in answers if answer.status_code == 409} == {"already_active"}
    (first,) = (await service.client.get(PATH, headers=headers)).json()["data"]
    await post(service, headers, f"/{first['id']}/close", status=200)
    second = await post(service, headers)
    listed = (await service.client.get(PATH, headers=headers)).json()["data"]
    assert {item["id"]: item["status"] for item in listed} == {first["id"]: "closed", second["id"]: "active"}


async def test_support_messages_count_as_stored_bytes(service: Service, headers: dict[str, str]) -> None:
    made = await post(service, headers, body={"subject": "höher", "message": "größer"})
    await post(service, headers, f"/{made['id']}/messages", {"content": "x" * 10_000})
    stored_bytes = 256 + 6 + 256 + 8 + 256 + 10_000
    assert (await service.client.get("/billing/account", headers=headers)).json()["stored_bytes"] == stored_bytes
    await service.state["db"].write(quota.set_limit, 10_800)
    refused = await post(service, headers, f"/{made['id']}/messages", {"content": "x"}, status=413)
    assert refused["error"]["code"] == "quota_exceeded"
    assert (await service.client.post(f"{PATH}/{made['id']}/close", headers=headers)).status_code == 200
    assert (await post(service, headers, body={"subject": "x"}, status=413))["error"]["code"] == "quota_exceeded"
    assert (await post(service, headers, status=413))["error"]["code"] == "quota_exceeded"


async def test_commands_of_the_operator_answer_and_close_while_the_service_runs(
    service: Service, headers: dict[str, str]
) -> None:
    async def command(*arguments: str, stdin: str = "") -> str:
        done = await asyncio.to_thread(command_on, service.config.data_dir, "support", *arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    made = await post(service, headers, body={"subject": "Help \u202e", "message": "line\n\x1b[2Jforged line"})
    (line,) = (await command("list")).splitlines()
    assert line.split("\t")[0] == made["id"] and line.split("\t")[4] == "Help \ufffd"
    await command("reply", made["id"], "First answer")
    await command("reply", made["id"], stdin="Second\nanswer\n")
    shown = (await service.client.get(f"{PATH}/{made['id']}", headers=headers)).json()
    said = [(message["role"], message["content"]) for message in shown["messages"][1:]]
    assert said == [("operator", "First answer"), ("operator", "Second\nanswer")]
    await command("close", made["id"])
    assert (await service.client.get(f"{PATH}/{made['id']}", headers=headers)).json()["status"] == "closed"
    assert await command("list") == ""
