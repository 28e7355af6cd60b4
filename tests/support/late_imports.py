"""Imports of large libraries by the first test that needs them. Each takes up to a second, which not every worker
needs.
"""

import gc
import importlib
from functools import cache


@cache
def import_late(name: str) -> None:
    """Import a module, and keep its objects out of garbage collections, as tests/conftest.py does for earlier imports.

    A collection that visits them holds the event loop, and tests measure that.
    """
    gc.disable()
    importlib.import_module(name)
    gc.collect()
    gc.freeze()
    gc.enable()
