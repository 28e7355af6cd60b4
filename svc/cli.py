"""The command line: `svc COMMAND` runs a command of svc/commands/."""

import argparse
import os
import runpy
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson

from svc.commands import backups, books, check, doctor, status, support, users
from svc.config import Config, from_environ
from svc.errors import ApiError, StartError
from svc.routes import service
from svc.version import VERSION

_APP = str(Path(__file__).parent.parent / "app.py")


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
    commands.add_parser("serve", help="start the service (as python app.py does)").set_defaults(run=_serve)
    commands.add_parser("openapi", help="print the interface document").set_defaults(run=_openapi)
    for module in (users, books, support, backups, check, doctor, status):
        module.add_parsers(commands)
    return parser


def _serve(config: Config, options: argparse.Namespace) -> None:
    # app.py imports this package's neighbours: it is run as a script, not imported.
    runpy.run_path(_APP, run_name="__main__")


def _openapi(config: Config, options: argparse.Namespace) -> None:
    routes = runpy.run_path(_APP)["ROUTES"]
    print(orjson.dumps(service.document(routes, config.base_url), option=orjson.OPT_INDENT_2).decode())
