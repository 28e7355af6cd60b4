"""Bodies of `multipart/form-data` (RFC 7578) with one file, which goes to the disk as it arrives.

chunks -> FormReader: a part's head -> its content: a field, or the file -> the next boundary
"""

import asyncio
import re
from typing import BinaryIO

from starlette.requests import ClientDisconnect

from svc.errors import ApiError, invalid_value
from svc.server.bodies import check_sent, too_large
from svc.server.web import Request

_MULTIPART = re.compile(
    rb'(?is)\s*multipart/form-data\s*;.*?\bboundary=(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70})(?![^\s;]))'
)
_NAME = re.compile(rb'(?i);\s*name=(?:"([^"]*)"|([^;\s"]+))')
_FILE_NAME = re.compile(rb"(?i);\s*filename\*?=")
_DISPOSITION = re.compile(rb"(?im)^content-disposition:\s*form-data([^\r\n]*)")
_HEAD_BYTES = 4096
_FIELD_BYTES = 64 * 1024  # of all fields together
_MOST_PARTS = 100
OTHER_BYTES = 128 * 1024  # of a body, beside its file

Form = dict[str, list[str]]


def boundary_of(content_type: bytes) -> bytes:
    """Return the boundary of a form, or nothing if this is the type of another body."""
    match = _MULTIPART.match(content_type)
    return (match[1] or match[2]) if match else b""


class FormReader:
    """Reads a form with one file in the field `file_field`, of at most `most_bytes`. Raises ApiError.

    Each byte of the file is searched once for the boundary, and no more of it is in memory than of one chunk.
    """

    def __init__(self, boundary: bytes, file_field: str, file: BinaryIO, most_bytes: int) -> None:
        self.fields: Form = {}
        self.has_file = self.ended = False
        self._delimiter = b"\r\n--" + boundary
        self._file_field, self._file, self._left_bytes = file_field, file, most_bytes
        self._most_bytes = most_bytes
        self._unread = b"\r\n"  # the first boundary has no line before it
        self._name: str | None = None  # of the current part; None: its content is not needed
        self._in_file = self._in_head = False
        self._content = bytearray()
        self._field_bytes = self._parts = 0

    def feed(self, chunk: bytes) -> None:
        data = self._unread + chunk
        while not self.ended:
            if self._in_head:
                end = data.find(b"\r\n\r\n", 0, _HEAD_BYTES)
                if data.startswith(b"--"):
                    self.ended = True
                elif end < 0:
                    if len(data) >= _HEAD_BYTES:
                        raise _broken("A part has a head that does not end.")
                    break
                else:
                    self._begin(data[:end])
                    data = data[end + 4 :]
            elif (end := data.find(self._delimiter)) >= 0:
                self._take(data[:end])
                self._end()
                data = data[end + len(self._delimiter) :]
            else:
                kept = len(self._delimiter) - 1
                self._take(data[:-kept])
                data = data[-kept:]
                break
        self._unread = b"" if self.ended else data

    def _begin(self, head: bytes) -> None:
        self._in_head, self._parts = False, self._parts + 1
        disposition = _DISPOSITION.search(head)
        name = disposition and _NAME.search(disposition[1])
        if self._parts > _MOST_PARTS or disposition is None or name is None:
            raise _broken(f"Each of at most {_MOST_PARTS} parts needs a name.")
        self._name = (name[1] or name[2] or b"").decode("utf-8", "replace")
        is_file = self._name == self._file_field
        if is_file and self.has_file:
            raise invalid_value(f"Send one {self._file_field}.", self._file_field)
        self._in_file = is_file
        self.has_file |= is_file
        if not is_file and _FILE_NAME.search(disposition[1]):  # another file
            self._name = None

    def _take(self, content: bytes) -> None:
        if self._in_file:
            self._left_bytes -= len(content)
            if self._left_bytes < 0:
                message = f"{self._file_field} is over {self._most_bytes} bytes. Send a smaller one."
                raise ApiError("PAYLOAD_TOO_LARGE", message, param=self._file_field)
            self._file.write(content)
        elif self._name is not None:
            self._field_bytes += len(content)
            if self._field_bytes > _FIELD_BYTES:
                raise ApiError("PAYLOAD_TOO_LARGE", f"The fields are over {_FIELD_BYTES} bytes. Send less.")
            self._content += content

    def _end(self) -> None:
        if self._name is not None and not self._in_file:
            try:
                self.fields.setdefault(self._name, []).append(self._content.decode())
            except UnicodeDecodeError:
                raise invalid_value("The fields must be in UTF-8.", self._name[:200]) from None
        self._content.clear()
        self._name, self._in_file, self._in_head = None, False, True


def _broken(message: str) -> ApiError:
    return ApiError("invalid_request", f"The body is not a valid form. {message}")


async def read_form(request: Request, file_field: str, file: BinaryIO, most_bytes: int) -> Form:
    """Write the file of a form to `file`, and return the other fields. Raises ApiError, and what `read_chunks` does."""
    context = request.context
    if not (boundary := boundary_of(context.headers.get(b"content-type", b""))):
        raise ApiError("unsupported_media_type", "Send a form: 'Content-Type: multipart/form-data'.")
    limit_bytes = most_bytes + OTHER_BYTES
    check_sent(context, limit_bytes)
    reader, size_bytes, more = FormReader(boundary, file_field, file, most_bytes), 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        size_bytes += len(message["body"])
        if size_bytes > limit_bytes:
            raise too_large(limit_bytes)
        await asyncio.to_thread(reader.feed, message["body"])  # a write to a busy disk takes up to 400 ms
        more = message["more_body"]
    if not reader.ended:
        raise _broken("Its last boundary is missing.")
    if not reader.has_file:
        raise ApiError("missing_field", f"{file_field} is required: a file.", param=file_field)
    return reader.fields
