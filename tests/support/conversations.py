"""Conversations made, filled and found through HTTP."""

from typing import Any

from tests.conftest import Service


async def make(service: Service, headers: dict[str, str], **fields: Any) -> dict[str, Any]:
    answer = await service.client.post("/conversations", json=fields, headers=headers)
    assert answer.status_code == 201, answer.text
    conversation: dict[str, Any] = answer.json()
    return conversation


async def say(
    service: Service, headers: dict[str, str], conversation_id: str, content: str, role: str = "user"
) -> dict[str, Any]:
    body = {"role": role, "content": content}
    answer = await service.client.post(f"/conversations/{conversation_id}/messages", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    message: dict[str, Any] = answer.json()
    return message


async def get(service: Service, headers: dict[str, str], path: str, **params: Any) -> Any:
    answer = await service.client.get(path, params=params, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def found(service: Service, headers: dict[str, str], query: str, **params: Any) -> list[str]:
    return [item["id"] for item in (await get(service, headers, "/conversations", q=query, **params))["data"]]
