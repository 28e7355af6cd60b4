"""A model server's error names the caller's fields, and leaves the caller's values alone."""

from svc.inference.server_formats.names import in_callers_words
from tests.support.cases import each

OF_MESSAGES, OF_RESPONSES = {"stop": "stop_sequences"}, {"max_tokens": "max_output_tokens"}


@each(
    "api, names, given, told",
    [
        (
            "chat",
            OF_MESSAGES,
            ("stop", "Invalid 'stop': too long"),
            ("stop_sequences", "Invalid 'stop_sequences': too long"),
        ),
        ("chat", OF_MESSAGES, ("stop[4]", "stop: too many"), ("stop_sequences[4]", "stop_sequences: too many")),
        ("chat", OF_MESSAGES, (None, "You must stop here"), (None, "You must stop here")),
        ("chat", OF_MESSAGES, ("stopped", "stopped: odd"), ("stopped", "stopped: odd")),
        (
            "chat",
            OF_RESPONSES,
            ("max_tokens", "max_tokens is too large"),
            ("max_output_tokens", "max_output_tokens is too large"),
        ),
        ("chat", {}, ("stop", "Invalid 'stop'"), ("stop", "Invalid 'stop'")),
        ("messages", {}, (None, "stop_sequences: too many"), (None, "stop: too many")),
        ("messages", OF_MESSAGES, (None, "stop_sequences.4: too long"), (None, "stop_sequences.4: too long")),
        ("responses", {}, ("input[2].content", "Invalid `input[2]`"), ("messages[2].content", "Invalid `messages[2]`")),
        (
            "responses",
            OF_RESPONSES,
            ("max_output_tokens", "Odd 'max_output_tokens'"),
            ("max_output_tokens", "Odd 'max_output_tokens'"),
        ),
    ],
)
def test_fields_have_the_callers_names(
    api: str, names: dict[str, str], given: tuple[str | None, str], told: tuple[str | None, str]
) -> None:
    error = {"param": given[0], "message": given[1], "code": "x"}
    assert in_callers_words(error, api, names) == {"param": told[0], "message": told[1], "code": "x"}
