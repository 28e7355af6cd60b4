"""A chat request as a request in the format of the model's server.

request_for() -> what would change the answer and has no place in the format is 400 -> the fields of the format
Other fields without a place are left out: `seed`, penalties, `prediction`, and a few more in Messages.
"""

import re
from collections.abc import Mapping
from typing import Any

from svc.errors import ApiError
from svc.inference.catalog import Model
from svc.inference.server_formats.chat_parts import refusal_of
from svc.inference.server_formats.request_messages import messages_request
from svc.inference.server_formats.request_responses import responses_request

_DEMANDS = ("logit_bias", "audio", "functions", "web_search_options")


def request_for(model: Model, chat: dict[str, Any], names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return a checked `chat` request, with the model's name, its limits and `stream`, in the format of `model.api`.

    Raises ApiError `unsupported_value` for what cannot travel. `names` has the caller's names of fields.
    """
    try:
        _check(model.api, chat)
        return responses_request(model, chat) if model.api == "responses" else messages_request(model, chat)
    except ApiError as error:
        param = error.error["param"]
        field = re.split(r"[.\[]", param)[0]
        if not names or field not in names:
            raise
        message = str(error).replace(param, names[field], 1)
        raise ApiError("unsupported_value", message, param=names[field]) from None


def _check(api: str, chat: dict[str, Any]) -> None:
    if (chat.get("n") or 0) > 1:
        raise refusal_of("n", "must be 1 for this model.")
    if "audio" in (chat.get("modalities") or ()):
        raise refusal_of("modalities")
    demands = (*_DEMANDS, "logprobs", "top_logprobs") if api == "messages" else _DEMANDS
    for name in demands:
        if chat.get(name):
            raise refusal_of(name)
