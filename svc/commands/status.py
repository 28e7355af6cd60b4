"""`svc status` and `svc reload`, which ask the running server on its socket in the data folder; and `svc version`."""

import argparse
import sys
from typing import Any

from svc.admin import health
from svc.commands.database import printable, reading
from svc.config import Config
from svc.errors import StartError
from svc.money import dollars
from svc.server import status
from svc.version import VERSION

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


def add_parsers(commands: Any) -> None:
    commands.add_parser("status", help="print the state of the running server").set_defaults(run=_status)
    text = "read the certificate and the catalog again, as SIGHUP does; exit status 1 if one of them is wrong and stays as it was"
    commands.add_parser("reload", help=text).set_defaults(run=_reload)
    commands.add_parser("version", help="print the version").set_defaults(run=_version)


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


def _status(config: Config, options: argparse.Namespace) -> None:
    found = _asked(config, "status")
    with reading(config) as conn:
        sums = health.sums(conn)
    ending = ", shutting down" if found["draining"] else ""
    print(f"svc {found['version']}, process {found['pid']}, {found['base_url']}, since {found['started_at']}{ending}")
    for name, title in _TITLES.items():
        print(f"{title:24}{found.get(name, 'unknown')}")  # a server of another version may lack it
    print(f"{'held for calls':24}{dollars(sums['held_micros'])} in {sums['holds']} holds")
    print(f"{'owed to accounts':24}{dollars(sums['balance_micros'])} in {sums['wallets']} wallets")


def _reload(config: Config, options: argparse.Namespace) -> int:
    errors = _asked(config, "reload")
    for error in errors:
        print(f"svc: not replaced: {printable(error)}", file=sys.stderr)
    if not errors:
        print("the certificate and the catalog were read again")
    return 1 if errors else 0


def _version(config: Config, options: argparse.Namespace) -> None:
    print(VERSION)
