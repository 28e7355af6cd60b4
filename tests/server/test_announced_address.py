"""The address that a start prints is one that the check of `Host` accepts."""

from pathlib import Path
from typing import TYPE_CHECKING

from app import create_app
from tests.support.cases import each
from tests.support.served import served

if TYPE_CHECKING:  # with this name the module would have slow tests only
    from tests.support.server import RunningServer


@each("base_url", ["", "https://ai.example"])
@each("host", ["0.0.0.0", "::", "127.0.0.1"])
def test_the_printed_address_answers(tmp_path: Path, host: str, base_url: str) -> None:
    async def play(server: "RunningServer") -> None:
        async with server.client() as client:  # of the address that was printed
            assert (await client.get("/healthz")).status_code == 200
        if host == "::":
            async with server.client(base_url=f"https://127.0.0.1:{server.port}") as client:
                assert (await client.get("/healthz")).status_code == 200

    outcome = served(tmp_path, {"SVC_HOST": host, "SVC_BASE_URL": base_url}, play, create_app)
    second = outcome.stdout.splitlines()[1]
    if host == "127.0.0.1":
        assert "--cacert" in second
    else:
        advice = f"clients use {base_url}" if base_url else "set SVC_BASE_URL to the URL that clients use"
        assert second == f"on all addresses of this machine; {advice}"
