"""Firefox, driven by WebDriver BiDi over its own WebSocket: it needs no other program."""

import asyncio
import itertools
import json
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.browser import REMEMBER, Visitor, new_visitor
from tests.support.server import RunningServer

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox") or "firefox-esr"
START_SECONDS = 60
# One process for pages, none in reserve, nothing that Firefox itself would like to fetch, and few frames a second: a
# quarter of the CPU is saved.
_PREFERENCES = {
    "app.normandy.enabled": "false",
    "browser.newtabpage.enabled": "false",
    "browser.safebrowsing.malware.enabled": "false",
    "browser.safebrowsing.phishing.enabled": "false",
    "devtools.jsonview.enabled": "false",
    "datareporting.policy.dataSubmissionEnabled": "false",
    "dom.ipc.processCount": "1",
    "media.peerconnection.ice.loopback": "true",
    "dom.ipc.processPrelaunch.enabled": "false",
    "fission.autostart": "false",
    "layout.frame_rate": "10",
    "services.settings.server": '"data:,"',
    "ui.prefersReducedMotion": "1",
}
# A microphone that plays a tone, without a question to the person.
WITH_MICROPHONE = {"media.navigator.streams.fake": "true", "media.navigator.permission.disabled": "true"}
WAIT_SECONDS = 30
FIND = """(role, name) => [...document.querySelectorAll(
    {button: "button, [role=menuitem]", link: "a", field: "input, textarea, select"}[role])].find(one => {
        const label = one.labels?.[0]?.textContent ?? one.getAttribute("aria-label") ?? one.textContent;
        return label.trim().startsWith(name) && one.checkVisibility({visibilityProperty: true}) && !one.disabled;
    })"""


class Firefox:
    """One tab of one person. `errors` are console errors and exceptions of the page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._tab = self._person = ""
        self.errors: list[str] = []

    async def read(self) -> None:
        async for message in self._socket:
            said = json.loads(message.data)
            if said.get("method") == "log.entryAdded" and said["params"]["level"] == "error":
                self.errors.append(str(said["params"]["text"]))
            elif "id" in said:
                self._waiting.pop(said["id"]).set_result(said)

    async def call(self, method: str, **params: Any) -> Any:
        number = next(self._ids)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        answer = await asyncio.wait_for(self._waiting[number], WAIT_SECONDS)
        assert answer["type"] == "success", answer
        return answer["result"]

    async def begin(self) -> None:
        await self.call("session.new", capabilities={"alwaysMatch": {"acceptInsecureCerts": True}})
        await self.call("session.subscribe", events=["log.entryAdded"])
        await self.renew()

    async def renew(self) -> None:
        """Continue as another person in a new tab: a new browser takes ten times as long."""
        before, self._person = self._person, (await self.call("browser.createUserContext"))["userContext"]
        self._tab = (await self.call("browsingContext.create", type="tab", userContext=self._person))["context"]
        if before:
            await self.call("browser.removeUserContext", userContext=before)
        self.errors.clear()

    async def tabs(self) -> int:
        tree = await self.call("browsingContext.getTree")
        return sum(one["userContext"] == self._person for one in tree["contexts"])

    async def sign_in(self, server: RunningServer, width: int, **remembered: str) -> None:
        """Show the chat to a new account. `remembered`: what the page keeps in the browser, such as `model`."""
        await self.show(server, await asyncio.to_thread(new_visitor, server, **remembered), width, "/")
        await self.until("() => document.getElementById('composer') !== null")

    async def show(self, server: RunningServer, visitor: Visitor, width: int, address: str) -> None:
        stored = json.dumps(visitor.storage["origins"][0]["localStorage"])
        await self.resize(width, 900)
        await self.open(f"{server.base_url}/healthz")
        await self.run(f"items => ({REMEMBER})(JSON.parse(items))", stored)
        await self.open(f"{server.base_url}{address}")

    async def resize(self, width: int, height: int) -> None:
        await self.call("browsingContext.setViewport", context=self._tab, viewport={"width": width, "height": height})

    async def open(self, url: str) -> None:
        await self.call("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    async def reload(self) -> None:
        await self.call("browsingContext.reload", context=self._tab, wait="complete")

    async def run(self, script: str, *arguments: str) -> Any:
        """Return the string, number or truth value that a function returns; other values are "object"."""
        answer = await self.call(
            "script.callFunction",
            functionDeclaration=script,
            arguments=[{"type": "string", "value": argument} for argument in arguments],
            target={"context": self._tab},
            awaitPromise=True,
        )
        assert answer["type"] == "success", answer
        return answer["result"].get("value", answer["result"]["type"])

    async def until(self, script: str, *arguments: str) -> None:
        """Wait until a function returns true."""
        end = time.monotonic() + WAIT_SECONDS
        while await self.run(script, *arguments) is not True:
            assert time.monotonic() < end, (script, arguments, await self.run("() => document.body.innerText"))
            await asyncio.sleep(0.05)

    async def sees(self, text: str) -> None:
        await self.until("text => document.body.innerText.includes(text)", text)

    async def click(self, role: str, name: str) -> None:
        await self.until(
            f"(role, name) => {{ const one = ({FIND})(role, name); one?.click(); return !!one; }}", role, name
        )

    async def press(self, name: str) -> None:
        """Click a button with the mouse, which the page knows as the act of a person."""
        await self.until(f"name => !!({FIND})('button', name)", name)
        middle = f"({FIND})('button', name).getBoundingClientRect()"
        place = json.loads(
            await self.run(
                f"name => {{ const {{x, y, width, height}} = {middle};"
                " return JSON.stringify([x + width / 2, y + height / 2].map(Math.round)); }",
                name,
            )
        )
        move = {"type": "pointerMove", "x": place[0], "y": place[1]}
        actions = [move, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        await self._act("pointer", actions)

    async def type(self, name: str, text: str) -> None:
        """Type into the field with this label."""
        await self.until(f"name => {{ const one = ({FIND})('field', name); one?.focus(); return !!one; }}", name)
        keys = [
            action for one in text for action in ({"type": "keyDown", "value": one}, {"type": "keyUp", "value": one})
        ]
        await self._act("key", keys)

    async def _act(self, kind: str, actions: list[dict[str, Any]]) -> None:
        of_device = [{"type": kind, "id": kind, "actions": actions}]
        await self.call("input.performActions", context=self._tab, actions=of_device)


@asynccontextmanager
async def firefox(folder: Path, preferences: Mapping[str, str] = {}) -> AsyncIterator[Firefox]:
    """Start Firefox with a new profile in `folder`, which has further `preferences`."""
    lines = [f'user_pref("{name}", {value});\n' for name, value in {**_PREFERENCES, **preferences}.items()]
    (folder / "user.js").write_text("".join(lines))
    options = ("--headless", "--no-remote", "--remote-debugging-port=0", "--profile", str(folder))
    process = await asyncio.create_subprocess_exec(
        FIREFOX, *options, "about:blank", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        address = await asyncio.wait_for(_address_of(process), START_SECONDS)
        async with aiohttp.ClientSession() as client, client.ws_connect(f"{address}/session", max_msg_size=0) as socket:
            browser = Firefox(socket)
            reading = asyncio.create_task(browser.read())
            await browser.begin()
            yield browser
            reading.cancel()
    finally:
        process.terminate()
        await process.communicate()


async def _address_of(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        if b"WebDriver BiDi listening on " in line:
            return line.decode().split("listening on ")[1].strip()
    raise AssertionError("Firefox has ended")
