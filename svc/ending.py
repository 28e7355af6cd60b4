"""How an agent run ends: exactly one of `final`, `error`, `stopped`, last, and stored before it is sent (contract 5).

    events of svc/agent.py -> numbered blocks -> whatever ends them (answer, fault, interrupt, bug) -> store() once -> last block
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from svc.agent import Progress
from svc.errors import ApiError
from svc.runs import Outcome
from svc.sse import Interrupt
from svc.wire import event

_STORE_TRIES = 3
_STORE_PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class End:
    """Why a run ended, before it is known what it cost: `status` with its own field."""

    status: str
    output: str | None = None
    error: dict[str, Any] | None = None
    reason: str | None = None


# Settles and records the end in one transaction; the outcome as it was recorded.
Store = Callable[[End], Awaitable[Outcome]]


async def run_blocks(
    run_id: str,
    events: AsyncGenerator[dict[str, Any], None],
    *,
    opened: Callable[[], Awaitable[None]],
    progress: Progress,
    interrupt: Interrupt,
    store: Store,
    on_fault: Callable[[BaseException], None],
) -> AsyncGenerator[bytes, None]:
    """The blocks of a run's stream: each event with `run_id` and `seq`, then the one that ends it.

    `opened()` records the beginning; what it raises is raised here, before any block. `store(end)` runs to its end whatever
    happens to this task; when it cannot record, the caller is told `error`, too.
    """
    try:
        await opened()
    except asyncio.CancelledError:
        # The record may have been written all the same.
        await _to_its_end(asyncio.ensure_future(_stored(store, End("stopped", reason=interrupt.reason or "shutdown"), on_fault)))
        raise
    seq = 0

    def block(fields: dict[str, Any]) -> bytes:
        nonlocal seq
        seq += 1
        return event({"type": fields["type"], "run_id": run_id, "seq": seq, **fields})

    closed: BaseException | None = None
    try:
        async with contextlib.aclosing(events):
            async for fields in events:
                yield block(fields)
        end = End("stopped", reason="max_steps") if progress.output is None else End("final", output=progress.output)
    except asyncio.CancelledError as cancelled:
        end = End("stopped", reason=interrupt.reason or "shutdown")
        closed = None if interrupt.reason else cancelled
    except GeneratorExit as exit_:
        end, closed = End("stopped", reason="client_disconnected"), exit_
    except ApiError as error:
        end = End("error", error=error.error)
    except Exception as error:
        on_fault(error)
        end = End("error", error=ApiError("internal_error").error)
    outcome = await _to_its_end(asyncio.ensure_future(_stored(store, end, on_fault)))
    if closed is not None:
        raise closed
    yield block(_last_event(outcome, progress))


async def _stored(store: Store, end: End, on_fault: Callable[[BaseException], None]) -> Outcome:
    for tries_left in reversed(range(_STORE_TRIES)):
        try:
            return await store(end)
        except Exception as error:
            if not tries_left:
                on_fault(error)
                fault = error if isinstance(error, ApiError) else ApiError("internal_error")
                break
            await asyncio.sleep(_STORE_PAUSE_SECONDS)
    return Outcome("error", 0, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, 0, error=fault.error)


async def _to_its_end(task: "asyncio.Task[Outcome]") -> Outcome:
    """The task's result, waited for through any number of cancellations; they count again once it is there."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()


def _last_event(outcome: Outcome, progress: Progress) -> dict[str, Any]:
    own: dict[str, dict[str, Any]] = {
        "final": {"output": outcome.output},
        "error": {"error": outcome.error},
        "stopped": {"reason": outcome.reason},
    }
    costs = {"steps": outcome.steps, "usage": outcome.usage, "cost_micros": outcome.cost_micros}
    artifacts = {"artifacts": progress.artifacts} if outcome.status == "final" else {}
    return {"type": outcome.status, **own[outcome.status], **costs, **artifacts}
