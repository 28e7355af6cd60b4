"""svc/routes/completion.py: what all formats share around a chat call."""

import pytest

from tests.conftest import Service


@pytest.mark.parametrize("path", ["/v1/responses"])
async def test_a_session_keeps_nothing_in_another_format(service: Service, path: str) -> None:
    session = await service.bearer()
    answer = await service.client.post(path, json={"model": "builtin/echo", "input": "Hello"}, headers=session)
    assert answer.status_code == 200 and "x-service-conversation" not in answer.headers
    assert (await service.client.get("/conversations", headers=session)).json()["data"] == []
