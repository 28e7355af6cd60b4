"""The table of errors, and the exceptions for them. Nothing else builds the body of an error."""

import contextlib
import sqlite3
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

# The type of an error by its status: ours, as in OpenAI's API, and that of Anthropic's API.
_TYPES = {
    401: ("authentication_error", "authentication_error"),
    402: ("insufficient_funds_error", "billing_error"),
    403: ("permission_error", "permission_error"),
    404: ("not_found_error", "not_found_error"),
    409: ("conflict_error", "invalid_request_error"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("rate_limit_error", "rate_limit_error"),
    500: ("api_error", "api_error"),
    502: ("upstream_error", "api_error"),
    503: ("api_error", "overloaded_error"),
    504: ("upstream_error", "timeout_error"),
}
_OTHER_TYPES = ("invalid_request_error", "invalid_request_error")
ANTHROPIC_TYPES = tuple(dict.fromkeys(kind for _, kind in (_OTHER_TYPES, *_TYPES.values())))
# A message says what to do. Code that raises an error may give a more exact one.
_STATUSES_AND_MESSAGES = {
    "invalid_json": (400, "The request body is not valid JSON. Send one JSON object in UTF-8."),
    "invalid_value": (400, "A value in the request is not valid."),
    "unsupported_value": (400, "A value in the request is not supported here."),
    "previous_response_not_found": (400, "Responses are not stored here. Send all items in input."),
    "missing_field": (400, "A required field is missing."),
    "context_length_exceeded": (400, "The request exceeds the model's context length. Shorten the conversation."),
    "invalid_request": (400, "The request is not well-formed HTTP."),
    "invalid_token": (400, "This link is no longer valid. Request a new one."),
    "invalid_api_key": (401, "Send one header 'Authorization: Bearer <token>' with a valid session token or API key."),
    "session_expired": (401, "This session has expired. Sign in again."),
    "invalid_credentials": (401, "The email address or the password is wrong."),
    "insufficient_funds": (402, "The wallet does not cover this request. Add funds."),
    "spending_limit_reached": (402, "A monthly limit is reached. Raise it, or wait until the next month."),
    "session_required": (403, "This needs a session. Sign in instead of using an API key."),
    "pro_required": (403, "This needs a pro account. Add funds of at least 5 US dollars."),
    "passwords_disabled": (403, "Passwords are disabled on this server. Sign in with an identity provider."),
    "recent_sign_in_required": (403, "Sign in with your identity provider again, and repeat this within 10 minutes."),
    "sign_in_required": (403, "Sign in with your identity provider again."),
    "deletion_disabled": (403, "Users cannot delete their accounts here. Ask the operator of the service."),
    "account_suspended": (403, "This account is suspended. Contact an administrator."),
    "signup_closed": (403, "Sign-up is closed. Ask the operator for an account."),
    "https_required": (403, "Use HTTPS. The proxy must send 'X-Forwarded-Proto: https'."),
    "address_not_allowed": (403, "This address is not allowed. Use a public one."),
    "own_providers_disabled": (403, "The operator has disabled own providers. Use another model."),
    "sharing_disabled": (403, "The operator has disabled shared links."),
    "not_found": (404, "Nothing was found. Check the path and the id."),
    "model_not_found": (404, "There is no such model. GET /v1/models lists them."),
    "method_not_allowed": (405, "This path does not support this method. See the Allow header."),
    "request_timeout": (408, "The request did not arrive in time. Send it again, faster."),
    "email_taken": (
        409,
        "An account with this email address, or a similar one, exists. Sign in as before, or reset the password.",
    ),
    "name_taken": (409, "This name is in use. Choose another one."),
    "already_active": (409, "One is already active. Close it first."),
    "already_verified": (409, "This email address is already verified."),
    "already_decided": (409, "No call of this conversation waits for a decision."),
    "nothing_to_summarize": (409, "Nothing is left out: the model gets the whole conversation."),
    "already_ended": (409, "It has already ended."),
    "already_started": (409, "A request with this Idempotency-Key has started an agent run. See run_id."),
    "booking_mismatch": (409, "This id was used for another amount. Send a new id."),
    "idempotency_mismatch": (409, "This Idempotency-Key was used for another body. Send a new key."),
    "answer_not_kept": (
        409,
        "The answer to this Idempotency-Key is too large to keep. Send a new key to ask again.",
    ),
    "mail_not_set_up": (
        409,
        "This server cannot send the mail that confirms a new address. Ask its operator to set SVC_SMTP_URL.",
    ),
    "backup_not_set_up": (
        409,
        "This server has no folder for backups. Ask its operator to set SVC_BACKUP_DIR.",
    ),
    "last_identity": (409, "This is the only way to sign in. Link another identity or set a password first."),
    "last_admin": (409, "This is the only active administrator. Make another account an administrator first."),
    "quota_exceeded": (413, "The account has no storage left. Delete something first."),
    "PAYLOAD_TOO_LARGE": (413, "The request is too large. Send less."),
    "unsupported_media_type": (415, "Send 'Content-Type: application/json' in UTF-8."),
    "misdirected_request": (421, "This server does not serve that host name."),
    "no_text": (422, "This file has no text."),
    "upgrade_required": (426, "Responses are not sent over WebSockets here. Use POST /v1/responses."),
    "rate_limit_exceeded": (429, "Too many requests. Wait and try again."),
    "headers_too_large": (431, "The request's header section is too large."),
    "internal_error": (500, "An internal error occurred. It was logged under the request id."),
    "overloaded": (503, "The service is busy. Try again in a moment."),
    "storage_unavailable": (503, "The service cannot write to its storage. Try again later."),
    "shutting_down": (503, "The service is shutting down. Try again in a moment."),
    "upstream_unreachable": (502, "The model server cannot be reached. Try again later."),
    "upstream_error": (502, "The model server failed. Try again later."),
    "upstream_timeout": (504, "The model server did not answer in time. Try again later."),
    "upstream_invalid_response": (502, "The model server sent an invalid answer."),
}
# code: (status, type, message)
ERRORS = {
    code: (status, _TYPES.get(status, _OTHER_TYPES)[0], message)
    for code, (status, message) in _STATUSES_AND_MESSAGES.items()
}
ERRORS["insufficient_quota"] = (
    400,
    *ERRORS["insufficient_funds"][1:],
)  # this name of the error is in the Responses format

# A retry cannot succeed. The common SDKs read this header.
NO_RETRY = {"x-should-retry": "false"}


class ApiError(Exception):
    """An error for the caller: a code of `ERRORS`, perhaps with a more exact message.

    `retry_after_seconds` becomes the header `Retry-After` and, on 429, `error.retry_after`. `details` are further
    fields of the error. `status` and `error` replace those of the table when a model server's own error is passed on.
    `anthropic` has fields of the error that differ in the shape of Anthropic's API.
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
        anthropic: Mapping[str, Any] | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        table_status, table_type, table_message = ERRORS[code]
        self.code = code
        self.status = status or table_status
        if self.status == 503 and retry_after_seconds is None:
            retry_after_seconds = 1
        self.retry_after_seconds = retry_after_seconds
        self.anthropic = anthropic or {}
        self.byok: bool | None = None  # whether an account's own provider caused it
        self.headers = dict(headers or {})
        if self.status == 401:
            self.headers["www-authenticate"] = "Bearer"
        if retry_after_seconds is not None:
            self.headers["retry-after"] = str(retry_after_seconds)
        if self.status in (402, 409):
            self.headers.update(NO_RETRY)
        ours = {"message": message or table_message, "type": table_type, "code": code, "param": param}
        self.error = error or {**ours, **(details or {})}
        if self.status == 429 and retry_after_seconds is not None:
            self.error["retry_after"] = retry_after_seconds
        super().__init__(self.error["message"])

    @property
    def log_fields(self) -> dict[str, Any]:
        cause = self.__cause__
        name = getattr(cause, "sqlite_errorname", type(cause).__name__) if cause else None
        return {"code": self.error.get("code"), "byok": self.byok, "cause": name}

    def body(self) -> dict[str, Any]:
        return {"error": self.error}


def invalid_value(message: str, param: str) -> ApiError:
    return ApiError("invalid_value", message, param=param)


def anthropic_error(error: ApiError, request_id: str) -> dict[str, Any]:
    """Return an error in the shape of Anthropic's API, for the paths under `/v1/messages`."""
    _, kind = _TYPES.get(error.status, _OTHER_TYPES if error.status < 500 else _TYPES[500])
    detail = {"type": kind, "message": error.error["message"]}
    if "retry_after" in error.error:
        detail["retry_after"] = error.error["retry_after"]
    detail.update(error.anthropic)
    return {"type": "error", "error": detail, "request_id": request_id}


def in_responses_format(error: ApiError) -> ApiError:
    """Return an error as `/v1/responses` sends it.

    Codex repeats a request after 402, and does not show the message of OpenAI's own 429.
    """
    if error.status == 402:
        return ApiError("insufficient_quota", error={**error.error, "code": "insufficient_quota"})
    if error.code == "context_length_exceeded":
        return ApiError(error.code, error={**error.error, "param": "input"})
    return error


@dataclass(eq=False, repr=False)
class UpstreamFault(Exception):
    """A failure of a model server, which the service turns into an ApiError.

    `kind` is `unreachable` (no connection), `timeout`, `status` (an HTTP error), `invalid` or `cut` (an incomplete
    answer). `status`, `error` and `retry_after_seconds` are those of an HTTP error.
    """

    kind: str
    message: str = ""
    _: KW_ONLY
    status: int = 0
    error: dict[str, Any] | None = None
    retry_after_seconds: float | None = None

    def __post_init__(self) -> None:
        super().__init__(self.message or self.kind)


class ClientGone(Exception):
    """The client disconnected before the answer was ready."""


class CallerStopped(ApiError):
    """The caller ended a request in progress: it stopped the answer, or its account was deleted or suspended."""


class StartError(Exception):
    """The service cannot start. The message is the only line that the operator sees."""


@contextlib.contextmanager
def or_start_error(what: str) -> Iterator[None]:
    """Raise a fault of the files or the database as StartError: "cannot" do `what`, and why."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())
        raise StartError(f"cannot {what}: {reason}") from error


def describe(error: BaseException) -> str:
    """Return an exception's type and places, without its text, which may contain secrets."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    places = [f"{path.rsplit('/', 1)[-1]}:{line}" for path, line in frames]
    return " < ".join([type(error).__name__, *reversed(places[-6:])])
