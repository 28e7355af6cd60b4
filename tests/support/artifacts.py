"""Artifacts made and read through HTTP."""

import random
from typing import Any

import httpx

from svc.content.artifact_contents import CHUNK_BYTES
from tests.conftest import Service

UNKNOWN = "art_unknown"
LONG = random.Random(8).randbytes(2 * CHUNK_BYTES + 1234)


async def make_artifact(service: Service, headers: dict[str, str], **fields: Any) -> dict[str, Any]:
    body = {"name": "note.txt", **({} if "content_base64" in fields else {"content": "text"}), **fields}
    answer = await service.client.post("/artifacts", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    artifact: dict[str, Any] = answer.json()
    return artifact


async def put_content(
    service: Service, headers: dict[str, str], artifact_id: str, content: Any, **more: str
) -> httpx.Response:
    return await service.client.put(f"/artifacts/{artifact_id}/content", content=content, headers={**headers, **more})


async def get_content(service: Service, headers: dict[str, str], artifact_id: str, **more: str) -> httpx.Response:
    extra = {name.replace("_", "-"): value for name, value in more.items()}
    return await service.client.get(f"/artifacts/{artifact_id}/content", headers={**headers, **extra})
