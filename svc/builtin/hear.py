"""Recognizes speech with Whisper, in a helper process, because files of users may be hostile (see hearing.py).

an audio file -> FFmpeg decodes it, up to a limit of its length -> Whisper
              -> each segment as a JSON line behind the audio in the file -> the language and the length

Order: `{path, file, container, most_seconds}` -> `{seconds}`. With `model` (a folder), `sha256` (of its weights, or
null), `language`, `prompt`, `temperature` and `words` the speech is recognized -> `{seconds, language}`. A refusal ->
`{refused}`, the code of an error, with its `message` and `param`. Wrong weights -> `{error}`, for the operator.
"""

import contextlib
import hashlib
import io
import json
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

THREADS = 2
CPU_SECONDS = THREADS * 600
_GIB = 1024**3
MEMORY_BYTES = 8 * _GIB  # of addresses, which are more than the memory in use: the operator's model may be large
_DECODING_BYTES = 2 * _GIB
_RATE = 16_000
_PIECE_SECONDS, _QUIET_SECONDS = 120, 10
_SEGMENT_FIELDS = (
    "seek", "start", "end", "text", "tokens", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob"
)  # fmt: skip
_DAMAGED = ("invalid_value", "file is damaged, or has no audio. Send wav, mp3, m4a, webm, ogg or flac.", "file")


class RefusedAudio(Exception):
    """A refusal: the code of an error, its message, and the field of the request."""


def samples(file: BinaryIO, container: str, most_seconds: float) -> Iterator[bytes]:
    """Yield the audio with 16,000 samples of 16 bits a second. Raises RefusedAudio.

    FFmpeg must not guess the container: it knows formats that name other files and addresses.
    """
    import av

    left, is_empty = int(most_seconds * _RATE), True
    try:
        with av.open(io.BytesIO(file.read()), "r", format=container, metadata_errors="ignore") as opened:
            stream = next(iter(opened.streams.audio), None)
            if stream is None:
                raise RefusedAudio("invalid_value", "file has no audio track.", "file")
            resampler = av.AudioResampler("s16", "mono", _RATE)
            for frame in _frames(opened.demux(stream)):
                for part in resampler.resample(frame):
                    is_empty, left = False, left - part.samples
                    if left < 0:
                        limit = f"The audio is longer than {most_seconds / 60:g} minutes. Send a shorter part of it."
                        raise RefusedAudio("PAYLOAD_TOO_LARGE", limit, "file")
                    yield bytes(part.planes[0])[: part.samples * 2]
    except (av.error.FFmpegError, ValueError, MemoryError):
        raise RefusedAudio(*_DAMAGED) from None
    if is_empty:
        raise RefusedAudio(*_DAMAGED)


def _frames(packets: Iterator[Any]) -> Iterator[Any]:
    """Yield the frames of those packets that are not damaged, and None, with which a resampler returns its rest."""
    import av

    for packet in packets:
        with contextlib.suppress(av.error.InvalidDataError):
            yield from packet.decode()
    yield None


def recognize(file: BinaryIO, order: dict[str, Any]) -> dict[str, Any]:
    """Write each segment behind the audio in `file`, and return the language and the length. Raises RefusedAudio."""
    os.environ |= {"OMP_NUM_THREADS": str(THREADS), "OPENBLAS_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    import numpy as np
    from faster_whisper import WhisperModel

    folder, language, parent = Path(order["model"]), order["language"], os.getppid()
    if order["sha256"] is not None:
        with (folder / "model.bin").open("rb") as weights:
            if hashlib.file_digest(weights, "sha256").hexdigest() != order["sha256"]:
                return {"error": "The weights of the speech model are not those of its package."}
    sound = b"".join(samples(file, order["container"], order["most_seconds"]))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    whisper = WhisperModel(str(folder), compute_type="int8", cpu_threads=THREADS, local_files_only=True)
    if language is not None and language not in whisper.supported_languages:
        known = ", ".join(whisper.supported_languages)
        raise RefusedAudio("unsupported_value", f"language must be one of this model's: {known}.", "language")
    for first, piece in quiet_pieces(np.frombuffer(sound, np.int16)):
        segments, info = whisper.transcribe(
            piece.astype(np.float32) / 32_768,
            language=language,
            initial_prompt=order["prompt"],
            temperature=order["temperature"] or (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),  # the next one if a text is unlikely
            condition_on_previous_text=False,  # an error would repeat itself
            word_timestamps=order["words"],
            vad_filter=True,  # for silence Whisper invents words
        )
        language = info.language
        for segment in segments:
            if os.getppid() != parent:  # the server has ended without its helpers
                sys.exit(1)
            file.write(json.dumps(segment_of(segment, first / _RATE), default=float).encode() + b"\n")
    return {"seconds": len(sound) / 2 / _RATE, "language": language}


def quiet_pieces(sound: Any) -> Iterator[tuple[int, Any]]:
    """Yield the samples in pieces that end where it is quiet, each with its place. Half an hour at once takes 2 GB."""
    first, frame = 0, _RATE // 5
    while len(sound) - first > _PIECE_SECONDS * _RATE:
        begin = first + (_PIECE_SECONDS - _QUIET_SECONDS) * _RATE
        frames = abs(sound[begin : begin + _QUIET_SECONDS * _RATE].astype("int32")).reshape(-1, frame).mean(axis=1)
        end = begin + int(frames.argmin()) * frame + frame // 2
        yield first, sound[first:end]
        first = end
    yield first, sound[first:]


def segment_of(segment: Any, offset: float) -> dict[str, Any]:
    """Return a segment of a piece that begins after `offset` seconds."""
    line = {name: getattr(segment, name) for name in _SEGMENT_FIELDS}
    line |= {"seek": segment.seek + round(offset * 100), "start": segment.start + offset, "end": segment.end + offset}
    line["words"] = [
        {"word": word.word.strip(), "start": word.start + offset, "end": word.end + offset}
        for word in segment.words or ()
    ]
    return line


def answer(order: dict[str, Any]) -> bytes:
    sys.path += order["path"]
    resource.setrlimit(resource.RLIMIT_AS, (_DECODING_BYTES, MEMORY_BYTES))
    with open(order["file"], "r+b", buffering=0, closefd=False) as file:
        file.seek(0)
        try:
            if "model" in order:
                found = recognize(file, order)
            else:
                size = sum(map(len, samples(file, order["container"], order["most_seconds"])))
                found = {"seconds": size / 2 / _RATE}
        except RefusedAudio as refused:
            found = dict(zip(("refused", "message", "param"), refused.args, strict=True))
    return json.dumps(found).encode()
