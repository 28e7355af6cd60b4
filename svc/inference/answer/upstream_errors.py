"""The errors of model servers, in any shape, and what the caller sees of them.

error body -> error_object(), without secrets -> UpstreamFault -> caller_error()
            -> svc/inference/fault_log.py: log_fields()
"""

import math
import re
from typing import Any

import orjson

from svc.errors import NO_RETRY, ApiError, UpstreamFault
from svc.inference.answer import too_long
from svc.outbound.errors import AddressNotAllowed, ConnectError, Cut, InvalidRequest, OutboundError, ReadTimeout

CLIENT_FAULTS = (OutboundError, TimeoutError)  # what svc/outbound/client.py raises
_MESSAGE_CHARACTERS = 2000
# An error body of a million values is not read further.
_DEEPEST = 5
_MOST_PROBLEMS = 8
# A shorter key is a placeholder ("ollama"), which may well occur in an error.
_HIDDEN_KEY_CHARACTERS = 4
_TO_RETRY = frozenset({429, 502, 503, 504, 529})  # 529 is Anthropic's for an overload
_STATUS = re.compile("[1-5][0-9]{2}")
_SECRETS = re.compile(r"(?i)\b(?:bearer\s+|sk-|gsk_|xai-|hf_|nvapi-|AIza)[^\s\"',;]{6,}")
_LONGEST_RETRY_SECONDS = 59  # some SDKs do not wait longer
# The operator's key, account or configuration: the caller cannot fix these.
_NOT_THE_CALLERS = frozenset({401, 402, 403, 405, 407, 408, 411, 421, 425, 426, 429, 431})
_OWNERS_TO_SEE = frozenset({401, 402, 403, 429})
_OPERATORS_TO_FIX = frozenset({401, 402, 403, 405, 407})
_OUT_OF_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance"}
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
# By code or type, the status of an error without one, as OpenAI and Anthropic send it in a stream.
_STATUSES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 503,
    "timeout_error": 504,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
}
# Fields with an error's message, in lower case: OpenAI's, FastAPI's, AWS's, OAuth's, RFC 9457's and proxies'.
_MESSAGE_FIELDS = (
    "message",
    "msg",
    "detail",
    "error",
    "errors",
    "error_description",
    "error_message",
    "reason",
    "title",
)


def fault_of(error: Exception, *, before_the_answer: bool = False) -> UpstreamFault | ApiError:
    """Return the fault for one of the client's exceptions, whose texts quote nothing."""
    if isinstance(error, AddressNotAllowed):
        return ApiError("address_not_allowed")
    if isinstance(error, ReadTimeout | TimeoutError):
        return UpstreamFault("timeout")
    if isinstance(error, InvalidRequest):
        return UpstreamFault("unreachable", "The provider's address or key cannot be used.")
    unreachable = isinstance(error, ConnectError) or (before_the_answer and isinstance(error, Cut))
    return UpstreamFault("unreachable" if unreachable else "cut" if isinstance(error, Cut) else "invalid", str(error))


def error_object(document: Any, key: str | None) -> dict[str, Any] | None:
    """Return `message`, `type`, `param` and `code` of an error body of any shape, or None if it has no message.

    They are without secrets, such as the `key` of the request, which some servers quote. `too_long` has the sizes if
    the error is about the context's length.
    """
    message, holder = _message_in(document)
    if not message or message.startswith("<"):
        return None
    fields = {name.lower(): value for name, value in holder.items()}
    code = fields.get("code")
    code = str(code) if isinstance(code, str | int) and not isinstance(code, bool) else None
    if code and _STATUS.fullmatch(code):  # says nothing beside the status
        code = None
    kept = {"message": message, "type": fields.get("type"), "param": fields.get("param"), "code": code}
    error: dict[str, Any] = {
        name: redact(value, key) if isinstance(value, str) else None for name, value in kept.items()
    }
    sizes = too_long.found_in(error["message"] or "", fields)
    return {**error, "too_long": sizes} if sizes else error


def status_fault(
    message: str, status: int, error: dict[str, Any] | None, retry_after_seconds: float | None = None
) -> UpstreamFault:
    """Return the fault of an answer with this status and error object."""
    if error and "too_long" in error and status in too_long.STATUSES:
        status = 400  # a retry of the same request cannot succeed
    return UpstreamFault("status", message, status=status, error=error, retry_after_seconds=retry_after_seconds)


def json_or_text(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")


def error_fault(document: Any, key: str | None = None) -> UpstreamFault:
    """Return the fault of an answer with status 200 that is an error."""
    error = error_object(document, key)
    words = (error["code"], error["type"]) if error else ()
    status = next((_STATUSES[word] for word in words if word in _STATUSES), 502)
    match document:
        case {"error": {"code": int(code)}} | [{"error": {"code": int(code)}}, *_] if 400 <= code < 500:
            status = code  # llama.cpp, OpenRouter
    return status_fault("The answer is an error.", status, error)


def is_error(document: dict[str, Any]) -> bool:
    """Return whether an object without `choices` is an error: it has a message, or the status of an error."""
    if document.get("usage") or str(document.get("object")).startswith("chat.completion"):
        return False
    statuses = (document.get("code"), document.get("status"), document.get("status_code"))
    failed = any(type(status) is int and status >= 400 for status in statuses)
    return failed or document.get("type") == "error" or bool(_message_in(document)[0])


def _message_in(value: Any, depth: int = 0) -> tuple[str, dict[str, Any]]:
    """Return the message of an error, and the object that holds it."""
    if isinstance(value, str):
        return value.strip(), {}
    if isinstance(value, list):
        return _problems(value, depth)
    if not isinstance(value, dict) or depth > _DEEPEST:
        return "", {}
    fields = {name.lower(): item for name, item in value.items()}
    # An inner error comes first: the fields beside it are mostly a heading.
    first = ("error",) if isinstance(fields.get("error"), dict) else ()
    for name in dict.fromkeys((*first, *_MESSAGE_FIELDS)):
        text, holder = _message_in(fields.get(name), depth + 1)
        if text:
            return _with_cause(text, fields), holder or value
    return "", {}


def _problems(items: list[Any], depth: int) -> tuple[str, dict[str, Any]]:
    """Return the message of a list of errors, such as FastAPI's, in which `loc` is the place of a wrong value."""
    found: list[tuple[str, dict[str, Any]]] = []
    for item in items[:_MOST_PROBLEMS]:
        text, holder = _message_in(item, depth + 1)
        place = item.get("loc") if isinstance(item, dict) else None
        if isinstance(place, list):
            found.append((f"{'.'.join(map(str, place))}: {text}", {}))
        elif text:
            found.append((text, holder))
    return "; ".join(text for text, _ in found), found[0][1] if len(found) == 1 else {}


def _with_cause(text: str, fields: dict[str, Any]) -> str:
    """Add the error behind it, which OpenRouter puts in `metadata.raw` and Azure in `innererror`."""
    metadata = fields.get("metadata")
    cause = metadata.get("raw") if isinstance(metadata, dict) else fields.get("innererror")
    if isinstance(cause, str) and cause.lstrip().startswith(("{", "[")):
        cause = json_or_text(cause.encode("utf-8", "replace"))
    behind = _message_in(cause)[0]
    return text if not behind or behind in text else f"{text}: {behind}"


def redact(text: str, key: str | None) -> str:
    """Return `text` without `key` and what looks like a secret, cut at 2,000 characters."""
    if key and len(key) >= _HIDDEN_KEY_CHARACTERS:
        text = text.replace(key, "***")
    text = text[: 5 * _MESSAGE_CHARACTERS]
    return (
        _SECRETS.sub("***", text)[:_MESSAGE_CHARACTERS].encode("utf-8", "replace").decode()
    )  # a cut between the UTF-16 halves of an emoji


def retriable(fault: UpstreamFault) -> bool:
    """Return whether the same request may be sent again, if no byte of an answer was sent."""
    return fault.kind in ("unreachable", "timeout") or (
        fault.kind == "status" and fault.status in (429, 502, 503, 504, 529)
    )


def caller_error(fault: UpstreamFault, *, provider: str, byok: bool) -> ApiError:
    """Return the caller's error for a fault of `provider`, which is the caller's own (`byok`) or the operator's."""
    server = f"The model server of {provider!r}"
    errors = {
        "unreachable": ("upstream_unreachable", f"{server} cannot be reached. Try again later."),
        "timeout": ("upstream_timeout", f"{server} did not answer in time. Try again later."),
        "cut": ("upstream_error", f"The answer of {provider!r} was cut off before its end. Send the request again."),
        "invalid": ("upstream_invalid_response", f"The answer of {provider!r} is not valid. {fault}"),
    }
    error = _status_error(fault, provider, byok) if fault.kind == "status" else ApiError(*errors[fault.kind])
    error.byok = byok or None
    return error


def _status_error(fault: UpstreamFault, provider: str, byok: bool) -> ApiError:
    status, error, server = fault.status, fault.error or {}, f"The model server of {provider!r}"
    quoted = error.get("message")
    retry_after_seconds = min(max(math.ceil(fault.retry_after_seconds or 0), 1), _LONGEST_RETRY_SECONDS)
    owners = byok and status in _OWNERS_TO_SEE
    if 400 <= status < 500 and (owners or status not in _NOT_THE_CALLERS):
        message = quoted or f"{server} refused the request with status {status}."
        kept = {
            "message": f"{provider}: {message}" if owners else message,
            "type": error.get("type") or _TYPES.get(status, "invalid_request_error"),
            "param": error.get("param"),
            "code": error.get("code"),
        }
        wait_seconds = retry_after_seconds if status == 429 else None
        return ApiError("upstream_error", status=status, error=kept, retry_after_seconds=wait_seconds)
    if status == 408:
        return ApiError("upstream_timeout", f"{server} gave up waiting. Try again later.")
    if status == 429:
        message = f"{server} is busy{f': {quoted}' if quoted else '. Try again in a moment.'}"
    elif status < 400:
        message = f"{server} redirects elsewhere, which is not followed. Check its base_url."
    elif status >= 500 and quoted:
        message = f"{server} failed: {quoted}"
    else:
        message = f"{server} failed with status {status}. Try again later."
    # The common SDKs do not retry then: only the operator can fix these.
    exhausted = status == 429 and bool(_OUT_OF_QUOTA & {error.get("code"), error.get("type")})
    headers = NO_RETRY if status in _OPERATORS_TO_FIX or status < 400 or exhausted else None
    ours = status if status in (503, 504) else 503 if status in (429, 529) else 502
    wait_seconds = retry_after_seconds if ours == 503 else None
    return ApiError("upstream_error", message, status=ours, retry_after_seconds=wait_seconds, headers=headers)
