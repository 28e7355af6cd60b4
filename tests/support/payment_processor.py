"""A stand-in for Stripe's API on loopback: it makes Checkout Sessions as Stripe does, fails as a test sets, and signs
events.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import orjson

from svc.billing.stripe import sign

SECRET = "whsec_of_the_tests"
API_KEY = "sk_test_of_the_tests"
# What to do with a request instead of answering it properly.
HANG, DROP = "hang", "drop"


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

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {
                    name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)
                }
                body = (await reader.readexactly(int(headers["content-length"]))).decode()
                form = {name: values[0] for name, values in parse_qs(body, strict_parsing=True).items()}
                assert head[0] == "POST /v1/checkout/sessions HTTP/1.1"
                self.requests.append((headers, form))
                fault = self.faults.pop(0) if self.faults else None
                if fault is None:
                    session = self._session(headers["idempotency-key"], form)
                    fault = self.late_faults.pop(0) if self.late_faults else None
                if fault == DROP:
                    break
                if fault == HANG:
                    await asyncio.sleep(60)
                status = fault if isinstance(fault, int) else 200
                answer = (
                    fault if isinstance(fault, bytes) else orjson.dumps({"error": {"type": "x"}} if fault else session)
                )
                writer.write(b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%b" % (status, len(answer), answer))
        writer.close()

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
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await processor.serve(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    processor.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield processor
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def event_body(
    session: dict[str, Any], event_id: str = "evt_1", event_type: str = "checkout.session.completed", **changes: Any
) -> bytes:
    """The body of an event about `session`, paid unless `changes` say otherwise."""
    data = {"object": {**session, "payment_status": "paid", **changes}}
    return orjson.dumps({"id": event_id, "object": "event", "type": event_type, "data": data})


def signed(body: bytes, now_seconds: float, secret: str = SECRET) -> dict[str, str]:
    return {"stripe-signature": sign(secret.encode(), body, int(now_seconds))}
