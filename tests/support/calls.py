"""Each kind of paid call, as a request to a real server, and its answer as the client got it."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx
import orjson

from svc.auth.tokens import issue_session
from svc.secrets import derive
from tests.support.agent_runs import RUN, Account, add_accounts
from tests.support.local_server import AnyServer
from tests.support.sounds import tone

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
IMAGES, GENERATE, SPEECH = "/v1/images/generations", "/v1/audio/generate", "/v1/audio/speech"
TRANSCRIPTIONS = "/v1/audio/transcriptions"  # a form
WHOLE = 7 + 2 * 5  # micros: the tokens that the model server reports, of which those of the output cost two
PICTURE, SPOKEN = 1_000, 2 * 46  # 2 seconds are 46 audio tokens of 2 micros
_END_TYPES = (
    *("response.completed", "message_stop", "message_delta", "speech.audio.done", "transcript.text.done", "final"),
)


class Call(NamedTuple):
    """A request for one kind of call. `whole_micros` is the cost of its whole answer."""

    path: str
    body: dict[str, Any]
    whole_micros: int = WHOLE
    of_session: bool = False
    headers: Mapping[str, str] = {}

    @property
    def streams(self) -> bool:
        return self.path == RUN or "stream_format" in self.body or bool(self.body.get("stream"))


def calls(streamed: str, plain: str, picture: str, speech: str, prompt: str = "hi") -> dict[str, Call]:
    """Return each kind of call by its name, for these models: of streams, JSON answers, images and speech.

    The models for transcriptions are those of streams and JSON answers, with a usage.
    """

    def chats(name: str, path: str, **fields: Any) -> Iterator[tuple[str, Call]]:
        asked = {"input" if path == RESPONSES else "messages": [{"role": "user", "content": prompt}], **fields}
        yield name, Call(path, {**asked, "model": f"lab/{plain}"})
        yield f"{name} stream", Call(path, {**asked, "model": f"lab/{streamed}", "stream": True})

    made = dict([*chats("chat", CHAT), *chats("response", RESPONSES), *chats("message", MESSAGES, max_tokens=100)])
    made |= {f"session {name}": made[name]._replace(of_session=True) for name in ("chat", "chat stream")}
    made["continued"] = made["session chat stream"]._replace(headers={"x-service-continue": "true"})
    for name in ("chat stream", "session chat stream", "continued"):
        made[name].body["stream_options"] = {"include_usage": True}
    pictured: dict[str, Any] = {"prompt": "a cat", "model": f"lab/{picture}"}
    spoken: dict[str, Any] = {"input": "hi", "model": f"lab/{speech}"}
    made |= {
        "image": Call(IMAGES, {**pictured, "n": 2}, 2 * PICTURE),
        "image url": Call(IMAGES, {**pictured, "response_format": "url"}, PICTURE),
        "audio": Call(GENERATE, spoken, SPOKEN),
        "speech": Call(SPEECH, {**spoken, "response_format": "wav"}, SPOKEN),
        "speech events": Call(SPEECH, {**spoken, "response_format": "wav", "stream_format": "sse"}, SPOKEN),
        "transcription": Call(TRANSCRIPTIONS, {"model": f"lab/heard+usage-tokens-7+{plain}"}),
        "transcription stream": Call(
            TRANSCRIPTIONS, {"model": f"lab/heard+usage-tokens-7+{streamed}", "stream": "true"}
        ),
        "run": Call(RUN, {"goal": prompt, "model": f"lab/{streamed}", "tools": []}),
    }
    return made


def catalog(base_url: str, made: Mapping[str, Call]) -> str:
    """Return a catalog with the models of these calls."""
    text = f'[[providers]]\nname = "lab"\nbase_url = "{base_url}"\ntimeout_seconds = 30\n'
    kinds = {call.body["model"]: call.path for call in made.values() if call.body["model"].startswith("lab/")}
    for name, path in kinds.items():
        prices = "input_micros_per_million_tokens = 1_000_000\noutput_micros_per_million_tokens = 2_000_000"
        if path == IMAGES:
            prices = f'kind = "image"\nmicros_per_image = {PICTURE}'
        elif path in (GENERATE, SPEECH):
            prices = 'kind = "speech"\nmicros_per_thousand_audio_tokens = 2_000'
        elif path == TRANSCRIPTIONS:
            prices += '\nkind = "transcription"'
        text += f'[[providers.models]]\nid = "{name.removeprefix("lab/")}"\n{prices}\n'
    return text


@dataclass
class Person:
    """An account with a key and a session."""

    account: Account
    session: str

    def headers(self, call: Call) -> dict[str, str]:
        return {"authorization": f"Bearer {self.session if call.of_session else self.account.key}", **call.headers}


def people(server: AnyServer, count: int) -> list[Person]:
    """Return so many accounts, each with 20 cents."""
    secret = derive((server.data_dir / "master.key").read_bytes(), "session")
    made = add_accounts(server, count, micros=200_000, name=f"caller{time.monotonic_ns()}-")
    return [Person(account, issue_session(secret, account.id, time.time())) for account in made]


@dataclass
class Answer:
    """An answer as far as its client has read it. `status` 0: none. `is_cut`: the connection ended before it did."""

    call: Call
    status: int = 0
    headers: httpx.Headers = field(default_factory=httpx.Headers)
    content: bytes = b""
    is_cut: bool = False

    async def read(self, client: httpx.AsyncClient, person: Person) -> "Answer":
        call = self.call
        try:
            form = {"data": call.body, "files": {"file": ("speech.wav", tone(2))}}
            sent: dict[str, Any] = form if call.path == TRANSCRIPTIONS else {"json": call.body}
            async with client.stream("POST", call.path, **sent, headers=person.headers(call)) as answer:
                self.status, self.headers = answer.status_code, answer.headers
                async for part in answer.aiter_bytes():
                    self.content += part
        except httpx.HTTPError:
            self.is_cut = True
        return self

    async def until_text(self, text: str) -> None:
        async with asyncio.timeout(10):
            while not self.text.startswith(text):
                await asyncio.sleep(0.01)

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type") == "text/event-stream"

    @property
    def payloads(self) -> list[bytes]:
        lines = self.content.split(b"\n")[:-1] if self.is_stream else []
        return [line[6:] for line in lines if line.startswith(b"data: ")]

    @property
    def events(self) -> list[Any]:
        return [orjson.loads(payload) for payload in self.payloads if payload != b"[DONE]"]

    @property
    def text(self) -> str:
        """The text of a stream, in any format."""
        texts = []
        for event in self.events:
            texts += [choice["delta"].get("content") or "" for choice in event.get("choices", ())]
            if event.get("type") in (
                "response.output_text.delta",
                "content_block_delta",
                "transcript.text.delta",
                "delta",
            ):
                delta = event.get("delta", event)
                texts.append(delta if isinstance(delta, str) else delta.get("text", ""))
        return "".join(texts)

    @property
    def ends(self) -> list[Any]:
        """The events of a stream by which a client takes it for complete, or learns its usage."""
        found = [event for event in self.events if event.get("type") in _END_TYPES or event.get("usage")]
        found += [event for event in self.events for choice in event.get("choices", ()) if choice["finish_reason"]]
        return [event for event in found if event.get("type") not in ("error", "stopped", "response.failed")]

    @property
    def error(self) -> str | None:
        """The code or type of its error. A stopped run has its reason."""
        found: Any = None
        if self.is_stream:
            found = self.events[-1] if self.events else None
        elif self.status >= 400:
            found = orjson.loads(self.content)
        if not found:
            return None
        if found.get("type") == "stopped":
            return str(found["reason"])
        error = found.get("error") or (found.get("response") or {}).get("error")
        return (error.get("code") or error.get("type")) if error else None

    @property
    def is_ended(self) -> bool:
        """Whether a stream has the last block of its format, also after an error."""
        if self.is_cut or not self.is_stream:
            return False
        if self.call.path in (CHAT, RESPONSES):
            return self.payloads[-1:] == [b"[DONE]"]
        return bool(self.ends or self.error)
