"""Server-sent events out of the bytes of an answer as they come (WHATWG HTML 9.2.6)."""

from svc.outbound.errors import TooLarge

# An event's name, empty where the stream gave none, and its data lines, joined by line feeds.
ServerSentEvent = tuple[bytes, bytes]


class EventReader:
    """Keeps the event that has not ended yet, and returns those that have. It takes the same time for each byte of a long event.

    An event over `limit_bytes` is TooLarge. A byte order mark is left to the caller.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._unfinished = bytearray()
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the events that end with `chunk`, each without the blank line after it and with LF as the end of its lines."""
        if self._after_cr or chunk.find(b"\r") >= 0:
            chunk = self._with_lf(chunk)
        if not self._unfinished and chunk.endswith(b"\n\n") and len(chunk) <= self._limit_bytes:
            # As nearly always. This saves 8,000 of the 77,000 instructions of an event that comes alone.
            return chunk[:-2].split(b"\n\n")
        self._unfinished += chunk
        events: list[bytes] = []
        if self._unfinished.find(b"\n\n", -len(chunk) - 1) >= 0:
            *events, rest = bytes(self._unfinished).split(b"\n\n")
            self._unfinished = bytearray(rest)
        if max([len(self._unfinished), *map(len, events)]) > self._limit_bytes:
            raise TooLarge("An event of the stream is too large.")
        return events

    def _with_lf(self, chunk: bytes) -> bytes:
        """Return `chunk` with LF in the place of CRLF and CR; a CRLF may have been cut in two."""
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def end(self) -> list[bytes]:
        """Return the event that the end of the stream leaves open, if there is one. The standard drops it."""
        return self.feed(b"\n\n")


def parse_event(lines: bytes) -> ServerSentEvent | None:
    """Return the name and the data of an event, or None if it has no data.

    A line `error: {...}` (llama.cpp) is the data of an event named `error`.
    """
    name = b""
    data: list[bytes] = []
    for line in lines.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value
        elif field == b"data" or field == b"error":
            name = name if field == b"data" else field
            data.append(value)
    return (name, b"\n".join(data)) if data else None
