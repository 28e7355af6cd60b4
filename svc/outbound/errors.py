"""What can go wrong on the way out. The texts quote nothing: a URL, a header or an answer may hold a secret."""


class OutboundError(Exception):
    """A request that did not come to the end of its answer."""


class InvalidRequest(OutboundError):
    """The URL, the method or a header cannot be sent; nothing was."""


class InvalidURL(InvalidRequest):
    """The URL is none, or none that may be asked."""


class AddressNotAllowed(OutboundError):
    """The host's address may not be reached from here: `address_not_allowed` to the caller."""


class ConnectError(OutboundError):
    """There is no connection, and nothing was sent."""


class ConnectTimeout(ConnectError):
    """Resolving, connecting and TLS together took too long."""


class ReadTimeout(OutboundError):
    """The server did not go on in time."""


class ReadError(OutboundError):
    """The answer was given up on this side."""


class ProtocolError(OutboundError):
    """The answer is not what was asked for, or no HTTP."""


class Cut(ProtocolError):
    """The connection ended before the answer did."""


class NoAnswer(Cut):
    """The connection ended before the first byte of an answer: on a reused one the request is sent once more."""


class TooLarge(ProtocolError):
    """A body, a line or an event went over the limit its reader had set."""
