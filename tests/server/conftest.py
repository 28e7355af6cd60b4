"""A running server with the tiny application, for the tests of connections."""

from collections.abc import Iterator

import pytest

from tests.support.connections import SHORT, TINY
from tests.support.server import RunningServer, running_server_sync


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with its real deadlines."""
    with running_server_sync(tmp_path_factory.mktemp("server"), command=TINY) as running:
        yield running


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server whose deadlines are one to two seconds."""
    with running_server_sync(tmp_path_factory.mktemp("hasty"), SHORT, TINY) as running:
        yield running
