"""The bodies of requests for media: what is refused, with which status, and that the rest is passed on
as it was sent.
"""

from typing import Any

import pytest

from svc.errors import ApiError
from svc.routes.schemas.media import AUDIO, IMAGE, SPEECH, SPEECH_LENGTH
from svc.shapes import Shape
from tests.support.cases import each


@each(
    ("shape", "body"),
    [
        (IMAGE, {"prompt": "a cat", "n": 2.0, "size": "auto", "style": {"of": ["the", "server"]}, "model": None}),
        (AUDIO, {"input": "hi", "voice": {"id": "nova"}, "tts_max_tokens": -(10**30), "speed": 4}),
        (SPEECH, {"input": "x" * SPEECH_LENGTH, "voice": "ALLOY", "stream_format": "sse", "response_format": None}),
    ],
)
def test_valid_body_is_passed_on_unchanged(shape: Shape[Any], body: dict[str, Any]) -> None:
    assert shape.check(body, "") is body


@each(
    ("shape", "body", "status", "param"),
    [
        (IMAGE, {}, 400, "prompt"),
        (IMAGE, {"prompt": " \n"}, 400, "prompt"),
        (IMAGE, {"prompt": "x" * 32_001}, 413, "prompt"),
        (IMAGE, {"prompt": "x", "n": 11}, 400, "n"),
        (IMAGE, {"prompt": "x", "size": "0x512"}, 400, "size"),
        (AUDIO, {"input": "x" * 100_001}, 413, "input"),
        (AUDIO, {"input": "x", "tts_max_tokens": 4096.5}, 400, "tts_max_tokens"),
        (AUDIO, {"input": "x", "voice": {"id": 1}}, 400, "voice.id"),
        (SPEECH, {"input": "x" * (SPEECH_LENGTH + 1)}, 413, "input"),
        (SPEECH, {"input": "x", "voice": ""}, 400, "voice"),
        (SPEECH, {"input": "x", "speed": 0.2}, 400, "speed"),
        (SPEECH, {"input": "x", "stream_format": "wav"}, 400, "stream_format"),
        (SPEECH, {"input": "x", "response_format": "../wav"}, 400, "response_format"),
    ],
)
def test_wrong_field_is_named(shape: Shape[Any], body: dict[str, Any], status: int, param: str) -> None:
    with pytest.raises(ApiError) as refused:
        shape.check(body, "")
    assert (refused.value.status, refused.value.error["param"]) == (status, param)
