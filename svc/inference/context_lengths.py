"""The context lengths of models: those that are known, and those that model servers name when they refuse a prompt."""

from collections.abc import Callable

from svc.inference.catalog import Model

UNKNOWN_TOKENS = 8192
_REMEMBERED_SECONDS = 3600.0
_MOST_REMEMBERED = 1000


class ContextLengths:
    """Learned lengths are kept for each account: the words of an error may come from a prompt."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # By account, model and address: the tokens, and the Unix seconds at which they were learned.
        self._learned: dict[tuple[str, str, str], tuple[int, float]] = {}

    def tokens_of(self, model: Model, account_id: str) -> int:
        """Return the context length of `model` in tokens."""
        declared = UNKNOWN_TOKENS if model.context_length is None else model.context_length
        if self._learned and (learned := self._learned.get(_key(model, account_id))):
            tokens, at_seconds = learned
            if 0 <= self._clock() - at_seconds < _REMEMBERED_SECONDS:
                return tokens if model.context_length is None else min(declared, tokens)
        return declared

    def learn(self, model: Model, account_id: str, tokens: int) -> None:
        self._learned[_key(model, account_id)] = (tokens, self._clock())
        if len(self._learned) > _MOST_REMEMBERED:
            del self._learned[next(iter(self._learned))]


def _key(model: Model, account_id: str) -> tuple[str, str, str]:
    return account_id, model.id, model.provider.base_url if model.provider else ""
