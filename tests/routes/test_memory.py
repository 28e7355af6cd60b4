"""GET /user/memory lists what chats recall; forgotten messages stay in their conversations."""

from typing import Any

from tests.conftest import Service, bearer


async def say(service: Service, headers: dict[str, str], *contents: str) -> list[str]:
    conversation = (await service.client.post("/conversations", json={}, headers=headers)).json()["id"]
    ids = []
    for content in contents:
        body = {"role": "user", "content": content}
        answer = await service.client.post(f"/conversations/{conversation}/messages", json=body, headers=headers)
        ids.append(answer.json()["id"])
    return ids


async def memory(service: Service, headers: dict[str, str], **query: str) -> list[dict[str, Any]]:
    answer = await service.client.get("/user/memory", params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


async def ask(service: Service, headers: dict[str, str], question: str) -> list[dict[str, Any]]:
    body = {"model": "builtin/echo", "messages": [{"role": "user", "content": question}]}
    answer = await service.client.post("/v1/chat/completions", json=body, headers=headers)
    path = f"/conversations/{answer.headers['x-service-conversation']}/messages"
    messages: list[dict[str, Any]] = (await service.client.get(path, headers=headers)).json()["data"]
    return messages


async def test_memory_lists_the_newest_messages_or_what_a_question_recalls(service: Service) -> None:
    headers = bearer((await service.sign_up())["access_token"])
    zebra, rain = await say(service, headers, "My zebra is called Zora.", "It rains.")
    assert [item["id"] for item in await memory(service, headers)] == [rain, zebra]
    (item,) = await memory(service, headers, q="What is my zebra called?")
    assert item.pop("conversation_id").startswith("conv_")
    assert item == {
        "id": zebra,
        "role": "user",
        "text": "My zebra is called Zora.",
        "created_at": "2026-09-21T14:13:20.000Z",
        "forgotten": False,
    }
    assert await memory(service, headers, forgotten="true") == []


async def test_memory_has_pages_also_after_a_forgotten_message(service: Service) -> None:
    headers = bearer((await service.sign_up())["access_token"])
    ids = (await say(service, headers, *(f"message {number}" for number in range(5))))[::-1]
    for forgotten in ("false", "true"):
        first = await memory(service, headers, limit="2", forgotten=forgotten)
        assert [item["id"] for item in first] == ids[:2]
        rest = await memory(service, headers, limit="3", forgotten=forgotten, after=ids[1])
        assert [item["id"] for item in rest] == ids[2:]
        for message_id in ids:
            await service.client.delete(f"/user/memory/{message_id}", headers=headers)
    assert [item["id"] for item in await memory(service, headers, forgotten="true", after=ids[3])] == ids[4:]
    await service.client.post(f"/user/memory/{ids[4]}", headers=headers)
    assert [item["id"] for item in await memory(service, headers, after=ids[3])] == ids[4:], "its place stays"


async def test_forgotten_message_is_not_recalled_until_it_is_remembered(service: Service) -> None:
    headers = bearer((await service.sign_up())["access_token"])
    (zebra,) = await say(service, headers, "My zebra is called Zora.")
    question = "What is my zebra called?"
    for _ in range(2):
        forgotten = await service.client.delete(f"/user/memory/{zebra}", headers=headers)
        assert forgotten.status_code == 204
    assert await memory(service, headers) == [] and await memory(service, headers, q=question) == []
    for query in ({}, {"q": question}):
        (item,) = await memory(service, headers, forgotten="true", **query)
        assert (item["id"], item["forgotten"]) == (zebra, True)
    path = f"/conversations/{item['conversation_id']}/messages"
    assert [found["id"] for found in (await service.client.get(path, headers=headers)).json()["data"]] == [zebra]
    assert [message["memories"] for message in await ask(service, headers, question)] == [[], []]
    undone = await service.client.post(f"/user/memory/{zebra}", headers=headers)
    assert (undone.status_code, undone.json()) == (200, {**item, "forgotten": False})
    assert zebra in [found["id"] for found in await memory(service, headers, q=question)]
    assert zebra in [found["id"] for found in await memory(service, headers)]


async def test_stored_answer_names_its_memories(service: Service) -> None:
    headers = bearer((await service.sign_up())["access_token"])
    (zebra,) = await say(service, headers, "My zebra is called Zora.")
    messages = await ask(service, headers, "What is my zebra called?")
    assert {message["role"]: message["memories"] for message in messages} == {"user": [], "assistant": [zebra]}


async def test_message_of_another_account_is_not_forgotten(service: Service) -> None:
    ada, bob = [bearer((await service.sign_up())["access_token"]) for _ in range(2)]
    (zebra,) = await say(service, ada, "My zebra is called Zora.")
    for method in ("DELETE", "POST"):
        answer = await service.client.request(method, f"/user/memory/{zebra}", headers=bob)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert [item["id"] for item in await memory(service, ada)] == [zebra] and await memory(service, bob) == []


async def test_mark_is_deleted_with_its_message(service: Service) -> None:
    headers = bearer((await service.sign_up())["access_token"])
    (zebra,) = await say(service, headers, "My zebra is called Zora.")
    await service.client.delete(f"/user/memory/{zebra}", headers=headers)
    (item,) = await memory(service, headers, forgotten="true")
    await service.client.delete(f"/conversations/{item['conversation_id']}", headers=headers)
    assert await memory(service, headers, forgotten="true") == []
    count = "SELECT count(*) FROM forgotten"
    assert await service.state["db"].read(lambda conn: conn.execute(count).fetchone()[0]) == 0
