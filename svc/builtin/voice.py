"""The built-in voice: eSpeak NG in a helper process (speak.py), because the library is GPL and not thread-safe."""

import asyncio
import os
import re
import shutil
import unicodedata
from functools import cached_property
from typing import Any, BinaryIO, NamedTuple

import orjson

from svc.builtin.processes import ProcessPool
from svc.errors import ApiError, UpstreamFault, invalid_value

# eSpeak counts short words: at 125 it speaks about 130 words of ordinary English a minute, 400 in three minutes.
_WORDS_PER_MINUTE = 125
_WORD_SECONDS = 60 / 130
_SLOWEST = 80  # for eSpeak; slower speech has longer pauses between words
# OpenAI's names, each with a language, a variant of the voice, and a pitch from 0 to 99.
VOICES = {
    "alloy": ("en-us", "", 50), "ash": ("en-us", "m3", 42), "ballad": ("en-gb", "m5", 48),
    "cedar": ("en-us", "m1", 38), "coral": ("en-us", "f2", 56), "echo": ("en-us", "m4", 46),
    "fable": ("en-gb", "m2", 52), "marin": ("en-us", "f1", 52), "nova": ("en-us", "f3", 58),
    "onyx": ("en-us", "m7", 30), "sage": ("en-gb", "f4", 50), "shimmer": ("en-us", "f5", 62),
    "verse": ("en-gb", "m6", 46),
}  # fmt: skip
# Some of the languages that eSpeak NG speaks, by the codes that people use.
LANGUAGES = (
    "en", "en-GB", "de", "fr", "fr-FR", "es", "it", "pt", "pt-BR", "nl", "pl", "ru", "tr", "zh", "ja", "ko", "hi", "ar"
)  # fmt: skip
# A voice of OpenAI speaks the language of the script of most letters.
_SCRIPTS = {
    "CJK": "cmn", "HIRAGANA": "ja", "KATAKANA": "ja", "HANGUL": "ko", "CYRILLIC": "ru", "GREEK": "el", "ARABIC": "ar",
    "HEBREW": "he", "DEVANAGARI": "hi", "THAI": "th", "BENGALI": "bn", "TAMIL": "ta", "TELUGU": "te", "GEORGIAN": "ka",
    "ARMENIAN": "hy",
}  # fmt: skip
_SCRIPT_SAMPLE_LENGTH = 2_000
# For codes without a voice of that name in eSpeak.
_DIALECTS = {"en": "en-us", "fr": "fr-fr", "zh": "cmn", "zh-hk": "yue", "no": "nb", "iw": "he", "jp": "ja"}
_VOICE = re.compile(r"([a-z]{2,8}(?:[_-][a-z0-9]{1,10}){0,4})(?:\+([a-z0-9]{1,8}))?")
_FORMATS = {"mp3": "mpeg", "opus": "ogg"}
CONTENT_TYPES = {name: f"audio/{_FORMATS.get(name, name)}" for name in ("wav", "pcm", "mp3", "opus", "aac", "flac")}
# The encoders of each format, the best first. They read raw samples and write to stdout.
_FFMPEG = "ffmpeg -hide_banner -loglevel error -f s16le -ar {rate} -ac 1 -i pipe:0"
_ENCODERS = {
    "mp3": ("lame -r -s {khz} --bitwidth 16 -m m -b 64 --quiet - -", f"{_FFMPEG} -b:a 64k -f mp3 pipe:1"),
    "opus": ("opusenc --quiet --raw --raw-rate {rate} --raw-chan 1 - -", f"{_FFMPEG} -c:a libopus -f ogg pipe:1"),
    "flac": (
        "flac --silent --force-raw-format --endian=little --sign=signed --channels=1 --bps=16 --sample-rate={rate} "
        "--stdout -",
        f"{_FFMPEG} -f flac pipe:1",
    ),
    "aac": (f"{_FFMPEG} -f adts pipe:1",),
}


class Spoken(NamedTuple):
    """The length of a speech, whether the limit cut it, and its type."""

    seconds: float
    truncated: bool
    content_type: str


class Voice:
    """Speaks in processes of `pool`. It looks up the encoders and languages of this machine once."""

    def __init__(self, pool: ProcessPool) -> None:
        self._pool = pool
        self._languages: dict[str, str] = {}  # eSpeak's voices by language, in lower case
        self._asking = asyncio.Lock()

    @cached_property  # too slow for the start
    def encoders(self) -> dict[str, list[str] | None]:
        """The possible formats, `wav` first, with the command of an encoder where one is needed."""
        encoders = {name: next(filter(None, map(_installed, commands)), None) for name, commands in _ENCODERS.items()}
        return {"wav": None, "pcm": None, **{name: command for name, command in encoders.items() if command}}

    async def named(self, name: str) -> str:
        """Return the voice with this name: one of VOICES, or a language such as `de`, `fr-FR` or `en-gb+f2`.

        Raises ApiError `invalid_value` (param `voice`) for an unknown one.
        """
        if voice := await self._known(name):
            return voice
        message = f"There is no voice {name[:100]!r}. Take one of {', '.join(VOICES)}, or a language such as de."
        raise invalid_value(message, "voice")

    async def _known(self, name: str) -> str | None:
        name = name.lower()
        if name in VOICES:
            return name
        match = _VOICE.fullmatch(name)
        if match is None or match[2] not in {None, *(variant for _, variant, _ in VOICES.values())}:
            return None
        languages, code = await self._known_languages(), match[1].replace("_", "-")
        while code and code not in languages:
            dialect = _DIALECTS.get(code, "")
            code = dialect if dialect in languages else code.rpartition("-")[0]
        return f"{code}+{match[2]}" if code and match[2] else code or None

    async def _known_languages(self) -> dict[str, str]:
        async with self._asking:
            if not self._languages:
                languages = (await self._ask({}))["languages"]
                self._languages = {name.lower(): voice for name, voice in languages.items()}
        return self._languages

    async def speak(
        self, text: str, file: BinaryIO, *, voice: str, speed: float, format: str, most_seconds: float, account_id: str
    ) -> Spoken:
        """Speak into the empty `file` for at most `most_seconds`. An unknown voice or format becomes the default.

        Raises UpstreamFault, and ApiError `overloaded` and `storage_unavailable`.
        """
        voice, format = await self._known(voice) or next(iter(VOICES)), format if format in self.encoders else "wav"
        language, variant, pitch = VOICES.get(voice) or (*voice.partition("+")[::2], 50)
        if voice in VOICES:
            language = _language_of(text) or language
        espeak_voice = (await self._known_languages()).get(language, language)
        # The pause between words for a speed below eSpeak's slowest, in its unit, here about 32 ms.
        missing_seconds = _WORD_SECONDS / speed - _WORD_SECONDS * _WORDS_PER_MINUTE / _SLOWEST
        order = {
            "input": text,
            "voice": f"{espeak_voice}+{variant}" if variant else espeak_voice,
            "words_per_minute": max(round(_WORDS_PER_MINUTE * speed), _SLOWEST),
            "gap": max(round(missing_seconds / 0.0315), 0),
            "pitch": pitch,
            "seconds": most_seconds,
            "format": format,
            "encoder": self.encoders[format],
        }
        answer = await self._ask(order, file, account_id)
        return Spoken(answer["seconds"], answer["truncated"], CONTENT_TYPES[format])

    async def _ask(self, order: dict[str, Any], file: BinaryIO | None = None, account_id: str = "") -> Any:
        if (found := engine()) is None:
            message = "There is no voice: install espeak-ng, or the extra 'voice' of this service."
            raise ApiError("model_not_found", message)
        answer = orjson.loads(await self._pool.run({**order, "engine": found}, file, account_id=account_id))
        if "errno" in answer:
            raise ApiError("storage_unavailable") from OSError(answer["errno"], answer["error"])
        if "error" in answer:
            raise UpstreamFault("invalid", answer["error"])
        return answer


def engine() -> dict[str, str] | None:
    """Return the location of eSpeak NG: the system's program, else the library of the extra `voice`, or None."""
    if program := shutil.which("espeak-ng"):
        return {"program": program}
    try:
        import espeakng_loader
    except ImportError:
        return None
    return {"library": espeakng_loader.get_library_path(), "data": espeakng_loader.get_data_path()}


def _installed(command: str) -> list[str] | None:
    name, *arguments = command.split()
    program = shutil.which(name)
    return [os.path.abspath(program), *arguments] if program else None  # noqa: PTH100 - PATH may hold relative folders


def _language_of(text: str) -> str | None:
    letters = filter(str.isalpha, text[:_SCRIPT_SAMPLE_LENGTH])
    scripts = [unicodedata.name(letter, "").split(" ")[0] for letter in letters]
    foreign = [_SCRIPTS[script] for script in scripts if script in _SCRIPTS]
    if len(foreign) * 2 <= len(scripts):
        return None
    # Japanese also has Chinese characters.
    return "ja" if "ja" in foreign else max(set(foreign), key=foreign.count)
