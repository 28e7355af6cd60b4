"""Backups that administrators start, one at a time, by `svc backup` in a separate process.

start() -> python -m svc backup --progress FOLDER -> its progress and result in `state`, for GET /admin/status
"""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from svc.config import Config
from svc.errors import ApiError
from svc.ids import timestamp

_ROOT = Path(__file__).parent.parent.parent
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TMPDIR")  # other variables may hold the operator's secrets
_PROGRESS = re.compile(rb"(\d+) %")
_RESULT = re.compile(r"(?P<file>.+): (?P<bytes>\d+) bytes, version ")


@dataclass
class BackupState:
    """A backup that runs or was the last one. `error` is the line of a failed one."""

    running: bool
    percent: int
    started_at: str
    finished_at: str | None = None
    file: str | None = None
    bytes: int | None = None
    error: str | None = None


class Backups:
    """`log(event, **fields)` writes the end of each backup to the log."""

    def __init__(self, config: Config, log: Callable[..., None]) -> None:
        self._folder = config.backup_dir and config.backup_dir.absolute()
        self._data_dir = config.data_dir.absolute()
        self._clock, self._log = config.clock, log
        self._state: BackupState | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._task: asyncio.Task[None] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the backup's part of `GET /admin/status`."""
        return {"folder": self._folder and str(self._folder), "last": self._state and asdict(self._state)}

    async def check(self) -> None:
        """Raise ApiError `backup_not_set_up` if there is no folder for backups, `already_active` if one is made now."""
        if self._folder is None:
            raise ApiError("backup_not_set_up")
        if not await asyncio.to_thread(os.path.isdir, self._folder):
            message = f"The folder of backups, {self._folder}, is missing. Ask the operator to check SVC_BACKUP_DIR."
            raise ApiError("backup_not_set_up", message)
        if self._state is not None and self._state.running:
            raise ApiError("already_active", "A backup is being made. Wait until it has ended.")

    async def start(self) -> None:
        """Begin a backup in the background. Raises what `check` does."""
        await self.check()
        self._state = BackupState(True, 0, timestamp(self._clock()))
        self._task = asyncio.create_task(self._make(self._state))

    async def close(self) -> None:
        """End a backup that is being made. The next one removes its files."""
        if self._process is not None:
            self._process.kill()
        if self._task is not None:
            await self._task

    async def _make(self, state: BackupState) -> None:
        try:
            await asyncio.to_thread(self._run, state)
        except OSError as error:
            state.error = f"no process can be started: {error.strerror}"
        state.running, state.finished_at = False, timestamp(self._clock())
        level = "warning" if state.error else "info"
        self._log("backup", level=level, file=state.file, bytes=state.bytes, error=state.error)

    def _run(self, state: BackupState) -> None:
        # To start a process on the event loop would block it for 10 ms and more.
        with subprocess.Popen(  # noqa: S603 - our own program
            (sys.executable, "-m", "svc", "backup", "--progress", str(self._folder)),
            cwd=_ROOT,
            env={
                **{name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                "SVC_DATA_DIR": str(self._data_dir),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stdout and process.stderr
            self._process, said = process, b""
            while read := os.read(process.stderr.fileno(), 1024):
                said = (said + read)[-1024:]
                if progress := _PROGRESS.findall(said):
                    state.percent = int(progress[-1])
            result = process.stdout.read().decode()
        self._process = None
        if process.returncode == 0 and (made := _RESULT.match(result)):
            state.percent, state.file, state.bytes = 100, made["file"], int(made["bytes"])
            return
        lines = said.decode(errors="replace").splitlines()
        state.error = lines[-1].removeprefix("svc: ") if process.returncode > 0 and lines else "the backup was ended"
