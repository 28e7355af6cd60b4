"""Faults of outgoing requests. The texts quote nothing: a URL, a header or an answer may hold a secret."""


class OutboundError(Exception):
    """A request without a complete answer."""


class InvalidRequest(OutboundError):
    """The URL, the method or a header is not valid; nothing was sent."""


class InvalidURL(InvalidRequest):
    """The URL is not valid or not allowed."""


class AddressNotAllowed(OutboundError):
    """The address of the host is not allowed."""


class ConnectError(OutboundError):
    """No connection was made; nothing was sent."""


class ConnectTimeout(ConnectError):
    """Resolving, connecting and TLS together took too long."""


class ReadTimeout(OutboundError):
    """The server did not send the next byte in time."""


class ProtocolError(OutboundError):
    """The answer is not valid HTTP, or not allowed."""


class Cut(ProtocolError):
    """The connection was closed before the end of the answer, by the server or here."""


class NoAnswer(Cut):
    """The connection ended before the first byte of an answer."""


class TooLarge(ProtocolError):
    """A body or an event exceeds the limit of its reader."""
