"""The one table of named errors and the exceptions that carry them; nothing else builds an error body."""

from collections.abc import Mapping
from typing import Any

# code: (status, type, message). A message says what to do; callers may pass a more exact one.
ERRORS: dict[str, tuple[int, str, str]] = {
    "invalid_json": (400, "invalid_request_error", "The request body is not valid JSON. Send one JSON object in UTF-8."),
    "invalid_value": (400, "invalid_request_error", "A value in the request is not acceptable."),
    "unsupported_value": (400, "invalid_request_error", "A value in the request is not supported here."),
    "previous_response_not_found": (400, "invalid_request_error", "Responses are not stored here. Send all items in input."),
    "missing_field": (400, "invalid_request_error", "A required field is missing."),
    "invalid_request": (400, "invalid_request_error", "The request is not well-formed HTTP."),
    "invalid_token": (400, "invalid_request_error", "This link is not valid any more. Ask for a new one."),
    "invalid_api_key": (
        401,
        "authentication_error",
        "Send one header 'Authorization: Bearer <token>' with a valid session token or API key.",
    ),
    "session_expired": (401, "authentication_error", "This session has expired. Sign in again."),
    "invalid_credentials": (401, "authentication_error", "The e-mail or the password is wrong."),
    "insufficient_funds": (402, "insufficient_funds_error", "The wallet does not cover this request. Add funds."),
    "session_required": (403, "permission_error", "Sign in with a session for this; an API key cannot do it."),
    "pro_required": (403, "permission_error", "This needs a pro account. Add funds of at least 5 US dollars."),
    "signup_closed": (403, "permission_error", "Sign-up is closed here. Ask the operator for an account."),
    "https_required": (403, "permission_error", "Use HTTPS. The proxy must send 'X-Forwarded-Proto: https'."),
    "address_not_allowed": (403, "permission_error", "This address may not be reached from here. Use a public one."),
    "not_found": (404, "not_found_error", "There is no such thing here. Check the path and the id."),
    "model_not_found": (404, "not_found_error", "There is no such model. GET /v1/models lists them."),
    "method_not_allowed": (405, "invalid_request_error", "This path does not take this method. See the Allow header."),
    "request_timeout": (408, "invalid_request_error", "The request did not arrive in time. Send it again, faster."),
    "email_taken": (
        409,
        "conflict_error",
        "An account with this e-mail, or one that looks like it, exists. Sign in the way you did before; without a password, ask "
        "for a link that sets one.",
    ),
    "name_taken": (409, "conflict_error", "This name is in use. Choose another one."),
    "already_active": (409, "conflict_error", "One is active already. Close it first."),
    "already_verified": (409, "conflict_error", "This address is confirmed already."),
    "already_ended": (409, "conflict_error", "It has ended already."),
    "last_identity": (409, "conflict_error", "This is the only way in to the account. Link another one or set a password first."),
    "quota_exceeded": (413, "invalid_request_error", "This account stores as much as it may. Delete something first."),
    "PAYLOAD_TOO_LARGE": (413, "invalid_request_error", "The request is too large. Send less."),
    "unsupported_media_type": (415, "invalid_request_error", "Send 'Content-Type: application/json' in UTF-8."),
    "misdirected_request": (421, "invalid_request_error", "This server does not serve that host name."),
    "rate_limit_exceeded": (429, "rate_limit_error", "Too many requests. Wait and try again."),
    "headers_too_large": (431, "invalid_request_error", "The request's header section is too large."),
    "internal_error": (500, "api_error", "Something went wrong here. It has been logged under the request id."),
    "overloaded": (503, "api_error", "The service is busy. Try again in a moment."),
    "storage_unavailable": (503, "api_error", "The service cannot write to its storage. Try again later."),
    "shutting_down": (503, "api_error", "The service is shutting down. Try again in a moment."),
    "upstream_unreachable": (502, "upstream_error", "The model server cannot be reached. Try again later."),
    "upstream_error": (502, "upstream_error", "The model server failed. Try again later."),
    "upstream_timeout": (504, "upstream_error", "The model server did not answer in time. Try again later."),
    "upstream_invalid_response": (502, "upstream_error", "The model server's answer makes no sense."),
}

# What a retry cannot mend: the common SDKs heed this header.
NO_RETRY = {"x-should-retry": "false"}


class ApiError(Exception):
    """A refusal as the caller sees it: a code of `ERRORS`, perhaps with a better message, the field's name and headers.

    `retry_after_seconds` becomes the header `Retry-After` and, on 429, `error.retry_after`.
    `status`, `type` and `error` replace the table's where an upstream's own refusal is passed on.
    """

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        param: str | None = None,
        retry_after_seconds: int | None = None,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
        error: dict[str, Any] | None = None,
    ) -> None:
        table_status, table_type, table_message = ERRORS[code]
        self.code = code
        self.status = status or table_status
        self.retry_after_seconds = retry_after_seconds
        self.byok: bool | None = None  # whether an account's own provider caused it
        self.headers = dict(headers or {})
        if self.status == 401:
            self.headers["www-authenticate"] = "Bearer"
        if self.status == 503 and retry_after_seconds is None:
            self.retry_after_seconds = 1
        if self.retry_after_seconds is not None:
            self.headers["retry-after"] = str(self.retry_after_seconds)
        if self.status in (402, 409):
            self.headers.update(NO_RETRY)
        self.error = error or {"message": message or table_message, "type": table_type, "code": code, "param": param}
        if self.status == 429 and self.retry_after_seconds is not None:
            self.error["retry_after"] = self.retry_after_seconds
        super().__init__(self.error["message"])

    def body(self) -> dict[str, Any]:
        """The one shape of every error: `{"error": {"message", "type", "code", "param"}}`."""
        return {"error": self.error}


_ANTHROPIC_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def anthropic_error(error: ApiError, request_id: str) -> dict[str, Any]:
    """Return an error in the shape of Anthropic's API, in which the paths under `/v1/messages` report it."""
    other = "invalid_request_error" if error.status < 500 else "api_error"
    detail = {"type": _ANTHROPIC_TYPES.get(error.status, other), "message": error.error["message"]}
    if "retry_after" in error.error:
        detail["retry_after"] = error.error["retry_after"]
    return {"type": "error", "error": detail, "request_id": request_id}


class UpstreamFault(Exception):
    """A model server that failed, before the service has decided what the caller sees of it.

    `kind`: `unreachable` (no connection), `timeout`, `status` (it answered with an HTTP error), `invalid` (its answer
    makes no sense), `cut` (it ended in the middle). `status` and `error` (its error object, if it sent one) go with
    `status`; `retry_after_seconds` is what its `Retry-After` asked for.
    """

    def __init__(
        self,
        kind: str,
        message: str = "",
        *,
        status: int = 0,
        error: dict[str, Any] | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        self.kind = kind
        self.status = status
        self.error = error
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message or kind)


class ClientGone(Exception):
    """The caller left before the answer was ready; there is nobody to tell."""


class StartError(Exception):
    """The service cannot start; the message is the one clear line that the operator sees."""


def describe(error: BaseException) -> str:
    """An exception's type and the last places it passed, without its text, which may quote a secret or a person's words."""
    places = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " < ".join([type(error).__name__, *reversed(places[-6:])])
