"""Every attack in its short form: other clients notice nothing. `python -m tests.attacks` plays the long forms and
prints figures."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.attacks.lab import Laboratory, Outcome, laboratory, load

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
ATTACKS = load()
MOST_STALL_MS = 50
# A write of another account waits for the open transaction and one more, each of some milliseconds: for less than 100
# ms.
MOST_TRANSACTION_MS = 50
MOST_MEMORY_MB = 400
# The attack, its client and the probe share this machine's cores with the server: a write takes so much longer than
# without them.
MOST_WRITE_MS, MOST_WRITE_TIMES = 500, 20
TRIES = 3  # what an attack does comes back each time, what other programs on the machine do does not


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Laboratory]:
    async with laboratory(tmp_path_factory.mktemp("attacks"), short=True) as lab:
        yield lab


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def calm(lab: Laboratory) -> Outcome:
    """Measure the waits of other clients without an attack."""
    return await lab.watch(1.0)


@pytest.mark.parametrize("name", sorted(ATTACKS.keys() - {"a_quiet_second"}))  # `calm` is that one
async def test_attack_does_not_block_other_accounts(lab: Laboratory, calm: Outcome, name: str) -> None:
    outcomes = []
    for _ in range(TRIES):
        outcomes.append(found := await lab.play(ATTACKS[name]))
        assert not found.over_time and found.failures == 0 and "500" not in found.statuses, found
        if (
            found.stall_ms < MOST_STALL_MS
            and found.memory_mb < MOST_MEMORY_MB
            and found.transaction_ms < MOST_TRANSACTION_MS
            and found.write_ms < MOST_WRITE_MS + MOST_WRITE_TIMES * calm.write_ms
        ):
            return
    raise AssertionError(outcomes, calm)
