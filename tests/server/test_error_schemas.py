"""Errors under /v1/messages have Anthropic's shape, whatever part of the server answers them."""

from typing import get_args

import pytest
from anthropic.types.shared.error_response import ErrorResponse
from anthropic.types.shared.error_type import ErrorType

from svc.errors import ERRORS, ApiError, anthropic_error
from svc.server.error_schemas import error_schema

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "overloaded_error",
    504: "timeout_error",
}


@pytest.mark.parametrize("code", ERRORS)
def test_every_error_has_a_type_that_anthropics_sdk_knows(code: str) -> None:
    error = ApiError(code, retry_after_seconds=7)
    body = anthropic_error(error, "req_1")
    assert body["error"]["type"] == TYPES.get(error.status, "invalid_request_error")
    assert body["error"]["message"] == ERRORS[code][2] and body["request_id"] == "req_1"
    assert body["error"].get("retry_after") == (7 if error.status == 429 else None)
    if error.status != 413:  # documented by Anthropic, but missing in the SDK's types
        assert body["error"]["type"] in get_args(ErrorType)
        assert ErrorResponse.model_validate(body).error.type == body["error"]["type"]


def test_the_document_shows_the_shape_of_each_path() -> None:
    assert error_schema("/v1/messages/count_tokens", "429").schema.name == "MessagesError"
    assert error_schema("/v1/messagesque", "429").schema.name == "RateLimitError"
