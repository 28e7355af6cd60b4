"""Requests of an administrator in tests."""

from typing import Any

import httpx

from tests.conftest import Service


async def ask(service: Service, method: str, path: str, headers: dict[str, str], **body: Any) -> httpx.Response:
    return await service.client.request(method, path, headers=headers, json=body or None)


async def log_of(service: Service, admin: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """The actions and details of the audit log, newest first."""
    rows = (await ask(service, "GET", "/admin/audit?limit=100", admin)).json()["data"]
    return [(row["action"], row["details"]) for row in rows]
