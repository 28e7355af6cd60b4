"""Events of the processor: every signed body gives an event with valid fields."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.billing.stripe import read_event, session_event
from svc.errors import ApiError
from tests.support.cases import each

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=20)
NAMES = st.sampled_from(
    ["id", "object", "amount", "amount_refunded", "payment_intent", "currency", "metadata", "checkout_id"]
)
OBJECTS = st.dictionaries(
    NAMES, SCALARS | st.sampled_from(["charge", "refund", "dispute"]) | st.dictionaries(NAMES, SCALARS)
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={"id": SCALARS, "type": SCALARS, "data": SCALARS | st.fixed_dictionaries({"object": SCALARS | OBJECTS})},
)


@given(EVENTS)
def test_any_object_is_an_event_with_valid_fields(value: dict[str, Any]) -> None:
    event = read_event(orjson.dumps(value))
    assert 0 < len(event.id) <= 255 and 0 < len(event.type) <= 255
    for text in (event.session_id, event.checkout_id, event.payment_intent, event.currency):
        assert text is None or 0 < len(text) <= 255
    assert event.returned_cents is None or (type(event.returned_cents) is int and 0 < event.returned_cents <= 10**12)


@each("body", [b"", b"[]", b"5", b"null", b"{", b"\xff"])
def test_event_must_be_an_object(body: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        read_event(body)
    assert refused.value.code == "invalid_json"


def test_sandbox_event_is_a_payment_with_a_stable_id() -> None:
    event = read_event(session_event("sandbox_1", "chk_1", 2500, 1.0))
    assert event.pays and (event.session_id, event.checkout_id, event.amount_cents, event.currency) == (
        "sandbox_1",
        "chk_1",
        2500,
        "usd",
    )
    assert (
        event.payment_intent == "pi_sandbox_1"
        and event.id == read_event(session_event("sandbox_1", "chk_1", 2500, 2.0)).id
    )
