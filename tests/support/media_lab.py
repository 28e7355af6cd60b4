"""The service in front of model servers for images and speech, and an account with money."""

import base64
import contextlib
import io
import wave
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from svc.billing import wallet
from svc.config import Config
from tests.conftest import Clocks, Service, bearer, serving
from tests.support.model_server import ModelServer
from tests.support.money import assert_exact, watch

IMAGES, GENERATE, SPEECH = "/v1/images/generations", "/v1/audio/generate", "/v1/audio/speech"


IMAGE_MODELS = (
    *(
        "ok",
        "fewer",
        "too-many",
        "none",
        "url-only",
        "data-url",
        "bad-picture",
        "over-32-mib",
        "over-48-mib",
        "no-response-format",
        "fail-once",
    ),
    *("in-lines", "half-emoji", "deep", "own-url", "own-url+last-lost", "other-file"),
    *("status-400", "status-401", "status-500", "refuse-429", "silent", "cut-head", "broken", "slow-300ms"),
)


SPEECH_MODELS = (
    *(
        "ok",
        "seconds-20",
        "seconds-200",
        "wav-for-all",
        "error-200",
        "html-200",
        "cut-after-3-chunks",
        "silent-after-3-chunks",
        "fail-once",
    ),
    *("status-400", "status-401", "silent", "cut-head", "reset-after-2-chunks", "slow-300ms"),
)


PRICE = 20_000  # of builtin/paint, a picture


WORST = 40_960  # of builtin/voice, 4096 audio tokens


def catalog(base_url: str, timeout_seconds: float) -> str:
    def entry(name: str, kind: str, price: str, fallback: str = "") -> str:
        return f'[[providers.models]]\nid = "{name}"\nkind = "{kind}"\n{price}\n' + (
            f'fallback = "{fallback}"\n' if fallback else ""
        )

    images, speech = "micros_per_image = 1000", "micros_per_thousand_audio_tokens = 2000"
    text = f'[[providers]]\nname = "lab"\nbase_url = "{base_url}"\napi_key = "sk-the-operators-secret"\ntimeout_seconds = {timeout_seconds}\n'
    text += "".join(entry(name, "image", images) for name in IMAGE_MODELS) + entry(
        "status-503", "image", images, "lab/fewer"
    )
    text += entry("status-502", "image", images, "builtin/paint") + entry(
        "status-504", "image", "micros_per_image = 30000", "builtin/paint"
    )
    text += f'[[providers]]\nname = "say"\nbase_url = "{base_url}"\ntimeout_seconds = {timeout_seconds}\n'
    return (
        text
        + "".join(entry(name, "speech", speech) for name in SPEECH_MODELS)
        + entry("status-503", "speech", speech, "say/ok")
        + (entry("status-504", "speech", "micros_per_thousand_audio_tokens = 10000", "builtin/voice"))
    )


@dataclass
class Lab:
    """The service in front of `upstream`, and an account with money."""

    service: Service
    upstream: ModelServer
    account_id: str
    headers: dict[str, str]

    async def fund(self, micros: int) -> None:
        await self.service.state["db"].write(wallet.book, self.account_id, micros, description="", now_seconds=1.0)

    async def post(self, path: str, **body: Any) -> httpx.Response:
        return await self.service.client.post(path, json=body, headers=self.headers)

    async def account(self) -> dict[str, Any]:
        account: dict[str, Any] = (await self.service.client.get("/billing/account", headers=self.headers)).json()
        return account

    async def spent(self) -> int:
        """The debits so far; nothing may be held."""
        assert (await self.account())["held_micros"] == 0
        rows = (await self.service.client.get("/billing/ledger?limit=100", headers=self.headers)).json()["data"]
        assert_exact(self.service.config.data_dir / "service.db")
        return -sum(row["amount_micros"] for row in rows if row["kind"] == "debit")


@contextlib.asynccontextmanager
async def media_lab(config: Config, clocks: Clocks, folder: Path, timeout_seconds: float = 0.5) -> AsyncIterator[Lab]:
    """The service with model servers for media, and an account with a dollar."""
    async with ModelServer() as upstream:
        (folder / "catalog.toml").write_text(catalog(upstream.base_url, timeout_seconds))
        async with serving(replace(config, catalog=folder / "catalog.toml"), clocks) as service:
            signed_up = await service.sign_up()
            headers = bearer((await service.make_key(bearer(signed_up["access_token"])))["key"])
            watch(service.config.data_dir / "service.db")
            lab = Lab(service, upstream, signed_up["user"]["id"], headers)
            await lab.fund(1_000_000)
            yield lab


def pictures(answer: httpx.Response) -> list[bytes]:
    assert answer.status_code == 200, answer.text
    return [base64.b64decode(entry["b64_json"], validate=True) for entry in answer.json()["data"]]


def seconds(answer: httpx.Response) -> float:
    """How long a WAV answer is; its header must say the same."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "audio/wav" and int(answer.headers["content-length"]) == len(
        answer.content
    )
    with wave.open(io.BytesIO(answer.content)) as reader:
        length = reader.getnframes() / reader.getframerate()
    assert float(answer.headers["x-audio-seconds"]) == pytest.approx(length, abs=0.001)
    return length


def tokens(length_seconds: float) -> int:
    return -(-round(length_seconds * 4096 * 10**6) // (180 * 10**6))
