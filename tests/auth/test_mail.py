"""Mails with links, against a real SMTP server with STARTTLS and login."""

import asyncio
import dataclasses
import json
import re
import threading
import time
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.auth import emails
from svc.auth.mail import Mail
from svc.config import Config, MailServer, from_environ
from svc.log import Log
from tests.conftest import PASSWORD as ACCOUNT_PASSWORD
from tests.conftest import Clocks, Service, serving
from tests.support.cases import each
from tests.support.mail_server import PASSWORD, USER, MailBox, mail_server
from tests.support.mail_server import box as box  # a fixture
from tests.support.oauth_browser import rows
from tests.support.waiting import run_ready, until

BASE_URL = "https://svc.example:8443"


@pytest.fixture
def config(config: Config, box: MailBox) -> Config:
    return dataclasses.replace(config, smtp_url=server_of(box))


def server_of(box: MailBox, **changes: Any) -> MailServer:
    server = MailServer("127.0.0.1", box.port, "starttls", USER, PASSWORD, USER)
    return dataclasses.replace(server, **changes)


class Logged(Log):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[dict[str, Any]] = []

    def __call__(self, event: str, *, level: str = "info", **fields: Any) -> None:
        self.events.append({"event": event, "level": level, **fields})


async def deliver(server: MailServer, to: str = "ada@example.com") -> list[dict[str, Any]]:
    """Send one message and return its log entries."""
    log = Logged()
    mail = Mail(server, BASE_URL, log)
    mail.pauses_seconds = (0.01, 0.01)

    async def compose() -> EmailMessage:
        return mail.message(to, "Subject", "Text\n")

    mail.later(compose)
    await until(lambda: log.events)
    await mail.close()
    return log.events


async def sign_up(service: Service, box: MailBox, email: str) -> dict[str, Any]:
    """A new account whose verification mail was received and removed."""
    session = await service.sign_up(email)
    await box.wait_for(1)
    for kept in (box.messages, box.secure, box.logins):
        kept.clear()
    return session


async def ask(service: Service, email: str) -> Any:
    service.clocks.advance(3600)  # three an hour
    answer = await service.client.post("/auth/password-reset", json={"email": email})
    assert answer.status_code == 202, answer.text
    return answer


def token_in(message: EmailMessage, base_url: str) -> str:
    link = re.escape(f"{base_url}/password-reset#")
    match = re.search(rf"^{link}(\w{{43}})\r?$", message.get_content(), re.MULTILINE)
    assert match is not None, message.get_content()
    return match[1]


# --- the reset, whole


async def test_mailed_link_sets_the_password_once_and_verifies_the_email(service: Service, box: MailBox) -> None:
    await sign_up(service, box, "Ada@example.com")
    await ask(service, "ada@EXAMPLE.com")
    await box.wait_for(1)
    [(sender, recipients, message)] = box.messages
    assert (sender, recipients, box.secure, box.logins) == (USER, ["Ada@example.com"], [True], [USER])
    assert (message["To"], message["From"]) == ("Ada@example.com", f"svc <{USER}>")
    assert message["Subject"] == "Reset your password"
    assert message["Date"] and message["Message-ID"] and message["Auto-Submitted"] == "auto-generated"
    token = token_in(message, service.config.base_url)
    assert await rows(service, "SELECT email_verified_at FROM accounts") == [(None,)]
    body = {"token": token, "password": "a new password"}
    assert (await service.client.post("/auth/password-reset/confirm", json=body)).status_code == 204
    assert (await service.client.post("/auth/password-reset/confirm", json=body)).status_code == 400
    assert await rows(service, "SELECT email_verified_at FROM accounts") == [(service.clocks.now,)]
    login = {"email": "ada@example.com", "password": "a new password"}
    assert (await service.client.post("/auth/login", json=login)).status_code == 200


async def test_second_mail_keeps_the_first_link_valid_and_use_voids_both(service: Service, box: MailBox) -> None:
    await sign_up(service, box, "ada@example.com")
    for count in (1, 2):
        assert (await service.client.post("/auth/password-reset", json={"email": "ada@example.com"})).status_code == 202
        await box.wait_for(count)
    first, second = [token_in(message, service.config.base_url) for _, _, message in box.messages]
    bodies = [{"token": token, "password": ACCOUNT_PASSWORD} for token in (first, second)]
    statuses = [(await service.client.post("/auth/password-reset/confirm", json=body)).status_code for body in bodies]
    assert statuses == [204, 400]


async def test_known_and_unknown_emails_get_the_same_answer_in_the_same_time(service: Service, box: MailBox) -> None:
    await sign_up(service, box, "ada@example.com")
    seconds: dict[str, list[float]] = {"ada@example.com": [], "bob@example.com": []}
    answers = set()
    for _ in range(15):
        for email, taken in seconds.items():
            service.clocks.advance(3600)
            began = time.process_time()
            answers.add((await service.client.post("/auth/password-reset", json={"email": email})).content)
            taken.append(time.process_time() - began)
            await asyncio.sleep(0.02)  # later work does not count as the next one's time
    await box.wait_for(15)
    known, unknown = (min(taken) for taken in seconds.values())  # what a busy machine adds is in none
    assert len(answers) == 1 and 0.4 < known / unknown < 2.5
    assert {recipients[0] for _, recipients, _ in box.messages} == {"ada@example.com"}


async def test_without_a_mail_server_nothing_is_mailed_and_no_link_made(config: Config, clocks: Clocks) -> None:
    async with serving(dataclasses.replace(config, smtp_url=None), clocks) as service:
        await service.sign_up("ada@example.com")
        await ask(service, "ada@example.com")
        await run_ready()
        assert await rows(service, "SELECT * FROM links") == []


async def test_mail_failure_is_logged_without_link_token_or_email(
    config: Config, clocks: Clocks, box: MailBox, tmp_path: Path
) -> None:
    async with serving(config, clocks) as service:
        await sign_up(service, box, "ada@example.com")
        while '"message":"sent"' not in (tmp_path / "log").read_text():
            await asyncio.sleep(0.02)
        (tmp_path / "log").write_text("")
        box.faults = ["550 5.1.1 <ada@example.com> hunter2 no such user here"]
        for outcome in ("not sent", "sent"):
            await ask(service, "ada@example.com")
            while f'"message":"{outcome}"' not in (text := (tmp_path / "log").read_text()):
                await asyncio.sleep(0.02)
        token = token_in(box.messages[0][2], service.config.base_url)
    lines = [json.loads(line) for line in text.splitlines() if '"event":"mail"' in line]
    assert [(line["message"], line.get("smtp_code"), line["level"]) for line in lines] == [
        ("not sent", 550, "error"),
        ("sent", None, "info"),
    ]
    assert not any(secret in text for secret in ("ada@", "hunter2", "password-reset#", token))


async def test_shutdown_does_not_wait_for_mail(config: Config, clocks: Clocks) -> None:
    open_ones: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    silent = await asyncio.start_server(lambda *connection: open_ones.append(connection), "127.0.0.1", 0)
    smtp = MailServer("127.0.0.1", silent.sockets[0].getsockname()[1], "offered")
    async with serving(dataclasses.replace(config, smtp_url=smtp), clocks) as service:
        await service.sign_up("ada@example.com")
        for _ in range(3):
            await ask(service, "ada@example.com")
        while len(open_ones) < 2:
            await asyncio.sleep(0.01)
    assert not any(reader.at_eof() for reader, _ in open_ones), "the mails still wait for their server"
    silent.close()
    for _, writer in open_ones:
        writer.transport.abort()
    await until(lambda: not any(thread.name == "mail" for thread in threading.enumerate()))


# --- the dialogue


async def test_password_and_mail_are_sent_only_over_tls(box: MailBox, tmp_path: Path) -> None:
    async with mail_server(tmp_path / "plain", starttls=False) as plain:
        [event] = await deliver(server_of(plain))
        assert (event["message"], event["error"].split(" ")[0]) == ("not sent", "SMTPNotSupportedError")
        assert plain.messages == [] and plain.logins == [] and plain.connections == 1
        for tls in ("offered", "off"):
            [event] = await deliver(server_of(plain, tls=tls, user=None, password=None))
            assert event["message"] == "sent"
        assert plain.secure == [False, False]
    [event] = await deliver(server_of(box, tls="offered"))
    assert event["message"] == "sent" and box.secure == [True]


async def test_wrong_certificate_ends_the_connection(box: MailBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    [event] = await deliver(server_of(box))
    assert (event["message"], event["error"].split(" ")[0]) == ("not sent", "SSLCertVerificationError")
    assert box.messages == [] and box.logins == [] and box.connections == 1


async def test_smtps_uses_tls_from_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with mail_server(tmp_path / "implicit", implicit=True) as box:
        monkeypatch.setenv("SSL_CERT_FILE", str(box.ca))
        user, password = quote(USER, safe=""), quote(PASSWORD, safe="")
        config = from_environ(
            {"SVC_SMTP_URL": f"smtps://{user}:{password}@127.0.0.1:{box.port}?from=no-reply@svc.example"}
        )
        assert config.smtp_url is not None
        [event] = await deliver(config.smtp_url)
        assert event["message"] == "sent" and box.messages[0][0] == "no-reply@svc.example" and box.logins == [USER]


async def test_wrong_password_is_not_retried_and_not_shown(box: MailBox) -> None:
    [event] = await deliver(server_of(box, password="hunter3-hunter3"))
    assert (event["message"], event["smtp_code"], box.connections) == ("not sent", 535, 1)
    assert "hunter" not in repr(event)


@pytest.mark.parametrize(
    ("faults", "message", "connections"),
    [
        (["451 try again"], "sent", 2),
        (["451 try again", "421 busy"], "sent", 3),
        (["451 try again"] * 3, "not sent", 3),
        (["554 no"], "not sent", 1),
    ],
)
async def test_transient_failure_is_retried_twice(
    box: MailBox, faults: list[str], message: str, connections: int
) -> None:
    box.faults = list(faults)
    [event] = await deliver(server_of(box))
    assert (event["message"], box.connections) == (message, connections)
    assert len(box.messages) == (message == "sent")


async def test_unreachable_mail_server_is_retried_twice() -> None:
    [event] = await deliver(MailServer("127.0.0.1", 9, "offered"))
    assert event["message"] == "not sent" and event["error"].startswith("ConnectionRefusedError")


async def test_non_ascii_address_gets_mail(box: MailBox) -> None:
    [event] = await deliver(server_of(box), "bücher@example.com")
    assert event["message"] == "sent" and box.messages[0][1] == ["bücher@example.com"]


async def test_wrong_recipient_counts_as_refused_not_failed(service: Service, box: MailBox) -> None:
    def counted() -> dict[str, int]:
        found = re.findall(r'svc_mails_total\{outcome="(\w+)"\} (\d+)', service.state["metrics"].text([]))
        return {outcome: int(number) for outcome, number in found}

    async def reaches(**expected: int) -> None:
        await until(lambda: counted() == expected)

    assert counted() == {"sent": 0, "refused": 0, "failed": 0}
    box.unknown = ["typo@example.com"]
    await service.sign_up("typo@example.com")
    await reaches(sent=0, refused=1, failed=0)
    box.faults = ["554 5.7.1 not from this sender"]
    await service.sign_up("ada@example.com")
    await reaches(sent=0, refused=1, failed=1)
    await service.sign_up("bob@example.com")
    await reaches(sent=1, refused=1, failed=1)


async def test_mail_beyond_100_waiting_is_dropped_and_logged() -> None:
    log, blocked, counted = Logged(), asyncio.Event(), list[str]()
    mail = Mail(MailServer("127.0.0.1", 9, "offered"), BASE_URL, log, count=counted.append)
    mail.pauses_seconds = (0.01, 0.01)

    async def compose() -> None:
        await blocked.wait()

    for _ in range(103):
        mail.later(compose)
    assert [event["level"] for event in log.events] == ["error"] * 3 and counted == ["failed"] * 3
    blocked.set()
    await run_ready()
    mail.later(compose)
    assert len(log.events) == 3
    await mail.close()


async def test_failure_to_compose_is_logged() -> None:
    log = Logged()
    mail = Mail(MailServer("127.0.0.1", 9, "offered"), BASE_URL, log)

    async def compose() -> EmailMessage:
        return mail.message("ada@example.com\r\nBcc: eve@example.com", "Subject", "Text\n")

    mail.later(compose)
    await until(lambda: log.events)
    assert [(event["message"], event["error"].split(" ")[0]) for event in log.events] == [("not sent", "ValueError")]
    await mail.close()


# --- the message


@settings(max_examples=settings.default.max_examples // 3)  # the standard library takes 30 ms to parse an address
@given(st.from_regex(emails.ADDRESS_FORM, fullmatch=True))
def test_any_valid_address_is_one_recipient_and_no_header(email: str) -> None:
    mail = Mail(MailServer("127.0.0.1", 9, "offered"), BASE_URL, Logged())
    try:
        message = mail.message(email, "Subject", "Text\n")
    except Exception:  # an address that no mail system knows, such as `a@[`: it is logged
        return
    assert [address.addr_spec for address in message["To"].addresses] == [email]
    assert set(message.keys()) == {
        *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"),
        *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
    }


def test_an_address_with_a_line_break_is_refused() -> None:
    mail = Mail(MailServer("127.0.0.1", 9, "offered"), BASE_URL, Logged())
    for email in ("a@b\r\nBcc: c@d", "a@b\nc", "a\n@b"):
        with pytest.raises(ValueError):
            mail.message(email, "Subject", "Text\n")


def test_a_subject_with_a_line_break_is_refused() -> None:
    mail = Mail(MailServer("127.0.0.1", 9, "offered"), BASE_URL, Logged())
    with pytest.raises(ValueError):
        mail.message("ada@example.com", "Subject\r\nBcc: eve@example.com", "Text\n")


def test_link_is_not_folded_in_the_mail() -> None:
    mail = Mail(MailServer("127.0.0.1", 9, "offered"), BASE_URL, Logged())
    link = f"{BASE_URL}/password-reset#{'x' * 120}"
    assert link.encode() in mail.message("ada@example.com", "Subject", f"Open\n\n{link}\n").as_bytes()


@each(
    ("server", "base_url", "sender"),
    [
        ({}, "https://chat.example.com", "svc@chat.example.com"),
        ({}, "https://127.0.0.1:8443", "svc@localhost"),
        ({}, "https://[::1]:8443", "svc@localhost"),
        ({"sender": "no-reply@example.com"}, "https://chat.example.com", "no-reply@example.com"),
    ],
)
def test_sender_comes_from_the_url_or_the_base_url(server: dict[str, str], base_url: str, sender: str) -> None:
    mail = Mail(MailServer("127.0.0.1", 9, "offered", **server), base_url, Logged())  # type: ignore[arg-type]
    assert mail.message("ada@example.com", "Subject", "Text\n")["From"].addresses[0].addr_spec == sender


# --- the setting


@each(
    ("url", "server"),
    [
        ("smtp://mail.example", MailServer("mail.example", 587, "starttls")),
        ("smtp://Mail.Example:2525/", MailServer("mail.example", 2525, "starttls")),
        ("smtps://mail.example", MailServer("mail.example", 465, "implicit")),
        ("smtp://127.0.0.1:1025", MailServer("127.0.0.1", 1025, "offered")),
        ("smtp://localhost", MailServer("localhost", 587, "offered")),
        ("smtp://relay?starttls=off", MailServer("relay", 587, "off")),
        ("smtp://key:a%40b%2Fc@mail.example", MailServer("mail.example", 587, "starttls", "key", "a@b/c")),
        (
            "smtp://a%40b.example:c@mail.example",
            MailServer("mail.example", 587, "starttls", "a@b.example", "c", "a@b.example"),
        ),
        (
            "smtp://a:c@mail.example?from=x@y.example",
            MailServer("mail.example", 587, "starttls", "a", "c", "x@y.example"),
        ),
    ],
)
def test_the_setting_names_server_protection_user_and_sender(url: str, server: MailServer) -> None:
    assert from_environ({"SVC_SMTP_URL": url}).smtp_url == server


def test_repr_hides_the_password() -> None:
    assert "hunter2" not in repr(from_environ({"SVC_SMTP_URL": "smtp://a:hunter2@mail.example"}))
