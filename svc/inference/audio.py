"""Audio streams: their format and length, and where they are cut.

first bytes -> track() -> Samples (raw PCM, WAV), Frames (MP3, AAC), Pages (Ogg), or Track for any other format
feed(chunk) -> the bytes to write to the file -> finish(file): completes a WAV header, cuts at a quiet place
"""

import io
import os
import re
import struct
import sys
from typing import BinaryIO

_PCM_FORMAT = struct.pack("<HHIIHH", 1, 1, 24_000, 48_000, 2, 16)  # OpenAI's `pcm`: mono, 24 kHz, 16 bits
_FORMAT_BYTES = 1024  # kept of the `fmt ` chunk
_QUIET_SECONDS = 1.5
_QUIET_BYTES = 256 * 1024
_WINDOW_SECONDS = 0.02
_MPEG1_BITRATES = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0)
_MPEG2_BITRATES = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0)
_MP3_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
_AAC_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
# Where a frame may begin: the sync word with a version, layer and rate that exist.
_MP3_START = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb][\x10-\xef]|ID3|(?:\xff.?|ID?)\Z", re.DOTALL)
_AAC_START = re.compile(
    rb"\xff[\xf0\xf1\xf8\xf9][\x00-\x33\x40-\x73\x80-\xb3\xc0-\xf3]|ID3|(?:\xff.?|ID?)\Z", re.DOTALL
)
_MEASURED_BYTES = 64 * 1024
START_BYTES = 26  # the first fields of a FLAC file
_LONGEST_FLAC_SECONDS = 86_400
_CONTENT_TYPE = re.compile(r"audio/[a-z0-9.+-]{1,60}")
# How files of each container begin, by the names that FFmpeg has for the containers.
_CONTAINERS = {
    "wav": rb"RIFF....WAVE",
    "flac": rb"fLaC",
    "ogg": rb"OggS",
    "matroska": rb"\x1a\x45\xdf\xa3",  # webm
    "mov": rb"....ftyp",  # m4a and mp4
    "mp3": rb"ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]",
    "aac": rb"\xff[\xf0\xf1\xf8\xf9]",
}


def container_of(start: bytes) -> str | None:
    """Return the container of a file that begins so, or None if it is not one for speech recognition."""
    return next((name for name, begin in _CONTAINERS.items() if re.match(begin, start, re.DOTALL)), None)


def measured(file: BinaryIO, most_seconds: float) -> float | None:
    """Return the length of an audio file as it says it, or None for a format whose length only a decoder knows.

    Raises ValueError for a broken file. A file over `most_seconds` is not read to its end.
    """
    start = os.pread(file.fileno(), _MEASURED_BYTES, 0)
    if container_of(start) in ("matroska", "mov"):
        return None
    found, place = track(start, "", "", most_seconds, 0.0), 0
    while not found.truncated and (chunk := os.pread(file.fileno(), _MEASURED_BYTES, place)):
        place += len(chunk)
        found.feed(chunk)
    return found.seconds or None


class Track:
    """One audio file. This class passes on any format, of a length in `seconds` that is already known.

    `truncated` is set once the file is longer than `most_seconds`: then no more bytes are needed.
    """

    def __init__(self, content_type: str, most_seconds: float, seconds: float = 0.0) -> None:
        self.content_type = content_type
        self.seconds = seconds
        self.truncated = False
        self._most_seconds = most_seconds
        self._unread = b""

    def feed(self, chunk: bytes) -> bytes:
        """Return the bytes to write to the file. Raises ValueError for a broken file."""
        return chunk

    def finish(self, file: BinaryIO) -> None:
        """Complete the file. Raises ValueError for a broken one."""


def track(start: bytes, format: str, content_type: str, most_seconds: float, guess_seconds: float) -> Track:
    """Return the track for a file that begins with `start`: at least `START_BYTES`, unless the file is shorter.

    `format` is the requested one and `content_type` the server's. The bytes decide before both. `guess_seconds` is the
    length of a file that only a decoder could measure.
    """
    if start.startswith(b"RIFF") and start[8:12] == b"WAVE":
        return Samples("audio/wav", most_seconds)
    if start.startswith(b"OggS"):
        return Pages("audio/ogg", most_seconds)
    if start.startswith(b"fLaC"):
        return Track("audio/flac", most_seconds, _flac_seconds(start) or guess_seconds)
    if start.startswith(b"ID3") or _mp3_frame(start, 0):
        return Frames("audio/mpeg", most_seconds)
    if _aac_frame(start, 0):
        return Frames("audio/aac", most_seconds)
    if format == "pcm":
        return Samples("audio/pcm", most_seconds)
    named = content_type.partition(";")[0].strip().lower()
    return Track(named if _CONTENT_TYPE.fullmatch(named) else "application/octet-stream", most_seconds, guess_seconds)


class Samples(Track):
    """Raw samples, or a WAV file: its header is replaced by one with the format of the samples and the real length."""

    def __init__(self, content_type: str, most_seconds: float) -> None:
        super().__init__(content_type, most_seconds)
        self._in_header = content_type == "audio/wav"
        self._place = 12  # of the next chunk of the header; it may be beyond the unread bytes
        self._left = sys.maxsize  # bytes of samples, if the file says how many
        self._head = b""  # the head of the file that is passed on
        self._size = 0
        self._read_format(_PCM_FORMAT)

    def feed(self, chunk: bytes) -> bytes:
        if not self._in_header:
            return self._samples(chunk)
        header, place = self._unread + chunk, self._place
        while len(header) >= place + 8:
            name, size = struct.unpack_from("<4sI", header, place)
            if name == b"data":
                # A server that streams does not know the length, and writes 0 or the largest number.
                if 0 < size < 0x7FFFF000:
                    self._left = size
                self._in_header = False
                return self._head + self._samples(header[place + 8 :])
            if name == b"fmt " and size >= 16:
                end = place + 8 + min(size, _FORMAT_BYTES)
                if len(header) < end:
                    break
                self._read_format(header[place + 8 : end])
            place += 8 + size + size % 2  # other chunks are dropped
        self._unread, self._place = header[place:], max(place - len(header), 0)
        return b""

    def _read_format(self, format: bytes) -> None:
        fields: tuple[int, ...] = struct.unpack_from("<HHIIHH", format)
        tag, channels, rate, _, frame_bytes, bits = fields
        usual = 1 <= channels <= 8 and 4_000 <= rate <= 192_000 and 1 <= frame_bytes <= 64
        if not usual or (bits == 16 and frame_bytes != 2 * channels):
            raise ValueError("The header of the WAV file is not valid.")
        if self._in_header:
            form = struct.pack("<I", len(format)) + format + bytes(len(format) % 2)
            self._head = b"RIFF\0\0\0\0WAVEfmt " + form + b"data\0\0\0\0"
        self._rate, self._frame_bytes, self._channels = rate, frame_bytes, channels
        self._has_16_bits = bits == 16 and tag in (1, 0xFFFE)
        self._most_bytes = int(self._most_seconds * rate) * frame_bytes

    def _samples(self, chunk: bytes) -> bytes:
        chunk = chunk[: self._left]
        self._left -= len(chunk)
        kept = chunk[: self._most_bytes - self._size]
        self.truncated = self.truncated or len(kept) < len(chunk)
        self._set_size(self._size + len(kept))
        return kept

    def _set_size(self, size_bytes: int) -> None:
        self._size = size_bytes
        self.seconds = size_bytes / self._frame_bytes / self._rate

    def finish(self, file: BinaryIO) -> None:
        if self._in_header:
            raise ValueError("The WAV file has no samples.")
        if self.truncated and self._has_16_bits:
            self._set_size(self._quiet_end(file))
            file.truncate(len(self._head) + self._size)
        if self._head:
            file.seek(4)
            file.write(struct.pack("<I", len(self._head) + self._size - 8))
            file.seek(len(self._head) - 4)
            file.write(struct.pack("<I", self._size))
            file.seek(0, io.SEEK_END)

    def _quiet_end(self, file: BinaryIO) -> int:
        """Return the end of the quietest 20 ms within the last 1.5 seconds, so that no word is cut."""
        window = int(_WINDOW_SECONDS * self._rate) * self._channels
        read_bytes = min(int(_QUIET_SECONDS * self._rate), _QUIET_BYTES // self._frame_bytes) * self._frame_bytes
        begin = max(self._size - read_bytes, 0)
        file.seek(len(self._head) + begin)
        count = (self._size - begin) // 2
        samples = struct.unpack(f"<{count}h", file.read(count * 2))
        starts = range(0, count - window + 1, window)
        quietest = min(reversed(starts), key=lambda start: sum(map(abs, samples[start : start + window])))
        return begin + (quietest + window) * 2


class Frames(Track):
    """MP3 and AAC: each frame has its length in bytes and in seconds."""

    def __init__(self, content_type: str, most_seconds: float) -> None:
        super().__init__(content_type, most_seconds)
        mp3 = content_type == "audio/mpeg"
        self._frame, self._start = (_mp3_frame, _MP3_START) if mp3 else (_aac_frame, _AAC_START)
        self._passing = 0  # bytes left of the current tag or frame

    def feed(self, chunk: bytes) -> bytes:
        data, place = self._unread + chunk, 0
        while place < len(data):
            if self._passing:
                step = min(self._passing, len(data) - place)
                self._passing -= step
                place += step
            elif len(data) - place < 10:
                break
            elif frame := self._frame(data, place):
                if self.seconds + frame[1] > self._most_seconds:
                    self.truncated = True
                    return data[:place]
                self._passing, seconds = frame
                self.seconds += seconds
            elif data.startswith(b"ID3", place):
                # The length of a tag has seven bits in each byte.
                high, low = data[place + 6 : place + 8], data[place + 8 : place + 10]
                self._passing = 10 + (high[0] << 21 | high[1] << 14 | low[0] << 7 | low[1])
            else:
                found = self._start.search(data, place + 1)
                place = found.start() if found else len(data)
        self._unread = data[place:]
        return data[:place]

    def finish(self, file: BinaryIO) -> None:
        if not self.truncated:
            file.write(self._unread)


def _mp3_frame(data: bytes, place: int) -> tuple[int, float] | None:
    """Return the bytes and seconds of the MPEG audio frame (layer III) at `place`, or None."""
    if len(data) < place + 4 or data[place] != 0xFF or data[place + 1] & 0xE6 != 0xE2:
        return None
    version, rate_index, bitrate_index = data[place + 1] >> 3 & 3, data[place + 2] >> 2 & 3, data[place + 2] >> 4
    kilobits = (_MPEG1_BITRATES if version == 3 else _MPEG2_BITRATES)[bitrate_index]
    if version == 1 or rate_index == 3 or not kilobits:
        return None
    rate = _MP3_RATES[version][rate_index]
    samples = 1152 if version == 3 else 576
    return samples // 8 * kilobits * 1000 // rate + (data[place + 2] >> 1 & 1), samples / rate


def _aac_frame(data: bytes, place: int) -> tuple[int, float] | None:
    """Return the bytes and seconds of the ADTS frame at `place`, or None."""
    if len(data) < place + 7 or data[place] != 0xFF or data[place + 1] & 0xF6 != 0xF0:
        return None
    rate_index = data[place + 2] >> 2 & 15
    size = (data[place + 3] & 3) << 11 | data[place + 4] << 3 | data[place + 5] >> 5
    if rate_index >= len(_AAC_RATES) or size < 7:
        return None
    return size, 1024 / _AAC_RATES[rate_index]


class Pages(Track):
    """Ogg: each page has its position. Opus counts at 48 kHz, Vorbis at the rate of its first page."""

    _rate = 48_000

    def feed(self, chunk: bytes) -> bytes:
        data, place = self._unread + chunk, 0
        while len(data) >= place + 27:
            if not data.startswith(b"OggS", place):
                raise ValueError("The Ogg file is broken.")
            head_end = place + 27 + data[place + 26]
            end = head_end + sum(data[place + 27 : head_end])
            if len(data) < end or len(data) < head_end:
                break
            if data.startswith(b"\x01vorbis", head_end) and end >= head_end + 16:
                self._rate = max(struct.unpack_from("<I", data, head_end + 12)[0], 1)
            (position,) = struct.unpack_from("<q", data, place + 6)
            if position / self._rate > self._most_seconds:
                self.truncated = True
                return data[:place]
            self.seconds = max(self.seconds, position / self._rate)
            place = end
        self._unread = data[place:]
        return data[:place]

    def finish(self, file: BinaryIO) -> None:
        if self._unread and not self.truncated:
            raise ValueError("The Ogg file ends in the middle.")


def _flac_seconds(start: bytes) -> float | None:
    """Return the length of a FLAC file (RFC 9639, 8.2), or None if it does not say it, like a stream."""
    if len(start) < START_BYTES:
        return None
    (packed,) = struct.unpack_from(">Q", start, 18)
    samples, rate = packed & (1 << 36) - 1, packed >> 44
    return samples / rate if samples and rate and samples / rate < _LONGEST_FLAC_SECONDS else None
