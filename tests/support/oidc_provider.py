"""An OpenID Connect provider that others wrote (oidc-provider-mock) in its own process, and a browser
that visits it.
"""

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx

START_SECONDS = 20.0


@contextlib.contextmanager
def oidc_provider(folder: Path) -> Iterator[str]:
    """Run the provider, which writes its log into `folder`, and yield its issuer."""
    output = folder / "stderr"
    with output.open("wb") as stderr:
        arguments = ["-m", "oidc_provider_mock", "--host", "127.0.0.1", "--port", "0", "--require-nonce", "true"]
        process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=stderr)
    try:
        yield f"http://127.0.0.1:{_port(process, output)}"
    finally:
        process.terminate()
        process.wait(10)


def _port(process: "subprocess.Popen[bytes]", output: Path) -> int:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if match := re.search(r"running on http://127\.0\.0\.1:(\d+)", output.read_text()):
            return int(match[1])
        time.sleep(0.02)
    raise AssertionError(f"the provider did not start: {output.read_text()}")


async def visit(browser: httpx.AsyncClient, begin: str, form: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Goes to the provider and fills in its `form`: where it sends the browser back to, and the page's
    fragment then.
    """
    asked = (await browser.get(begin)).headers["location"]
    async with httpx.AsyncClient(trust_env=False, verify=False) as elsewhere:
        agreed = await elsewhere.post(asked, data=form)
    assert agreed.status_code == 302, agreed.text
    return agreed.headers["location"], await come_back(browser, agreed.headers["location"])


async def come_back(browser: httpx.AsyncClient, address: str) -> dict[str, str]:
    answer = await browser.get(address)
    assert answer.status_code == 302 and answer.headers["location"].startswith(
        f"{browser.base_url!s}".rstrip("/") + "/#"
    )
    return dict(parse_qsl(urlsplit(answer.headers["location"]).fragment, strict_parsing=True))
