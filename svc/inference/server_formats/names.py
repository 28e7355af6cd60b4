"""The names of fields in a model server's error, as the caller knows them."""

import re
from collections.abc import Mapping
from typing import Any

# Fields that a format calls differently than chat does.
_NAMES = {
    "chat": {},
    "responses": {"max_output_tokens": "max_tokens", "text.format": "response_format", "input": "messages"},
    "messages": {"stop_sequences": "stop", "output_config.format": "response_format"},
}


def in_callers_words(error: dict[str, Any], api: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the error object of a server with the format `api`. `names` are the caller's, by those of chat.

    A message may hold values of the caller, so a name counts only in quotes, or at the beginning.
    """
    of_server = {name: names.get(chat, chat) for name, chat in _NAMES[api].items()}
    for name, own in {**names, **of_server}.items():
        field = re.escape(name)
        path = re.compile(rf"^{field}(?=$|[.:\[ ])|(?<=['\"`]){field}(?=['\"`.\[])")
        found = {key: path.sub(own, error[key], count=1) for key in ("param", "message") if error.get(key)}
        error = {**error, **found}
    return error
