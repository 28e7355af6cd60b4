"""svc/inference/server_formats/request.py: a chat request in the format of the model's server."""

from svc.inference.catalog import Model
from svc.inference.server_formats.request import request_for


def test_text_is_a_request_in_the_format_of_the_server() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    chat = {"model": "m", "messages": messages, "max_tokens": 9, "stream": True}
    responses = request_for(Model("lab/m", "m", None, "chat", {}, api="responses"), chat)
    assert (responses["model"], responses["stream"], responses["max_output_tokens"]) == ("m", True, 9)
    found = request_for(Model("lab/m", "m", None, "chat", {}, api="messages"), chat)
    assert (found["system"], found["messages"], found["max_tokens"]) == ("Be brief.", messages[1:], 9)
