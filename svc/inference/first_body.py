"""The body that a paid call sends first. Its size is the input of the hold, so it is serialized before the hold."""

from dataclasses import dataclass
from typing import Any

from svc.inference.passed_request import PassedRequest
from svc.inference.tokens import worst_tokens_of
from svc.inference.upstream import dumped


@dataclass(slots=True)
class FirstBody:
    """The body, its JSON until the model server has answered, and the most tokens that a model can count for it."""

    body: dict[str, Any]
    written: bytes
    input_tokens: int

    def json_of(self, body: dict[str, Any]) -> bytes:
        """Return the JSON of `body` if it is the same, else nothing."""
        return self.written if body == self.body else b""


def first_body(body: dict[str, Any], heavy: bool, api: str = "chat", passed: PassedRequest | None = None) -> FirstBody:
    """Serialize `body`, which is in the format of `api`, or is a `passed` request. If it is `heavy`, this must run off
    the event loop.
    """
    written = passed.json_of(body) if passed else dumped(body, heavy)
    return FirstBody(body, written, worst_tokens_of(api, body, len(written)))
