"""One GGUF file as a model server: its helper process, its state, and the turns of its calls.

unloaded -> loading -> ready -> (idle for long, or room is needed) unloaded
a crash -> loading; three in a minute, or a file that cannot be loaded -> failed, for 10 minutes or until a reload
"""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson

from svc.errors import ApiError, UpstreamFault
from svc.fair_queue import FairQueue
from svc.inference.catalog import LOCAL, Model, Provider
from svc.inference.local.files import LocalSettings, ModelFile

HELPER = (sys.executable, "-Es", "-m", "svc.inference.local.helper")
_ROOT = Path(__file__).parent.parent.parent.parent
# Other variables may hold the operator's secrets.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
_WAIT_SECONDS = 120.0  # for a turn, and then for loading
_ANSWER_SECONDS = 3600.0  # a long prompt takes minutes to its first token
_CRASHES, _CRASH_SECONDS = 3, 60.0
_FAILED_SECONDS = 600.0
_LOG_BYTES, _LOG_LINES = 4096, 5


class LocalModel:
    """Loads a file when it is asked, and unloads it. `make_room(model)` returns whether there is memory for it."""

    def __init__(
        self,
        file: ModelFile,
        settings: LocalSettings,
        command: tuple[str, ...],
        make_room: "Callable[[LocalModel], Awaitable[bool]]",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.file, self.settings = file, settings
        self.state = "unloaded"
        self.error: str | None = None  # why it failed, with the last lines of its log
        self.calls = 0  # in progress and waiting
        self.idle_since = monotonic()
        self.pid: int | None = None
        self.gone = False  # the file is no longer offered
        self.model = self._as_model()
        self._command, self._make_room, self._monotonic = command, make_room, monotonic
        self._queue = FairQueue(settings.parallel, settings.parallel)
        self._running: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # it is not loading
        self._server: Provider | None = None
        self._crashes: deque[float] = deque(maxlen=_CRASHES)
        self._failed_at = 0.0

    def _as_model(self) -> Model:
        provider = Provider(LOCAL, "http://127.0.0.1", on_demand=self)
        own: Model | None = self.settings.models.get(self.file.path.name.lower())
        length = (own and own.context_length) or self.settings.context_length
        length = min(length, self.file.context_length or length)
        model = own or provider.model(self.file.name)
        capabilities = ("tools",) if model.capabilities is None else model.capabilities
        return replace(model, provider=provider, context_length=length, capabilities=capabilities)

    # --- calls

    async def take(self, account_id: str) -> tuple[Provider, Callable[[], None]]:
        """Wait for a turn and for the helper. Return the server to ask, and the function to call after the answer.

        Raises ApiError `overloaded`, and UpstreamFault for a file that cannot be loaded.
        """
        self.calls += 1
        try:
            try:
                async with asyncio.timeout(_WAIT_SECONDS):
                    release = await self._queue.take(account_id)
            except TimeoutError:
                message = "The model is busy with other calls. Try again in a moment."
                raise ApiError("overloaded", message, retry_after_seconds=5) from None
            try:
                return await self._loaded(), partial(self._end, release)
            except BaseException:
                release()
                raise
        except BaseException:
            self._end()
            raise

    def _end(self, release: Callable[[], None] | None = None) -> None:
        if release is not None:
            release()
        self.calls -= 1
        self.idle_since = self._monotonic()
        if self.gone and not self.calls:
            self._stop()

    async def _loaded(self) -> Provider:
        if self.state == "unloaded":
            self._start()
        try:
            async with asyncio.timeout(None if self.state == "ready" else _WAIT_SECONDS):
                while self.state == "loading":
                    await self._settled.wait()
        except TimeoutError:
            message = "The model is still being loaded. Try again in a moment."
            raise ApiError("overloaded", message, retry_after_seconds=10) from None
        if self.state == "failed":
            raise UpstreamFault("unreachable", "The model cannot be loaded.")
        if self.state != "ready":
            message = "There is no memory to load this model now. Try again later, or use another model."
            raise ApiError("overloaded", message, retry_after_seconds=10)
        assert self._server is not None
        return self._server

    # --- the helper process

    @property
    def is_idle(self) -> bool:
        """Whether it is loaded and no call needs it."""
        return self.state == "ready" and not self.calls

    def used_bytes(self) -> int:
        """Return the memory of the helper process: what was measured, at least the size of the file."""
        if self._running is None:
            return 0
        with contextlib.suppress(OSError, ValueError, IndexError):  # only Linux has these, and it may have ended
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
            return max(pages * os.sysconf("SC_PAGE_SIZE"), self.file.size_bytes)
        return self.file.size_bytes

    def check(self) -> None:
        """Unload the model if it was idle for long, and end an old failure."""
        now_seconds = self._monotonic()
        if self.is_idle and now_seconds - self.idle_since >= self.settings.idle_seconds:
            self._stop()
        elif self.state == "failed" and now_seconds - self._failed_at >= _FAILED_SECONDS:
            self.forget_failure()

    def forget_failure(self) -> None:
        self._crashes.clear()
        if self.state == "failed":
            self.state, self.error = "unloaded", None

    async def unload(self) -> None:
        """End the helper process. Calls in progress fail as those of a model server that died."""
        if (running := self._running) is not None:
            self._stop()
            await asyncio.wait([running])

    def drop(self) -> None:
        """Unload the model after its last call: its file was removed or changed."""
        self.gone = True
        if not self.calls:
            self._stop()

    @property
    def is_running(self) -> bool:
        """Whether there is a helper process, which may be ending."""
        return self._running is not None

    def _start(self) -> None:
        self._unsettle()
        self._running = asyncio.create_task(self._run(self._running))
        self._running.add_done_callback(self._ended)

    def _stop(self) -> None:
        if self._running is not None and not self._running.cancelling():  # a second time would end its clean-up
            self._running.cancel()
            self._settle("unloaded")

    async def _run(self, previous: "asyncio.Task[None] | None") -> None:
        """Keep a helper process running until the model is unloaded or fails. Raises OSError."""
        if previous is not None:
            await asyncio.wait([previous])
        while await self._make_room(self):
            log = bytearray()
            async with self._helper(log) as (process, key):
                assert process.stdout is not None
                if port := (await process.stdout.readline()).strip().decode():
                    address = f"http://127.0.0.1:{port}/v1"
                    self._server = Provider(LOCAL, address, key, timeout_seconds=_ANSWER_SECONDS)
                    self._settle("ready")
                status = await process.wait()
                self._unsettle()  # at once: calls must not be sent to it any more
            self._crashes.append(now_seconds := self._monotonic())
            crashed_often = len(self._crashes) == _CRASHES and now_seconds - self._crashes[0] < _CRASH_SECONDS
            if crashed_often or (status >= 0 and not port):  # a negative status is that of a crash
                self._fail(_last_lines(log, status))
                return

    def _ended(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if self._running is not task:  # the next one waits for its end
            return
        self._running = None
        if error is not None:
            self._fail(f"the helper process cannot be started: {error}")
        elif self.state != "failed":
            self._settle("unloaded")

    def _fail(self, error: str) -> None:
        self._failed_at, self.error = self._monotonic(), error
        self._settle("failed")

    def _unsettle(self) -> None:
        self._settled.clear()
        self.state = "loading"

    def _settle(self, state: str) -> None:
        self.state = state
        self.idle_since = self._monotonic()
        self._settled.set()

    @contextlib.asynccontextmanager
    async def _helper(self, log: bytearray) -> AsyncIterator[tuple[Process, str]]:
        """Run a helper process during the block, with a new key. `log` gets the end of what it writes."""
        settings, key = self.settings, secrets.token_urlsafe(32)
        order = {
            "parent": os.getpid(),
            "path": str(self.file.path.resolve()),
            "key": key,
            "context_length": self.model.context_length,
            "parallel": settings.parallel,
            "threads": settings.threads or max(os.sysconf("SC_NPROCESSORS_ONLN") - 1, 1),
            "gpu_layers": settings.gpu_layers,
        }
        process = await asyncio.create_subprocess_exec(
            *self._command,
            cwd=_ROOT,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
        self.pid = process.pid
        reading = asyncio.create_task(_read_log(process, log))
        try:
            assert process.stdin is not None
            process.stdin.write(orjson.dumps(order) + b"\n")
            yield process, key
        finally:
            self.pid = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.wait([asyncio.ensure_future(process.wait()), reading])


async def _read_log(process: Process, log: bytearray) -> None:
    assert process.stderr is not None
    while part := await process.stderr.read(_LOG_BYTES):
        log += part
        del log[:-_LOG_BYTES]


def _last_lines(log: bytearray, status: int) -> str:
    lines = [line.strip() for line in log.decode("utf-8", "replace").split("\n") if line.strip()]
    ending = f"signal {-status}" if status < 0 else f"status {status}"
    return "\n".join([f"the helper process ended with {ending}", *lines[-_LOG_LINES:]])
