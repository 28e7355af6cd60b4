"""What the tests of `svc doctor` share."""

import sys
from collections.abc import Iterator

import pytest

from svc.builtin import sandbox


@pytest.fixture
def without_python(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without the extra `python`, `svc doctor` starts no process to try it."""
    binary = sandbox.binary
    with monkeypatch.context() as patches:
        patches.setitem(sys.modules, "pydantic_monty", None)
        binary.cache_clear()
        yield
    binary.cache_clear()
