"""Tests in an isolated network, where they may listen at any address and choose the DNS server."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server import ROOT

_ISOLATED = ("unshare", "--user", "--map-root-user", "--net", "--mount")


def isolated(folder: Path, *files: str, passed: int) -> None:
    """Run the tests of `files` there, of which so many must pass; `folder` is for theirs."""
    if (
        not shutil.which("unshare")
        or not shutil.which("ip")
        or subprocess.run([*_ISOLATED, "true"], capture_output=True).returncode
    ):
        pytest.skip("this machine lets nobody make a network namespace")
    # In a separate folder: otherwise it would delete those of other runs, this one's among them.
    own = ["-p", "no:cacheprovider", f"--basetemp={folder / 'isolated'}"]
    command = [*_ISOLATED, sys.executable, "-m", "pytest", "-q", "-n", "0", *own, *files]
    # Without the options of this run: to run failed tests again is its own affair.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=110)
    assert run.returncode == 0, run.stdout + run.stderr
    if " skipped" in run.stdout:
        pytest.skip(run.stdout)
    assert f"{passed} passed" in run.stdout
