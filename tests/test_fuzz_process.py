"""Unusual requests, in short: `python -m tests.fuzz` sends a million."""

import random
from pathlib import Path

import pytest

from tests.fuzz import documented, wire

pytestmark = pytest.mark.slow


async def test_generated_requests_are_answered_as_documented(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    seed = str(pytestconfig.getoption("--seed"))
    corpus = documented.Corpus(random.Random(seed), operations=16, each=3)
    assert await documented.play(tmp_path, seed, 800, corpus) == []


async def test_mutated_http_bytes_cause_no_500_and_no_stall(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    assert await wire.play(tmp_path, str(pytestconfig.getoption("--seed")), 1_500) == []
