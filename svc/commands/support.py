"""`svc support …`: the operator's side of live support."""

import argparse
import sqlite3
import sys
import time
from collections.abc import Iterator
from typing import Any

from svc import audit
from svc.admin import support
from svc.commands.database import printable, reading, writing
from svc.config import Config
from svc.content.support import CONTENT

_MOST = 10_000  # conversations, the last changed ones


def add_parsers(commands: Any) -> None:
    desk = commands.add_parser("support", help="live support").add_subparsers(required=True, metavar="ACTION")
    listing = desk.add_parser("list", help="list the active conversations, or show one with its messages")
    listing.add_argument("id", nargs="?", help="the conversation to show, sup_...")
    listing.set_defaults(run=_list)
    answer = desk.add_parser("reply", help="answer; the text is the argument, or is read from standard input")
    answer.add_argument("id")
    answer.add_argument("text", nargs="?")
    answer.set_defaults(run=_reply)
    end = desk.add_parser("close", help="close a conversation")
    end.add_argument("id")
    end.set_defaults(run=_close)


def _list(config: Config, options: argparse.Namespace) -> None:
    with reading(config) as conn:
        lines = list(_active(conn) if options.id is None else _whole(support.conversation(conn, options.id)))
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


def _reply(config: Config, options: argparse.Namespace) -> None:
    text = CONTENT.check(sys.stdin.read().strip() if options.text is None else options.text, "TEXT")
    with writing(config) as tx:
        support.reply(tx, audit.OPERATOR, options.id, text, time.time())
    print("sent")


def _close(config: Config, options: argparse.Namespace) -> None:
    with writing(config) as tx:
        support.close(tx, audit.OPERATOR, options.id, time.time())
    print("closed")


def _for_terminal(text: str) -> str:
    """Return a person's text without control characters, its further lines indented."""
    return "\n    ".join(map(printable, text.splitlines()))
