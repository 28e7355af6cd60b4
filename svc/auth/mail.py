"""Send email through the operator's SMTP server, after the request that caused it has been answered.

later -> a task for each message, at most 100 -> compose -> two at a time: SMTP in a thread -> up to two retries
"""

import asyncio
import contextlib
import smtplib
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from functools import partial
from urllib.parse import urlsplit

from svc.config import MailServer
from svc.errors import describe
from svc.log import Log

_MOST_WAITING = 100
_AT_ONCE = 2
_STEP_SECONDS = 10.0  # for each SMTP command


class Mail:
    """The SMTP client. `base_url` gives the sender's domain if `server` has no sender.

    `count` is called once for each message with `sent`, `refused` (the server rejects the recipient) or `failed`.
    """

    pauses_seconds = (5.0, 30.0)  # before the second and the third try

    def __init__(
        self, server: MailServer, base_url: str, log: Log, count: Callable[[str], None] = lambda outcome: None
    ) -> None:
        host = urlsplit(base_url).hostname or ""
        self._server = server
        self._domain = host if any(character.isalpha() for character in host) and ":" not in host else "localhost"
        self._sender = server.sender or f"svc@{self._domain}"
        self._log = log
        self._count = count
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def later(self, compose: Callable[[], Awaitable[EmailMessage | None]]) -> None:
        """Send the message that `compose` returns, if any, in the background. While 100 wait, drop and log it."""
        if len(self._tasks) >= _MOST_WAITING:
            self._log("mail", level="error", message="dropped: too many messages wait to be sent")
            self._count("failed")
            return
        task = asyncio.create_task(self._deliver(compose))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def message(self, to: str, subject: str, text: str) -> EmailMessage:
        """Return a message. Raises ValueError for line breaks in an address or a subject."""
        from email.headerregistry import Address  # late: it is slow to import

        user, _, domain = to.rpartition("@")  # not `addr_spec`: it accepts only ASCII users
        message = EmailMessage()
        message["From"] = Address("svc", addr_spec=self._sender)
        message["To"] = Address(username=user, domain=domain)
        message["Subject"] = subject
        message["Date"] = formatdate()
        message["Message-ID"] = make_msgid(domain=self._domain)
        message["Auto-Submitted"] = "auto-generated"  # suppresses out-of-office replies
        # Folded lines would break the link in some mail clients.
        message.set_content(text, cte="7bit" if text.isascii() else "base64")
        return message

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _deliver(self, compose: Callable[[], Awaitable[EmailMessage | None]]) -> None:
        try:
            message = await compose()
            error = await self._send(message) if message else None
        except Exception as fault:  # no code awaits this task
            error = fault
        if error:
            is_refused = isinstance(error, smtplib.SMTPRecipientsRefused) and _is_final(error)
            self._count("refused" if is_refused else "failed")
            # Without its text: servers quote the address.
            self._log("mail", level="error", message="not sent", error=describe(error), smtp_code=_code(error))

    async def _send(self, message: EmailMessage) -> Exception | None:
        """Send a message, with retries; return the last error, or None."""
        recipients = [address.addr_spec for address in message["To"].addresses]
        for pause_seconds in (*self.pauses_seconds, None):
            async with self._turns:
                error = await self._in_thread(lambda smtp: smtp.send_message(message, to_addrs=recipients))
            if error is None:
                self._log("mail", message="sent")
                self._count("sent")
            if error is None or pause_seconds is None or _is_final(error):
                break
            await asyncio.sleep(pause_seconds)
        return error

    async def check(self) -> Exception | None:
        """Connect and sign in, without a message; return the error, or None."""
        return await self._in_thread(lambda smtp: None)

    async def _in_thread(self, converse: Callable[[smtplib.SMTP], object]) -> Exception | None:
        outcome: Future[Exception | None] = Future()
        outcome.set_running_or_notify_cancel()  # from now on, only the thread ends it

        def run() -> None:
            try:
                with self._signed_in() as smtp:
                    converse(smtp)
                outcome.set_result(None)
            except Exception as error:
                outcome.set_result(error)

        # A daemon thread does not delay the end of the process if the mail server hangs.
        threading.Thread(target=run, name="mail", daemon=True).start()
        return await asyncio.wrap_future(outcome)

    @contextlib.contextmanager
    def _signed_in(self) -> Iterator[smtplib.SMTP]:
        server, tls = self._server, ssl.create_default_context()
        connect = partial(smtplib.SMTP_SSL, context=tls) if server.tls == "implicit" else smtplib.SMTP
        with connect(server.host, server.port, self._domain, timeout=_STEP_SECONDS) as smtp:
            smtp.ehlo_or_helo_if_needed()
            if server.tls == "starttls" or (server.tls == "offered" and smtp.has_extn("starttls")):
                smtp.starttls(context=tls)
            if server.user and server.password:
                smtp.login(server.user, server.password)
            yield smtp


def _is_final(error: Exception) -> bool:
    """Return whether a retry would get the same refusal (5xx, RFC 5321 4.2.1)."""
    return isinstance(error, smtplib.SMTPNotSupportedError | ValueError) or (_code(error) or 0) >= 500


def _code(error: Exception) -> int | None:
    if isinstance(error, smtplib.SMTPRecipientsRefused):  # one recipient, one code
        return next(iter(error.recipients.values()))[0]
    return error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else None
