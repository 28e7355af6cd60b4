"""Speaks into an open file, in a helper process.

text -> chunks of a few sentences -> eSpeak NG (a program, or the library by ctypes) -> samples, up to the limit
     -> WAV or raw samples | an encoder -> the file
The limit cuts after a whole word: the chunk beyond it is spoken again with as many of its words as fit.

Order: `{engine: {program} | {library, data}}`, with `input, voice, words_per_minute, gap, pitch, seconds, format,
encoder, file` (a descriptor) -> `{seconds, truncated}`. Without a file -> `{languages}`. A fault -> `{error}`, with the
system's `errno` if there is one.
"""

import array
import bisect
import contextlib
import ctypes
import io
import itertools
import json
import math
import os
import re
import struct
import subprocess
import unicodedata
import wave
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

CPU_SECONDS = 120
MEMORY_BYTES = 1024 * 1024 * 1024
_SAMPLE_BYTES = 2
_HEADER_BYTES = 44
_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_UTF8_WITH_END_PAUSE = 0x1001
_RATE, _PITCH, _GAP = 1, 3, 7
# As many sentences as fit, else as many words, else characters.
_CHUNK = re.compile(r"(?s).{1,400}(?:(?<=[.!?…;:]\s)|(?<=[。！？\n])|\Z)|.{1,399}\s|.{1,400}")  # noqa: RUF001 - Chinese stops too
_SPEECH_RATE = 24_000  # of raw samples, as clients of OpenAI's API expect


class SpeechError(Exception):
    """A fault, in words for the operator."""


class Library:
    """eSpeak NG's library. Its state is global, so a process handles one order."""

    def __init__(self, library: str, data: str) -> None:
        self._espeak: Any = ctypes.CDLL(library)
        self.rate: int = self._espeak.espeak_Initialize(_SYNCHRONOUS, 0, data.encode(), _DO_NOT_EXIT)
        if self.rate <= 0:
            raise SpeechError("eSpeak NG does not start")
        self._sound = bytearray()
        self._most_bytes = 0
        form = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
        self._callback = form(self._take)  # a reference, because the library calls it
        self._espeak.espeak_SetSynthCallback(self._callback)

    def _take(self, samples: int | None, count: int, events: int | None) -> int:
        if samples and count > 0:
            self._sound += ctypes.string_at(samples, count * _SAMPLE_BYTES)
        return int(len(self._sound) > self._most_bytes)

    def languages(self) -> dict[str, str]:
        """Return the languages with the voice of each: some languages are not names of voices."""

        class Voice(ctypes.Structure):
            _fields_ = [("name", ctypes.c_char_p), ("languages", ctypes.c_char_p), ("identifier", ctypes.c_char_p)]

        self._espeak.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(Voice))
        voices = self._espeak.espeak_ListVoices(None)
        every = [voice.contents for voice in itertools.takewhile(bool, (voices[index] for index in itertools.count()))]
        # Its languages are pairs of a priority byte and a string; the first is the voice's own.
        return {str(one.languages[1:], "utf-8", "replace"): str(one.identifier, "utf-8", "replace") for one in every}

    def take_voice(self, name: str, words_per_minute: int, gap: int, pitch: int) -> None:
        if self._espeak.espeak_SetVoiceByName(name.encode()) != 0:
            raise SpeechError(f"eSpeak NG has no voice {name}")
        for parameter, value in ((_RATE, words_per_minute), (_PITCH, pitch), (_GAP, gap)):
            self._espeak.espeak_SetParameter(parameter, value, 0)

    def speak(self, text: str, most_bytes: int) -> bytes:
        """Return at least `most_bytes` of samples, mono with 16 bits, if the speech has as many."""
        self._sound, self._most_bytes = bytearray(), most_bytes
        data = text.encode("utf-8", "replace")
        if self._espeak.espeak_Synth(data, len(data) + 1, 0, 1, 0, _UTF8_WITH_END_PAUSE, None, None) != 0:
            raise SpeechError("eSpeak NG cannot speak this text")
        return bytes(self._sound)


class Program:
    """The system's `espeak-ng`, run once for each chunk."""

    def __init__(self, program: str) -> None:
        self._command = [program]
        self.rate = 22_050

    def languages(self) -> dict[str, str]:
        listed = subprocess.run([*self._command, "--voices"], capture_output=True, text=True, check=True)  # noqa: S603
        rows = [line.split() for line in listed.stdout.splitlines()[1:]]
        return {row[1]: row[4] for row in rows if len(row) > 4}

    def take_voice(self, name: str, words_per_minute: int, gap: int, pitch: int) -> None:
        options = ["-b1", f"-v{name}", f"-s{words_per_minute}", f"-g{gap}", f"-p{pitch}"]
        self._command += [*options, "--stdin", "--stdout"]

    def speak(self, text: str, most_bytes: int) -> bytes:
        data = text.replace("[[", "[ [").encode("utf-8", "replace")  # [[ begins phonemes
        spoken = subprocess.run(self._command, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603
        if len(spoken.stdout) >= _HEADER_BYTES:
            (self.rate,) = struct.unpack_from("<I", spoken.stdout, 24)
        elif spoken.returncode:
            raise SpeechError("espeak-ng fails")
        return spoken.stdout[_HEADER_BYTES:]


Engine = Library | Program


def chunks(text: str) -> list[str]:
    """Return the text without control characters in chunks of a few sentences, at most 400 characters each."""
    controls = {character for character in set(text) if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")}
    text = text.translate({ord(character): " " for character in controls - {"\n"}})
    return _CHUNK.findall(text)


def spoken(engine: Engine, text: str, most_bytes: int) -> Iterator[tuple[bytes, bool]]:
    """Yield the samples of each chunk, and whether something was cut off after them."""
    room = most_bytes
    for chunk in filter(str.strip, chunks(text)):
        sound = engine.speak(chunk, room)
        if len(sound) > room:
            yield _beginning(engine, chunk, room) or (sound[:room] if room == most_bytes else b""), True
            return
        room -= len(sound)
        yield sound, False


def _beginning(engine: Engine, chunk: str, room: int) -> bytes:
    """Return as many whole words of the chunk as fit, perhaps none."""
    words = re.findall(r"\S+\s*", chunk)
    if len(words) < 3:  # a script without spaces
        words = list(chunk)

    def beginning(count: int) -> bytes:
        return engine.speak("".join(words[:count]), room)

    fitting = bisect.bisect(range(1, len(words)), room, key=lambda count: len(beginning(count)))
    return beginning(fitting) if fitting else b""


def resampled(sound: bytes, rate: int) -> bytes:
    """Return the same sound at 24 kHz, by linear interpolation."""
    samples = array.array("h", sound + sound[-_SAMPLE_BYTES:])
    common = math.gcd(rate, _SPEECH_RATE)
    taken, made = rate // common, _SPEECH_RATE // common
    places = (divmod(number * taken, made) for number in range((len(samples) - 1) * made // taken))
    steps = [samples[at] + (samples[at + 1] - samples[at]) * part // made for at, part in places]
    return array.array("h", steps).tobytes()


@contextlib.contextmanager
def encoded(file: BinaryIO, command: list[str], rate: int) -> Iterator[BinaryIO]:
    """Yield the stdin of an encoder that writes to the file."""
    command = [part.replace("{rate}", str(rate)).replace("{khz}", f"{rate / 1000:g}") for part in command]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.DEVNULL) as encoder:  # noqa: S603
        assert isinstance(encoder.stdin, io.BufferedWriter)
        # After a broken pipe its exit status is not 0.
        with contextlib.suppress(BrokenPipeError), encoder.stdin:
            yield encoder.stdin
    if encoder.returncode:
        raise SpeechError(f"{os.path.basename(command[0])} cannot encode")  # noqa: PTH119 - a name, no path


def write_flac_length(file: BinaryIO, samples: int) -> None:
    """Write the length into the STREAMINFO block (RFC 9639, 8.2), as an encoder that writes to a pipe cannot."""
    file.seek(18)
    (packed,) = struct.unpack(">Q", file.read(8))  # rate, channels and bits before 36 bits of length
    file.seek(18)
    file.write(struct.pack(">Q", packed >> 36 << 36 | samples))


def speak_into(file: BinaryIO, engine: Engine, order: dict[str, Any]) -> dict[str, Any]:
    engine.take_voice(order["voice"], order["words_per_minute"], order["gap"], order["pitch"])
    engine.speak(".", _SAMPLE_BYTES)  # the program's rate is known only after it has spoken
    most_bytes = int(order["seconds"] * engine.rate) * _SAMPLE_BYTES
    size_bytes, truncated, format = 0, False, order["format"]
    write: Callable[[bytes], object] = file.write
    with contextlib.ExitStack() as writers:
        if order["encoder"]:
            write = writers.enter_context(encoded(file, order["encoder"], engine.rate)).write
        elif format == "wav":
            wav = writers.enter_context(wave.open(file, "wb"))
            wav.setparams((1, _SAMPLE_BYTES, engine.rate, 0, "NONE", ""))
            write = wav.writeframes
        for sound, truncated in spoken(engine, order["input"], most_bytes):  # noqa: B007 - the last one counts
            size_bytes += len(sound)
            write(resampled(sound, engine.rate) if format == "pcm" else sound)
    if format == "flac":
        write_flac_length(file, size_bytes // _SAMPLE_BYTES)
    return {"seconds": size_bytes / _SAMPLE_BYTES / engine.rate, "truncated": truncated}


def answer(order: dict[str, Any]) -> bytes:
    found: dict[str, Any]
    where = order["engine"]
    try:
        engine = Program(**where) if "program" in where else Library(**where)
        if "file" in order:
            with open(order["file"], "r+b", closefd=False) as file:
                found = speak_into(file, engine, order)
        else:
            found = {"languages": engine.languages()}
    except OSError as error:
        found = {"error": f"{error.strerror}", "errno": error.errno}
    except (SpeechError, subprocess.CalledProcessError) as error:
        found = {"error": str(error)}
    return json.dumps(found).encode()
