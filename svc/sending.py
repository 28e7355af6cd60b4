"""What a `send` gives back that has sent at once: nothing is left to wait for, and nobody need be woken for it."""

from collections.abc import Awaitable, Generator
from typing import Any, Final


class _Sent:
    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


SENT: Final[Awaitable[None]] = _Sent()
