"""Which formats a model server answers, found without tokens: the refusal of an empty request shows it."""

import asyncio
import contextlib
import re
from typing import Any

from svc.errors import ApiError, UpstreamFault
from svc.inference import upstream
from svc.inference.answer.upstream_errors import CLIENT_FAULTS, error_object, json_or_text
from svc.inference.catalog import APIS, Provider
from svc.outbound.client import Outbound

_ANSWER_BYTES = 64 * 1024
# Statuses of a path that does not exist.
_NO_PATH = frozenset({404, 405, 501})
_WRONG_VALUE = frozenset({400, 422, 500})  # older versions of llama.cpp answer with 500
# What an empty request lacks. Words with a slash are paths.
_LACKS = re.compile(r"(?i)(?<![\w/])(?:messages|input|model|max_tokens|required|missing)(?![\w/])")


async def formats(client: Outbound, provider: Provider, seconds: float) -> dict[str, bool | None]:
    """Return for each format whether the server answers it, None if that is not clear within `seconds`."""
    found = await asyncio.gather(*(_answers(client, provider, api, seconds) for api in APIS))
    return dict(zip(APIS, found, strict=True))


async def _answers(client: Outbound, provider: Provider, api: str, seconds: float) -> bool | None:
    try:
        async with asyncio.timeout(seconds):
            reply = await upstream.send(client, provider, upstream.PATHS[api], b"application/json", b"{}")
            async with contextlib.aclosing(reply):
                body = await reply.read(_ANSWER_BYTES)
    except UpstreamFault as fault:
        return _shows_format(fault.status, fault.error)
    except (ApiError, *CLIENT_FAULTS):
        return None
    error = error_object(json_or_text(body), None)  # LM Studio has status 200 for paths that do not exist
    return _shows_format(404, error) if error else None


def _shows_format(status: int | None, error: dict[str, Any] | None) -> bool | None:
    lacks = bool(_LACKS.search((error or {}).get("message") or ""))
    if status in _NO_PATH:
        return lacks
    return True if lacks and status in _WRONG_VALUE else None
