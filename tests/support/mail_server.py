"""A real SMTP server for tests (aiosmtpd) on loopback: with STARTTLS and login as a provider's has them, and faults on
demand.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from svc.certificates import tls_files

USER = "mailer@example.com"
PASSWORD = "hunter2:hunter2/%+"


@dataclass
class MailBox:
    """`messages` are the received ones, with the envelope's sender and recipients. `faults` are used up one by one: a
    response to send instead of accepting a message. `secure` records for each message whether it arrived under TLS,
    `logins` who has signed in."""

    port: int = 0
    ca: Path = Path()
    faults: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # recipients that are refused
    messages: list[tuple[str, list[str], EmailMessage]] = field(default_factory=list)
    secure: list[bool] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    connections: int = 0

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.unknown:
            return "550 5.1.1 no such user here"
        envelope.rcpt_tos.append(address)
        return "250 known"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        if self.faults:
            return self.faults.pop(0)
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.secure.append(session.ssl is not None)
        self.messages.append((envelope.mail_from or "", list(envelope.rcpt_tos), message))
        return "250 taken"

    def authenticate(self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        known = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        if known:
            self.logins.append(data.login.decode())
        return AuthResult(success=known, handled=False)

    async def wait_for(self, count: int, within_seconds: float = 10.0) -> None:
        deadline = time.monotonic() + within_seconds
        while len(self.messages) < count:
            assert time.monotonic() < deadline, f"{len(self.messages)} of {count} e-mails came"
            await asyncio.sleep(0.01)

    async def mailed_to(self, email: str, within_seconds: float = 10.0) -> EmailMessage:
        """Return the first message to this address."""
        deadline = time.monotonic() + within_seconds
        while not (found := [message for _, to, message in self.messages if to == [email]]):
            assert time.monotonic() < deadline, f"no message to {email}"
            await asyncio.sleep(0.01)
        return found[0]


@contextlib.asynccontextmanager
async def mail_server(
    folder: Path, *, starttls: bool = True, login: bool = True, implicit: bool = False
) -> AsyncIterator[MailBox]:
    """A server on 127.0.0.1 whose certificate its own CA has issued for that address."""
    folder.mkdir(exist_ok=True)
    files = tls_files(folder, ["127.0.0.1", "localhost"], time.time())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.cert, files.key)
    box = MailBox(ca=files.ca)

    open_ones: list[SMTP] = []

    def connected() -> SMTP:
        box.connections += 1
        session = SMTP(
            box,
            hostname="mail.example.com",
            tls_context=context if starttls and not implicit else None,
            require_starttls=starttls and not implicit,
            authenticator=box.authenticate if login else None,
            auth_required=login and starttls and not implicit,  # it does not know that TLS came first
            auth_require_tls=starttls and not implicit,
            enable_SMTPUTF8=True,
        )
        open_ones.append(session)
        return session

    loop = asyncio.get_running_loop()
    server = await loop.create_server(connected, "127.0.0.1", 0, ssl=context if implicit else None)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
        for session in open_ones:
            if session.transport is not None:
                session.transport.abort()
        await asyncio.sleep(0)


@pytest.fixture
async def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MailBox]:
    """A server with STARTTLS and login whose certificate this process trusts.
    A test file imports this fixture by name.
    """
    async with mail_server(tmp_path / "mail") as box:
        monkeypatch.setenv("SSL_CERT_FILE", str(box.ca))
        yield box
