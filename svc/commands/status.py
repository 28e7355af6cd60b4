"""`svc status`, `svc reload` and `svc rotate-secrets`, which ask the running server on its socket."""

import argparse
import contextlib
import sys
import time
from typing import Any

from svc import audit
from svc.billing import wallet
from svc.commands.database import argument, command, database, printable, reading, writing
from svc.config import Config
from svc.errors import StartError
from svc.ids import timestamp
from svc.inference.tool_servers import operators
from svc.inference.tool_servers.reading import known
from svc.money import dollars
from svc.schema import command_connection
from svc.secrets import OLD_MASTER, give_to_owner, open_folder
from svc.server import status
from svc.server.middleware import REQUEST_ID
from svc.server.rotation import rotate_stopped
from svc.version import VERSION

_ROTATION_SECONDS = 300.0
_TITLES = {
    "svc_open_answers": "open answers",
    "svc_open_runs": "agent runs",
    "svc_writer_waiting_jobs": "waiting for the writer",
    "svc_reader_waiting_jobs": "waiting for the readers",
    "svc_body_bytes": "bytes of large bodies",
    "svc_workers_pictures": "painters",
    "svc_workers_speech": "speakers",
    "svc_workers_documents": "readers of documents",
}


def _asked(config: Config, line: str) -> Any:
    """Return the server's answer. Raises StartError if no server runs, or it does not answer."""
    try:
        found = status.ask(config.data_dir, line)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StartError(f"the server of the data folder {config.data_dir} does not answer: {reason}") from None
    if found is None:
        raise StartError(f"no server is running on the data folder {config.data_dir}")
    return found


@command("status", "print the state of the running server")
def _status(config: Config, options: argparse.Namespace) -> None:
    found = _asked(config, "status")
    with reading(config) as conn:
        sums, tool_servers = wallet.sums(conn), operators.rows(conn)
    ending = ", shutting down" if found["draining"] else ""
    print(f"svc {found['version']}, process {found['pid']}, {found['base_url']}, since {found['started_at']}{ending}")
    for name, title in _TITLES.items():
        print(f"{title:24}{found.get(name, 'unknown')}")  # a server of another version may lack it
    for one in found.get("servers", ()):
        skipped = ", skipped" if one["skipped"] else ""
        text = f"{one['provider']} at {one['server']}: {one['calls']} calls, {one['failures']} failures{skipped}"
        print(f"{'model server':24}{printable(text)}")
    for one in found.get("local_models", ()):
        size = f", {one['used_bytes'] >> 20:,} MiB of memory" if one["used_bytes"] else ""
        for line in (f"{one['id']}: {one['state']}{size}", *(one["error"] or "").splitlines()):
            print(f"{'local model':24}{printable(line)}")
    for row in tool_servers:
        server = known(row)
        waiting = len(server.tools) - len(server.accepted)
        waits = f", {waiting} wait for 'svc tools accept'" if waiting else ""
        print(f"{'tool server':24}{row['name']}: {server.state}, {len(server.tools)} tools{waits}")
    print(f"{'held for calls':24}{dollars(sums['held_micros'])} in {sums['holds']} holds")
    print(f"{'owed to accounts':24}{dollars(sums['balance_micros'])} in {sums['wallets']} wallets")


@command(
    "reload",
    "read the certificate and the catalog again, as SIGHUP does; "
    "exit status 1 if one of them is wrong and stays as it was",
)
def _reload(config: Config, options: argparse.Namespace) -> int:
    found = _asked(config, "reload")
    with writing(config) as tx:
        audit.add(tx, time.time(), audit.OPERATOR, "reload", None, {name: len(texts) for name, texts in found.items()})
    for error in found["errors"]:
        print(f"svc: not replaced: {printable(error)}", file=sys.stderr)
    if not found["errors"]:
        print("the certificate and the catalog were read again")
    for note in found["notes"]:
        print(f"svc: check {printable(note)}", file=sys.stderr)
    return 1 if found["errors"] else 0


@command(
    "request",
    "print what is known about one request: its log lines, if the server still has them, and its ledger rows",
    argument("request_id", help="from the header x-request-id, the page's error, or the ledger"),
)
def _request(config: Config, options: argparse.Namespace) -> int:
    request_id = options.request_id
    if not REQUEST_ID.fullmatch(request_id.encode()):
        raise StartError("a request id has up to 128 visible ASCII characters")
    lines: list[str] = []
    with contextlib.suppress(OSError, ValueError):  # the ledger is known without a server
        lines = status.ask(config.data_dir, f"request {request_id}") or []
    with reading(config) as conn:
        rows = wallet.ledger_of_request(conn, request_id)
    for line in lines:
        print(f"log     {printable(line)}")
    for row in rows:
        call = f"{row['model']}: {row['input_tokens']} input and {row['output_tokens']} output tokens"
        payer = f"account {row['account_id'] or '(deleted)'}, key {row['key_id'] or '(session)'}"
        print(f"ledger  {timestamp(row['created_at'])} {dollars(row['amount_micros'])}, {call}, {payer}, {row['id']}")
    if not lines and not rows:
        print(f"nothing is known about {request_id}. The server keeps 2 MiB of its log: search the log itself")
    return 0 if lines or rows else 1


@command("rotate-secrets", "make a new master.key: every session, link and cookie ends")
def _rotate(config: Config, options: argparse.Namespace) -> None:
    path = database(config)
    try:
        answer = status.ask(config.data_dir, "rotate-secrets", _ROTATION_SECONDS)
    except (OSError, ValueError):
        raise StartError("the running server does not answer: stop it and run the command again") from None
    if answer is None:
        with contextlib.closing(open_folder(config.data_dir)) as folder:
            with command_connection(path) as tx:
                answer = {"provider_keys": rotate_stopped(tx, folder, time.time())}
            folder.keep_master()
            give_to_owner(config.data_dir)
    if "error" in answer:
        raise StartError(f"the server reports: {answer['error']}")
    sealed = f"{answer['provider_keys']} provider keys are encrypted with it"
    print(f"master.key is new, and {sealed}. Every session has ended.")
    print(f"{config.data_dir / OLD_MASTER} is the old one. The next 'svc backup' deletes it.")


@command("version", "print the version")
def _version(config: Config, options: argparse.Namespace) -> None:
    print(VERSION)
