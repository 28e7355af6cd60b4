"""The web application: its pages, and the scripts, style sheets and images of svc/static/.

A page refers to `/static/<release>/…`, where the release is a hash of all files. Browsers may cache such an answer for
any time, and load the files of a new release at once. The same files under `/static/…` are revalidated.
"""

import base64
import functools
import gzip
import hashlib
import re
from collections.abc import Callable, Iterator
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import orjson
from starlette.datastructures import Headers

from svc import languages
from svc.admin import users
from svc.auth import tokens
from svc.billing import payments
from svc.config import Config
from svc.content import artifacts, conversations, history, projects, prompts, recall, search, support
from svc.content.given_files import FITTED_BYTES_PER_TOKEN
from svc.errors import ApiError
from svc.inference.context_lengths import UNKNOWN_TOKENS
from svc.inference.providers import NewProvider
from svc.inference.sent_body import DEFAULT_OUTPUT_TOKENS, LEAST_OUTPUT_TOKENS
from svc.inference.tokens import BYTES_PER_TOKEN, FRAME_TOKENS, MEDIA_TOKENS
from svc.money import MICROS_PER_DOLLAR
from svc.routes import agents, api_keys, auth, page_script, user
from svc.routes.schemas import media
from svc.server.interface import Answer, Content, Operation, Refusal, header, path_id
from svc.server.limits import CHAT_PER_MINUTE
from svc.server.openapi import HTML, OF_PAGES
from svc.server.web import Request, Response
from svc.shapes import Shape, shape_of, string

# The bodies that the application's forms fill in.
_FORMS: dict[str, Shape[Any]] = {
    "sign_up": shape_of(auth.SignUp),
    "key": shape_of(api_keys.NewKey),
    "project": shape_of(projects.NewProject),
    "prompt": shape_of(prompts.NewPrompt),
    "provider": shape_of(NewProvider),
    "run": shape_of(agents.NewRun),
    "artifact": shape_of(artifacts.NewArtifact),
    "support": shape_of(support.NewSupport),
    "conversation": shape_of(conversations.ConversationFields),
    "summary": shape_of(conversations.EditedSummary),
    "message": shape_of(history.NewMessage),
    "image": media.IMAGE,
    "settings": shape_of(user.SettingsChanges),
    "booking": shape_of(users.Booking),
}
# JSON schema keyword: attribute of an input element.
_ATTRIBUTES = {"minLength": "minlength", "maxLength": "maxlength", "minimum": "min", "maximum": "max"}
describes = partial(Operation, "Pages")
STATIC = Path(__file__).parent.parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_FILE_HEADERS = {
    **OF_PAGES,
    "permissions-policy": header("What a page may use of the machine.", string, "microphone=(self)"),
    "etag": header("The version of the file, for If-None-Match.", string, '"b94d27b9934d3e08a52e52d7da7dabfa"'),
}
_NOT_CHANGED = Answer("The browser's copy is current (`If-None-Match`).", headers=_FILE_HEADERS, status=304)
_PAGE = Answer("The page.", contents={"text/html": HTML}, headers=_FILE_HEADERS)
_IN_FRAGMENT = "The token is in the fragment of the link, which browsers do not send."
_COMPRESSED = (".css", ".js", ".mjs", ".svg", ".html")
# Pages and the sections of their texts. Those of frame.html have a title.
_TRANSLATED = {
    "index.html": "application",
    "password-reset.html": "password_reset",
    "verify-email.html": "verify_email",
}
# Of the frame in which the application shows HTML that a model has written: scripts, but no requests and no origin.
_OF_PREVIEW = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; media-src data: blob:; font-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'self'"
)
_CSS_COMMENT = re.compile(rb"[ \t]*/\*(?:[^*]|\*(?!/))*\*/")
_IMPORT_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)


def page_limits() -> dict[str, Any]:
    """Return the input attributes by form and field, and the limits in the application's texts."""
    return {
        **{name: _bounds(body) for name, body in _FORMS.items()},
        "provider_name_pattern": shape_of(NewProvider).schema["properties"]["name"]["pattern"],
        "search": {"maxlength": search.QUERY_LENGTH},
        "memory": {"maxlength": recall.QUERY_LENGTH},
        "languages": languages.LANGUAGES,
        "session_hours": tokens.SESSION_SECONDS // 3600,
        "chats_per_minute": CHAT_PER_MINUTE,
        "least_dollars": payments.LEAST_MICROS // MICROS_PER_DOLLAR,
        "output_tokens": DEFAULT_OUTPUT_TOKENS,
        "least_output_tokens": LEAST_OUTPUT_TOKENS,
        "bytes_per_token": BYTES_PER_TOKEN,
        "fitted_bytes_per_token": FITTED_BYTES_PER_TOKEN,
        "frame_tokens": FRAME_TOKENS,
        "media_tokens": MEDIA_TOKENS,
        "unknown_context_tokens": UNKNOWN_TOKENS,
    }


def _bounds(body: Shape[Any]) -> dict[str, dict[str, int]]:
    schemas = {field.name: field.shape.schema for field in body.fields}
    return {
        field: {attribute: schema[keyword] for keyword, attribute in _ATTRIBUTES.items() if keyword in schema}
        for field, schema in schemas.items()
    }


class File:
    """A file that is served. Only its gzip form is kept, once that is made and if it is smaller."""

    # Opened directly, a file must not load or run anything.
    def __init__(self, content: bytes, suffix: str, policy: str = "default-src 'none'; frame-ancestors 'none'") -> None:
        self.suffix, self.policy = suffix, policy
        self.etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        self._stored = (content, suffix not in _COMPRESSED, False)  # the bytes, whether that is final, and in gzip

    @property
    def content(self) -> bytes:
        stored, _, packed = self._stored
        return gzip.decompress(stored) if packed else stored

    def compressed(self) -> bytes | None:
        """Return the content in gzip, or None if that is not smaller."""
        stored, final, packed = self._stored
        if not final:
            small = gzip.compress(stored, 9, mtime=0)
            packed = len(small) < len(stored)
            stored = small if packed else stored
            self._stored = (stored, True, packed)
        return stored if packed else None


@functools.cache
def files() -> dict[str, File]:
    """Every file that is served, by its path under svc/static/: nothing else can be asked for, whatever the path looks
    like.
    """
    found = (path for path in sorted(STATIC.rglob("*")) if path.suffix in _TYPES and path.is_file())
    served = {path.relative_to(STATIC).as_posix(): File(_content(path), path.suffix) for path in found}
    return served | {name: File(text.encode(), ".js") for name, text in _first_view().scripts.items()}


def _content(path: Path) -> bytes:
    """Return what is served of a file. Comments in the application's styles are a twentieth of them on the wire."""
    content = path.read_bytes()
    own = path.suffix == ".css" and path.parent == STATIC / "app"
    return _CSS_COMMENT.sub(b"", content) if own else content


@functools.cache
def _first_view() -> page_script.FirstView:
    scripts = (path for folder in ("app", "vendor") for path in (STATIC / folder).rglob("*.*js"))
    scripts = (path for path in scripts if path.parent.name != "mermaid")  # 3.5 MB, and no module
    return page_script.FirstView(
        {path.relative_to(STATIC).as_posix(): path.read_text() for path in scripts}, languages.LANGUAGES
    )


@functools.cache
def release() -> str:
    named = "\n".join(f"{name} {file.etag}" for name, file in files().items())
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def first_use(config: Config) -> Iterator[Callable[[], object]]:
    """Yield what must be done before pages are served, in steps of some milliseconds."""
    yield files
    yield from (file.compressed for file in files().values())
    yield partial(_page_for, config, "docs.html", "en")
    for language in languages.LANGUAGES:
        yield partial(languages.texts, language)
        yield from (partial(_page_for, config, name, language) for name in _TRANSLATED)


@functools.cache
def _page(name: str, language: str, *, passwords: bool, sign_up_open: bool, sends_mail: bool) -> File:
    """Return a page with its texts, the release in its addresses, the limits of its forms, and which of them work."""
    works = {"passwords": passwords, "sign_up_open": sign_up_open, "sends_mail": sends_mail}
    limits, html = page_limits() | works, (STATIC / name).read_text()
    told = {"password_length": limits["sign_up"]["password"]["minlength"], "session_hours": limits["session_hours"]}
    texts = languages.texts(language)
    own = {key: languages.filled(text, told) for key, text in texts.get(_TRANSLATED.get(name, ""), {}).items()}
    values = {
        **{key: escape(text) for key, text in (texts["shared"] | own).items()},
        **told,
        "release": release(),
        "limits": orjson.dumps(limits).decode(),
        "imports": _first_view().import_map(f"/static/{release()}/", language).decode(),
        "texts": orjson.dumps(own | {"errors": texts["errors"]}).decode().replace("<", "\\u003c"),
        "passwords": "on" if passwords else "off",
        "language": language,
        "direction": languages.direction(language),
        "texts_script": page_script.texts_script(language),
    }
    html = languages.filled(html, values)
    html = framed(language, own["title"], html) if "title" in own else html
    return File(html.encode(), ".html", policy(html))


@functools.cache
def _preview() -> File:
    return File((STATIC / "preview.html").read_bytes(), ".html", _OF_PREVIEW)


@functools.cache
def _frame() -> str:
    return (STATIC / "frame.html").read_text().replace("{release}", release())


def framed(language: str, title: str, body: str) -> str:
    """Return a page outside the application with its look. `title` is text, `body` is HTML."""
    values = {"language": language, "direction": languages.direction(language), "title": escape(title), "body": body}
    return languages.filled(_frame(), values)


def not_found(sent: Headers) -> Response:
    language = languages.requested(sent)
    texts = {name: escape(text) for name, text in languages.texts(language)["not_found"].items()}
    html = framed(language, texts["title"], f'<p>{texts["text"]}</p>\n<p><a href="/">{texts["link"]}</a></p>')
    headers = {"content-security-policy": policy(html), "referrer-policy": "no-referrer"}
    return Response(html, 404, headers, media_type="text/html; charset=utf-8")


def policy(html: str) -> str:
    """Return the Content-Security-Policy of a page: scripts and styles of this origin only.

    An import map must be inline, so the policy has its hash. Only the application, which has one, may show the frame of
    previews. The frame cannot be directed to another origin either.
    """
    maps = "".join(
        f" 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in _IMPORT_MAP.findall(html)
    )
    frames = "frame-src 'self'; " if maps else ""
    return (
        f"default-src 'none'; script-src 'self'{maps}; style-src 'self'; connect-src 'self'; "
        f"img-src 'self' data: blob:; media-src 'self' blob:; manifest-src 'self'; {frames}base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


@describes("Show the web application", answer=_PAGE, others=[_NOT_CHANGED])
async def get_start_page(request: Request) -> Response:
    return _page_answer(request, "index.html")


@describes("Show the API reference", answer=_PAGE, others=[_NOT_CHANGED])
async def get_docs_page(request: Request) -> Response:
    return _page_answer(request, "docs.html")


@describes(
    "Show the frame of previews",
    "It shows the HTML, SVG or Mermaid that the application sends it. Its headers give it no origin and no network.",
    answer=_PAGE,
    others=[_NOT_CHANGED],
)
async def get_preview_page(request: Request) -> Response:
    return _answer(request, _preview(), "no-cache")


@describes("Show the page to set a new password", _IN_FRAGMENT, answer=_PAGE, others=[_NOT_CHANGED])
async def get_password_reset_page(request: Request) -> Response:
    return _page_answer(request, "password-reset.html")


@describes("Show the page to verify an email address", _IN_FRAGMENT, answer=_PAGE, others=[_NOT_CHANGED])
async def get_verify_email_page(request: Request) -> Response:
    return _page_answer(request, "verify-email.html")


def _page_for(config: Config, name: str, language: str) -> File:
    sign_up_open, sends_mail = config.signup == "open", config.smtp_url is not None
    return _page(name, language, passwords=config.passwords, sign_up_open=sign_up_open, sends_mail=sends_mail)


def _page_answer(request: Request, name: str) -> Response:
    language = languages.requested(request.headers) if name in _TRANSLATED else "en"
    answer = _answer(request, _page_for(request.state.config, name, language), "no-cache")
    if name in _TRANSLATED:
        answer.headers["vary"] = "accept-encoding, accept-language, cookie"
    return answer


@describes(
    "Get a script, style sheet, image or font",
    parameters=[
        path_id("path", "The file's path. With the release in front, the file may be cached for any time.", "style.css")
    ],
    answer=Answer(
        "The file.",
        contents={
            **{media_type.partition(";")[0]: Content(string) for media_type in _TYPES.values()},
            "image/png": Content(string.about(contentMediaType="image/png")),
            "font/woff2": Content(string.about(contentMediaType="font/woff2")),
        },
        headers=_FILE_HEADERS,
    ),
    others=[_NOT_CHANGED],
    errors=[Refusal("not_found", when="There is no such file.")],
)
async def get_static_file(request: Request, path: str) -> Response:
    first, _, rest = path.partition("/")
    current = first == release()
    file = files().get(rest if current else path)
    if file is None:
        raise ApiError("not_found")
    return _answer(request, file, "public, max-age=31536000, immutable" if current else "no-cache")


def _answer(request: Request, file: File, caching: str) -> Response:
    headers = {
        "content-security-policy": file.policy,
        "referrer-policy": "no-referrer",
        "permissions-policy": "microphone=(self)",  # for dictation
        "cache-control": caching,
        "etag": file.etag,
        "vary": "accept-encoding",
    }
    media_type = _TYPES.get(file.suffix, "text/html; charset=utf-8")
    if file.etag in re.split(r"\s*,\s*", request.headers.get("if-none-match", "").replace("W/", "")):
        return Response(status_code=304, headers=headers)
    if _takes_gzip(request.headers.get("accept-encoding", "")) and (compressed := file.compressed()) is not None:
        return Response(compressed, headers={**headers, "content-encoding": "gzip"}, media_type=media_type)
    return Response(file.content, headers=headers, media_type=media_type)


def _takes_gzip(accept_encoding: str) -> bool:
    """Return whether an Accept-Encoding header has `gzip` without `q=0`."""
    for part in accept_encoding.lower().split(","):
        coding, *parameters = (text.strip() for text in part.split(";"))
        if coding == "gzip":
            return not any(re.fullmatch(r"q=0(\.0*)?", parameter) for parameter in parameters)
    return False
