"""Helper processes: a few at once, fair among accounts, bounded, and none is left behind."""

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from svc.builtin.processes import ProcessPool
from svc.builtin.voice import Voice
from svc.errors import ApiError, UpstreamFault
from tests.support.loop_clock import hastened
from tests.support.pdfs import SLOW, needs_pypdf
from tests.support.voice import TEXT, children, program, say, until_children

BUSY = {"prompt": "seven castles in the city at night, fireworks", "width": 512, "height": 512, "variation": 0}


@pytest.mark.slow
async def test_two_processes_run_and_others_wait() -> None:
    pool = ProcessPool("svc.builtin.painter.paint")
    tasks = [asyncio.create_task(pool.run(BUSY, account_id=f"user_{number % 3}")) for number in range(6)]
    await until_children(2)
    for _ in range(15):  # a third one would have started by then
        assert len(children()) <= 2 and pool.at_work() <= 2
        await asyncio.sleep(0.02)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await until_children(0)
    assert pool.at_work() == 0
    await pool.close()


async def test_dead_process_is_one_fault_and_the_next_order_works() -> None:
    pool = ProcessPool("svc.builtin.painter.paint")
    task = asyncio.create_task(pool.run(BUSY))
    for pid in await until_children(1):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(UpstreamFault) as fault:
        await task
    assert fault.value.kind == "cut"
    small = {**BUSY, "width": 64, "height": 64}
    assert (await pool.run(small)).partition(b"\n")[2].startswith(b"\x89PNG")
    with pytest.raises(UpstreamFault):
        await pool.run({"no": "order"})
    await pool.close()


async def test_cancelled_order_ends_at_once_while_running_or_waiting() -> None:
    pool = ProcessPool("svc.builtin.painter.paint", at_once=1)
    running, waiting = asyncio.create_task(pool.run(BUSY)), asyncio.create_task(pool.run(BUSY))
    await until_children(1)
    for task in (waiting, running):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await until_children(0, within_seconds=1)
    assert (await pool.run({**BUSY, "width": 64, "height": 64})).partition(b"\n")[2].startswith(b"\x89PNG")
    await pool.close()


@needs_pypdf
async def test_account_waits_for_others_only_a_moment_and_for_its_own_orders_as_long_as_needed() -> None:
    pool = ProcessPool("svc.builtin.pdf", at_once=1)
    with tempfile.TemporaryFile() as endless:
        endless.write(SLOW)
        endless.flush()
        order = {"path": sys.path}
        running = asyncio.create_task(pool.run(order, endless, account_id="slow"))
        await until_children(1)
        own = asyncio.create_task(pool.run(order, endless, account_id="slow"))
        begun = asyncio.create_task(pool.run(order, endless, account_id="other", patient=True))
        with pytest.raises(ApiError, match="work of others") as refused:
            await hastened(pool.run(order, endless, account_id="other"))
        assert (refused.value.status, refused.value.headers["retry-after"]) == (503, "5")
        assert not (running.done() or own.done() or begun.done())
        await pool.close()
        await asyncio.gather(running, own, begun, return_exceptions=True)


async def test_slow_order_is_killed_with_its_child_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "lame", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    pool = ProcessPool("svc.builtin.speak", seconds=1.0)
    async with asyncio.timeout(20):
        with pytest.raises(UpstreamFault) as fault:
            await say(Voice(pool), TEXT, format="mp3")
    assert fault.value.kind == "timeout"
    encoder = int((tmp_path / "pid").read_text())
    async with asyncio.timeout(5):
        while Path(f"/proc/{encoder}").exists() and "Z" not in Path(f"/proc/{encoder}/stat").read_text():
            await asyncio.sleep(0.02)
    await pool.close()


async def test_close_kills_running_orders_and_refuses_waiting_ones() -> None:
    pool = ProcessPool("svc.builtin.painter.paint", at_once=1)
    running, waiting = asyncio.create_task(pool.run(BUSY)), asyncio.create_task(pool.run(BUSY))
    await until_children(1)
    await pool.close()
    assert children() == set()
    with pytest.raises(UpstreamFault):
        await running
    with pytest.raises(ApiError, match="shutting down"):
        await waiting


async def test_process_sees_only_the_needed_environment_variables(
    tmp_path: Path, pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "lame", "env")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SVC_STRIPE_SECRET_KEY", "sk-the-operators-secret")
    monkeypatch.setenv("OLLAMA_KEY", "another-secret")
    _, environment = await say(Voice(pool), "hi", format="mp3")
    assert b"PATH=" in environment and b"secret" not in environment
