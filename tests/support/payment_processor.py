"""A stand-in for Stripe's API on loopback: it makes Checkout Sessions as Stripe does, fails as a test sets, and signs
events.
"""

import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from svc.billing.stripe import sign
from tests.support.loopback_api import Answer, Received, loopback_api

SECRET = "whsec_of_the_tests"
API_KEY = "sk_test_of_the_tests"


@dataclass
class Processor:
    """`requests` are the received ones, and `sessions` those made, by idempotency key. `faults` are used up one by one:
    a status, HANG, DROP, or the bytes of a body to send with 200. A fault in `late_faults` strikes after the session
    was made.
    """

    url: str = ""
    requests: list[tuple[dict[str, str], dict[str, str]]] = field(default_factory=list)
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: list[Any] = field(default_factory=list)
    late_faults: list[Any] = field(default_factory=list)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def respond(self, request: Received) -> Answer:
        assert (request.method, request.path) == ("POST", "/v1/checkout/sessions")
        self.requests.append((request.headers, request.form))
        fault = self.faults.pop(0) if self.faults else None
        if fault is None:
            session = self._session(request.headers["idempotency-key"], request.form)
            fault = self.late_faults.pop(0) if self.late_faults else None
            if fault is None:
                return 200, session
        if isinstance(fault, str):
            return fault
        return (200, fault) if isinstance(fault, bytes) else (fault, {"error": {"type": "x"}})

    def _session(self, key: str, form: dict[str, str]) -> dict[str, Any]:
        if key not in self.sessions:
            number = next(self._numbers)
            self.sessions[key] = {
                "id": f"cs_test_{number}",
                "object": "checkout.session",
                "url": f"https://checkout.stripe.com/c/pay/cs_test_{number}#fid%20x|",
                "client_reference_id": form["client_reference_id"],
                "metadata": {"checkout_id": form["metadata[checkout_id]"]},
                "amount_total": int(form["line_items[0][price_data][unit_amount]"])
                * int(form["line_items[0][quantity]"]),
                "currency": form["line_items[0][price_data][currency]"],
                "payment_status": "unpaid",
            }
        return self.sessions[key]


@contextlib.asynccontextmanager
async def processor_on_loopback() -> AsyncIterator[Processor]:
    processor = Processor()
    async with loopback_api(processor.respond) as processor.url:
        yield processor


def event_body(
    session: dict[str, Any], event_id: str = "evt_1", event_type: str = "checkout.session.completed", **changes: Any
) -> bytes:
    """The body of an event about `session`, paid unless `changes` say otherwise."""
    data = {"object": {**session, "payment_status": "paid", **changes}}
    return orjson.dumps({"id": event_id, "object": "event", "type": event_type, "data": data})


def signed(body: bytes, now_seconds: float, secret: str = SECRET) -> dict[str, str]:
    return {"stripe-signature": sign(secret.encode(), body, int(now_seconds))}
