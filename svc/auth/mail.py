"""Sends e-mails through the operator's SMTP server, after the request that asked for them has been answered.

later -> a task each, at most 100 -> compose -> two at a time: a dialogue in a thread -> once more after a pause, twice
"""

import asyncio
import contextlib
import smtplib
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import urlsplit

from svc.config import MailServer
from svc.errors import describe
from svc.log import Log

_MOST_WAITING = 100
_AT_ONCE = 2
_STEP_SECONDS = 10.0  # for each step of the dialogue
_PAUSES_SECONDS = (5.0, 30.0)


class Mail:
    """`server` and where it is spoken to from: `base_url` names the sender unless `server` does. Used inside one event loop.

    `count` is called once for each e-mail with `sent`, `refused` (the server rejects the recipient's address) or `failed`.
    """

    def __init__(
        self,
        server: MailServer,
        base_url: str,
        log: Log,
        pauses_seconds: Sequence[float] = _PAUSES_SECONDS,
        count: Callable[[str], None] = lambda outcome: None,
    ) -> None:
        host = urlsplit(base_url).hostname or ""
        self._server = server
        self._domain = host if any(character.isalpha() for character in host) and ":" not in host else "localhost"
        self._sender = server.sender or f"svc@{self._domain}"
        self._log = log
        self._pauses_seconds = pauses_seconds
        self._count = count
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def later(self, compose: Callable[[], Awaitable[EmailMessage | None]]) -> None:
        """Has the message that `compose` makes, if any, sent in the background. While 100 wait it is dropped, and logged."""
        if len(self._tasks) >= _MOST_WAITING:
            self._log("mail", level="error", message="too many e-mails wait to be sent: one was dropped")
            self._count("failed")
            return
        task = asyncio.create_task(self._deliver(compose))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def message(self, to: str, subject: str, text: str) -> EmailMessage:
        """An e-mail of ASCII `text` from this service. Raises ValueError for line breaks in an address or a subject."""
        from email.headerregistry import Address  # late: the start would wait for a parser that the first e-mail needs

        user, _, domain = to.rpartition("@")  # not `addr_spec`: that knows no user outside of ASCII
        message = EmailMessage()
        message["From"] = Address("svc", addr_spec=self._sender)
        message["To"] = Address(username=user, domain=domain)
        message["Subject"] = subject
        message["Date"] = formatdate()
        message["Message-ID"] = make_msgid(domain=self._domain)
        message["Auto-Submitted"] = "auto-generated"  # no out-of-office notes, please
        message.set_content(text, cte="7bit")  # no line may be folded: it would break the link for some readers
        return message

    async def close(self) -> None:
        """Gives up what has not been sent."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _deliver(self, compose: Callable[[], Awaitable[EmailMessage | None]]) -> None:
        try:
            message = await compose()
            error = await self._send_at_last(message) if message else None
        except Exception as fault:  # nobody waits for this task
            error = fault
        if error:  # never its text: servers quote the address
            self._count("refused" if isinstance(error, smtplib.SMTPRecipientsRefused) and _is_final(error) else "failed")
            self._log("mail", level="error", message="not sent", error=describe(error), smtp_code=_code(error))

    async def _send_at_last(self, message: EmailMessage) -> Exception | None:
        """Sends a message, in the third attempt at the latest; what went wrong in the last one, None for nothing."""
        for pause_seconds in (*self._pauses_seconds, None):
            async with self._turns:
                error = await self._send(message)
            if error is None:
                self._log("mail", message="sent")
                self._count("sent")
                return None
            if pause_seconds is None or _is_final(error):
                break
            await asyncio.sleep(pause_seconds)
        return error

    async def check(self) -> Exception | None:
        """Greets the server and signs in, without a message; what went wrong, None for nothing."""
        return await self._in_thread(lambda smtp: None)

    async def _send(self, message: EmailMessage) -> Exception | None:
        """One attempt; what went wrong, None for nothing."""
        recipients = [address.addr_spec for address in message["To"].addresses]
        return await self._in_thread(lambda smtp: smtp.send_message(message, to_addrs=recipients))

    async def _in_thread(self, converse: Callable[[smtplib.SMTP], object]) -> Exception | None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Exception | None] = loop.create_future()

        def tell(outcome: Exception | None) -> None:
            if not done.done():
                done.set_result(outcome)

        def run() -> None:
            outcome: Exception | None = None
            try:
                with self._signed_in() as smtp:
                    converse(smtp)
            except Exception as error:
                outcome = error
            with contextlib.suppress(RuntimeError):  # the loop has closed: the service has ended
                loop.call_soon_threadsafe(tell, outcome)

        # A daemon, unlike the threads of an executor: a server that stands still does not hold up the end of the process.
        threading.Thread(target=run, name="mail", daemon=True).start()
        return await done

    @contextlib.contextmanager
    def _signed_in(self) -> Iterator[smtplib.SMTP]:
        server, tls = self._server, ssl.create_default_context()
        if server.tls == "implicit":
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, self._domain, timeout=_STEP_SECONDS, context=tls)
        else:
            smtp = smtplib.SMTP(server.host, server.port, self._domain, timeout=_STEP_SECONDS)
        with smtp:
            smtp.ehlo_or_helo_if_needed()
            if server.tls == "starttls" or (server.tls == "offered" and smtp.has_extn("starttls")):
                smtp.starttls(context=tls)
            if server.user and server.password:
                smtp.login(server.user, server.password)
            yield smtp


def _is_final(error: Exception) -> bool:
    """Whether another attempt would meet the same refusal (5xx, RFC 5321 4.2.1)."""
    return isinstance(error, smtplib.SMTPNotSupportedError | ValueError) or (_code(error) or 0) >= 500


def _code(error: Exception) -> int | None:
    """The server's status code, if it gave one."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):  # one recipient, one code
        return next(iter(error.recipients.values()))[0]
    return error.smtp_code if isinstance(error, smtplib.SMTPResponseException) else None
