"""The answers of servers that no test may ask, such as github.com."""

from collections.abc import Callable
from typing import Any, cast

import orjson

from svc.outbound.client import Outbound
from svc.outbound.connection import Reply


class Answers(Outbound):
    """Sends nothing. The JSON of the answer to a URL is `answer(url)`."""

    def __init__(self, answer: Callable[[str], Any]) -> None:
        super().__init__()
        self._answer = answer

    async def send(self, method: str, url: str, *arguments: Any, **options: Any) -> Reply:
        return cast(Reply, _Answer(orjson.dumps(self._answer(url))))


class _Answer:
    status = 200

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def read(self, limit_bytes: int) -> bytes:
        return self._content

    async def aclose(self) -> None:
        pass
