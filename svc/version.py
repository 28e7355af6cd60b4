"""Which version of the service this is: what `pyproject.toml` says, as the installation knows it."""

import importlib.metadata
from functools import cache


@cache
def version() -> str:
    """Such as `0.1.0`; `unknown` where the service runs without having been installed."""
    try:
        return importlib.metadata.version("svc")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
