"""The shapes and examples of errors in the interface document, in the format of each path."""

import re
from typing import Any

from svc.errors import ANTHROPIC_TYPES, ERRORS, ApiError, anthropic_error
from svc.server.interface import Refusal
from svc.server.web import in_anthropic_format
from svc.shapes import Shape, json_object, nullable, one_of, string, whole


def _codes() -> str:
    families: dict[str, list[str]] = {}
    for code, (status, kind, _) in ERRORS.items():
        statuses = "502, 503, 504" if kind == "upstream_error" else str(status)
        families.setdefault(f"{statuses} {kind}", []).append(f"`{code}`")
    return "\n".join(f"- {family}: {', '.join(codes)}" for family, codes in families.items())


_RETRY_AFTER = whole.about("With 429: the seconds to wait, as in the header Retry-After.", minimum=1)
ERROR_DETAIL = json_object(
    "ErrorDetail",
    message=string.about("The cause and the solution, for people.", ERRORS["upstream_unreachable"][2]),
    type=string.about(
        "The family of the error. A model server's own refusal may have another one.",
        "upstream_error",
        examples=sorted({kind for _, kind, _ in ERRORS.values()}),
    ),
    code=nullable(string).about(
        "The cause, for programs. The codes of this service, by status and type:\n\n"
        f"{_codes()}\n\nA model server's own refusal keeps its own code, or null.",
        "upstream_unreachable",
    ),
    param=nullable(string).about("The wrong field, for example `messages[0].role`. Null if there is none."),
    retry_after=_RETRY_AFTER.optional(),
).with_others()
ERROR = json_object("Error", "The shape of every error outside `/v1/messages`.", error=ERROR_DETAIL)
_RATE_LIMIT_ERROR = json_object(
    "RateLimitError",
    "An error that names the seconds to wait.",
    error=ERROR_DETAIL.about(required=["message", "type", "retry_after"]),
)
_ANTHROPIC_DETAIL = json_object(
    "MessagesErrorDetail",
    type=one_of(*ANTHROPIC_TYPES),
    message=string.about("The cause and the solution, for people."),
    retry_after=_RETRY_AFTER.optional(),
)
ANTHROPIC_ERROR = json_object(
    "MessagesError",
    "The shape of errors under `/v1/messages`, as Anthropic's SDKs expect it.",
    type=one_of("error"),
    error=_ANTHROPIC_DETAIL,
    request_id=string.about("The same as the header `request-id`."),
)


def error_schema(path: str, status: str) -> Shape[dict[str, Any]]:
    """Return the schema of the errors that `path` answers with `status`."""
    if in_anthropic_format(path):
        return ANTHROPIC_ERROR
    return _RATE_LIMIT_ERROR if status == "429" else ERROR


def error_examples(path: str, status: str, refusals: list[Refusal]) -> dict[str, Any]:
    """Return an example for each code and message. A code with several messages has several examples."""
    examples: dict[str, Any] = {}
    for refusal in refusals:
        _, kind, message = ERRORS.get(refusal.code, (0, "", ""))
        detail = {
            "message": refusal.message or message,
            "type": refusal.type or kind,
            "code": refusal.code,
            "param": refusal.param,
        }
        code, wait_seconds = 400 if status == "4XX" else int(status), 37 if status == "429" else None
        error = ApiError("invalid_request", status=code, retry_after_seconds=wait_seconds, error=detail)
        if in_anthropic_format(path):
            example = {"value": anthropic_error(error, "req_4fGk2mXq9TzLw8RbYc1VdN")}
        else:
            example = {"value": error.body()}
        if example not in examples.values():
            same = sum(re.fullmatch(rf"{refusal.code}(_\d+)?", name) is not None for name in examples)
            examples[f"{refusal.code}_{same + 1}" if same else refusal.code] = example
    return examples
