"""The class hierarchy of the client's faults."""

import inspect

from svc.outbound import errors
from svc.outbound.errors import (
    ConnectError,
    ConnectTimeout,
    Cut,
    InvalidRequest,
    InvalidURL,
    NoAnswer,
    OutboundError,
    ProtocolError,
)
from tests.support.cases import each

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


@each("kind", ALL)
def test_client_errors_share_a_base_class(kind: type[Exception]) -> None:
    assert issubclass(kind, OutboundError)
    assert not issubclass(OutboundError, OSError | ValueError)
    assert not issubclass(kind, TimeoutError), "a deadline of the caller's own is told from one of the client's"


def test_subclasses_are_caught_as_their_base() -> None:
    assert issubclass(InvalidURL, InvalidRequest)
    assert issubclass(ConnectTimeout, ConnectError)
    assert issubclass(NoAnswer, Cut)
    assert issubclass(Cut, ProtocolError)
