"""The command line: `svc COMMAND` runs a command of svc/commands/."""

import argparse
import os
import runpy
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from svc.commands import backups, books, check, doctor, models, status, support, tools, users
from svc.commands.database import command
from svc.config import Config, from_environ
from svc.errors import ApiError, StartError
from svc.routes import service
from svc.version import VERSION

_APP = str(Path(__file__).parent.parent / "app.py")
_GROUPS = {
    "user": "accounts",
    "support": "live support",
    "models": "GGUF files that the service runs itself",
    "tools": "tool servers",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0 done, 1 refused with one line on stderr, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    os.umask(0o077)  # files of a command are readable only by its user
    try:
        status: int = options.run(from_environ(os.environ), options) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader has closed the pipe. The interpreter flushes the rest at its end, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), 1)
        return 1
    except (StartError, ApiError) as error:
        text = f"{error}"
    except sqlite3.Error as error:
        text = f"the database cannot be used: {error}"
    except OSError as error:
        text = f"cannot use {error.filename or 'a file'}: {error.strerror}"
    print(f"svc: {text}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="svc", description="Commands for the operator of the service.")
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    groups: dict[str, Any] = {"": commands}
    for module in (sys.modules[__name__], users, books, support, models, tools, backups, check, doctor, status):
        for run in (found for found in vars(module).values() if hasattr(found, "declared")):
            name, text, arguments = run.declared
            group, _, action = name.rpartition(" ")
            if group not in groups:
                grouped = commands.add_parser(group, help=_GROUPS[group])
                groups[group] = grouped.add_subparsers(required=True, metavar="ACTION")
            one = groups[group].add_parser(action, help=text)
            one.set_defaults(run=run)
            for names, options in arguments:
                one.add_argument(*names, **options)
    return parser


@command("serve", "start the service (as python app.py does)")
def _serve(config: Config, options: argparse.Namespace) -> None:
    # app.py imports this package's neighbours: it is run as a script, not imported.
    runpy.run_path(_APP, run_name="__main__")


@command("openapi", "print the interface document")
def _openapi(config: Config, options: argparse.Namespace) -> None:
    routes = runpy.run_path(_APP)["ROUTES"]
    print(orjson.dumps(service.document(routes, config.base_url), option=orjson.OPT_INDENT_2).decode())
