"""Names that users choose: a share of the lookups for each account, and nothing left of those that are
never answered.
"""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from svc.outbound import resolver
from svc.outbound.resolver import Resolver
from tests.support.cases import each

SLOW_LOOKUP = Path(__file__).parent.parent / "support" / "slow_lookup.py"


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "PROGRAM", SLOW_LOOKUP)


@pytest.fixture
async def names(dns: None) -> AsyncIterator[Resolver]:
    async with aclosing(Resolver(1.0)) as names:
        yield names


def children(process: str | int) -> list[str]:
    return " ".join(path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")).split()


def helpers() -> list[str]:
    """The process of a resolver in this one."""
    programs = (SLOW_LOOKUP.name.encode(), b"resolver_process")
    found = [(process, Path(f"/proc/{process}/cmdline").read_bytes()) for process in children("self")]
    return [process for process, command in found if any(program in command for program in programs)]


def lookups() -> list[str]:
    """The processes that resolve a name now."""
    return [lookup for process in helpers() for lookup in children(process)]


async def test_names_are_resolved_and_addresses_are_returned() -> None:
    async with aclosing(Resolver()) as names:
        assert await names("127.0.0.1", 80) == ["127.0.0.1"] and await names("::1", 80) == ["::1"]
        assert helpers() == [], "an address needs no process"
        assert set(await names("localhost", 80)) <= {"127.0.0.1", "::1"}


@each("wrong", ["x" * 64 + ".example", "\ud800", "a..b", "a b", "a\n2 b", "", "x" * 300])
async def test_invalid_name_is_an_error_and_the_next_name_resolves(names: Resolver, wrong: str) -> None:
    with pytest.raises((OSError, ValueError)):
        await names(wrong, 80)
    assert await names("fast.example", 80) == ["127.0.0.1"]
    with pytest.raises(OSError, match="no address"):
        await names("wrong.example", 80)


async def test_an_accounts_silent_names_delay_no_other_account(dns: None) -> None:
    names = Resolver(60.0)
    silent = [asyncio.create_task(names(f"slow{number}.example", 80, "mallory")) for number in range(80)]
    await asyncio.sleep(0)
    assert (
        await asyncio.gather(*(names("fast.example", 80, f"acc{number}") for number in range(30)))
        == [["127.0.0.1"]] * 30
    )
    assert await names("fast.example", 80) == ["127.0.0.1"], "nor the operator"
    assert not any(task.done() for task in silent)
    async with asyncio.timeout(10):  # those of the fast names may just end
        while len(lookups()) != 8:
            await asyncio.sleep(0.02)
    await names.aclose()
    await asyncio.gather(*silent, return_exceptions=True)


async def test_silent_names_of_many_accounts_delay_no_new_account(dns: None) -> None:
    names = Resolver(60.0)
    silent = [asyncio.create_task(names(f"slow{number}.example", 80, f"mallory{number % 64}")) for number in range(512)]
    await asyncio.sleep(0)
    for number in range(3):
        assert await names("fast.example", 80, f"new{number}") == ["127.0.0.1"]
    assert not any(task.done() for task in silent)
    await names.aclose()
    await asyncio.gather(*silent, return_exceptions=True)


async def test_cancelled_lookup_counts_until_it_ends(names: Resolver) -> None:
    await names("fast.example", 80)
    for number in range(20):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(names(f"slow{number}.example", 80, "mallory"), 0.01)
    assert len(lookups()) <= 8
    assert await names("fast.example", 80, "mallory") == ["127.0.0.1"], "it waits for a place, which comes"


async def test_unanswered_name_closes_its_process_and_files(names: Resolver) -> None:
    await names("fast.example", 80)
    threads = threading.active_count()
    found = await asyncio.gather(
        *(names(f"slow{number}.example", 80, "mallory") for number in range(8)), return_exceptions=True
    )
    assert all(isinstance(error, OSError) for error in found)
    assert threading.active_count() == threads
    async with asyncio.timeout(20):
        while lookups():
            await asyncio.sleep(0.02)


async def test_dead_helper_process_is_replaced(names: Resolver) -> None:
    await names("fast.example", 80)
    [process] = helpers()
    os.kill(int(process), signal.SIGKILL)
    with pytest.raises(OSError, match="no address"):
        await names("slow.example", 80)
    assert await names("fast.example", 80) == ["127.0.0.1"]


async def test_close_does_not_wait_for_lookups(dns: None) -> None:
    names = Resolver(3600.0)
    waiting = [asyncio.create_task(names(f"slow{number}.example", 80, "mallory")) for number in range(20)]
    while len(lookups()) < 8:
        await asyncio.sleep(0.02)
    processes = [*helpers(), *lookups()]
    async with asyncio.timeout(20):
        await names.aclose()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(error, OSError) for error in found)
    while any(Path("/proc", process).exists() for process in processes):
        await asyncio.sleep(0.02)
