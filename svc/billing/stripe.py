"""Stripe's API: the signature of its webhook, its events, and Checkout Sessions over httpx."""

import asyncio
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import orjson

from svc.errors import ApiError, invalid_value
from svc.outbound.client import Outbound
from svc.outbound.errors import ConnectTimeout, OutboundError, ReadTimeout, TooLarge

TOLERANCE_SECONDS = 300
CHECKOUT_ORIGIN = "https://checkout.stripe.com"
_HEADER_LENGTH = 8192
_ID_LENGTH = 255
_MOST_CENTS = 10**12
_ATTEMPT_SECONDS = 8.0
_PAUSE_SECONDS = 0.5
_URL = re.compile(r"https?://[0-9A-Za-z.-]+(?::[0-9]+)?(?:[/?#][!-~]{0,4000})?")
_TRANSIENT = {409, 429, 500, 502, 503, 504}


class PaymentEvent(NamedTuple):
    """The part of an event that is used here.

    `session_id` is the id of its object: a Checkout Session, a charge or a dispute.
    `amount_cents` is the amount of a session, `returned_cents` that of a refund or a dispute.
    """

    id: str
    type: str
    session_id: str | None
    checkout_id: str | None
    amount_cents: int | None
    currency: str | None
    paid: bool
    payment_intent: str | None = None
    returned_cents: int | None = None

    @property
    def pays(self) -> bool:
        """Whether it reports that a session is paid."""
        completed = self.type == "checkout.session.completed" and self.paid
        return completed or self.type == "checkout.session.async_payment_succeeded"


def sign(secret: bytes, body: bytes, at_seconds: int) -> str:
    """Return the `Stripe-Signature` header for `body`."""
    return f"t={at_seconds},v1={_digest(secret, str(at_seconds), body)}"


def check_signature(secret: bytes | None, headers: Sequence[str], body: bytes, now_seconds: float) -> None:
    """Raise ApiError `invalid_value` unless exactly one `Stripe-Signature` header signs these bytes, now."""
    text = "Send one valid Stripe-Signature header for this body."
    refused = invalid_value(text, "stripe-signature")
    if secret is None or len(headers) != 1 or len(headers[0]) > _HEADER_LENGTH:
        raise refused
    parts = [part.partition("=") for part in headers[0].split(",")]
    times = [value for name, _, value in parts if name == "t"]
    if len(times) != 1 or not re.fullmatch(r"[1-9][0-9]{0,11}", times[0]):
        raise refused
    expected = _digest(secret, times[0], body).encode()
    given = [value.encode("latin-1", "replace") for name, _, value in parts if name == "v1"]
    genuine = any([hmac.compare_digest(expected, signature) for signature in given])  # noqa: C419 - all, in constant time
    if not genuine or abs(now_seconds - int(times[0])) > TOLERANCE_SECONDS:
        raise refused


def _digest(secret: bytes, at_seconds: str, body: bytes) -> str:
    return hmac.new(secret, at_seconds.encode() + b"." + body, hashlib.sha256).hexdigest()


def read_event(body: bytes) -> PaymentEvent:
    """Return the event in a signed body; its digest replaces a missing id. Raises ApiError `invalid_json`."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise ApiError("invalid_json")
    data = _object(_object(value.get("data")).get("object"))
    amount = data.get("amount_total")
    return PaymentEvent(
        id=_text(value.get("id")) or "sha256_" + hashlib.sha256(body).hexdigest(),
        type=_text(value.get("type")) or "unknown",
        session_id=_text(data.get("id")),
        checkout_id=_text(data.get("client_reference_id")) or _text(_object(data.get("metadata")).get("checkout_id")),
        amount_cents=amount if type(amount) is int and 0 <= amount <= _MOST_CENTS else None,
        currency=_text(data.get("currency")),
        paid=data.get("payment_status") == "paid",
        payment_intent=_text(data.get("payment_intent")) or _text(_object(data.get("payment_intent")).get("id")),
        returned_cents=_returned_cents(data, _object(_object(value.get("data")).get("previous_attributes"))),
    )


def _returned_cents(data: dict[str, Any], before: dict[str, Any]) -> int | None:
    """Return the amount of a refund or a dispute; of a charge, whose refunds Stripe adds up, that of the last one."""
    amount, known = (data.get("amount") if data.get("object") in ("refund", "dispute") else None), 0
    if data.get("object") == "charge":
        amount, known = data.get("amount_refunded"), before.get("amount_refunded", 0)
    if type(amount) is not int or type(known) is not int:
        return None
    return amount - known if 0 < amount - known <= _MOST_CENTS else None


def session_event(session_id: str, checkout_id: str, amount_cents: int, now_seconds: float) -> bytes:
    """Return the body of the event that Stripe sends for a paid Checkout Session. Its id is always the same."""
    session = {
        "id": session_id,
        "object": "checkout.session",
        "client_reference_id": checkout_id,
        "payment_status": "paid",
        "amount_total": amount_cents,
        "payment_intent": f"pi_{session_id}",
        "currency": "usd",
    }
    event = {
        "id": f"evt_{session_id}",
        "object": "event",
        "type": "checkout.session.completed",
        "created": int(now_seconds),
        "data": {"object": session},
    }
    return orjson.dumps(event)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value[:_ID_LENGTH] if isinstance(value, str) and value else None


@dataclass(frozen=True)
class Stripe:
    """Stripe's API at `api` (`https://api.stripe.com`). Its methods raise ApiError `upstream_*`."""

    client: Outbound
    api: str
    secret_key: str = field(repr=False)

    async def check(self) -> int:
        """Return the status of a request that changes nothing: 401 if the key is wrong."""
        return (await self._send("?limit=1"))[0]

    async def is_paid(self, session_id: str) -> bool:
        status, session = await self._send(f"/{quote(session_id, safe='')}")
        if status != 200:
            raise failed("upstream_error", f" refused with status {status}")
        return session.get("payment_status") == "paid"

    async def create_session(
        self, checkout_id: str, amount_cents: int, success_url: str, cancel_url: str
    ) -> tuple[str, str]:
        """Make a payment page for a checkout; return the session's id and the page's address."""
        form = {
            "mode": "payment",
            "client_reference_id": checkout_id,
            "metadata[checkout_id]": checkout_id,
            "payment_intent_data[metadata][checkout_id]": checkout_id,
            "line_items[0][quantity]": "1",
            "line_items[0][price_data][currency]": "usd",
            "line_items[0][price_data][unit_amount]": str(amount_cents),
            "line_items[0][price_data][product_data][name]": "Prepaid credit",
            "success_url": success_url,
            "cancel_url": cancel_url,
        }
        # Once more after a transient failure: with the same key, Stripe makes the session once.
        try:
            status, answer = await self._send("", form)
        except ApiError as error:
            if error.code == "upstream_invalid_response":
                raise
            status, answer = 0, {}
        if status == 0 or status in _TRANSIENT:
            await asyncio.sleep(_PAUSE_SECONDS)
            status, answer = await self._send("", form)
        if status != 200:
            raise failed("upstream_error", f" refused with status {status}")
        session_id, url = answer.get("id"), answer.get("url")
        if not isinstance(session_id, str) or not 0 < len(session_id) <= _ID_LENGTH or not self._is_page(url):
            raise failed("upstream_invalid_response", "'s answer is not valid")
        return session_id, str(url)

    def _is_page(self, url: Any) -> bool:
        if not isinstance(url, str) or not _URL.fullmatch(url):
            return False
        return url.startswith("https:") or urlsplit(url)[:2] == urlsplit(self.api)[:2]

    async def _send(self, path: str, form: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
        """Return the status of an answer and its JSON object, empty if it has none."""
        from svc.outbound.json_requests import ask_json  # late: a service without Stripe never needs httpx

        headers = {"authorization": f"Bearer {self.secret_key}"}
        if form:
            headers["idempotency-key"] = form["client_reference_id"]
        url = f"{self.api}/v1/checkout/sessions{path}"
        try:
            status, answer = await ask_json(self.client, url, headers, form, _ATTEMPT_SECONDS)
        except (ConnectTimeout, ReadTimeout):
            raise failed("upstream_timeout", " did not answer in time", "; try again") from None
        except TooLarge:
            raise failed("upstream_invalid_response", "'s answer is too large") from None
        except OutboundError:
            raise failed("upstream_unreachable", " cannot be reached", "; try again") from None
        return status, _object(answer)


def failed(code: str, why: str, advice: str = "") -> ApiError:
    return ApiError(code, f"The payment processor{why}. Nothing was charged{advice}.")
