"""Headers of answers that several operations share."""

from svc.routes.schemas.common import COUNT, ID, example_id
from svc.server.interface import named_header
from svc.shapes import one_of, string

RUN_HEADER = named_header("Run", "The run's id.", ID, example_id("run"))
CHECKOUT_COOKIE_HEADER = named_header(
    "CheckoutCookie",
    "`__Host-svc_checkout`, by which the checkout pages recognize the account. The API does not accept it.",
    string,
    "__Host-svc_checkout=…; HttpOnly; Max-Age=28800; Path=/; SameSite=lax; Secure",
)
LOCATION_HEADER = named_header(
    "Location", "The address to open.", string, "https://127.0.0.1:8443/#error=access_denied&provider=google"
)
OAUTH_COOKIE_HEADER = named_header(
    "OAuthCookie",
    "`__Host-svc_oauth`, which binds the sign-in to this browser.",
    string,
    "__Host-svc_oauth=…; HttpOnly; Max-Age=660; Path=/; SameSite=lax; Secure",
    required=False,
)
COST_HEADER = named_header(
    "Cost", "The cost in micros (millionths of a US dollar), for models with a price.", COUNT, 20000, required=False
)
AUDIO_SECONDS_HEADER = named_header(
    "AudioSeconds", "The length of the audio.", string.about(pattern="^[0-9]+\\.[0-9]{3}$"), "2.450"
)
AUDIO_TRUNCATED_HEADER = named_header(
    "AudioTruncated", "Whether the audio was cut at `tts_max_tokens`.", one_of("true", "false"), "false"
)
CONVERSATION_HEADER = named_header(
    "Conversation",
    "In a session: the conversation that stores the question and the answer.",
    ID,
    example_id("conv"),
    required=False,
)
MEMORY_HEADER = named_header(
    "Memory", "In a session: the number of recalled passages of earlier messages.", COUNT, 0, required=False
)
IGNORED_TOOLS_HEADER = named_header(
    "IgnoredTools", "The types of the hosted tools that were left out of the request.", string, "web_search", required=False
)
