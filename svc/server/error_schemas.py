"""What the interface document says of errors: their schemas and examples, in the shape of each path."""

import re
from typing import Any

from svc.errors import ERRORS, ApiError, anthropic_error
from svc.server.interface import Refusal, choice, integer, record, refined, string
from svc.server.web import in_anthropic_format
from svc.shapes import Component


def _codes() -> str:
    """The table of errors as a list: its codes by status and type."""
    families: dict[str, list[str]] = {}
    for code, (status, kind, _) in ERRORS.items():
        statuses = "502, 503, 504" if kind == "upstream_error" else str(status)
        families.setdefault(f"{statuses} {kind}", []).append(f"`{code}`")
    return "\n".join(f"- {family}: {', '.join(codes)}" for family, codes in families.items())


ERROR_DETAIL = record(
    "ErrorDetail",
    {
        "message": {"type": "string", "description": "What to do about it, for people."},
        "type": {
            "type": "string",
            "description": "The family of the error. A model server's own refusal may carry its own.",
            "examples": sorted({kind for _, kind, _ in ERRORS.values()}),
        },
        "code": {
            "type": ["string", "null"],
            "description": "What went wrong, for programs. The codes of this service, by status and type:\n\n"
            f"{_codes()}\n\nA model server's own refusal keeps its own code, or null.",
        },
        "param": {
            "type": ["string", "null"],
            "description": "The field at fault, for instance `messages[0].role`; null where there is none.",
        },
        "retry_after": {
            "type": "integer",
            "description": "On 429: the seconds to wait, the same as the header Retry-After.",
            "minimum": 1,
        },
    },
    required=("message", "type", "code", "param"),
    description="What went wrong.",
    additionalProperties=True,
)
ERROR = record("Error", {"error": ERROR_DETAIL}, description="The one shape of every error, on every path.")
_RATE_LIMIT_ERROR = record(
    "RateLimitError",
    {"error": refined(ERROR_DETAIL, required=["message", "type", "retry_after"])},
    description="An error that tells when to try again.",
)
_ANTHROPIC_ERROR = record(
    "MessagesError",
    {
        "type": choice("error"),
        "error": record(
            "MessagesErrorDetail",
            {
                "type": choice(
                    "invalid_request_error",
                    "authentication_error",
                    "billing_error",
                    "permission_error",
                    "not_found_error",
                    "request_too_large",
                    "rate_limit_error",
                    "api_error",
                    "overloaded_error",
                    "timeout_error",
                ),
                "message": string("What is wrong and what to do, for people."),
                "retry_after": integer("On 429: the seconds to wait, the same as the header Retry-After.", minimum=1),
            },
            required=("type", "message"),
        ),
        "request_id": string("The same as the header `request-id`."),
    },
    description="The shape of errors under `/v1/messages`, as Anthropic's SDKs expect it.",
)


def error_schema(path: str, status: str) -> Component:
    """Return the schema of the errors that `path` answers with `status`."""
    if in_anthropic_format(path):
        return _ANTHROPIC_ERROR
    return _RATE_LIMIT_ERROR if status == "429" else ERROR


def error_examples(path: str, status: str, refusals: list[Refusal]) -> dict[str, Any]:
    """An example for each code and message: a code that stands for several things is there several times."""
    examples: dict[str, Any] = {}
    for refusal in refusals:
        _, kind, message = ERRORS.get(refusal.code, (0, "", ""))
        error = {
            "message": refusal.message or message,
            "type": refusal.type or kind,
            "code": refusal.code,
            "param": refusal.param,
            **({"retry_after": 37} if kind == "rate_limit_error" else {}),
        }
        example = {"value": {"error": error}}
        if in_anthropic_format(path):
            found = ApiError("invalid_request", status=400 if status == "4XX" else int(status), error=error)
            example = {"value": anthropic_error(found, "req_4fGk2mXq9TzLw8RbYc1VdN")}
        if example not in examples.values():
            same = sum(re.fullmatch(rf"{refusal.code}(_\d+)?", name) is not None for name in examples)
            examples[f"{refusal.code}_{same + 1}" if same else refusal.code] = example
    return examples
