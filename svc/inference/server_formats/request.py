"""A chat request as a request in the format of the model's server."""

from typing import Any

from svc.inference.catalog import Model


def request_for(model: Model, chat: dict[str, Any]) -> dict[str, Any]:
    """Return a checked `chat` request, with the model's name, its limits and `stream`, in the format of `model.api`.

    Raises ApiError 400, with the caller's field, for what cannot travel in this format.
    """
    limits = [chat[name] for name in ("max_completion_tokens", "max_tokens") if chat.get(name) is not None]
    limit = min(limits, default=8192)
    body = {"model": chat["model"], "stream": bool(chat.get("stream"))}
    if model.api == "responses":
        return {**body, "input": chat["messages"], "max_output_tokens": limit, "store": False}
    system = "\n\n".join(message["content"] for message in chat["messages"] if message["role"] == "system")
    messages = [message for message in chat["messages"] if message["role"] != "system"]
    return {**body, "system": system, "messages": messages, "max_tokens": limit}
