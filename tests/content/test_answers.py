"""Details are stored with an answer, and an exchange can add versions of earlier messages."""

from typing import Any

from tests.conftest import Service, bearer

COMPLETIONS = "/v1/chat/completions"


async def ask(service: Service, headers: dict[str, str], text: str, **further: str) -> Any:
    body = {"model": "builtin/echo", "messages": [{"role": "user", "content": text}]}
    return await service.client.post(COMPLETIONS, json=body, headers={**headers, **further})


async def messages(service: Service, headers: dict[str, str], conversation: str) -> list[dict[str, Any]]:
    answer = await service.client.get(f"/conversations/{conversation}/messages", headers=headers)
    said: list[dict[str, Any]] = answer.json()["data"]
    return said[::-1]


async def test_details_of_an_answer_are_stored_with_it_alone(service: Service) -> None:
    headers = await service.bearer()
    conversation = (await ask(service, headers, "zebra crossing")).headers["x-service-conversation"]
    question, answer = await messages(service, headers, conversation)
    assert question["answer"] is None
    told = answer["answer"]
    assert told["input_tokens"] > 0 and told["output_tokens"] > 0
    assert (told["cost_micros"], told["finish_reason"], told["reasoning"], told["memory"]) == (0, "stop", None, [])


async def test_recalled_passages_are_listed_with_the_answer(service: Service) -> None:
    headers = await service.bearer()
    first = (await ask(service, headers, "My zebra is called Zora.")).headers["x-service-conversation"]
    second = await ask(service, headers, "What is the zebra called?")
    _, answer = await messages(service, headers, second.headers["x-service-conversation"])
    recalled = answer["answer"]["memory"]
    assert len(recalled) == int(second.headers["x-service-memory"]) > 0
    assert recalled[0]["source"] == first and "Zora" in recalled[0]["text"]


async def test_streamed_answer_has_details(service: Service) -> None:
    headers = await service.bearer()
    body = {"model": "builtin/script", "stream": True, "messages": [{"role": "user", "content": "say cut\nlength"}]}
    answer = await service.client.post(COMPLETIONS, json=body, headers=headers)
    _, said = await messages(service, headers, answer.headers["x-service-conversation"])
    assert said["answer"]["finish_reason"] == "length"


async def test_only_an_own_message_of_the_conversation_can_be_replaced(service: Service) -> None:
    headers, stranger = await service.bearer(), await service.bearer()
    mine = (await ask(service, headers, "mine")).headers["x-service-conversation"]
    other = (await ask(service, headers, "other")).headers["x-service-conversation"]
    theirs = (await ask(service, stranger, "theirs")).headers["x-service-conversation"]
    ids = [(await messages(service, *pair))[0]["id"] for pair in ((headers, other), (stranger, theirs))]
    for message_id in (*ids, "msg_none", "x"):
        answer = await ask(
            service, headers, "new", **{"x-service-conversation": mine, "x-service-replaces": message_id}
        )
        assert (answer.status_code, answer.json()["error"]["param"]) == (404, "x-service-replaces")
    assert (await ask(service, headers, "new", **{"x-service-replaces": ids[0]})).status_code == 404
    assert [said["content"] for said in await messages(service, headers, mine)] == ["mine", "mine"]


async def test_failed_replacement_is_another_version(service: Service) -> None:
    headers = await service.bearer()
    conversation = (await ask(service, headers, "one")).headers["x-service-conversation"]
    first = (await messages(service, headers, conversation))[0]
    body = {"model": "builtin/script", "messages": [{"role": "user", "content": "fail 500 broken"}]}
    named = {"x-service-conversation": conversation, "x-service-replaces": first["id"]}
    assert (await service.client.post(COMPLETIONS, json=body, headers={**headers, **named})).status_code >= 500
    question, answer = await messages(service, headers, conversation)
    assert (question["content"], question["versions"]) == ("fail 500 broken", [first["id"], question["id"]])
    assert (answer["content"], answer["status"]) == ("", "failed")


async def test_a_key_replaces_nothing(service: Service) -> None:
    headers = await service.bearer()
    conversation = (await ask(service, headers, "one")).headers["x-service-conversation"]
    first = (await messages(service, headers, conversation))[0]
    key = bearer((await service.make_key(headers))["key"])
    named = {"x-service-conversation": conversation, "x-service-replaces": first["id"]}
    assert (await ask(service, key, "two", **named)).status_code == 200
    assert [said["content"] for said in await messages(service, headers, conversation)] == ["one", "one"]


async def test_details_of_an_answer_count_as_stored_bytes(service: Service) -> None:
    headers = await service.bearer()

    async def stored() -> int:
        row = await service.state["db"].read(lambda conn: conn.execute("SELECT bytes FROM stored").fetchone())
        return int(row["bytes"])

    before = await stored()
    conversation = (await ask(service, headers, "one")).headers["x-service-conversation"]
    assert await stored() >= before + 4 * 256  # a conversation, two messages and the details of one
    assert (await service.client.delete(f"/conversations/{conversation}", headers=headers)).status_code == 204
    assert await stored() == before
