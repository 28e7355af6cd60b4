"""What the built-in assistant makes of tools' results."""

import pytest

from tests.support.builtin import AGENT_TOOLS, agent_run, choice, said

GOAL = "Compute 12 * (3 + 4), draw a lighthouse and save a note with the result"


@pytest.mark.parametrize(
    "result", ['{"ok": false, "error": {"message": "broken"}}', "Error: broken", "", "[[[", "[" * 900 + "]" * 900]
)
async def test_no_call_is_repeated_whatever_came_of_it(result: str) -> None:
    rounds, final = await agent_run(GOAL, result=lambda *_: result)
    assert [name for made in rounds for name, _ in made] == ["calculate", "generate_image", "write_artifact"]
    assert ("broken" in final) == ("broken" in result)


async def test_run_ends_when_results_never_come() -> None:
    messages = said(f"user: {GOAL}")
    for _ in range(3):
        messages.append((await choice("assistant", messages, tools=AGENT_TOOLS))["message"])
    assert "no result came" in messages[-1]["content"]
