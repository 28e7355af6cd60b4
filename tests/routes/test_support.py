"""Live support: a pro account's one active conversation, and the operator's side on the command line."""

import re
from pathlib import Path
from typing import Any

import pytest

from svc.billing import wallet
from tests.conftest import JSON, Service, bearer
from tests.support.cases import each
from tests.support.people import command, new_person
from tests.support.server import running_server

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


@pytest.mark.slow
async def test_operator_commands_work_while_the_server_runs(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        person = await new_person(server)
        assert command(server, "credit", person.email, "5").returncode == 0
        async with server.client(headers=person.headers) as client:
            body = {"subject": "Help \u202e", "message": "line\n\x1b[2Jforged line"}
            support_id = (await client.post(PATH, json=body)).json()["id"]
            (line,) = command(server, "support", "list").stdout.splitlines()
            assert line.split("\t")[:3] == [support_id, person.email, "waits"] and line.split("\t")[4] == "Help \ufffd"
            shown = command(server, "support", "list", support_id).stdout
            assert "\x1b" not in shown and "\n    \ufffd[2Jforged line" in shown
            assert command(server, "support", "reply", support_id, "First answer").returncode == 0
            assert command(server, "support", "reply", support_id, stdin="Second\nanswer\n").returncode == 0
            messages = (await client.get(f"{PATH}/{support_id}")).json()["messages"]
            assert [(message["role"], message["content"]) for message in messages[1:]] == [
                ("operator", "First answer"),
                ("operator", "Second\nanswer"),
            ]
            assert command(server, "support", "close", support_id).returncode == 0
            assert (await client.get(f"{PATH}/{support_id}")).json()["status"] == "closed"
            assert command(server, "support", "list").stdout == ""
