"""`svc support …`: the operator's side of live support."""

import argparse
import sqlite3
import sys
import time
from collections.abc import Iterator
from typing import Any

from svc import audit
from svc.commands.database import argument, command, printable, reading, writing
from svc.config import Config
from svc.content import support

_MOST = 10_000  # conversations, the last changed ones


@command(
    "support list",
    "list the active conversations, or show one with its messages",
    argument("id", nargs="?", help="the conversation to show, sup_..."),
)
def _list(config: Config, options: argparse.Namespace) -> None:
    with reading(config) as conn:
        lines = list(_active(conn) if options.id is None else _whole(support.in_inbox(conn, options.id)))
    for line in lines:
        print(line)


def _active(conn: sqlite3.Connection) -> Iterator[str]:
    for row in reversed(support.inbox_page(conn, "active", _MOST, None).items):
        waits = "waits" if row["waiting"] else "answered"
        yield "\t".join((row["id"], row["email"], waits, row["updated_at"], _for_terminal(row["subject"] or "")))


def _whole(whole: dict[str, Any]) -> Iterator[str]:
    yield "\t".join((whole["id"], whole["status"], whole["updated_at"], _for_terminal(whole["subject"] or "")))
    for message in whole["messages"]:
        yield f"{message['created_at']} {message['role']}: {_for_terminal(message['content'])}"


@command(
    "support reply",
    "answer; the text is the argument, or is read from standard input",
    argument("id"),
    argument("text", nargs="?"),
)
def _reply(config: Config, options: argparse.Namespace) -> None:
    text = support.CONTENT.check(sys.stdin.read().strip() if options.text is None else options.text, "TEXT")
    with writing(config) as tx:
        support.reply(tx, audit.OPERATOR, options.id, text, time.time())
    print("sent")


@command("support close", "close a conversation", argument("id"))
def _close(config: Config, options: argparse.Namespace) -> None:
    with writing(config) as tx:
        support.close_in_inbox(tx, audit.OPERATOR, options.id, time.time())
    print("closed")


def _for_terminal(text: str) -> str:
    """Return a person's text without control characters, its further lines indented."""
    return "\n    ".join(map(printable, text.splitlines()))
