"""The helper process that resolves names: a line for each, whatever is asked, and none that takes too long."""

import subprocess
import sys

from svc.outbound import resolver_process
from tests.outbound.test_resolver import SLOW_LOOKUP


def answers(program: str, seconds: str, *hosts: str) -> dict[int, list[str]]:
    """What it answers to names that are numbered from 0, until it and all of its processes have ended."""
    asked = "".join(f"{number} {host}\n" for number, host in enumerate(hosts))
    done = subprocess.run(
        [sys.executable, "-IS", program, seconds], input=asked, capture_output=True, text=True, timeout=20
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len({line[0] for line in lines}) == len(lines)
    return {int(number): found for number, *found in lines}


def test_each_name_has_its_answer() -> None:
    found = answers(resolver_process.__file__, "5", "127.0.0.1", "localhost", "a..b", "x" * 64 + ".example")
    assert (
        found[0] == ["127.0.0.1"] and set(found[1]) <= {"127.0.0.1", "::1"} and found[1] and found[2] == found[3] == []
    )


def test_unanswered_name_ends_in_time_and_delays_no_other() -> None:
    assert answers(str(SLOW_LOOKUP), "0.3", "slow.example", "fast.example", "wrong.example") == {
        1: ["127.0.0.1"],
        2: [],
    }
