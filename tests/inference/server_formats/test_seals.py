"""svc/inference/server_formats/seals.py: sealed reasoning in a chat message and in the two formats."""

from typing import Any

from svc.inference.server_formats import seals
from tests.support.cases import each

THINKING = {"type": "thinking", "thinking": "So.", "signature": "sig=="}
REDACTED = {"type": "redacted_thinking", "data": "red=="}
ITEM = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "So."}],
    "encrypted_content": "g==",
}


@each("block", [THINKING, REDACTED, {**THINKING, "thinking": ""}])
def test_block_of_thinking_comes_back_unchanged(block: dict[str, Any]) -> None:
    found = seals.of_message({"reasoning_details": seals.of_thinking(block)}, seals.MESSAGES)
    assert [seals.thinking_block(seal) for seal in found] == [block]


@each("item", [ITEM, {**ITEM, "summary": []}, {**ITEM, "content": [{"type": "reasoning_text", "text": "So."}]}])
def test_item_of_reasoning_comes_back_unchanged(item: dict[str, Any]) -> None:
    found = seals.of_message({"reasoning_details": seals.of_item(item)}, seals.RESPONSES)
    assert [seals.reasoning_item(seal) for seal in found] == [item]


def test_seals_of_other_servers_are_not_sent() -> None:
    details = [*seals.of_thinking(THINKING), *seals.of_item(ITEM), {"type": "reasoning.text", "text": "So."}, 1]
    message = {"reasoning_details": details}
    assert [seal["data"] for seal in seals.of_message(message, seals.MESSAGES)] == ["sig=="]
    assert [seal["data"] for seal in seals.of_message(message, seals.RESPONSES)] == ["g=="]
    assert seals.of_message({"reasoning_details": "x"}, seals.MESSAGES) == []


def test_reasoning_without_a_seal_has_none() -> None:
    assert seals.of_thinking({**THINKING, "signature": ""}) == [] == seals.of_item({**ITEM, "encrypted_content": None})
