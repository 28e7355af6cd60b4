"""Shapes, refusals and headers that several operations share."""

from pathlib import Path

from svc.billing.wallet import MOST_MICROS
from svc.errors import ERRORS
from svc.server.interface import Refusal, header, named_header
from svc.shapes import Shape, integer, nullable, string, whole

TEXTS = Path(__file__).parent.parent / "texts"  # descriptions of more than a line
ID = string.about(
    "A prefix that names the kind of object, and 26 characters that sort by the time of creation.",
    pattern="^[a-z]+_[0-9a-hjkmnp-tv-z]{26}$",
    examples=["user_01m3250v3vn4qvxnatpwzmywwn"],
).named("Id")
TIMESTAMP = string.about(
    "ISO 8601 in UTC, with milliseconds and `Z`.",
    "2026-09-21T14:13:20.123Z",
    format="date-time",
    pattern="^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$",
    examples=["2026-09-21T14:13:20.123Z"],
).named("Timestamp")
COUNT = whole.about(minimum=0)
SECONDS = whole.about("Unix seconds.", 1790000000)
CACHED_INPUT = "The part of the input that came from the model server's cache."
MICROS = COUNT.about("The cost in micros (millionths of a US dollar).")
NEW_LIMIT = integer(0, MOST_MICROS).about(
    "The most that its calls may cost in a calendar month (UTC), in micros. A call that needs more is 402 "
    "`spending_limit_reached`. Null means no limit."
)
MONTHLY_LIMIT = nullable(NEW_LIMIT).about(example=None)
SPENT_THIS_MONTH = COUNT.about("The cost of its calls in this month (UTC), in micros, without running ones.", 0)

# A tool, and the arguments of a call of it, in examples.
CALCULATE = {
    "name": "calculate",
    "description": "Exact arithmetic",
    "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
}
ARGUMENTS = '{"expression": "12 * (3 + 4)"}'


def example_id(prefix: str) -> str:
    return f"{prefix}_01m3250v3vn4qvxnatpwzmywwn"


def id_of(prefix: str) -> Shape[str]:
    return ID.about(example=example_id(prefix))


IGNORED_HEADERS = {
    "x-service-ignored-fields": named_header(
        "IgnoredFields",
        "The fields that were left out of the request to the operator's model server, separated by commas. At a model "
        "with a price they include those of unknown cost. Fields that direct a proxy elsewhere are always left out.",
        string,
        "service_tier, extra_body.api_base",
        required=False,
    ),
    "x-service-ignored-tools": named_header(
        "IgnoredTools",
        "The hosted tools that were left out of the request, separated by commas.",
        string,
        "web_search",
        required=False,
    ),
}
OTHER_PRICE = Refusal(
    "unsupported_value",
    "web_search_options cannot be used with this model here: the model server charges for it apart. Leave it out.",
    "web_search_options",
    "The model has a price, and the request has `web_search_options`, `plugins`, `search_parameters`, other "
    "`modalities` than text, or a hosted tool by `tool_choice`. The model server charges them apart.",
)
OWN_PROVIDERS_DISABLED = Refusal(
    "own_providers_disabled", when="The operator does not allow the account to use own providers."
)
NO_MODEL = (
    Refusal("model_not_found", param="model", when="There is no such model, or the account's group may not use it."),
    OWN_PROVIDERS_DISABLED,
)
PROJECT_NOT_FOUND = Refusal("not_found", "There is no such project.", "project_id", "The account has no such project.")
NO_ROOM = Refusal(
    "quota_exceeded",
    when="The account has too little storage left. The message names the bytes that are needed. A call that stores "
    "its answer reserves 32 bytes for each token of the output limit, at most 256 KiB, before the model is called.",
)
NO_FUNDS = Refusal(
    "insufficient_funds",
    "This needs $0.01 (9000 micros). The wallet has $0.00 (0 micros), of which $0.00 (0 micros) is reserved for "
    "running requests. Add funds in the browser, at /checkout.",
    when="The wallet does not cover this request. The message names the amount that is needed, the balance, and what "
    "to do. If the account has a monthly allowance, the error also has `allowance_micros` and `allowance_renews_at`.",
)
LIMIT_REACHED = Refusal(
    "spending_limit_reached",
    "This needs $0.02 (20000 micros). The monthly limit of this API key is $5.00, of which $4.99 is spent and $0.00 is "
    "reserved for running requests. Raise it on the page 'API keys', or wait until 2026-10-01.",
    when="The call could exceed the monthly limit of the API key or the account, which `PATCH "
    "/user/api-keys/{key_id}` and `PATCH /user/settings` set. The limit of a chat's output is lowered before. If the "
    "wallet does not cover the call either, the error is `insufficient_funds`. The error also has `limit_micros`, "
    "`spent_micros` (of this month, without running calls) and `resets_at` (when the next month begins).",
)
PERHAPS_RETRY_AFTER = header("The seconds to wait, if the model server sends them.", COUNT, 7, required=False)
STORAGE = Refusal("storage_unavailable")
WRONG_PARAMETER = Refusal("invalid_value", when="A parameter is wrong.")
# Errors before the first byte of a model's answer.
MODEL_CALL = (
    NO_FUNDS,
    LIMIT_REACHED,
    NO_ROOM,
    Refusal("answer_not_kept", when="The answer to this `Idempotency-Key` is over 8 MiB, or found no room."),
    Refusal("address_not_allowed", when="The caller's own provider has an address that is not allowed."),
    *NO_MODEL,
    Refusal(
        "context_length_exceeded",
        "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "messages",
        "The model server refused the length of the request. Responses has the param `input`. Messages has the "
        "sentence of Anthropic's API, with the tokens of the request and of the model's context.",
    ),
    Refusal(
        "unknown_parameter",
        "Unrecognized request argument supplied: tempo",
        "tempo",
        "The model server's own refusal, with its status and error object: an unsupported parameter, a content filter.",
        status="4XX",
        type="invalid_request_error",
        headers={"retry-after": PERHAPS_RETRY_AFTER},
    ),
    Refusal(
        "invalid_api_key",
        "mine: Incorrect API key provided: ***.",
        when="The caller's own provider refused its key. The message begins with the provider's name.",
    ),
    *map(Refusal, ("upstream_unreachable", "upstream_error", "upstream_invalid_response", "upstream_timeout")),
    Refusal("upstream_error", status="503", when="The model server is busy."),
    Refusal("upstream_error", status="504"),
)
# The same for Responses: Codex repeats a request after 402.
RESPONSES_CALL = (
    Refusal(
        "insufficient_quota",
        NO_FUNDS.message,
        when=f"{NO_FUNDS.when} Or a monthly limit is reached. Other paths answer 402 `insufficient_funds` or "
        "`spending_limit_reached`.",
    ),
    *(one for one in MODEL_CALL if ERRORS.get(one.code, (400,))[0] != 402),
)
CHECKOUT_COOKIE_HEADER = named_header(
    "CheckoutCookie",
    "`__Host-svc_checkout`, by which the checkout pages recognize the account. The API does not accept it.",
    string,
    "__Host-svc_checkout=…; HttpOnly; Max-Age=28800; Path=/; SameSite=lax; Secure",
)
COST_HEADER = named_header(
    "Cost", "The cost in micros (millionths of a US dollar), for models with a price.", COUNT, 20000, required=False
)
TIMES = {"created_at": TIMESTAMP, "updated_at": TIMESTAMP}
CONTENT_URL = (
    f"https://127.0.0.1:8443/artifacts/{example_id('art')}/content?account={example_id('user')}"
    "&expires=1790003600&signature=V1dWMn0dqRxDSmVwZb0m2mTfHGDbBgg9qK4BxP0mR3E"
)
SHA256 = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
