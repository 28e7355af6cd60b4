"""Pages that try to send something out of the frame of previews, and the sockets that would notice it.

`PORT_TCP` and `PORT_UDP` stand for the ports of these sockets.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

SINK = "http://127.0.0.1:PORT_TCP"
RTC = """
const peer = new WHERERTCPeerConnection({iceServers: [{urls: "stun:127.0.0.1:PORT_UDP"},
    {urls: "turn:127.0.0.1:PORT_TCP?transport=tcp", username: "a", credential: "b"}]});
peer.createDataChannel("x"); peer.createOffer().then(offer => peer.setLocalDescription(offer));
"""
OWN = RTC.replace("WHERE", "")
QUOTED = OWN.replace('"', "&quot;").replace("\n", " ")
NESTED = f"<iframe srcdoc='<script>{QUOTED}</script>'></iframe>"
IN_SCRIPT = NESTED.replace("</script>", "<\\/script>")
SPECULATION = '{"prefetch": [{"source": "list", "urls": ["%s/a"], "eagerness": "immediate"}]}'.replace("%s", SINK)


def script(text: str) -> str:
    return f"<script>{text}</script>"


PAGES = {
    "fetch": script(f"fetch('{SINK}/a').catch(() => {{}})"),
    "beacon": script(f"navigator.sendBeacon('{SINK}/a', 'x')"),
    "request": script(f"const r = new XMLHttpRequest(); r.open('GET', '{SINK}/a'); r.send()"),
    "web socket": script("new WebSocket('ws://127.0.0.1:PORT_TCP/a')"),
    "event source": script(f"new EventSource('{SINK}/a')"),
    "image": f"<img src='{SINK}/a'><svg><image href='{SINK}/b'/><use href='{SINK}/c#d'/></svg>",
    "media": f"<video src='{SINK}/a' poster='{SINK}/b'></video><audio src='{SINK}/c'></audio>",
    "styles": f"<style>@import '{SINK}/a'; body {{ background: url({SINK}/b) }} @font-face {{ font-family: x; src: url({SINK}/c) }}</style>"
    "<p style='font-family: x'>x</p>",
    "form": f"<form id=f action='{SINK}/a' method=post><input name=a></form>" + script("f.submit()"),
    "form with a button": f"<form action='{SINK}/a'><button id=b>b</button></form>" + script("b.click()"),
    "navigation": script(f"location = '{SINK}/a'"),
    "refresh": f"<meta http-equiv=refresh content='0; url={SINK}/a'>",
    "navigation to data": script(f"location = `data:text/html,<img src='{SINK}/a'>`"),
    "navigation to a blob": script(
        f"location = URL.createObjectURL(new Blob([`<img src='{SINK}/a'>`], {{type: 'text/html'}}))"
    ),
    "new window": script(f"open('{SINK}/a')"),
    "link to a new window": f"<a id=a target=_blank href='{SINK}/a'>a</a>" + script("a.click()"),
    "top": script(f"try {{ top.location = '{SINK}/a' }} catch {{}}"),
    "link to the top": f"<a id=a target=_top href='{SINK}/a'>a</a>" + script("a.click()"),
    "ping": f"<a id=a ping='{SINK}/a' href='#b'>a</a>" + script("a.click()"),
    "worker": script(f"try {{ new Worker(URL.createObjectURL(new Blob([`fetch('{SINK}/a')`]))) }} catch {{}}"),
    "shared worker": script(f"try {{ new SharedWorker(`data:text/javascript,fetch('{SINK}/a')`) }} catch {{}}"),
    "module": script(f"import('{SINK}/a').catch(() => {{}})"),
    "script": f"<script src='{SINK}/a'></script>",
    "prefetch": f"<link rel=prefetch href='{SINK}/a'><link rel=preload as=image href='{SINK}/b'>",
    "preconnect": f"<link rel=preconnect href='{SINK}'><link rel=dns-prefetch href='{SINK}'>",
    "preconnect by a script": script(
        f"document.head.append(Object.assign(document.createElement('link'), {{rel: 'preconnect', href: '{SINK}'}}))"
    ),
    "icon and manifest": f"<link rel=icon href='{SINK}/a'><link rel=manifest href='{SINK}/b'>",
    "speculation": f"<script type=speculationrules>{SPECULATION}</script>",
    "frame": f"<iframe src='{SINK}/a'></iframe><object data='{SINK}/b'></object><embed src='{SINK}/c'>",
    "WebRTC": script(OWN),
    "WebRTC of a new frame": script(
        "const i = document.createElement('iframe'); document.body.append(i);"
        + RTC.replace("WHERE", "i.contentWindow.")
    ),
    "WebRTC in a frame": NESTED,
    "WebRTC in a frame of a script": script(f"document.body.insertAdjacentHTML('beforeend', `{IN_SCRIPT}`)"),
    "WebRTC in a busy frame": script(
        f"document.body.innerHTML = `{IN_SCRIPT}`; const end = Date.now() + 500; while (Date.now() < end);"
    ),
    "WebRTC of an address": f"<iframe src='javascript:{QUOTED}'></iframe>",
    "WebRTC in a closed root": "<div id=d></div>"
    + script(f"d.attachShadow({{mode: 'closed'}}).innerHTML = `{IN_SCRIPT}`"),
    "WebRTC in a declared root": f"<div><template shadowrootmode=closed>{NESTED}</template></div>",
    "WebRTC in a root of a template": f"<template><div><template shadowrootmode=closed>{NESTED}</template></div></template>"
    + script("document.body.append(document.querySelector('template').content.cloneNode(true))"),
    "WebRTC in a cloned root": "<div id=d></div>"
    + script(
        f"const s = d.attachShadow({{mode: 'open', clonable: true}}); s.innerHTML = `{IN_SCRIPT}`;"
        "document.body.append(d.cloneNode(true))"
    ),
    "WebRTC by unsafe HTML": "<div id=d></div>"
    + script(f"d.setHTMLUnsafe?.(`<p><template shadowrootmode=closed>{IN_SCRIPT}</template></p>`)"),
    "WebRTC in written text": script(
        f"document.write('<div><template shadow', 'rootmode=closed>', `{IN_SCRIPT}`, '</template></div>')"
    ),
    "WebRTC in parsed text": script(
        f"document.body.append(document.adoptNode(new DOMParser().parseFromString(`{IN_SCRIPT}`, 'text/html').body))"
    ),
    "WebRTC in XML": script(
        f"const x = `<a xmlns='http://www.w3.org/1999/xhtml' xmlns:h='http://www.w3.org/1999/xhtml'><h:iframe srcdoc='&lt;script>{QUOTED}&lt;/script>'/></a>`;"
        "document.body.append(document.adoptNode(new DOMParser().parseFromString(x, 'text/xml').documentElement))"
    ),
    "WebRTC in a subclass": script(
        "class X extends HTMLIFrameElement {} customElements.define('x-y', X, {extends: 'iframe'});"
        f"const i = new X(); i.srcdoc = `<script>{OWN}<\\/script>`; document.body.append(i)"
    ),
    "WebRTC after a reload": script(f"if (!self.again) {{ self.again = 1; location.reload() }} {OWN}"),
}

# A function that shows pages (a list in JSON) at once, in frames of the panel. It waits until each has begun, and then
# as long as a request would take to begin. Returns how many did not begin.
SHOW = """async pages => {
    const folder = document.querySelector("script[src$='first.js']").src.replace("first.js", "app/");
    const [{ html }, { preview }, { Frame }] = await Promise.all(
        ["html.js", "state.js", "preview-panel.js"].map(module => import(`${folder}${module}`)));
    const begun = new Set(), all = JSON.parse(pages), end = performance.now() + 20_000;
    addEventListener("message", ({ data, source }) => data === "begun" && begun.add(source));
    const texts = all.map(text => text.replace("<body>", "<body><script>parent.postMessage('begun', '*')</script>"));
    preview.value = { Panel: () => html`<div>${texts.map(text => html`<${Frame} kind="html" text=${text} />`)}</div>` };
    while (begun.size < all.length && performance.now() < end) await new Promise(wait => setTimeout(wait, 50));
    await new Promise(settled => setTimeout(settled, 1_000));
    preview.value = null;
    return all.length - begun.size;
}"""


class Noticed:
    """What the sockets have noticed: the beginning of each connection and datagram."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.tcp = self.udp = 0

    def filled(self, text: str) -> str:
        return text.replace("PORT_TCP", str(self.tcp)).replace("PORT_UDP", str(self.udp))

    def page(self, name: str) -> str:
        return self.filled(f"<!doctype html><body>{PAGES[name]}")

    async def notices(self) -> None:
        """Wait until something is noticed."""
        async with asyncio.timeout(15):
            while not self.seen:
                await asyncio.sleep(0.05)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, noticed: Noticed) -> None:
        self._noticed = noticed

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._noticed.seen.append(f"datagram {data[:8]!r}")


@asynccontextmanager
async def noticing() -> AsyncIterator[Noticed]:
    noticed = Noticed()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        noticed.seen.append("connection")
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    noticed.tcp = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(noticed), local_addr=("127.0.0.1", 0))
    noticed.udp = transport.get_extra_info("sockname")[1]
    try:
        yield noticed
    finally:
        transport.close()
        server.close()


@asynccontextmanager
async def noticing_each() -> AsyncIterator[dict[str, Noticed]]:
    """Sockets for each page, by its name: all pages are shown at once."""
    async with AsyncExitStack() as stack:
        yield {name: await stack.enter_async_context(noticing()) for name in PAGES}
