"""The pages for browsers and the files that they load: everything under svc/static/ that is a script, a style sheet or a picture.

A page names its files under `/static/<release>/…`, the release being a hash over all of them: such an answer may be kept for
ever, and a new release of the service is taken at once. The same files stand under `/static/…` as well, to be asked for anew.
"""

import base64
import functools
import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import orjson
from starlette.requests import Request
from starlette.responses import Response

from svc.errors import ApiError
from svc.routes.page_limits import page_limits
from svc.server.interface import Answer, Content, Refusal, describes, header, path_id
from svc.server.openapi import HTML, OF_PAGES
from svc.server.state import State
from svc.shapes import string

STATIC = Path(__file__).parent.parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_FILE_HEADERS = {
    **OF_PAGES,
    "etag": header("Of this content, for If-None-Match.", string, '"b94d27b9934d3e08a52e52d7da7dabfa"'),
}
_NOT_CHANGED = Answer("Not changed since it was asked for (`If-None-Match`).", headers=_FILE_HEADERS)
_COMPRESSED = (".css", ".js", ".mjs", ".svg", ".html")
# For what is no page: shown by itself, it may load and run nothing.
_NOTHING = "default-src 'none'; frame-ancestors 'none'"
_IMPORT_MAP = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)


def _page_answers(text: str) -> dict[int, Answer]:
    return {200: Answer(text, contents={"text/html": HTML}, headers=_FILE_HEADERS), 304: _NOT_CHANGED}


@dataclass(frozen=True)
class File:
    """A file of the package, read once."""

    content: bytes
    suffix: str

    @cached_property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'

    @cached_property
    def compressed(self) -> bytes | None:
        """None where it would not be smaller."""
        if self.suffix not in _COMPRESSED:
            return None
        small = gzip.compress(self.content, 9, mtime=0)
        return small if len(small) < len(self.content) else None


@functools.cache
def files() -> dict[str, File]:
    """Every file that is served, by its path under svc/static/: nothing else can be asked for, whatever the path looks like."""
    found = (path for path in sorted(STATIC.rglob("*")) if path.suffix in _TYPES and path.is_file())
    return {path.relative_to(STATIC).as_posix(): File(path.read_bytes(), path.suffix) for path in found}


@functools.cache
def release() -> str:
    """What changes whenever one of the files does."""
    named = "\n".join(f"{name} {file.etag}" for name, file in files().items())
    return hashlib.sha256(named.encode()).hexdigest()[:16]


@functools.cache
def _page(name: str) -> tuple[File, str]:
    """Return a page with this release in its addresses and the limits of its forms, and the policy under which it is shown."""
    limits = page_limits()
    content = (STATIC / name).read_bytes().replace(b"{release}", release().encode())
    content = content.replace(b"{limits}", orjson.dumps(limits))
    content = content.replace(b"{password_length}", b"%d" % limits["sign_up"]["password"]["minlength"])
    content = content.replace(b"{session_hours}", b"%d" % limits["session_hours"])
    return File(content, ".html"), policy(content)


def policy(html: bytes) -> str:
    """The Content-Security-Policy of a page: scripts and styles of this origin and nothing else.

    An import map can only stand in the page itself; it is let in by its hash.
    """
    maps = "".join(f" 'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in _IMPORT_MAP.findall(html))
    return (
        f"default-src 'none'; script-src 'self'{maps}; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
        "media-src 'self' blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


@describes("Pages", "getDocsPage", "This document, for people", answers=_page_answers("The reference page."))
async def show_docs(request: Request[State]) -> Response:
    return _page_answer(request, "docs.html")


@describes(
    "Pages",
    "getPasswordResetPage",
    "The page that a password link opens",
    "The token is in the fragment of the link, which a browser never sends.",
    answers=_page_answers("The page."),
)
async def show_password_reset(request: Request[State]) -> Response:
    return _page_answer(request, "password-reset.html")


@describes(
    "Pages",
    "getVerifyEmailPage",
    "The page that confirms an e-mail address",
    "The token is in the fragment of the link, which a browser never sends.",
    answers=_page_answers("The page."),
)
async def show_verify_email(request: Request[State]) -> Response:
    return _page_answer(request, "verify-email.html")


@describes("Pages", "getStartPage", "The start page", answers=_page_answers("The page."))
async def show_start(request: Request[State]) -> Response:
    return _page_answer(request, "index.html")


def _page_answer(request: Request[State], name: str) -> Response:
    file, rules = _page(name)
    headers = {"content-security-policy": rules, "referrer-policy": "no-referrer", "cache-control": "no-cache"}
    return _answer(request, file, "text/html; charset=utf-8", headers)


@describes(
    "Pages",
    "getStaticFile",
    "A script, style sheet or picture of the pages",
    parameters=[
        path_id(
            "path",
            "The file's path; the pages put a hash over all files before it, and what is asked for with that may be kept "
            "for ever.",
            "style.css",
        )
    ],
    answers={
        200: Answer(
            "The file.",
            contents={
                "text/css": Content(string),
                "text/javascript": Content(string),
                "image/png": Content(string.about(contentMediaType="image/png")),
                "image/svg+xml": Content(string),
            },
            headers=_FILE_HEADERS,
        ),
        304: _NOT_CHANGED,
    },
    errors=[Refusal("not_found", when="There is no such thing.")],
)
async def static(request: Request[State]) -> Response:
    """A script, style sheet or picture of the package."""
    path: str = request.path_params["path"]
    first, _, rest = path.partition("/")
    current = first == release()
    file = files().get(rest if current else path)
    if file is None:
        raise ApiError("not_found")
    caching = "public, max-age=31536000, immutable" if current else "no-cache"
    headers = {"content-security-policy": _NOTHING, "referrer-policy": "no-referrer", "cache-control": caching}
    return _answer(request, file, _TYPES[file.suffix], headers)


def _answer(request: Request[State], file: File, media_type: str, headers: dict[str, str]) -> Response:
    headers = {**headers, "etag": file.etag, "vary": "accept-encoding"}
    if file.etag in re.split(r"\s*,\s*", request.headers.get("if-none-match", "").replace("W/", "")):
        return Response(status_code=304, headers=headers)
    if file.compressed is not None and _takes_gzip(request.headers.get("accept-encoding", "")):
        return Response(file.compressed, headers={**headers, "content-encoding": "gzip"}, media_type=media_type)
    return Response(file.content, headers=headers, media_type=media_type)


def _takes_gzip(accept_encoding: str) -> bool:
    """Whether `gzip` stands in an Accept-Encoding header without being refused (`q=0`)."""
    for part in accept_encoding.lower().split(","):
        coding, *parameters = (text.strip() for text in part.split(";"))
        if coding == "gzip":
            return not any(re.fullmatch(r"q=0(\.0*)?", parameter) for parameter in parameters)
    return False
