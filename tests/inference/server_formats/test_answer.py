"""svc/inference/server_formats/answer.py: answers of Responses and Messages servers as chunks of chat."""

from svc.inference.server_formats.answer import reader_of


def test_reader_ends_with_the_last_event_of_its_format() -> None:
    responses, messages = reader_of("responses"), reader_of("messages")
    (chunk,) = responses.chunks({"type": "response.output_text.delta", "delta": "Hi"})
    assert chunk["choices"][0]["delta"]["content"] == "Hi" and not responses.ended
    responses.chunks({"type": "response.completed", "response": {"usage": {"input_tokens": 1, "output_tokens": 1}}})
    messages.chunks({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}})
    assert responses.ended and not messages.ended
    messages.chunks({"type": "message_stop"})
    assert messages.ended
