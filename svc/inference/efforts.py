"""The words for how much a model thinks, and the budgets of tokens that Messages has in their place."""

from collections.abc import Sequence

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 32_768, "max": 32_768}


def nearest_effort(wanted: str | None, known: Sequence[str] | None) -> str | None:
    """Return the one of the `known` efforts of a model that is nearest to what is `wanted`, or None to send none.

    A model without known ones gets every word, and every model the words that are not in EFFORTS. `none` becomes no
    word that thinks.
    """
    if wanted is None or not known or wanted in known or wanted not in EFFORTS:
        return wanted
    place = EFFORTS.index(wanted)
    found = [word for word in known if word in EFFORTS and word != "none"]
    if wanted == "none" or not found:
        return None
    return min(found, key=lambda word: (abs(EFFORTS.index(word) - place), EFFORTS.index(word)))


def thinking_budget(effort: str) -> int:
    """Return the tokens for thinking that an effort stands for."""
    return _BUDGETS.get(effort, _BUDGETS["medium"])


def effort_of_budget(tokens: int) -> str:
    """Return the smallest effort whose budget is not below `tokens`."""
    return next((word for word, budget in _BUDGETS.items() if budget >= tokens), "max")
