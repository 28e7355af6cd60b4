"""Server-sent events out of the bytes of an answer as they come (WHATWG HTML 9.2.6)."""

from svc.outbound.errors import TooLarge

_SHORT_BYTES = 4096


# Its name, empty where the stream gave none, and what its data lines said, joined by line feeds.
ServerSentEvent = tuple[bytes, bytes]


class EventReader:
    """The grammar on bytes, so that U+2028 and the like end no line; linear in its input.

    Two things stand against the grammar because model servers do them: an event that the end of the stream leaves open still
    counts, and a line `error: {...}` (llama.cpp) is the data of an event named `error`.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._line = bytearray()  # what has come of the line that has not ended yet; never scanned again
        self._name = b""
        self._data: bytes | bytearray | None = None  # of several lines it grows
        self._after_cr = False
        self._bom = b"\xef\xbb\xbf"

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that end with `chunk`; `TooLarge` for a line or an event over the limit."""
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        lines = chunk.splitlines()
        rest = b"" if chunk.endswith((b"\n", b"\r")) else lines.pop()
        if lines and (self._line or self._bom):
            lines[0] = (bytes(self._line) + lines[0]).removeprefix(self._bom)
            self._line.clear()
            self._bom = b""
        events = []
        for line in lines:
            if line:
                self._field(line)
            elif self._data is not None:
                events.append((self._name, bytes(self._data)))
                self._name, self._data = b"", None
            else:
                self._name = b""
        if rest:
            self._line += rest
            if len(self._line) > self._limit_bytes:
                raise _too_large()
        return events

    def take_back(self) -> bytes | None:
        """The beginning of an event whose first line has not ended, to be fed again; None where there is more of it."""
        if self._data is not None or self._name or self._after_cr:
            return None
        if not self._line:
            return b""
        if len(self._line) > _SHORT_BYTES:
            return None
        begun = bytes(self._line)
        self._line.clear()
        return begun

    def end(self) -> list[ServerSentEvent]:
        """The event that the end of the stream leaves open, if there is one."""
        return self.feed(b"\n\n")

    def _field(self, line: bytes) -> None:
        if len(line) > self._limit_bytes:
            raise _too_large()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data" or name == b"error":
            if self._data is None:
                self._data = value
            else:
                self._data = bytearray(self._data) if type(self._data) is bytes else self._data
                self._data += b"\n" + value
                if len(self._data) > self._limit_bytes:
                    raise _too_large()
        if name == b"event" or name == b"error":
            self._name = value if name == b"event" else name


def _too_large() -> TooLarge:
    return TooLarge("A line or an event of the stream is too large.")
