"""svc/inference/formats/messages_shape.py: what a Messages request may hold."""

from typing import Any

import pytest

from svc.errors import ApiError
from svc.inference.formats.messages_shape import COUNT_REQUEST, MESSAGES_REQUEST
from tests.support.cases import each

USER = {"role": "user", "content": "hi"}
BODY = {"model": "m", "max_tokens": 10, "messages": [USER]}


def of_user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {**BODY, "messages": [{"role": "user", "content": [*blocks]}]}


def of_assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {**BODY, "messages": [{"role": "assistant", "content": [*blocks]}]}


def test_ignored_fields_are_accepted() -> None:
    ignored = {
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "context_management": {"edits": []},
        "container": None,
    }
    cached = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}, "citations": None}
    thinking = {"type": "adaptive", "display": "omitted"}
    assert MESSAGES_REQUEST.check({**of_user(cached), **ignored, "thinking": thinking, "mcp_servers": []}, "")
    assert COUNT_REQUEST.check({"messages": [USER]}, "")


@each(
    ("body", "param"),
    [
        ({"messages": [USER]}, "max_tokens"),
        ({**BODY, "max_tokens": 0}, "max_tokens"),
        ({**BODY, "max_tokens": None}, "max_tokens"),
        ({**BODY, "messages": []}, "messages"),
        ({**BODY, "messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({**BODY, "messages": [{"role": "user"}]}, "messages[0].content"),
        ({**BODY, "messages": [USER, {"role": "user", "content": 3}]}, "messages[1].content"),
        ({**BODY, "temperature": 1.5}, "temperature"),
        ({**BODY, "system": {"text": "x"}}, "system"),
        ({**BODY, "system": [{"type": "image", "text": ""}]}, "system[0].type"),
        ({**BODY, "stop_sequences": "x"}, "stop_sequences"),
        ({**BODY, "thinking": {"type": "between_tools"}}, "thinking.type"),
        ({**BODY, "output_config": {"format": {"type": "text", "schema": {}}}}, "output_config.format.type"),
        ({**BODY, "output_format": {"type": "json_schema"}}, "output_format.schema"),
        ({**BODY, "mcp_servers": [{"type": "url", "url": "https://x", "name": "x"}]}, "mcp_servers"),
        ({**BODY, "tools": [{"name": "f"}]}, "tools[0].input_schema"),
        ({**BODY, "tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({**BODY, "tools": [{"type": 3, "name": "f"}]}, "tools[0].type"),
        ({**BODY, "tool_choice": {"type": "function"}}, "tool_choice.type"),
        ({**BODY, "tool_choice": {"type": "tool"}}, "tool_choice.name"),
        (of_user({"type": "video"}), "messages[0].content[0].type"),
        (of_user({"type": "thinking", "thinking": "x"}), "messages[0].content[0].type"),
        (of_user({"type": "tool_result", "content": "x"}), "messages[0].content[0].tool_use_id"),
        (
            of_user({"type": "document", "source": {"type": "file", "file_id": "f"}}),
            "messages[0].content[0].source.type",
        ),
        (of_user({"type": "image", "source": {"type": "file", "file_id": "f"}}), "messages[0].content[0].source.type"),
        (
            of_user({"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": ""}}),
            "messages[0].content[0].source.media_type",
        ),
        (of_assistant({"type": "image"}), "messages[0].content[0].type"),
        (of_assistant({"type": "tool_use", "id": "a", "name": "f", "input": "{}"}), "messages[0].content[0].input"),
        (of_assistant({"type": "tool_use", "id": "", "name": "f", "input": {}}), "messages[0].content[0].id"),
        (of_assistant({"type": "container_upload", "id": "a"}), "messages[0].content[0].type"),
    ],
)
def test_unsupported_field_is_400_and_named(body: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        MESSAGES_REQUEST.check(body, "")
    assert refused.value.status == 400 and refused.value.error["param"] == param and param in str(refused.value)
