"""A day of one process, under a clock that is moved hour by hour: timed work continues without a restart."""

import asyncio
import ssl
import time
from collections import Counter
from pathlib import Path

import httpx
from cryptography import x509

from tests.support.money import assert_exact
from tests.support.people import PASSWORD, command
from tests.support.server import ROOT, RunningServer, running_server

PROGRAM = ROOT / "tests" / "support" / "moved_clock_app.py"
HOUR, DAY = 3600, 86400
HOURS = 25
RENEWAL, MIDNIGHT = 11, 18  # hours after it begins
COMPLETIONS = "/v1/chat/completions"
ECHO = {"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}
PAID = {**ECHO, "model": "builtin/assistant-paid"}
Headers = dict[str, str]


class Clock:
    """The server's clock, `began` in Unix seconds at its start."""

    def __init__(self, file: Path) -> None:
        self._file = file
        # The certificate of the start is good for 397 days less an hour, and renewed 30 days before its end: at 17
        # o'clock of day 366. All of it lies in the past, so that this machine's own clock takes both certificates.
        self.began = (time.time() - 369 * DAY) // DAY * DAY + 18 * HOUR
        self.set(0)

    def set(self, seconds: float) -> None:
        """So many seconds since it began."""
        fresh = self._file.with_name("clock.new")
        fresh.write_text(repr(self.began + seconds - time.time()))
        fresh.rename(self._file)


def serial_number(server: RunningServer) -> int:
    shown = ssl.get_server_certificate((server.host, server.port))
    return x509.load_pem_x509_certificate(shown.encode()).serial_number


async def log_in(client: httpx.AsyncClient, name: str) -> Headers:
    answer = await client.post("/auth/login", json={"email": f"{name}@example.com", "password": PASSWORD})
    assert answer.status_code == 200, answer.text
    return {"authorization": f"Bearer {answer.json()['access_token']}"}


async def make_people(server: RunningServer) -> None:
    async with server.client() as client:
        for name in ("ada", "bob"):
            answer = await client.post("/auth/signup", json={"email": f"{name}@example.com", "password": PASSWORD})
            assert answer.status_code == 201
    paid = command(server, "credit", "ada@example.com", "25")
    assert paid.returncode == 0, paid.stderr


async def usage(client: httpx.AsyncClient, headers: Headers) -> dict[str, int]:
    """Requests by day, newest first."""
    answer = await client.get("/billing/usage", headers=headers)
    return {row["day"]: row["requests"] for row in answer.json()["data"]}


async def test_service_works_for_a_simulated_day(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock")
    env = {"CLOCK": str(tmp_path / "clock"), "PYTHONPATH": str(ROOT)}
    async with running_server(tmp_path, env, command=(PROGRAM,)) as server, server.client() as client:
        first, ca = serial_number(server), server.ca.read_bytes()
        await make_people(server)
        morning = 366.5 * DAY  # six o'clock in UTC
        clock.set(morning)
        ada = await log_in(client, "ada")
        artifact = await client.post(
            "/artifacts", json={"name": "n", "content_type": "text/plain", "content": "x"}, headers=ada
        )
        link = artifact.json()["content_url"]
        by_day: Counter[bool] = Counter()
        renewed_in: list[int] = []
        descriptors: list[int] = []
        for hour in range(HOURS):
            clock.set(morning + hour * HOUR + 1)
            assert (await client.get("/user/me", headers=ada)).status_code == (200 if hour < 8 else 401), (
                "a session has 8 hours"
            )
            assert (await client.get(link)).status_code == (200 if hour < 1 else 401), "a link to a content has one"
            today, bob = await log_in(client, "ada"), await log_in(client, "bob")
            asked = 21 if hour % 6 == 0 else 1
            free = await asyncio.gather(*(client.post(COMPLETIONS, json=ECHO, headers=bob) for _ in range(asked)))
            answered = Counter(answer.status_code for answer in free)
            assert answered == ({200: 20, 429: 1} if asked > 1 else {200: 1}), "each minute is a new window"
            by_day[hour >= MIDNIGHT] += answered[200]
            assert (await client.post(COMPLETIONS, json=PAID, headers=today)).status_code == 200
            descriptors.append(server.counts().descriptors)
            await asyncio.sleep(0.12)  # two checks of the certificate
            async with asyncio.timeout(10):  # to make another one takes a busy machine a while
                while hour >= RENEWAL and await asyncio.to_thread(serial_number, server) == first:
                    await asyncio.sleep(0.1)
            if await asyncio.to_thread(serial_number, server) != first:
                renewed_in.append(hour)
        assert renewed_in == list(range(RENEWAL, HOURS)), "renewed at 17 o'clock"
        assert server.ca.read_bytes() == ca
        made = [[HOURS - MIDNIGHT, MIDNIGHT], [by_day[True], by_day[False]]]
        async with asyncio.timeout(10):  # free calls are counted within two seconds
            while [list((await usage(client, who)).values()) for who in (today, bob)] != made:
                await asyncio.sleep(0.1)
        assert max(descriptors[12:]) <= max(descriptors[:12]) + 4, descriptors
        assert [line for line in server.log_lines() if line["level"] in ("warning", "error")] == []
        async with server.client() as fresh:  # under the new certificate
            assert (await fresh.get("/readyz")).status_code == 200
        assert await server.stop() == 0
    assert_exact(server.data_dir / "service.db")
