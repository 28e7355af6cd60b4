"""The stream of an agent run. Its last event is `final`, `error` or `stopped`, and it is stored before it is sent.

events of loop.py -> numbered blocks, and what the record keeps of them -> their end (answer, fault, interrupt, bug)
-> store() once -> last block

If the end cannot be stored, the run has failed: the caller sees an error, and the record shows it once there is room.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, NamedTuple

import orjson

from svc.agents.loop import Deltas, Event, Events, Progress
from svc.agents.runs import EVENTS_BYTES, RunOutcome
from svc.errors import ApiError
from svc.inference.blocks import event
from svc.retry import retry_write
from svc.server.sse import Interrupt, LastBlock

_STORE_TRIES = 3
_KEPT = ("started", "step", "tool_call", "tool_result")
_KEPT_RESULT_CHARACTERS = 4_000
_TRUNCATED = b'{"type":"truncated"}'


class Record(NamedTuple):
    """The record of one run, kept by svc/agents/run.py.

    `opened()` stores the beginning; its exception refuses the run. `decided()` is called once the end cannot change any more.
    `store(end)` settles and stores the end in one transaction. `outcome(end)` returns the outcome with the usage.
    `error_of(error)` returns the error object for the caller.
    """

    opened: Callable[[], Awaitable[None]]
    decided: Callable[[], None]
    store: Callable[[RunOutcome], Awaitable[None]]
    outcome: Callable[[RunOutcome], RunOutcome]
    on_fault: Callable[[BaseException], None]
    error_of: Callable[[ApiError], dict[str, Any]] = lambda error: error.error


async def run_blocks(
    run_id: str,
    events: AsyncGenerator[Events, None],
    *,
    record: Record,
    progress: Progress,
    interrupt: Interrupt,
) -> AsyncGenerator[bytes, None]:
    """Yield the blocks of a run's stream, as many at a time as `events` yields: each with `run_id` and `seq`, then the last one.

    An exception of `record.opened()` is raised before any block. The end is always stored. After a cancellation that is not the
    interrupt's, the last block is not sent.
    """
    try:
        await record.opened()
    except asyncio.CancelledError:
        # The record may have been stored.
        await _stored(record, RunOutcome("stopped", reason=interrupt.reason or "shutdown"), interrupt)
        raise
    write = _Writer(run_id, progress)
    cancelled: BaseException | None = None
    try:
        async with contextlib.aclosing(events):
            async for together in events:
                yield write(together)
        end = (
            RunOutcome("stopped", reason="max_steps") if progress.output is None else RunOutcome("final", output=progress.output)
        )
    except asyncio.CancelledError as error:
        end = RunOutcome("stopped", reason=interrupt.reason or "shutdown")
        cancelled = None if interrupt.reason else error
    except GeneratorExit as exit_:
        end, cancelled = RunOutcome("stopped", reason=interrupt.reason or "client_disconnected"), exit_
    except ApiError as error:
        end = RunOutcome("error", error=record.error_of(error))
    except Exception as error:
        record.on_fault(error)
        end = RunOutcome("error", error=ApiError("internal_error").error)
    outcome = await _stored(record, end, interrupt)
    if cancelled is not None:
        raise cancelled
    try:
        yield LastBlock(write([_last_event(outcome, progress)]))
    except asyncio.CancelledError:
        if interrupt.reason is None:
            raise
        # The stream ends with the block above.


class _Writer:
    """Writes a run's events as numbered blocks, and keeps them in `progress` without texts, up to EVENTS_BYTES."""

    def __init__(self, run_id: str, progress: Progress) -> None:
        self._run_id = run_id
        self._progress = progress
        self._kept_bytes = 0
        self._delta = b'data: {"type":"delta","run_id":%b,"seq":%%d,"text":%%b}\n\n' % orjson.dumps(run_id)

    def __call__(self, together: Events) -> bytes:
        """Return a block for each event. An exception leaves no gap in the numbers."""
        written = self._deltas(together.texts) if isinstance(together, Deltas) else self._events(together)
        self._progress.seq += written.count(b"\n\n")
        return written

    def _events(self, together: list[Event]) -> bytes:
        numbered = enumerate(together, self._progress.seq + 1)
        events = [{"type": fields["type"], "run_id": self._run_id, "seq": n, **fields} for n, fields in numbered]
        blocks = [event(fields) for fields in events]
        for fields, block in zip(events, blocks, strict=True):
            if fields["type"] in _KEPT and self._kept_bytes <= EVENTS_BYTES:
                self._keep(fields, block)
        return b"".join(blocks)

    def _keep(self, fields: Event, block: bytes) -> None:
        result = fields.get("result", "")
        text = result if isinstance(result, str) else orjson.dumps(result).decode()
        if len(text) > _KEPT_RESULT_CHARACTERS:
            block = event({**fields, "result": text[:_KEPT_RESULT_CHARACTERS]})
        self._kept_bytes += len(block)
        kept = block[len(b"data: ") :].rstrip(b"\n")
        self._progress.events.append(kept if self._kept_bytes <= EVENTS_BYTES else _TRUNCATED)

    def _deltas(self, texts: list[str]) -> bytes:
        first = self._progress.seq + 1
        try:
            written = b"".join([self._delta % numbered for numbered in enumerate(map(orjson.dumps, texts), first)])
            if written.isascii():
                return written
        except TypeError:  # half an emoji
            pass
        return self._events([{"type": "delta", "text": text} for text in texts])


async def _stored(record: Record, end: RunOutcome, interrupt: Interrupt) -> RunOutcome:
    """Store the end despite cancellations. One that is not the interrupt's is raised afterwards."""
    record.decided()

    async def store() -> None:
        nonlocal end
        try:
            await record.store(end)
        except ApiError:
            raise
        except Exception as error:  # an end that can never be stored
            record.on_fault(error)
            end = RunOutcome("error", error=ApiError("internal_error").error)
            raise ApiError("internal_error") from error

    def refused(error: ApiError) -> None:
        nonlocal end
        record.on_fault(error)
        end = RunOutcome("error", error=error.error)

    try:
        await retry_write(store, refused, tries=_STORE_TRIES)
    except ApiError:
        pass  # the caller sees the error now, and the record gets it once there is room
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
