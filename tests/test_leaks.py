"""A test module that leaves the application or a logger changed fails: later tests of its process would."""

import logging

import pytest

from svc.content import word_runs
from tests.support.leaks import leaks


def test_names_and_loggers_that_stay_changed_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    leaks()
    with monkeypatch.context() as patched:
        for owner, name in ((word_runs, "_FAN"), (logging.getLogger("uvicorn"), "propagate")):
            patched.setattr(owner, name, not getattr(owner, name))
        assert leaks() == ["svc.content.word_runs._FAN", "logger uvicorn.propagate"]
        assert leaks() == []
    assert leaks() == ["svc.content.word_runs._FAN", "logger uvicorn.propagate"], "now they are undone"
