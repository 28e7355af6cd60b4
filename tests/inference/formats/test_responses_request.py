"""svc/inference/formats/responses_request.py: a Responses request as a chat request."""

from svc.inference.formats.responses_request import translate


def test_a_text_is_a_user_message() -> None:
    asked = translate({"model": "m", "input": "Hello", "stream": True}, lambda: 0.0)
    assert asked.chat["messages"] == [{"role": "user", "content": "Hello"}]
    assert asked.chat["stream"] is True and asked.chat["stream_options"] == {"include_usage": True}
