"""Headers of answers that several operations share."""

from svc.routes.schemas.common import ID
from svc.server.interface import choice, integer, named_header, string

RUN_HEADER = named_header("Run", "The run's id.", ID, "run_01m3250v3vn4qvxnatpwzmywwn")
CHECKOUT_COOKIE_HEADER = named_header(
    "CheckoutCookie",
    "`__Host-svc_checkout`, which tells the checkout pages who is there; no API path takes it.",
    string(),
    "__Host-svc_checkout=…; HttpOnly; Max-Age=28800; Path=/; SameSite=lax; Secure",
)
LOCATION_HEADER = named_header(
    "Location", "Where to go.", string(), "https://127.0.0.1:8443/#error=access_denied&provider=google"
)
OAUTH_COOKIE_HEADER = named_header(
    "OAuthCookie",
    "`__Host-svc_oauth`, which binds the sign-in to this browser.",
    string(),
    "__Host-svc_oauth=…; HttpOnly; Max-Age=660; Path=/; SameSite=lax; Secure",
    required=False,
)
COST_HEADER = named_header(
    "Cost", "What it cost, in millionths of a US dollar: for models with a price.", integer(minimum=0), 20000, required=False
)
AUDIO_SECONDS_HEADER = named_header("AudioSeconds", "How long it is.", string(pattern="^[0-9]+\\.[0-9]{3}$"), "2.450")
AUDIO_TRUNCATED_HEADER = named_header(
    "AudioTruncated", "Whether it was cut at `tts_max_tokens`.", choice("true", "false"), "false"
)
CONVERSATION_HEADER = named_header(
    "Conversation",
    "With a session: the conversation in which the exchange is kept.",
    ID,
    "conv_01m3250v3vn4qvxnatpwzmywwn",
    required=False,
)
MEMORY_HEADER = named_header(
    "Memory", "With a session: how many passages of earlier messages were recalled.", integer(minimum=0), 0, required=False
)
