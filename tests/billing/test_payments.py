"""The processor's webhook and Checkout Sessions: signatures, one credit, and mismatching events."""

import asyncio
import contextlib
import dataclasses
import hmac
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
import stripe
from hypothesis import given
from hypothesis import strategies as st

from svc.billing import invariants, payments, wallet
from svc.billing.stripe import Stripe, check_signature, read_event, sign
from svc.config import Config
from svc.errors import ApiError
from svc.ids import new_id
from svc.outbound.client import Outbound
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.cases import each
from tests.support.full_disk import full_disk
from tests.support.loop_clock import hastened
from tests.support.loopback_api import DROP, HANG
from tests.support.payment_processor import (
    API_KEY,
    SECRET,
    Processor,
    event_body,
    processor_on_loopback,
    signed,
)
from tests.support.waiting import until

NOW = 1_790_000_000
BODY = b'{"id": "evt_1", "type": "x"}'


@pytest.fixture
async def processor() -> AsyncIterator[Processor]:
    async with processor_on_loopback() as processor:
        yield processor


@pytest.fixture
def config(config: Config, processor: Processor) -> Config:
    return dataclasses.replace(
        config, payments="stripe", stripe_secret_key=API_KEY, stripe_webhook_secret=SECRET, stripe_api=processor.url
    )


@dataclasses.dataclass
class Funding:
    """An account with an open checkout of 25 dollars whose session the processor has made."""

    service: Service
    headers: dict[str, str]
    session: dict[str, Any]

    async def deliver(self, body: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
        headers = signed(body, self.service.clocks.now) if headers is None else headers
        return await self.service.client.post("/billing/webhook", content=body, headers=headers)

    async def balance_micros(self) -> int:
        account = (await self.service.client.get("/billing/account", headers=self.headers)).json()
        assert await self.service.state["db"].read(invariants.broken) == []
        balance: int = account["wallet_balance_micros"]
        return balance

    async def tier(self) -> str:
        tier: str = (await self.service.client.get("/user/me", headers=self.headers)).json()["tier"]
        return tier

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = await self.service.state["db"].read(
            lambda conn: [tuple(r) for r in conn.execute(query)]
        )
        return rows


async def open_checkout(service: Service, processor: Processor, dollars: str = "25.00") -> Funding:
    session = await service.sign_up()
    answer = await service.client.post(
        "/checkout", data={"amount": dollars}, headers={"origin": service.config.base_url}
    )
    assert answer.status_code == 303, answer.text
    newest = list(processor.sessions.values())[-1]
    assert answer.headers["location"] == newest["url"]
    return Funding(service, bearer(session["access_token"]), newest)


@pytest.fixture
async def funding(service: Service, processor: Processor) -> Funding:
    return await open_checkout(service, processor)


CREDITED, NOT_CREDITED = {"received": True, "credited": True}, {"received": True, "credited": False}


# --- signatures


def digest(body: bytes, at: int | str, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), f"{at}.".encode() + body, "sha256").hexdigest()


GOOD = digest(BODY, NOW)
HEADERS: list[tuple[str, bool]] = [
    (f"t={NOW},v1={GOOD}", True),
    (f"t={NOW},v1={'0' * 64},v1={GOOD}", True),
    (f"t={NOW},v1={GOOD},v1={'0' * 64}", True),
    (f"v1={GOOD},t={NOW}", True),
    (f"t={NOW},v0={'0' * 64},v1={GOOD},x=1", True),
    (f"t={NOW - 300},v1={digest(BODY, NOW - 300)}", True),
    (f"t={NOW + 300},v1={digest(BODY, NOW + 300)}", True),
    (f"t={NOW - 301},v1={digest(BODY, NOW - 301)}", False),
    (f"t={NOW + 301},v1={digest(BODY, NOW + 301)}", False),
    ("", False),
    ("nonsense", False),
    (f"v1={GOOD}", False),
    (f"t={NOW}", False),
    (f"t={NOW},v1=", False),
    (f"t={NOW},v0={GOOD}", False),
    (f"t={NOW},v1={GOOD.upper()}", False),
    (f"t={NOW},v1={GOOD[:-1]}", False),
    (f"t={NOW},v1={GOOD}0", False),
    (f"t={NOW},v1={digest(BODY, NOW, 'whsec_other')}", False),
    (f"t={NOW},v1={digest(BODY + b' ', NOW)}", False),
    (f"t={NOW + 1},v1={GOOD}", False),
    (f"t={NOW},t={NOW},v1={GOOD}", False),
    (f"t=0{NOW},v1={digest(BODY, f'0{NOW}')}", False),
    (f"t={NOW}.0,v1={digest(BODY, f'{NOW}.0')}", False),
    (f"t=-{NOW},v1={digest(BODY, -NOW)}", False),
    (f"t={'9' * 400},v1={GOOD}", False),
    (f"t={NOW},v1={GOOD}" + ",v1=x" * 2000, False),
    ("t=\xe9,v1=\xe9", False),
]


@each(("header", "genuine"), HEADERS)
def test_signature_is_verified(header: str, genuine: bool) -> None:
    if genuine:
        check_signature(SECRET.encode(), [header], BODY, NOW)
        assert stripe.WebhookSignature.verify_header(BODY, header, SECRET, tolerance=None)
        return
    with pytest.raises(ApiError) as refusal:
        check_signature(SECRET.encode(), [header], BODY, NOW)
    assert refusal.value.status == 400


def test_signature_header_and_secret_are_required() -> None:
    for secret, headers in ((SECRET.encode(), []), (SECRET.encode(), [HEADERS[0][0]] * 2), (None, [HEADERS[0][0]])):
        with pytest.raises(ApiError):
            check_signature(secret, headers, BODY, NOW)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 10**11), st.text("abc_", min_size=1))
def test_stripes_library_and_ours_accept_each_others_signatures(text: str, at: int, secret: str) -> None:
    body = text.encode()
    assert stripe.WebhookSignature.verify_header(body, sign(secret.encode(), body, at), secret, tolerance=None)
    check_signature(secret.encode(), [f"t={at},v1={digest(body, at, secret)}"], body, at)


@given(st.lists(st.sampled_from(["t=", "v1=", "v0=", f"{NOW}", GOOD, ",", "=", " ", "x"]), max_size=8).map("".join))
def test_stripe_library_accepts_all_accepted_signatures(header: str) -> None:
    try:
        check_signature(SECRET.encode(), [header], BODY, NOW)
    except ApiError:
        return
    assert stripe.WebhookSignature.verify_header(BODY, header, SECRET, tolerance=None)


async def test_webhook_verifies_the_raw_bytes(funding: Funding) -> None:
    now = funding.service.clocks.now
    body = event_body(funding.session)
    refused = [
        {},
        signed(body, now, "whsec_other"),
        signed(body, now - 301),
        signed(body, now + 302),
        signed(body + b" ", now),
        {**signed(body, now, "whsec_other"), "authorization": funding.headers["authorization"]},
    ]
    for headers in refused:
        answer = await funding.deliver(body, headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_value")
    spaced = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)
    assert (await funding.deliver(spaced, signed(body, now))).status_code == 400
    assert (await funding.balance_micros(), await funding.rows("SELECT * FROM payment_events")) == (0, [])
    assert (await funding.deliver(spaced)).json() == CREDITED


async def test_body_over_1_mib_is_413_and_other_than_an_object_400(funding: Funding) -> None:
    assert (await funding.deliver(b"x" * (1024 * 1024 + 1))).status_code == 413
    for body in (b"", b"nonsense", b"[]", b'"x"', b"{", b"\xff", b'{"a": NaN}', b"[" * 100_000):
        assert (await funding.deliver(body)).status_code == 400
    assert await funding.rows("SELECT * FROM payment_events") == []


# --- one credit


async def test_paid_session_stores_event_credit_and_tier_in_one_transaction(funding: Funding) -> None:
    assert (await funding.balance_micros(), await funding.tier()) == (0, "free")
    answer = await funding.deliver(event_body(funding.session))
    assert (answer.status_code, answer.json()) == (200, CREDITED)
    assert (await funding.balance_micros(), await funding.tier()) == (25_000_000, "pro")
    checkout_id = funding.session["client_reference_id"]
    assert await funding.rows("SELECT id, state, session_id, paid_at FROM checkouts") == [
        (checkout_id, "paid", funding.session["id"], funding.service.clocks.now)
    ]
    assert await funding.rows("SELECT kind, amount_micros, reference FROM ledger") == [
        ("credit", 25_000_000, checkout_id)
    ]


async def test_a_thousand_repeats_50_wide_and_over_restarts_credit_once(
    config: Config, clocks: Clocks, processor: Processor
) -> None:
    gate, answers = asyncio.Semaphore(50), []

    async def deliver(funding: Funding, body: bytes) -> None:
        async with gate:
            answers.append(await funding.deliver(body))

    async with serving(config, clocks) as service:
        funding = await open_checkout(service, processor)
        same = event_body(funding.session)
        await asyncio.gather(*(deliver(funding, same) for _ in range(500)))
    for restart in range(2):
        async with serving(config, clocks) as service:
            funding.service = service
            others = [event_body(funding.session, f"evt_{restart}_{number}") for number in range(50)]
            await asyncio.gather(*(deliver(funding, body) for body in [same] * 200 + others))
            assert await funding.balance_micros() == 25_000_000
    assert {answer.status_code for answer in answers} == {200} and len(answers) == 1_000
    assert [answer.json()["credited"] for answer in answers].count(True) == 1


async def test_concurrent_events_of_a_session_credit_once(funding: Funding) -> None:
    kinds = ("checkout.session.completed", "checkout.session.async_payment_succeeded")
    bodies = [event_body(funding.session, f"evt_{number}", kinds[number % 2]) for number in range(40)]
    answers = await asyncio.gather(*(funding.deliver(body) for body in bodies))
    assert [answer.json()["credited"] for answer in answers].count(True) == 1
    assert await funding.balance_micros() == 25_000_000
    assert await funding.rows("SELECT credited, count(*) FROM payment_events GROUP BY 1") == [(0, 39), (1, 1)]


async def test_delayed_payment_credits_on_success(funding: Funding) -> None:
    completed = event_body(funding.session, "evt_1", payment_status="unpaid")
    succeeded = event_body(funding.session, "evt_2", "checkout.session.async_payment_succeeded")
    assert (await funding.deliver(completed)).json() == NOT_CREDITED
    assert (await funding.balance_micros(), await funding.tier()) == (0, "free")
    assert (await funding.deliver(succeeded)).json() == CREDITED
    assert await funding.balance_micros() == 25_000_000


async def test_order_of_events_does_not_matter(funding: Funding) -> None:
    order = [
        ("checkout.session.async_payment_succeeded", {}, CREDITED),
        ("checkout.session.completed", {"payment_status": "unpaid"}, NOT_CREDITED),
        ("checkout.session.async_payment_failed", {"payment_status": "unpaid"}, NOT_CREDITED),
        ("checkout.session.expired", {"payment_status": "unpaid"}, NOT_CREDITED),
        ("checkout.session.completed", {}, NOT_CREDITED),
    ]
    for number, (kind, changes, expected) in enumerate(order):
        assert (await funding.deliver(event_body(funding.session, f"evt_{number}", kind, **changes))).json() == expected
    assert await funding.balance_micros() == 25_000_000
    assert await funding.rows("SELECT state FROM checkouts") == [("paid",)]


@pytest.mark.parametrize(("kind", "state"), [("expired", "expired"), ("async_payment_failed", "failed")])
async def test_late_payment_of_an_expired_checkout_is_credited(funding: Funding, kind: str, state: str) -> None:
    ended = event_body(funding.session, "evt_1", f"checkout.session.{kind}", payment_status="unpaid")
    assert (await funding.deliver(ended)).json() == NOT_CREDITED
    assert await funding.rows("SELECT state FROM checkouts") == [(state,)]
    assert (await funding.deliver(event_body(funding.session, "evt_2"))).json() == CREDITED
    assert await funding.balance_micros() == 25_000_000


ODD: list[tuple[dict[str, Any], str]] = [
    ({"payment_status": "unpaid"}, "unpaid"),
    ({"payment_status": "no_payment_required"}, "unpaid"),
    ({"payment_status": True}, "unpaid"),
    ({"payment_status": None}, "unpaid"),
    ({"amount_total": 2499}, "other amount"),
    ({"amount_total": 2501}, "other amount"),
    ({"amount_total": 25_000_000}, "other amount"),
    ({"amount_total": -2500}, "other amount"),
    ({"amount_total": 2500.0}, "other amount"),
    ({"amount_total": "2500"}, "other amount"),
    ({"amount_total": True}, "other amount"),
    ({"amount_total": None}, "other amount"),
    ({"amount_total": 2**63}, "other amount"),
    ({"currency": "eur"}, "other currency"),
    ({"currency": "USD "}, "other currency"),
    ({"currency": None}, "other currency"),
    ({"id": "cs_other"}, "unknown checkout"),
    ({"id": None}, "unknown checkout"),
    ({"id": "cs_other", "client_reference_id": None, "metadata": None}, "unknown checkout"),
    ({"client_reference_id": "chk_other"}, "other checkout"),
    ({"client_reference_id": None, "metadata": {"checkout_id": "chk_other"}}, "other checkout"),
]


@pytest.mark.parametrize(("changes", "reason"), ODD)
async def test_mismatching_event_is_stored_and_credits_nothing(
    funding: Funding, changes: dict[str, Any], reason: str
) -> None:
    answer = await funding.deliver(event_body(funding.session, **changes))
    assert (answer.status_code, answer.json()) == (200, NOT_CREDITED)
    assert (await funding.balance_micros(), await funding.tier()) == (0, "free")
    assert await funding.rows("SELECT id, credited, reason FROM payment_events") == [("evt_1", 0, reason)]
    assert (await funding.deliver(event_body(funding.session, "evt_2"))).json() == CREDITED


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"id": "evt_1"},
        {"id": 5, "type": None, "data": []},
        {"id": "evt_1", "type": "charge.refunded", "data": {"object": {"id": "ch_1", "amount": 2500}}},
        {"id": "evt_1", "type": "charge.dispute.created", "data": {"object": None}},
        {"id": "e" * 10_000, "type": "checkout.session.completed", "data": {"object": {"id": ["cs"], "metadata": "x"}}},
        {"id": "evt\0\u2028", "type": "checkout.session.completed\0", "data": "x"},
        {"id": "evt_1", "type": "checkout.session.completed", "data": {"object": {"payment_status": "paid"}}},
    ],
)
async def test_other_signed_events_are_stored_once(funding: Funding, event: dict[str, Any]) -> None:
    for _ in range(2):
        answer = await funding.deliver(orjson.dumps(event))
        assert (answer.status_code, answer.json()) == (200, NOT_CREDITED)
    assert await funding.rows("SELECT count(*), sum(credited) FROM payment_events") == [(1, 0)]


async def test_event_credits_only_its_own_checkout(service: Service, processor: Processor) -> None:
    ada, bob = await open_checkout(service, processor), await open_checkout(service, processor, "30")
    crossed = event_body(ada.session, "evt_1", client_reference_id=bob.session["client_reference_id"])
    assert (await ada.deliver(crossed)).json() == NOT_CREDITED
    assert (await ada.balance_micros(), await bob.balance_micros()) == (0, 0)
    assert (await bob.deliver(event_body(bob.session, "evt_2"))).json() == CREDITED
    assert (await ada.balance_micros(), await bob.balance_micros()) == (0, 30_000_000)


async def test_a_payment_for_a_deleted_account_is_kept_for_the_operator(funding: Funding) -> None:
    user_id = (await funding.service.client.get("/user/me", headers=funding.headers)).json()["id"]
    await funding.service.state["db"].write(lambda tx: tx.execute("DELETE FROM accounts WHERE id = ?", (user_id,)))
    assert (await funding.deliver(event_body(funding.session))).json() == NOT_CREDITED
    assert await funding.rows("SELECT reason FROM payment_events") == [("account deleted",)]


async def test_full_wallet_is_not_credited(funding: Funding) -> None:
    user_id = (await funding.service.client.get("/user/me", headers=funding.headers)).json()["id"]
    full = wallet.MOST_MICROS - 24_999_999
    await funding.service.state["db"].write(wallet.book, user_id, full, description="", now_seconds=NOW)
    assert (await funding.deliver(event_body(funding.session))).json() == NOT_CREDITED
    assert await funding.balance_micros() == full
    assert await funding.rows("SELECT reason FROM payment_events") == [("wallet full",)]


async def test_event_may_arrive_before_the_session_is_stored(service: Service) -> None:
    session = await service.sign_up()
    db, user_id = service.state["db"], session["user"]["id"]
    checkout_id = new_id("chk", service.clocks.now)
    await db.write(payments.add_checkout, user_id, checkout_id, 25_000_000, service.clocks.now)
    paid = {"id": "cs_1", "client_reference_id": checkout_id, "amount_total": 2500, "currency": "usd"}
    funding = Funding(service, bearer(session["access_token"]), paid)
    assert (await funding.deliver(event_body(paid))).json() == CREDITED
    await db.write(payments.set_session, user_id, checkout_id, "cs_1")
    with pytest.raises(ApiError):
        await db.write(payments.set_session, user_id, checkout_id, "cs_2")
    assert await funding.balance_micros() == 25_000_000


# --- storage that does not take it


async def test_storage_fault_is_503_and_the_retry_credits_once(funding: Funding) -> None:
    body = event_body(funding.session, "evt_paid_" + "x" * 240)
    with full_disk():
        for _ in range(3):
            answer = await funding.deliver(body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_unavailable")
            assert answer.headers["retry-after"] == "1"
        assert (await funding.balance_micros(), await funding.tier()) == (0, "free")
    assert [(await funding.deliver(body)).json() for _ in range(2)] == [CREDITED, NOT_CREDITED]
    assert (await funding.balance_micros(), await funding.tier()) == (25_000_000, "pro")


# --- Checkout Sessions


async def test_session_is_requested_after_the_checkout_is_stored(funding: Funding, processor: Processor) -> None:
    headers, form = processor.requests[0]
    [(checkout_id, amount, session_id)] = await funding.rows("SELECT id, amount_micros, session_id FROM checkouts")
    assert headers["authorization"] == f"Bearer {API_KEY}" and headers["idempotency-key"] == checkout_id
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    base_url = funding.service.config.base_url
    assert form == {
        "mode": "payment",
        "client_reference_id": checkout_id,
        "metadata[checkout_id]": checkout_id,
        "payment_intent_data[metadata][checkout_id]": checkout_id,
        "line_items[0][quantity]": "1",
        "line_items[0][price_data][currency]": "usd",
        "line_items[0][price_data][unit_amount]": "2500",
        "line_items[0][price_data][product_data][name]": "Prepaid credit",
        "success_url": f"{base_url}/checkout/return?checkout={checkout_id}",
        "cancel_url": f"{base_url}/checkout",
    }
    assert (amount, session_id) == (25_000_000, funding.session["id"])


@pytest.fixture
async def api(processor: Processor) -> AsyncIterator[Stripe]:
    async with contextlib.aclosing(Outbound()) as client:
        yield Stripe(client, processor.url, API_KEY)


async def ask(api: Stripe) -> tuple[str, str]:
    return await hastened(api.create_session("chk_1", 2500, "https://a.example/return", "https://a.example/"))


@pytest.mark.parametrize("fault", [DROP, HANG, 409, 429, 500, 503])
@pytest.mark.parametrize("late", [False, True])
async def test_retry_with_the_same_key_makes_one_session(
    api: Stripe, processor: Processor, fault: Any, late: bool
) -> None:
    (processor.late_faults if late else processor.faults).append(fault)
    _, url = await ask(api)
    assert [headers["idempotency-key"] for headers, _ in processor.requests] == ["chk_1"] * 2
    assert list(processor.sessions) == ["chk_1"] and processor.sessions["chk_1"]["url"] == url


@each(
    ("faults", "status", "code"),
    [
        ([DROP, DROP], 502, "upstream_unreachable"),
        ([HANG, HANG], 504, "upstream_timeout"),
        ([500, 503], 502, "upstream_error"),
        ([400], 502, "upstream_error"),
        ([401], 502, "upstream_error"),
        ([302], 502, "upstream_error"),
        ([b"<html>"], 502, "upstream_invalid_response"),
        ([b"[]"], 502, "upstream_invalid_response"),
        ([b"{}"], 502, "upstream_invalid_response"),
        ([b"x" * 300_000], 502, "upstream_invalid_response"),
        ([orjson.dumps({"id": 5, "url": "https://checkout.stripe.com/x"})], 502, "upstream_invalid_response"),
        ([orjson.dumps({"id": "cs", "url": "javascript:alert(1)"})], 502, "upstream_invalid_response"),
        ([orjson.dumps({"id": "cs", "url": "http://elsewhere.example/"})], 502, "upstream_invalid_response"),
        ([orjson.dumps({"id": "cs", "url": "https://x/\r\nset-cookie: a=b"})], 502, "upstream_invalid_response"),
        ([orjson.dumps({"id": "cs", "url": "https://[x/"})], 502, "upstream_invalid_response"),
    ],
)
async def test_failing_processor_gives_one_clear_error(
    api: Stripe, processor: Processor, faults: list[Any], status: int, code: str
) -> None:
    processor.faults += faults
    with pytest.raises(ApiError) as refusal:
        await ask(api)
    assert (refusal.value.status, refusal.value.code) == (status, code)
    assert API_KEY not in str(refusal.value) and API_KEY not in repr(api) and processor.faults == []


async def test_closed_processor_is_unreachable() -> None:
    async with contextlib.aclosing(Outbound()) as client:
        with pytest.raises(ApiError) as refusal:
            await ask(Stripe(client, "http://127.0.0.1:1", API_KEY))
    assert refusal.value.code == "upstream_unreachable"


async def test_no_secret_of_the_processor_reaches_log_or_database(funding: Funding, config: Config) -> None:
    await funding.deliver(event_body(funding.session))
    await until(lambda: b"/webhook" in (config.data_dir.parent / "log").read_bytes())
    data = b"".join(path.read_bytes() for path in config.data_dir.parent.rglob("*") if path.is_file())
    assert SECRET.encode() not in data and API_KEY.encode() not in data
    assert funding.session["id"].encode() in data


def test_event_without_an_id_gets_its_digest() -> None:
    first, again, other = read_event(b'{"a":1}'), read_event(b'{"a":1}'), read_event(b'{"a":2}')
    assert first == again and first.id != other.id


# --- money that goes back


def returning(type: str, **fields: Any) -> bytes:
    event = {"id": f"evt_{type}", "object": "event", "type": type, "data": {"object": {"currency": "usd", **fields}}}
    return orjson.dumps(event)


@pytest.mark.parametrize(
    ("type", "fields", "micros", "command"),
    [
        ("charge.refunded", {"object": "charge", "id": "ch_1", "amount_refunded": 750}, 7_500_000, "7.50"),
        ("charge.dispute.created", {"object": "dispute", "id": "dp_1", "amount": 2500}, 25_000_000, "25.00"),
        ("refund.created", {"object": "refund", "id": "re_1", "amount": 750}, 7_500_000, None),
        (
            "charge.dispute.closed",
            {"object": "dispute", "id": "dp_1", "amount": 2500, "status": "won"},
            25_000_000,
            None,
        ),
        (
            "charge.refunded",
            {"object": "charge", "id": "ch_1", "amount_refunded": 750, "currency": "eur"},
            7_500_000,
            None,
        ),
    ],
)
async def test_refund_is_stored_and_logged_with_the_next_command(
    funding: Funding, tmp_path: Any, type: str, fields: dict[str, Any], micros: int, command: str | None
) -> None:
    session = {**funding.session, "payment_intent": "pi_1"}
    assert (await funding.deliver(event_body(session))).json() == CREDITED
    assert (await funding.deliver(returning(type, payment_intent="pi_1", **fields))).json() == NOT_CREDITED
    assert (await funding.deliver(returning(type, payment_intent="pi_1", **fields))).json() == NOT_CREDITED
    checkout = funding.session["client_reference_id"]
    query = "SELECT checkout_id, amount_micros, credited FROM payment_events WHERE NOT credited"
    assert await funding.rows(query) == [(checkout, micros, 0)]
    assert await funding.balance_micros() == 25_000_000
    await until(lambda: b'"warning"' in (tmp_path / "log").read_bytes())
    lines = [orjson.loads(line) for line in (tmp_path / "log").read_bytes().splitlines()]
    (warning,) = [line for line in lines if line["event"] == "payments" and line["level"] == "warning"]
    assert (warning["checkout"], warning["amount_micros"], warning["event_type"]) == (checkout, micros, type)
    user_id = (await funding.service.client.get("/user/me", headers=funding.headers)).json()["id"]
    assert warning.get("next") == (command and f"svc debit {user_id} {command} --refund-of {checkout}")


async def test_unbooked_events_are_counted_once_by_kind(funding: Funding) -> None:
    def counted() -> dict[tuple[str, str], int]:
        lines = re.findall(
            r'svc_unbooked_payment_events_total\{kind="(\w+)",known="(\w+)"\} (\d+)',
            funding.service.state["metrics"].text([]),
        )
        return {(kind, known): int(number) for kind, known, number in lines}

    zeros = {(kind, known): 0 for kind in ("payment", "refund", "dispute") for known in ("true", "false")}
    await funding.deliver(event_body({**funding.session, "payment_intent": "pi_1"}))
    await funding.deliver(event_body({**funding.session, "payment_intent": "pi_1"}, "evt_again"))
    await funding.deliver(event_body(funding.session, "evt_unpaid", payment_status="unpaid"))
    await funding.deliver(returning("refund.created", object="refund", amount=750, payment_intent="pi_1"))
    assert counted() == zeros
    await funding.deliver(
        event_body({**funding.session, "id": "cs_lost", "client_reference_id": "chk_lost", "metadata": {}}, "evt_x")
    )
    for payment in ("pi_1", "pi_lost"):
        for _ in range(2):
            dispute = {"id": f"evt_{payment}", "type": "charge.dispute.created"}
            data = {"object": {"object": "dispute", "amount": 100, "currency": "usd", "payment_intent": payment}}
            await funding.deliver(orjson.dumps({**dispute, "data": data}))
    await funding.deliver(returning("charge.refunded", object="charge", amount_refunded=750, payment_intent="pi_1"))
    ones = [("payment", "false"), ("dispute", "true"), ("dispute", "false"), ("refund", "true")]
    assert counted() == {**zeros, **dict.fromkeys(ones, 1)}


@pytest.mark.parametrize("amount", [2**63 - 1, -5, True])
async def test_payment_without_a_valid_amount_is_stored_and_credits_nothing(funding: Funding, amount: Any) -> None:
    assert (await funding.deliver(event_body(funding.session, amount_total=amount))).json() == NOT_CREDITED
    assert await funding.rows("SELECT reason, amount_micros FROM payment_events") == [("other amount", None)]


async def test_a_second_refund_of_a_charge_counts_alone(funding: Funding) -> None:
    await funding.deliver(event_body({**funding.session, "payment_intent": "pi_1"}))
    charge = {"object": "charge", "id": "ch_1", "payment_intent": "pi_1", "currency": "usd", "amount_refunded": 1200}
    event = {
        "id": "evt_r",
        "type": "charge.refunded",
        "data": {"object": charge, "previous_attributes": {"amount_refunded": 700}},
    }
    await funding.deliver(orjson.dumps(event))
    query = "SELECT amount_micros FROM payment_events WHERE id = 'evt_r'"
    assert await funding.rows(query) == [(5_000_000,)]


@each("amount", [None, True, -1, 0, 1.5, "750", 2**63])
@each("kind", ["charge", "refund", "dispute"])
async def test_refund_without_a_valid_amount_is_stored_without_one(funding: Funding, kind: str, amount: Any) -> None:
    fields = {"object": kind, "amount": amount, "amount_refunded": amount, "payment_intent": {"id": "pi_1"}}
    assert (await funding.deliver(returning("charge.refunded", **fields))).status_code == 200
    assert await funding.rows("SELECT amount_micros FROM payment_events") == [(None,)]


async def test_payment_of_an_abandoned_checkout_is_stored_and_not_credited(
    service: Service, processor: Processor
) -> None:
    funding = await open_checkout(service, processor)
    expired = orjson.dumps(
        {"id": "evt_e", "type": "checkout.session.expired", "data": {"object": {"id": funding.session["id"]}}}
    )
    await funding.deliver(expired)
    service.clocks.advance(31 * 24 * 3600)
    await open_checkout(service, processor)
    assert await funding.rows("SELECT count(*) FROM checkouts") == [(1,)]
    assert await funding.rows("SELECT count(*) FROM payment_events") == [(0,)]
    assert (await funding.deliver(event_body(funding.session))).json() == NOT_CREDITED
    assert await funding.rows("SELECT reason FROM payment_events") == [("unknown checkout",)]
