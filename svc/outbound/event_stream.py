"""Server-sent events out of the bytes of an answer as they come (WHATWG HTML 9.2.6)."""

from svc.outbound.errors import TooLarge


class EventReader:
    """Splits the bytes of a stream into events. The caller reads all events of one `feed` before the next one.

    `text` from `place` on is what has not been read yet. An event over `limit_bytes` is TooLarge. The work for each
    byte does not depend on the length of its event. A byte order mark is left to the caller.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.text, self.place = b"", 0
        self._limit_bytes = limit_bytes
        self._unfinished = bytearray()
        self._after_cr = False

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes of the stream; `text` has LF as the end of its lines."""
        if self._after_cr or chunk.find(b"\r") >= 0:
            chunk = self._with_lf(chunk)
        if self._unfinished:
            self._unfinished += chunk
            if self._unfinished.find(b"\n\n", -len(chunk) - 1) < 0:
                self._check(len(self._unfinished))
                return
            chunk, self._unfinished = bytes(self._unfinished), bytearray()
        self.text, self.place = chunk, 0

    def next_event(self) -> bytes | None:
        """Return the next event, without the blank line after it, or None if it has not ended yet."""
        start, end = self.place, self.text.find(b"\n\n", self.place)
        if end >= 0:
            self._check(end - start)
            self.place = end + 2
            return self.text[start:end]
        self._unfinished += self.text[start:]
        self.text, self.place = b"", 0
        self._check(len(self._unfinished))
        return None

    def _check(self, size_bytes: int) -> None:
        if size_bytes > self._limit_bytes:
            raise TooLarge("An event of the stream is too large.")

    def _with_lf(self, chunk: bytes) -> bytes:
        """Return `chunk` with LF in the place of CRLF and CR; a CRLF may have been cut in two."""
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def end(self) -> None:
        """End the event that the stream left open. The standard drops it."""
        self.feed(b"\n\n")


def parse_event(lines: bytes) -> tuple[bytes, bytes] | None:
    """Return the name of an event, empty if it has none, and its data, or None if it has no data.

    A line `error: {...}` (llama.cpp) is the data of an event named `error`.
    """
    name = b""
    data: list[bytes] = []
    for line in lines.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value
        elif field in (b"data", b"error"):
            data.append(value)
            name = name if field == b"data" else field
    return (name, b"\n".join(data)) if data else None
