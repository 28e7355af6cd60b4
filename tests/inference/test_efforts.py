"""svc/inference/efforts.py: the words for how much a model thinks, and budgets of tokens in their place."""

from svc.inference.efforts import EFFORTS, effort_of_budget, nearest_effort, thinking_budget
from tests.support.cases import each


@each(
    "wanted, known, sent",
    [
        ("high", None, "high"),
        ("any", ("low",), "any"),
        (None, ("low",), None),
        ("minimal", ("low", "medium", "high"), "low"),
        ("xhigh", ("low", "medium", "high"), "high"),
        ("max", ("low", "medium", "high"), "high"),
        ("none", ("none", "low"), "none"),
        ("none", ("low", "high"), None),
        ("low", ("none",), None),
        ("low", ("none", "high"), "high"),
    ],
)
def test_nearest_word_is_sent(wanted: str | None, known: tuple[str, ...] | None, sent: str | None) -> None:
    assert nearest_effort(wanted, known) == sent


@each("effort", [effort for effort in EFFORTS if effort not in ("none", "max")])
def test_budget_and_effort_are_one_table(effort: str) -> None:
    budget = thinking_budget(effort)
    assert effort_of_budget(budget) == effort and effort_of_budget(budget - 1) == effort


def test_budget_above_all_is_the_most() -> None:
    assert effort_of_budget(10**6) == "max" and effort_of_budget(1) == "minimal"
