"""svc/log.py: one JSON object per line, no secrets in it, and no caller waits for the reader."""

import asyncio
import base64
import gc
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.auth.tokens import issue_session, new_key_token
from svc.errors import describe
from svc.log import Log, capture_library_logs, redact
from tests.support.cases import each

SECRETS = {
    "a key": new_key_token(),
    "a session": issue_session(bytes(32), "user_a", 1_790_000_000),
    "a session without its signature": issue_session(bytes(32), "user_a", 1_790_000_000).rpartition(".")[0],
    "a vendor's key": "sk-proj-Abc_123-defghijk",
    "a processor's key": "sk_live_51Abcdefghijk",
    "a webhook secret": "whsec_Abcdefghijkl",
    "an e-mail": "ada.lovelace+notes@mail.example.com",
    "an e-mail of another script": "jürgen@müller.example",
}
AROUND = [
    "{}",
    "token={}",
    '"{}"',
    "({})",
    "a {} b",
    "x,{};y",
    "<{}>",
    "https://a.example/?k={}",
    "\n{}\t",
    "{'key': '{}'}",
]


class Lines:
    """A pipe that stands for stderr."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def read(self) -> list[dict[str, Any]]:
        os.close(self.writer)
        with os.fdopen(self.reader, "rb") as file:
            return [json.loads(line) for line in file.read().splitlines()]


@pytest.fixture
def lines() -> Lines:
    return Lines()


def logged(lines: Lines, **fields: Any) -> dict[str, Any]:
    with Log(lines.writer) as log:
        log("test", **fields)
    (line,) = lines.read()
    return line


@each("around", AROUND)
@each("secret", SECRETS.values())
def test_secrets_are_redacted_in_any_position(secret: str, around: str) -> None:
    shown = redact(around.replace("{}", secret))
    assert "[redacted]" in shown
    assert secret not in shown
    assert not any(part in shown for part in (secret[8:20], secret[-10:]))


@each("text", ["Authorization: Bearer {}", "authorization=bearer {}", "BEARER\t{}", "Bearer  {}, next"])
def test_any_text_after_bearer_is_redacted(text: str) -> None:
    assert "opaque/123+45==" not in redact(text.replace("{}", "opaque/123+45=="))


@each(
    "url",
    [
        "https://ada:s3cret@mail.example",
        "smtp://ada:s3cret@mail.example:587/x",
        "https://s3cret@h",
        'http://a:s3c"ret@h',
        "x://:s3cret@",
    ],
)
def test_credentials_in_a_url_are_redacted(url: str) -> None:
    for text in (url, f'GET "{url}" failed', f"({url})", f"x={url}&y=1"):
        shown = redact(text)
        assert "s3c" not in shown and "ada" not in shown


@each(
    "text",
    [
        "POST /v1/chat",
        "req_01m3250v",
        "ollama/llama3.2:8b",
        "db.py:12 < app.py:3",
        "2026-10-02T12:00:00Z",
        "task-force-of-five",
    ],
)
def test_other_text_is_not_redacted(text: str) -> None:
    assert redact(text) == text


@each("text", ["a", "eyJ", "bearer ", "://", "@", "a@", "sk-", "svc-v1-", "x://a:", "a.b", "eyJa."])
def test_redaction_is_fast_for_any_text(text: str) -> None:
    began = time.thread_time()
    redact(text * (200_000 // len(text)))
    assert time.thread_time() - began < 1


def test_line_is_one_json_object_with_time_level_and_event(lines: Lines) -> None:
    line = logged(lines, level="error", route="/v1/models", status=200, duration_ms=1.5, streamed=True, absent=None)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "error",
        "event": "test",
        "route": "/v1/models",
        "status": 200,
        "duration_ms": 1.5,
        "streamed": True,
    }


def test_fields_are_redacted_and_truncated(lines: Lines) -> None:
    line = logged(lines, model=f"x {SECRETS['a key']} y", path=Path(SECRETS["an e-mail"]), long="y" * 100_000)
    assert line["model"] == "x [redacted] y"
    assert line["path"] == "[redacted]"
    assert len(line["long"]) == 2_000


@given(
    st.one_of(
        st.text(),
        st.text(st.characters(categories=["Cs", "Cc", "Zl"])),
        st.integers(),
        st.floats(),
        st.binary(),
        st.lists(st.text()),
    )
)
def test_any_value_is_logged_as_one_line(value: Any) -> None:
    lines = Lines()
    with Log(lines.writer) as log:
        log("first", value=value)
        log("second")
    assert [line["event"] for line in lines.read()] == ["first", "second"]


def test_object_without_repr_does_not_stop_the_log(lines: Lines) -> None:
    class Broken:
        def __str__(self) -> str:
            raise ValueError(SECRETS["a key"])

    with Log(lines.writer) as log:
        log("first", value=Broken())
        log("second")
    assert [line["event"] for line in lines.read()][-1] == "second"


def test_stalled_log_reader_does_not_block_callers(lines: Lines) -> None:
    """The pipe has no reader, so a blocking write would never return."""
    threads, kept = set(threading.enumerate()), b""
    with Log(lines.writer) as log:
        for number in range(30_000):
            log("request", number=number, text="x" * 100)
    os.set_blocking(lines.reader, False)
    with os.fdopen(lines.reader, "rb", buffering=0) as file:  # the reader comes back: the writer's thread can end
        while set(threading.enumerate()) - threads:
            kept += file.read(1 << 20) or b""
        kept += file.read(1 << 20) or b""
    os.close(lines.writer)
    # 10,000 are queued. The pipe holds some, and so does the write that waits: up to as many, if the machine is busy.
    assert 9_000 < kept.count(b"\n") < 25_000


def test_closed_stderr_is_ignored() -> None:
    threads = set(threading.enumerate())
    reader, writer = os.pipe()
    os.close(reader)
    with Log(writer) as log:
        log("first")
        log("second")
    assert set(threading.enumerate()) == threads
    os.close(writer)


def test_lines_of_threads_do_not_mix(lines: Lines) -> None:
    found: list[dict[str, Any]] = []

    def read() -> None:
        with os.fdopen(lines.reader, "rb") as file:
            found.extend(json.loads(line) for line in file)

    reading = threading.Thread(target=read)
    reading.start()
    with Log(lines.writer) as log:
        callers = [threading.Thread(target=lambda: [log("x", text="y" * 1500) for _ in range(100)]) for _ in range(8)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    os.close(lines.writer)
    reading.join()
    assert len(found) == 800


# --- what the libraries log


@pytest.fixture(scope="module")
def no_old_tasks() -> None:
    gc.collect()  # unfinished tasks of earlier modules would log their end


@pytest.fixture
def library_log(no_old_tasks: None, lines: Lines) -> Iterator[Log]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    names = ("aiosqlite", "httpx", "httpcore", "asyncio")
    levels = {name: logging.getLogger(name).level for name in names}
    with Log(lines.writer) as log:
        root.handlers = []
        capture_library_logs(log)
        yield log
    root.handlers, root.level = before, level
    for name in names:
        logging.getLogger(name).setLevel(levels[name])


def read_after(log: Log, lines: Lines) -> list[dict[str, Any]]:
    log.__exit__()
    return lines.read()


def test_library_exception_is_logged_without_its_text(library_log: Log, lines: Lines) -> None:
    try:
        raise ValueError("my password is hunter2")
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n%s", "hunter2")
    (line,) = read_after(library_log, lines)
    assert line["event"] == "library" and line["logger"] == "uvicorn.error" and line["level"] == "error"
    assert line["message"] == "Exception in ASGI application"
    assert line["error"].startswith("ValueError < test_log.py:")
    assert "hunter2" not in json.dumps(line)


async def test_unretrieved_task_exception_is_logged_without_its_text(library_log: Log, lines: Lines) -> None:
    asyncio.get_running_loop().call_exception_handler(
        {
            "message": "Task exception was never retrieved",
            "exception": ValueError("hunter2"),
            "future": "repr with hunter2",
        }
    )
    (line,) = read_after(library_log, lines)
    assert line["message"] == "Task exception was never retrieved"
    assert "hunter2" not in json.dumps(line)


def test_library_message_is_redacted_and_a_malformed_one_is_logged(library_log: Log, lines: Lines) -> None:
    logging.getLogger("somebody").warning("for %s", SECRETS["an e-mail"])
    library_log.handle(logging.LogRecord("somebody", logging.WARNING, "", 1, "two %s %s", ("but one",), None))
    first, second = read_after(library_log, lines)
    assert first["message"] == "for [redacted]"
    assert second["message"] == "two %s %s"


def test_sql_parameters_and_urls_are_not_logged_by_libraries(library_log: Log, lines: Lines) -> None:
    for name in ("aiosqlite", "httpx", "httpcore"):
        logging.getLogger(name).info("hunter2")
        logging.getLogger(name).debug("hunter2")
    assert read_after(library_log, lines) == []


# --- svc/errors.py, describe


def test_deep_traceback_shows_its_last_frames() -> None:
    def fall(depth: int) -> None:
        if depth == 0:
            raise KeyError(base64.b64encode(b"hunter2"))
        fall(depth - 1)

    try:
        fall(200)
    except KeyError as error:
        described = describe(error)
    assert described.count("<") == 6 and len(described) < 200


@each(("fillers", "kept"), [(0, ["request", "late"]), (1_500, [])])
def test_newest_lines_of_a_request_are_kept_within_a_bound(fillers: int, kept: list[str]) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with Log(nowhere) as log:  # its end writes all lines
        log("request", request_id="req_1", path="/a")
        log("request", request_id="req_12", path="/b")
        log("late", message="about it", request_id="req_1")
        for number in range(fillers):
            log("filler", number=number, text="x" * 1_900)
        log("request", request_id="req_2")
    os.close(nowhere)
    assert [json.loads(line)["event"] for line in log.lines_of("req_1")] == kept
    assert len(log.lines_of("req_2")) == 1 and log.lines_of("req_") == log.lines_of('"') == []
