"""Shapes of transcriptions. The form is checked, and its fields are sent to model servers unchanged."""

import re

from svc.routes.schemas.common import COST_HEADER
from svc.server.interface import ERROR, Answer, Content, as_event, event_of, kind_of
from svc.shapes import (
    Fields,
    boolean,
    json_object,
    list_of,
    mapping,
    matching,
    number,
    one_of,
    passed_on,
    string,
    text,
)

_SENTENCE = "The train leaves at ten past seven."
_FIELDS: Fields = {
    "file": string.about("A wav, mp3, m4a, webm, ogg or flac file of at most 25 MiB.", format="binary"),
    "model": string.about(
        "A transcription model of `GET /v1/models`. Without it the operator's first one, else `builtin/whisper-tiny`."
    ),
    "language": matching(re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*"), "a code such as en", 35).about(
        "The language of the speech. Without it the model detects it. The built-in weights know only `en`."
    ),
    "prompt": text(32_000).about("Words that precede the audio, or names that are in it."),
    "response_format": one_of("json", "text", "verbose_json", "srt", "vtt").about(default="json"),
    "temperature": number(0, 1).about(default=0),
    "stream": boolean.about("Send the text as events while it is recognized (`json` and `text`).", default=False),
    "timestamp_granularities": list_of(one_of("word", "segment")).about(
        "What `verbose_json` has times for; `segment` by default. `timestamp_granularities[]` is the same."
    ),
}
TRANSCRIPTION = (
    passed_on(_FIELDS, "OpenAI's form. Other fields are sent to the model server.", required=("file",))
    .about(example={"file": "(the bytes of hello.wav)", "response_format": "json"})
    .named("TranscriptionRequest")
)
_TRANSCRIPT = json_object(
    "Transcript",
    "With `verbose_json` also the language, the duration, and the segments or words with their times in seconds.",
    text=_SENTENCE,
    usage=mapping.about("The seconds of audio, or the tokens that a model server counts.").optional(),
).with_others()
_DELTA = kind_of("TranscriptDelta", "transcript.text.delta", delta=_SENTENCE).with_others()
_DONE = kind_of("TranscriptDone", "transcript.text.done", text=_SENTENCE, usage=mapping.optional()).with_others()
_EVENT = event_of("TranscriptEvent", "A part of the text, the end, or the error that ends it.", _DELTA, _DONE, ERROR)
TRANSCRIPTION_ANSWER = Answer(
    "The text, in the requested format.",
    contents={
        "application/json": Content(
            _TRANSCRIPT, {"json": {"text": _SENTENCE, "usage": {"type": "duration", "seconds": 3}}}
        ),
        "text/plain": Content(string, {"text": f"{_SENTENCE}\n"}),
        "text/event-stream": Content(_EVENT, {"delta": as_event(_DELTA.example), "done": as_event(_DONE.example)}),
    },
    headers={"x-service-cost-micros": COST_HEADER},
)
