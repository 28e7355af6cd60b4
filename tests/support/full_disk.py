"""A disk without room, and no free file descriptors, for a server in the test's own process."""

import contextlib
import os
import resource
from collections.abc import Iterator


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let every write to a file fail during the block, as on a full disk. Pipes and sockets still work."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def no_free_descriptors() -> Iterator[None]:
    """Let every file, socket and pipe that is opened during the block fail."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.dup(0)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
