"""How an agent run ends: exactly one of `final`, `error`, `stopped`, last, and stored before it is sent.

events of loop.py -> numbered blocks -> whatever ends them (answer, fault, interrupt, bug) -> store() once -> last block
storage that cannot take the end: the run has failed, its caller is told so, and so says its record once there is room
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple

import orjson

from svc.agents.loop import Deltas, Event, Events, Progress
from svc.agents.runs import RunOutcome
from svc.errors import ApiError
from svc.inference.blocks import event
from svc.retry import retry_write
from svc.server.sse import Interrupt, LastBlock

_STORE_TRIES = 3


class End(NamedTuple):
    """Why a run ended, before it is known what it cost: `status` with its own field."""

    status: str
    output: str | None = None
    error: dict[str, Any] | None = None
    reason: str | None = None


class Record(NamedTuple):
    """The record of one run, as svc/agents/run.py keeps it.

    `opened()` writes its beginning; what it raises refuses the run. `decided()` is told that its end is, which nothing changes
    from there on. `store(end)` settles and writes the end in one transaction. `outcome(end)` is what it has come to.
    `told(error)` is what the caller sees of an error that has ended it.
    """

    opened: Callable[[], Awaitable[None]]
    decided: Callable[[], None]
    store: Callable[[End], Awaitable[None]]
    outcome: Callable[[End], RunOutcome]
    on_fault: Callable[[BaseException], None]
    told: Callable[[ApiError], dict[str, Any]] = lambda error: error.error


async def run_blocks(
    run_id: str,
    events: AsyncGenerator[Events, None],
    *,
    record: Record,
    progress: Progress,
    interrupt: Interrupt,
) -> AsyncGenerator[bytes, None]:
    """The blocks of a run's stream, as many at a time as `events` gives: each with `run_id` and `seq`, then the one that ends it.

    What `record.opened()` raises is raised here, before any block. The end is stored whatever happens to this task; only a
    cancellation that is not the interrupt's keeps the last block back.
    """
    try:
        await record.opened()
    except asyncio.CancelledError:
        # The record may have been written all the same.
        await _stored(record, End("stopped", reason=interrupt.reason or "shutdown"), interrupt)
        raise
    write = _Writer(run_id)
    cancelled: BaseException | None = None
    try:
        async with contextlib.aclosing(events):
            async for together in events:
                yield write(together)
        end = End("stopped", reason="max_steps") if progress.output is None else End("final", output=progress.output)
    except asyncio.CancelledError as error:
        end = End("stopped", reason=interrupt.reason or "shutdown")
        cancelled = None if interrupt.reason else error
    except GeneratorExit as exit_:
        end, cancelled = End("stopped", reason=interrupt.reason or "client_disconnected"), exit_
    except ApiError as error:
        end = End("error", error=record.told(error))
    except Exception as error:
        record.on_fault(error)
        end = End("error", error=ApiError("internal_error").error)
    outcome = await _stored(record, end, interrupt)
    if cancelled is not None:
        raise cancelled
    try:
        yield LastBlock(write([_last_event(outcome, progress)]))
    except asyncio.CancelledError:
        if interrupt.reason is None:
            raise
        # Nothing is left to interrupt: the stream ends with the block above.


class _Writer:
    """Writes a run's events as blocks, and numbers them."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._seq = 0
        self._delta = b'data: {"type":"delta","run_id":%b,"seq":%%d,"text":%%b}\n\n' % orjson.dumps(run_id)

    def __call__(self, together: Events) -> bytes:
        """A block for each event. What it raises for one that cannot be written leaves no gap."""
        written = self._deltas(together.texts) if isinstance(together, Deltas) else self._events(together)
        self._seq += written.count(b"\n\n")
        return written

    def _events(self, together: list[Event]) -> bytes:
        numbered = enumerate(together, self._seq + 1)
        return b"".join([event({"type": fields["type"], "run_id": self._run_id, "seq": n, **fields}) for n, fields in numbered])

    def _deltas(self, texts: list[str]) -> bytes:
        try:
            written = b"".join([self._delta % numbered for numbered in enumerate(map(orjson.dumps, texts), self._seq + 1)])
            if written.isascii():
                return written
        except TypeError:  # half an emoji, which is written the slower way
            pass
        return self._events([{"type": "delta", "text": text} for text in texts])


async def _stored(record: Record, end: End, interrupt: Interrupt) -> RunOutcome:
    """Stores the end, through any number of cancellations; those that are not the interrupt's count again afterwards."""
    record.decided()

    async def store() -> None:
        nonlocal end
        try:
            await record.store(end)
        except ApiError:
            raise
        except Exception as error:  # such an end can never be written
            record.on_fault(error)
            end = End("error", error=ApiError("internal_error").error)
            raise ApiError("internal_error") from error

    def refused(error: ApiError) -> None:
        nonlocal end
        record.on_fault(error)
        end = End("error", error=error.error)

    try:
        await retry_write(store, refused, tries=_STORE_TRIES)
    except ApiError:
        pass  # the caller is told so now, and the record once there is room
    except asyncio.CancelledError:
        if interrupt.reason is None:
            raise
    return record.outcome(end)


def _last_event(outcome: RunOutcome, progress: Progress) -> Event:
    own: dict[str, dict[str, Any]] = {
        "final": {"output": outcome.output, "finish_reason": progress.finish_reason},
        "error": {"error": outcome.error},
        "stopped": {"reason": outcome.reason},
    }
    costs = {"steps": outcome.steps, "usage": outcome.usage, "cost_micros": outcome.cost_micros}
    artifacts = {"artifacts": progress.artifacts} if outcome.status == "final" else {}
    return {"type": outcome.status, **own[outcome.status], **costs, **artifacts}
