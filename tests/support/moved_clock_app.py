"""The whole service under a clock that a test moves: the file CLOCK holds how many seconds it is ahead of this
machine's.

It checks its certificate twenty times a second instead of once a day, and hashes passwords cheaply: a day has many
sign-ins.
"""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from app import create_app
from svc.config import from_environ
from svc.server.serve import Server, run

CLOCK = Path(os.environ["CLOCK"])


def ahead() -> float:
    return float(CLOCK.read_text())


Server.renew_seconds = 0.05
config = from_environ(os.environ)
moved = replace(
    config,
    clock=lambda: time.time() + ahead(),
    monotonic=lambda: time.monotonic() + ahead(),
    argon2_memory_kib=8,
    argon2_time_cost=1,
)
sys.exit(run(lambda: moved, create_app))
