"""The speaker: reads one JSON line from stdin, speaks into an open file, and writes one JSON line about it to stdout.

text -> pieces of a few sentences -> eSpeak NG (a program, or the library by ctypes) -> samples, up to the cap
     -> WAV or raw samples | an encoder -> the file
The cap cuts at a word's end: the piece that would go over it is spoken anew with as many of its words as fit.

Order: `{engine: {program} | {library, data}}` with `voices: true`, which lists the languages, or with `input, voice,
words_per_minute, gap, pitch, seconds, format, encoder, file` (a descriptor). Answer: `{languages}`, `{seconds, truncated}`,
or `{error}` with the system's `errno` where it has one.
"""

import array
import ctypes
import itertools
import json
import math
import os
import re
import resource
import struct
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

_CPU_SECONDS = 120
_MEMORY_BYTES = 1024 * 1024 * 1024
_SAMPLE_BYTES = 2
_PIECE_LENGTH = 400
_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_UTF8_WITH_END_PAUSE = 0x1001
_RATE, _PITCH, _GAP = 1, 3, 7
# Both look back for the stop, so that a long run of stops or blanks is not tried from each of its characters.
_SENTENCE_END = re.compile(r"(?<=[.!?…;:])\s+|(?<=[。！？\n])(?![。！？\n\s])")  # noqa: RUF001 - Chinese stops too
_SPEECH_RATE = 24_000  # what clients of OpenAI's API take raw samples for

# Speaks a text: at most so many bytes of samples, mono and 16 bits each.
Speak = Callable[[str, int], bytes]


class Trouble(Exception):
    """What went wrong, in words for the operator."""


# --- the engines


class Library:
    """eSpeak NG's library. It keeps its state in globals: one order per process."""

    def __init__(self, library: str, data: str) -> None:
        self._espeak: Any = ctypes.CDLL(library)
        self.rate: int = self._espeak.espeak_Initialize(_SYNCHRONOUS, 0, data.encode(), _DO_NOT_EXIT)
        if self.rate <= 0:
            raise Trouble("eSpeak NG does not start")
        self._sound = bytearray()
        self._most_bytes = 0
        form = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
        self._callback = form(self._take)  # kept: the library calls it
        self._espeak.espeak_SetSynthCallback(self._callback)

    def _take(self, samples: int | None, count: int, events: int | None) -> int:
        if samples and count > 0:
            self._sound += ctypes.string_at(samples, count * _SAMPLE_BYTES)
        return int(len(self._sound) > self._most_bytes)

    def languages(self) -> dict[str, str]:
        """The languages, and the voice of each: some languages are no names of voices."""

        class Voice(ctypes.Structure):
            _fields_ = [("name", ctypes.c_char_p), ("languages", ctypes.c_char_p), ("identifier", ctypes.c_char_p)]

        self._espeak.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(Voice))
        voices = self._espeak.espeak_ListVoices(None)
        every = [voice.contents for voice in itertools.takewhile(bool, (voices[index] for index in itertools.count()))]
        # Its languages are pairs of a priority byte and a string; the first is the voice's own.
        return {voice.languages[1:].decode("ascii", "replace"): voice.identifier.decode("utf-8", "replace") for voice in every}

    def voice(self, name: str, words_per_minute: int, gap: int, pitch: int) -> Speak:
        if self._espeak.espeak_SetVoiceByName(_identifier(self, name).encode()) != 0:
            raise Trouble(f"eSpeak NG has no voice {name}")
        for parameter, value in ((_RATE, words_per_minute), (_PITCH, pitch), (_GAP, gap)):
            self._espeak.espeak_SetParameter(parameter, value, 0)
        return self._speak

    def _speak(self, text: str, most_bytes: int) -> bytes:
        self._sound, self._most_bytes = bytearray(), most_bytes
        data = text.encode("utf-8", "replace")
        if self._espeak.espeak_Synth(data, len(data) + 1, 0, 1, 0, _UTF8_WITH_END_PAUSE, None, None) != 0:
            raise Trouble("eSpeak NG cannot speak this text")
        return bytes(self._sound)


class Program:
    """The `espeak-ng` of the system, run once for every piece."""

    def __init__(self, program: str) -> None:
        self._program = program
        self.rate = 22_050

    def languages(self) -> dict[str, str]:
        listed = subprocess.run([self._program, "--voices"], capture_output=True, text=True, check=True)  # noqa: S603
        rows = [line.split() for line in listed.stdout.splitlines()[1:]]
        return {row[1]: row[4] for row in rows if len(row) > 4}

    def voice(self, name: str, words_per_minute: int, gap: int, pitch: int) -> Speak:
        command = [
            self._program,
            "-b",
            "1",
            "-v",
            _identifier(self, name),
            "-s",
            str(words_per_minute),
            "-g",
            str(gap),
            "-p",
            str(pitch),
        ]
        return lambda text, most_bytes: self._speak([*command, "--stdin", "--stdout"], text, most_bytes)

    def _speak(self, command: list[str], text: str, most_bytes: int) -> bytes:
        text = text.replace("[[", "[ [")  # the program would take it for phonemes
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:  # noqa: S603
            assert process.stdin and process.stdout
            process.stdin.write(text.encode("utf-8", "replace"))
            process.stdin.close()
            head = process.stdout.read(44)
            sound = process.stdout.read(most_bytes + _SAMPLE_BYTES)
            process.kill()
        if len(head) < 44 and process.returncode > 0:
            raise Trouble("espeak-ng fails")
        if len(head) == 44:
            (self.rate,) = struct.unpack_from("<I", head, 24)
        return sound


def _identifier(engine: Library | Program, name: str) -> str:
    """What the engine knows the voice of a language by, with the variant that may follow: `en-gb+f2` is `gmw/en+f2`."""
    language, plus, variant = name.partition("+")
    return engine.languages().get(language, language) + plus + variant


# --- the text


def pieces(text: str) -> Iterator[str]:
    """The text in parts of a few sentences, at most 400 characters each, without control characters."""
    text = "".join(
        " " if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") and character != "\n" else character
        for character in text
    )
    piece = ""
    ends = [*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    for start, end in zip([0, *ends], ends, strict=False):
        for part in _parts(text[start:end]):
            if len(piece) + len(part) > _PIECE_LENGTH:
                yield piece
                piece = ""
            piece += part
    yield piece


def _parts(sentence: str) -> Iterator[str]:
    """The sentence, or where it is too long its words in groups; a word that is too long in pieces."""
    while len(sentence) > _PIECE_LENGTH:
        end = sentence.rfind(" ", 0, _PIECE_LENGTH) + 1 or _PIECE_LENGTH
        yield sentence[:end]
        sentence = sentence[end:]
    yield sentence


def spoken(speak: Speak, text: str, most_bytes: int) -> Iterator[tuple[bytes, bool]]:
    """The samples piece by piece, and whether something was left out after them."""
    room, begun = most_bytes, False
    for piece in pieces(text):
        if not piece.strip():
            continue
        sound = speak(piece, room)
        if len(sound) > room:
            yield _as_fits(speak, piece, room) or (b"" if begun else sound[:room]), True
            return
        room -= len(sound)
        begun = True
        yield sound, False


def _as_fits(speak: Speak, piece: str, room: int) -> bytes:
    """The beginning of the piece, as many whole words as fit; empty when not one does."""
    words = re.findall(r"\S+\s*", piece)
    if len(words) < 3:  # a script without spaces
        words = list(piece)
    fitting, low, high = b"", 0, len(words) - 1
    while low < high:
        middle = (low + high + 1) // 2
        sound = speak("".join(words[:middle]), room)
        if len(sound) <= room:
            fitting, low = sound, middle
        else:
            high = middle - 1
    return fitting


# --- the file


def write_wav(file: BinaryIO, rate: int, sounds: Iterator[bytes]) -> int:
    """Writes a WAV file; the number of samples' bytes, which its head tells too."""
    file.write(bytes(44))
    size = 0
    for sound in sounds:
        size += file.write(sound)
    file.seek(0)
    file.write(struct.pack("<4sI8sIHHIIHH4sI", b"RIFF", size + 36, b"WAVEfmt ", 16, 1, 1, rate, rate * 2, 2, 16, b"data", size))
    return size


def resampled(sounds: Iterator[bytes], rate: int) -> Iterator[bytes]:
    """The same sound at 24 kHz, by straight lines between the samples."""
    common = math.gcd(rate, _SPEECH_RATE)
    taken, made = rate // common, _SPEECH_RATE // common
    rest = array.array("h")
    for sound in itertools.chain(sounds, (bytes(_SAMPLE_BYTES * (taken + 1)),)):
        samples = rest + array.array("h", sound)
        blocks = (len(samples) - 1) // taken
        end = blocks * taken
        block = array.array("h", bytes(_SAMPLE_BYTES * blocks * made))
        for number in range(made):  # the same place of all blocks at once
            at, part = divmod(number * taken, made)
            pairs = zip(samples[at:end:taken], samples[at + 1 : end + 1 : taken], strict=True)
            block[number::made] = array.array("h", [before + (after - before) * part // made for before, after in pairs])
        rest = samples[end:]
        yield block.tobytes()


def encode(file: BinaryIO, command: list[str], rate: int, sounds: Iterator[bytes]) -> None:
    """Sends the samples through an encoder into the file."""
    command = [part.replace("{rate}", str(rate)).replace("{khz}", f"{rate / 1000:g}") for part in command]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.DEVNULL) as encoder:  # noqa: S603
        assert encoder.stdin
        try:
            for sound in sounds:
                encoder.stdin.write(sound)
            encoder.stdin.close()
        except BrokenPipeError:
            pass  # its exit status tells
    if encoder.returncode:
        raise Trouble(f"{os.path.basename(command[0])} cannot encode")  # noqa: PTH119 - a name, no path


def tell_flac_length(file: BinaryIO, samples: int) -> None:
    """Writes the number of samples into the file's STREAMINFO block (RFC 9639, 8.2): an encoder that writes to a pipe cannot."""
    file.seek(0)
    head = file.read(26)
    if head[:4] != b"fLaC" or head[4] & 0x7F != 0:
        raise Trouble("the encoder writes no FLAC")
    (packed,) = struct.unpack_from(">Q", head, 18)  # rate, channels and bits before 36 bits of length
    file.seek(18)
    file.write(struct.pack(">Q", packed >> 36 << 36 | samples & (1 << 36) - 1))


def speak_into(file: BinaryIO, engine: Library | Program, order: dict[str, Any]) -> dict[str, Any]:
    speak = engine.voice(order["voice"], order["words_per_minute"], order["gap"], order["pitch"])
    speak(".", _SAMPLE_BYTES)  # a program tells its rate only as it speaks
    most_bytes = int(order["seconds"] * engine.rate) * _SAMPLE_BYTES
    told = {"bytes": 0, "truncated": False}

    def sounds() -> Iterator[bytes]:
        for sound, truncated in spoken(speak, order["input"], most_bytes):
            told["bytes"] += len(sound)
            told["truncated"] = truncated
            yield sound

    if order["encoder"]:
        encode(file, order["encoder"], engine.rate, sounds())
        if order["format"] == "flac":
            tell_flac_length(file, told["bytes"] // _SAMPLE_BYTES)
    elif order["format"] == "wav":
        write_wav(file, engine.rate, sounds())
    else:
        for sound in resampled(sounds(), engine.rate):
            file.write(sound)
    return {"seconds": told["bytes"] / _SAMPLE_BYTES / engine.rate, "truncated": bool(told["truncated"])}


def _run(order: dict[str, Any]) -> dict[str, Any]:
    where = order["engine"]
    engine = Program(where["program"]) if "program" in where else Library(where["library"], where["data"])
    if order.get("voices"):
        return {"languages": list(engine.languages())}
    with open(order["file"], "r+b", closefd=False) as file:
        return speak_into(file, engine, order)


def main() -> None:
    os.nice(15)  # the server, which answers everybody, goes first
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    try:
        answer = _run(json.loads(sys.stdin.buffer.readline()))
    except OSError as error:
        answer = {"error": f"{error.strerror}", "errno": error.errno}
    except (Trouble, subprocess.CalledProcessError) as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
