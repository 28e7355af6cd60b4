"""What conversations keep: their order, their titles, and that everything goes with them."""

import pytest

from tests.conftest import Service
from tests.support.conversations import found, get, make, say

MESSAGE_FIELDS = {
    *(
        "id",
        "conversation_id",
        "role",
        "content",
        "model",
        "created_at",
        "status",
        "finish_reason",
        "error",
        "answer",
        "versions",
        "steps",
        "sources",
        "citations",
        "memories",
        "first_sent_message_id",
    ),
}


@pytest.fixture
async def headers(service: Service) -> dict[str, str]:
    return await service.bearer()


async def test_deleting_a_project_keeps_its_conversations(service: Service, headers: dict[str, str]) -> None:
    project = (await service.client.post("/projects", json={"name": "p"}, headers=headers)).json()
    made, other = await make(service, headers, project_id=project["id"]), await make(service, headers)
    listed = await get(service, headers, "/conversations", project_id=project["id"])
    assert [item["id"] for item in listed["data"]] == [made["id"]] != [other["id"]]
    assert (await service.client.delete(f"/projects/{project['id']}", headers=headers)).status_code == 204
    assert (await get(service, headers, f"/conversations/{made['id']}"))["project_id"] is None


async def test_messages_of_one_moment_are_listed_newest_first(service: Service, headers: dict[str, str]) -> None:
    made = await make(service, headers)
    said = [await say(service, headers, made["id"], f"number {number}") for number in range(5)]
    assert set(said[0]) == MESSAGE_FIELDS and said[0]["conversation_id"] == made["id"] and said[0]["model"] is None
    path = f"/conversations/{made['id']}/messages"
    assert await get(service, headers, path) == {"object": "list", "data": said[::-1], "has_more": False}
    page = await get(service, headers, path, limit=2)
    assert (page["data"], page["has_more"]) == (said[:2:-1], True)
    rest = await get(service, headers, path, limit=3, after=page["data"][-1]["id"])
    assert (rest["data"], rest["has_more"]) == (said[2::-1], False)


async def test_page_of_long_messages_is_shorter_without_loss(service: Service, headers: dict[str, str]) -> None:
    made = await make(service, headers)
    for number in range(7):
        await say(service, headers, made["id"], str(number) + "x" * 900_000)
    seen: list[str] = []
    after, pages = {}, 0
    while True:
        page = await get(service, headers, f"/conversations/{made['id']}/messages", limit=100, **after)
        seen += [message["content"][0] for message in page["data"]]
        pages += 1
        if not page["has_more"]:
            break
        after = {"after": page["data"][-1]["id"]}
    assert seen == list("6543210") and pages == 3


async def test_the_first_message_titles_a_conversation_that_has_no_title(
    service: Service, headers: dict[str, str]
) -> None:
    made, titled = await make(service, headers), await make(service, headers, title="kept")
    await say(service, headers, made["id"], "You are brief.", "system")
    assert (await get(service, headers, f"/conversations/{made['id']}"))["title"] is None
    service.clocks.advance(1)
    await say(service, headers, made["id"], "  What\n is\t the\0 " + "long " * 100 + "question?")
    shown = await get(service, headers, f"/conversations/{made['id']}")
    assert (
        shown["title"].startswith("What is the long long") and len(shown["title"]) <= 80 and shown["title"][-1] == "…"
    )
    assert shown["updated_at"] > shown["created_at"]
    await say(service, headers, made["id"], "another")
    await say(service, headers, titled["id"], "another")
    assert (await get(service, headers, f"/conversations/{made['id']}"))["title"] == shown["title"]
    assert (await get(service, headers, f"/conversations/{titled['id']}"))["title"] == "kept"


async def test_deleting_a_conversation_deletes_its_messages_and_words(
    service: Service, headers: dict[str, str]
) -> None:
    made, stays = await make(service, headers, title="zebra"), await make(service, headers, title="zebra")
    for conversation in (made, stays):
        await say(service, headers, conversation["id"], "a lion")
    assert (await service.client.delete(f"/conversations/{made['id']}", headers=headers)).status_code == 204
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/messages"), ("POST", "/messages")):
        body = {"role": "user", "content": "x"}
        answer = await service.client.request(method, f"/conversations/{made['id']}{path}", json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert await found(service, headers, "zebra") == await found(service, headers, "lion") == [stays["id"]]


async def test_page_after_a_deleted_conversation_begins_at_its_last_place(
    service: Service, headers: dict[str, str]
) -> None:
    made = []
    for number in range(6):
        service.clocks.advance(1)
        made.append((await make(service, headers, title=f"zebra {number}"))["id"])
    service.clocks.advance(1)
    oldest, pinned = made[0], made[3]
    await say(service, headers, oldest, "hello")  # the last used one
    await service.client.patch(f"/conversations/{pinned}", json={"pinned": True}, headers=headers)
    order = [pinned, oldest, made[5], made[4], made[2], made[1]]

    async def listed(**params: str | int) -> list[str]:
        return [item["id"] for item in (await get(service, headers, "/conversations", **params))["data"]]

    assert await listed() == order
    for gone in (oldest, pinned, made[4]):
        at = order.index(gone)
        assert (await service.client.delete(f"/conversations/{gone}", headers=headers)).status_code == 204
        for query in ({}, {"q": "zebra"}):
            assert await listed(after=gone, **query) == order[at + 1 :]
        order.remove(gone)
    assert await listed(after=made[4], limit=1) == [made[2]]


async def test_places_of_the_last_100_deleted_conversations_are_kept(service: Service, headers: dict[str, str]) -> None:
    other = await service.bearer()
    for owner, number in ((other, 1), (headers, 102)):
        for made in [(await make(service, owner))["id"] for _ in range(number)]:
            await service.client.delete(f"/conversations/{made}", headers=owner)
    query = "SELECT count(*) FROM deleted_conversations GROUP BY account_id ORDER BY 1"
    kept = await service.state["db"].read(lambda conn: [row[0] for row in conn.execute(query)])
    assert kept == [1, 100]


async def test_page_goes_on_after_a_conversation_that_left_the_project(
    service: Service, headers: dict[str, str]
) -> None:
    project = (await service.client.post("/projects", json={"name": "p"}, headers=headers)).json()["id"]
    made = []
    for _ in range(3):
        service.clocks.advance(1)
        made.append((await make(service, headers, project_id=project))["id"])
    service.clocks.advance(1)
    await service.client.patch(f"/conversations/{made[1]}", json={"pinned": False, "project_id": None}, headers=headers)
    page = await get(service, headers, "/conversations", project_id=project, after=made[1])
    assert [item["id"] for item in page["data"]] == [made[2], made[0]], "its last use is the move, so it comes first"
