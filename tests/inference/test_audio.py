"""Audio that streams by: its length, the cut at the cap, heads that streaming servers leave open."""

import array
import io
import math
import struct
import tempfile
import time
import tracemalloc
import wave
from collections.abc import Iterator

import pytest

from svc.inference.audio import Track, track
from tests.support.cases import each

STEPS = (1, 7, 977, 10**7)


def tone(seconds: float, rate: int = 24_000, channels: int = 1, pause_at: float | None = None) -> bytes:
    """Samples of a tone, silent for 50 ms at `pause_at`."""
    count = int(seconds * rate)
    values = (
        0 if pause_at is not None and pause_at <= n / rate < pause_at + 0.05 else round(9_000 * math.sin(n / 9))
        for n in range(count)
    )
    return array.array("h", (value for value in values for _ in range(channels))).tobytes()


def wav(samples: bytes, rate: int = 24_000, channels: int = 1, size: int | None = None, extra: bytes = b"") -> bytes:
    form = struct.pack("<HHIIHH", 1, channels, rate, rate * 2 * channels, 2 * channels, 16)
    told = len(samples) if size is None else size
    head = b"WAVE" + extra + b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", told)
    return b"RIFF" + struct.pack("<I", min(len(head) + told, 0xFFFFFFFF)) + head + samples


def mp3(frames: int) -> bytes:
    """Frames of 576 samples at 24 kHz and 64 kbit/s: 192 bytes and 24 ms each."""
    return (b"\xff\xf3\x84\xc4" + bytes(188)) * frames


def aac(frames: int) -> bytes:
    """ADTS frames of 100 bytes at 24 kHz: 1024 samples each."""
    return (
        b"\xff\xf1" + bytes((0x50 | 6 << 2, 0x40 | 100 >> 11, 100 >> 3 & 255, (100 & 7) << 5 | 0x1F, 0xFC)) + bytes(93)
    ) * frames


def ogg(pages: int) -> bytes:
    """Opus pages of 200 bytes, each half a second."""
    return b"".join(
        b"OggS\0\0" + struct.pack("<q", page * 24_000) + bytes(12) + b"\x01\xc8" + b"OpusHead".ljust(200, b"\0")
        for page in range(pages + 1)
    )


def through(data: bytes, step: int, form: str = "wav", most_seconds: float = 60.0) -> tuple[Track, bytes]:
    taken = track(data[:26], form, "audio/x-test", most_seconds, 9.5)
    with tempfile.TemporaryFile() as file:
        for start in range(0, len(data), step):
            file.write(taken.feed(data[start : start + step]))
            if taken.truncated:
                break
        taken.finish(file)
        file.seek(0)
        return taken, file.read()


def params(data: bytes) -> tuple[int, int, int, int]:
    with wave.open(io.BytesIO(data)) as reader:
        assert len(reader.readframes(10**9)) == reader.getnframes() * reader.getnchannels() * reader.getsampwidth()
        return reader.getnchannels(), reader.getsampwidth(), reader.getframerate(), reader.getnframes()


@each("step", STEPS)
@each("size", [None, 0xFFFFFFFF, 0x7FFFFFFF, 0])
def test_wav_gets_its_real_length(step: int, size: int | None) -> None:
    extra = b"LIST" + struct.pack("<I", 5) + b"INFO!\0"
    taken, got = through(wav(tone(1.5), size=size, extra=extra), step)
    assert params(got) == (1, 2, 24_000, 36_000) and (taken.content_type, taken.seconds) == ("audio/wav", 1.5)
    assert not taken.truncated and got.endswith(tone(1.5)) and len(got) == 44 + 72_000


@each(("rate", "channels"), [(8_000, 1), (44_100, 2), (48_000, 1)])
def test_wav_is_cut_at_a_quiet_place(rate: int, channels: int) -> None:
    taken, got = through(wav(tone(4, rate, channels, pause_at=2.4), rate, channels), 4096, most_seconds=3.0)
    assert taken.truncated and 2.4 < taken.seconds < 2.47
    assert params(got) == (channels, 2, rate, round(taken.seconds * rate))


def test_chunks_after_the_samples_of_a_wav_are_dropped() -> None:
    taken, got = through(wav(tone(1)) + b"LIST\x04\0\0\0abcd", 50)
    assert taken.seconds == 1 and len(got) == 44 + 48_000


@each("step", STEPS)
def test_raw_samples_count_as_24_khz_mono(step: int) -> None:
    taken, got = through(tone(2.5), step, "pcm")
    assert (taken.content_type, taken.seconds, taken.truncated) == ("audio/pcm", 2.5, False) and got == tone(2.5)
    taken, got = through(tone(2.5, pause_at=1.5), step, "pcm", most_seconds=2.0)
    assert taken.truncated and 1.5 < taken.seconds < 1.57 and len(got) == round(taken.seconds * 48_000)


@each("step", STEPS)
@each("tag", [b"", b"ID3\x04\0\0\0\0\x01\x0a" + bytes(138)])
def test_mp3_is_cut_between_frames(step: int, tag: bytes) -> None:
    taken, got = through(tag + mp3(100), step, "mp3")
    assert taken.content_type == "audio/mpeg" and taken.seconds == pytest.approx(2.4) and got == tag + mp3(100)
    taken, got = through(tag + mp3(100), step, "mp3", most_seconds=1.0)
    assert taken.truncated and taken.seconds == pytest.approx(0.984) and got == tag + mp3(41)


@each("step", STEPS)
def test_aac_frames_are_counted_and_cut(step: int) -> None:
    taken, got = through(aac(50), step, "aac", most_seconds=1.0)
    assert taken.content_type == "audio/aac" and taken.truncated and got == aac(23)
    assert taken.seconds == pytest.approx(23 * 1024 / 24_000)


@each("step", STEPS)
def test_ogg_pages_are_counted_and_cut(step: int) -> None:
    taken, got = through(ogg(8), step, "opus")
    assert (taken.content_type, taken.seconds, taken.truncated) == ("audio/ogg", 4.0, False) and got == ogg(8)
    taken, got = through(ogg(8), step, "opus", most_seconds=1.7)
    assert (taken.seconds, taken.truncated) == (1.5, True) and got == ogg(3)


def test_bytes_decide_the_format() -> None:
    for data, kind in (
        (wav(tone(0.1)), "audio/wav"),
        (mp3(3), "audio/mpeg"),
        (ogg(1), "audio/ogg"),
        (b"fLaC" + bytes(50), "audio/flac"),
    ):
        assert track(data[:26], "pcm", "audio/pcm", 60, 1).content_type == kind
    assert track(b"#!AMR\n" + bytes(9), "mp3", "audio/amr; x=1", 60, 1).content_type == "audio/amr"
    assert (
        track(b"#!AMR\n" + bytes(9), "mp3", "text/html\r\nset-cookie: a=b", 60, 1).content_type
        == "application/octet-stream"
    )


def test_format_without_a_length_counts_by_its_text() -> None:
    taken, got = through(b"fLaC" + bytes(5_000), 100, "flac")
    assert (taken.seconds, taken.truncated, len(got)) == (9.5, False, 5_004)


def broken() -> Iterator[bytes]:
    yield b"RIFF\x24\0\0\0WAVE" + b"junk\xff\xff\0\0" + bytes(70_000)  # no samples
    yield wav(b"")[:30]
    yield wav(b"")[:22] + struct.pack("<HIIHH", 0, 0, 0, 0, 0) + b"data\0\0\0\0"
    yield ogg(2) + b"nonsense" * 10
    yield ogg(2)[:-5]


@each("data", [*broken()])
def test_a_broken_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="file"):
        through(data, 4096)


@each(
    "start",
    [b"\xff\xfb", b"ID3\x04\0\0\x7f\x7f\x7f\x7f", b"OggS", b"RIFF\xff\xff\xff\xffWAVE", b"\xff\xf1\x50\x80\0\0\0"],
)
def test_garbage_after_a_good_start_ends(start: bytes) -> None:
    data = start + bytes(range(256)) * 400
    for step in (333, 10**6):
        try:
            taken, got = through(data, step, "mp3", most_seconds=1.0)
        except ValueError:
            continue
        assert len(got) <= len(data) + 44 and 0 <= taken.seconds <= 1.0 + 9.5


# --- what a hostile server sends


@each(
    "garbage",
    [
        b"\xff" * 65_536,
        b"\xff\xf3\x00\x00" * 16_384,
        b"\xff\xf1" * 32_768,
        b"\xff\xf3\x84" * 21_845,
        b"ID3\0\0\0\0\0\0\0" * 6_553,
    ],
)
@each("start", [mp3(1), aac(1)])
def test_garbage_does_not_block_the_event_loop(start: bytes, garbage: bytes) -> None:
    taken = track(start, "mp3", "", 1e9, 1.0)
    taken.feed(start)
    began = time.thread_time()
    taken.feed(garbage)
    assert time.thread_time() - began < 0.1


@each("step", [1, 2, 7, 1_000])
@each("frame", [mp3(1), aac(1)])
def test_bytes_between_frames_are_skipped(frame: bytes, step: int) -> None:
    tag = b"ID3\4\0\0\0\0" + bytes(divmod(2 * len(frame), 128)) + 2 * frame
    data = frame + b"\xff\xf1\xf4junk\xff" + tag + frame
    one, cut = track(frame, "mp3", "", 1e9, 1.0), track(data, "mp3", "", 1e9, 1.0)
    one.feed(frame)
    assert b"".join(cut.feed(data[place : place + step]) for place in range(0, len(data), step)) == data
    assert cut.seconds == 2 * one.seconds > 0


def test_wav_header_in_single_bytes_is_parsed_once() -> None:
    head = b"RIFF\0\0\0\0WAVE" + b"junk\0\0\0\0" * 7_000
    taken = track(head, "wav", "", 60.0, 1.0)
    began = time.thread_time()
    for place in range(len(head)):
        taken.feed(head[place : place + 1])
    assert time.thread_time() - began < 3


@each("step", [1, 7, 1_000])
@each(("samples", "seconds"), [(48_000, 2.0), (0, 7.5), ((1 << 36) - 1, 7.5)])
def test_flac_counts_by_its_header_else_by_its_text(step: int, samples: int, seconds: float) -> None:
    data = b"fLaC\x80\0\0\x22" + bytes(10) + struct.pack(">Q", 24_000 << 44 | 15 << 36 | samples) + bytes(1_016)
    taken = track(data[:26], "flac", "audio/flac", 60.0, 7.5)
    passed = b"".join(taken.feed(data[place : place + step]) for place in range(0, len(data), step))
    assert passed == data and (taken.content_type, taken.seconds) == ("audio/flac", seconds)


def test_vorbis_page_without_a_rate_is_accepted() -> None:
    page = b"OggS\0\2" + bytes(20) + b"\x01\x07" + b"\x01vorbis"
    found = track(page, "opus", "audio/ogg", 100.0, 1.0)
    assert found.feed(page) == page and found.seconds == 0


@each("step", [1, 1_000, 10**6])
@each("size", [3, 1_000_000 // 8])
def test_chunks_before_the_samples_of_a_wav_may_have_any_length(step: int, size: int) -> None:
    part = b"LIST" + struct.pack("<I", size) + bytes(size + size % 2)
    taken, got = through(wav(tone(0.1), extra=part), step)
    assert taken.seconds == 0.1 and got == wav(tone(0.1))


def test_wav_without_samples_takes_no_memory() -> None:
    taken = track(b"RIFF\0\0\0\0WAVE", "wav", "", 60.0, 1.0)
    tracemalloc.start()
    try:
        for part in (
            b"RIFF\0\0\0\0WAVE",
            b"fmt \xff\xff\xff\x7f" + struct.pack("<HHIIHH", 1, 1, 24_000, 48_000, 2, 16),
        ):
            taken.feed(part)
        for _ in range(100):
            taken.feed(bytes(64 * 1024))
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
