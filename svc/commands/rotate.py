"""`svc rotate-secrets`: a new master secret, with the server stopped or running."""

import argparse
import contextlib
import time
from typing import Any

from svc.commands.database import database
from svc.config import Config
from svc.errors import StartError
from svc.schema import command_connection
from svc.secrets import OLD_MASTER, give_to_owner, open_folder
from svc.server import status
from svc.server.rotation import rotate_stopped

_TIMEOUT_SECONDS = 300.0


def add_parsers(commands: Any) -> None:
    rotate = commands.add_parser("rotate-secrets", help="make a new master.key: every session, link and cookie ends")
    rotate.set_defaults(run=_rotate)


def _rotate(config: Config, options: argparse.Namespace) -> None:
    path = database(config)
    try:
        answer = status.ask(config.data_dir, "rotate-secrets", _TIMEOUT_SECONDS)
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
    print(f"master.key is new, and {answer['provider_keys']} provider keys are encrypted with it. Every session has ended.")
    print(f"{config.data_dir / OLD_MASTER} is the old one. The next 'svc backup' deletes it.")
