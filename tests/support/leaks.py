"""Find what a test has changed for the later tests of its process: names in the application's modules, and loggers.

Example: a fixture patches a name, a test patches it again, and the fixture is undone first. Undoing the test then
restores the value of the fixture.
"""

import logging
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_LOGGERS = ("root", "uvicorn", "uvicorn.error", "svc", "svc.server.serve")
_before: dict[str, dict[str, Any]] = {}


def leaks() -> list[str]:
    """Return what has another value than at the last call, which is none if it was imported since."""
    found = []
    for place, now in _state():
        before = _before.setdefault(place, now)
        found += [
            f"{place}.{name}"
            for name, value in now.items()
            if before.get(name, value) is not value and not isinstance(value, ModuleType)  # imported again
        ]
        _before[place] = now
    return found


def _state() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, module in list(sys.modules.items()):
        if name.startswith("svc."):
            yield name, dict(vars(module))
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        yield f"logger {name}", {part: getattr(logger, part) for part in ("level", "propagate", "disabled")}
    yield "logging", {"disabled": logging.root.manager.disable}
