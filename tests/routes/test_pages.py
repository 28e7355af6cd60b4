"""The pages and their files: nothing but the package's own, kept by the browser while they hold, under
a strict policy.
"""

import base64
import hashlib
import re
from typing import Any

import orjson

from svc.routes.pages import STATIC, files, release
from tests.conftest import Service
from tests.support.cases import each

ATTRIBUTES = {"minLength": "minlength", "maxLength": "maxlength", "minimum": "min", "maximum": "max"}
SCHEMAS = {
    "sign_up": "SignUpRequest",
    "key": "CreateApiKeyRequest",
    "project": "CreateProjectRequest",
    "provider": "CreateProviderRequest",
    "run": "RunRequest",
    "artifact": "CreateArtifactRequest",
    "support": "CreateSupportRequest",
    "conversation": "ConversationRequest",
    "summary": "EditedSummary",
    "message": "CreateMessageRequest",
    "image": "ImageRequest",
    "settings": "UpdateSettingsRequest",
    "booking": "BookingRequest",
}


async def limits_of(service: Service) -> dict[str, Any]:
    page = (await service.client.get("/")).text
    (text,) = re.findall(r'<script id="limits" type="application/json">(.*?)</script>', page)
    found: dict[str, Any] = orjson.loads(text)
    return found


async def test_page_carries_the_limits_of_the_interface_document(service: Service) -> None:
    limits = await limits_of(service)
    schemas = (await service.client.get("/openapi.json")).json()["components"]["schemas"]
    for form, name in SCHEMAS.items():
        for field, bounds in limits[form].items():
            schema = schemas[name]["properties"][field]
            schema = schemas[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
            schema = next((part for part in schema.get("anyOf", ()) if part.get("type") != "null"), schema)
            schema = schemas[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
            assert bounds == {ATTRIBUTES[keyword]: schema[keyword] for keyword in ATTRIBUTES if keyword in schema}, (
                form,
                field,
            )


async def test_page_carries_every_limit_that_a_script_names(service: Service) -> None:
    limits = await limits_of(service)
    named = {
        name for file in files().values() for name in re.findall(r"\blimits\.([\w.]+)", file.content.decode("latin-1"))
    }
    assert len(named) > 20
    for name in named - {"js", "languages.map"}:
        value: Any = limits
        for part in name.split("."):
            value = value[part]
        assert isinstance(value, int | dict) or name == "provider_name_pattern", name


def test_no_script_states_a_length_itself() -> None:
    for name, file in files().items():
        if name.startswith("app/") and name.endswith(".js"):
            assert not re.search(rb'(?:maxlength|minlength)=(?:"|\$\{)\d', file.content), name


async def test_password_page_names_the_length_that_the_service_requires(service: Service) -> None:
    least = (await limits_of(service))["sign_up"]["password"]["minlength"]
    page = (await service.client.get("/password-reset")).text
    assert f'minlength="{least}"' in page and f"At least {least} characters." in page
    assert "{" not in re.sub(r'<script id="texts".*?</script>', "", page)


@each("path", ["index.html", "README.md", "vendor/vendor.json", "../config.py", "..%2fconfig.py"])
async def test_only_scripts_styles_and_images_are_served(service: Service, path: str) -> None:
    for address in (f"/static/{path}", f"/static/{release()}/{path}", f"/static/{release()}/../{path}"):
        assert (await service.client.get(address)).status_code == 404


@each("path", ["a" * 5_000 + ".js", "a/" * 300 + "b.css", "%00.js", "app//main.js", "app/", "", "/etc/passwd"])
async def test_path_cannot_leave_the_static_folder(service: Service, path: str) -> None:
    answer = await service.client.get(f"/static/{path}")
    assert answer.status_code in (404, 414, 431)


async def test_release_serves_every_loaded_file(service: Service) -> None:
    page = (await service.client.get("/")).text
    addresses = set(re.findall(r'"(/static/[^"]+?)"', page))
    assert len(addresses) > 10
    for address in addresses - {a for a in addresses if a.endswith("/")}:
        assert address.startswith(f"/static/{release()}/")
        answer = await service.client.get(address)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_file_of_another_release_is_404(service: Service) -> None:
    assert (await service.client.get(f"/static/{'0' * 16}/app/main.js")).status_code == 404


async def test_unchanged_file_is_304(service: Service) -> None:
    for address in ("/", "/docs", "/static/style.css", f"/static/{release()}/app/main.js"):
        first = await service.client.get(address)
        again = await service.client.get(address, headers={"if-none-match": f'"other", W/{first.headers["etag"]}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
        changed = await service.client.get(address, headers={"if-none-match": '"other"'})
        assert changed.status_code == 200


@each(
    ("accepted", "coding"),
    [("gzip", "gzip"), ("br, gzip;q=0.5", "gzip"), ("gzip;q=0", None), ("identity", None), ("br", None)],
)
async def test_files_are_compressed_if_accepted(service: Service, accepted: str, coding: str | None) -> None:
    answer = await service.client.get(f"/static/{release()}/app/markdown.js", headers={"accept-encoding": accepted})
    assert answer.headers.get("content-encoding") == coding
    assert "accept-encoding" in answer.headers["vary"]
    content = (STATIC / "app" / "markdown.js").read_bytes()
    assert answer.content == content  # httpx has unpacked it
    assert (int(answer.headers["content-length"]) < len(content) / 2) == (coding == "gzip")


async def test_styles_of_the_application_are_served_without_comments(service: Service) -> None:
    served = (await service.client.get("/static/app/app.css")).text
    written = (STATIC / "app" / "app.css").read_text()
    assert "/*" in written and "*/" not in served and served.count("{") == written.count("{") > 500


async def test_policy_allows_only_the_import_map_inline(service: Service) -> None:
    answer = await service.client.get("/")
    policy = answer.headers["content-security-policy"]
    maps = re.findall(r'<script type="importmap">(.*?)</script>', answer.text, re.DOTALL)
    assert len(maps) == 1
    digest = base64.b64encode(hashlib.sha256(maps[0].encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert (
        "unsafe" not in policy and "require-trusted-types-for 'script'" in policy and "frame-ancestors 'none'" in policy
    )
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["permissions-policy"] == "microphone=(self)"


@each("path", ["/nowhere", "/nowhere/<b>", "/{body}"])
async def test_browser_gets_a_page_for_an_unknown_path(service: Service, path: str) -> None:
    page = await service.client.get(path, headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and page.headers["x-request-id"]
    answer = await service.client.get(path, headers={"accept": "application/json"})
    assert answer.json()["error"]["code"] == "not_found" and "There is no page at this address." in page.text
    assert f"/static/{release()}/app/app.css" in page.text and "<b>" not in page.text and "{" not in page.text


async def test_errors_of_the_api_are_json_for_browsers_too(service: Service) -> None:
    answer = await service.client.get("/v1/models", headers={"accept": "text/html"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")


def test_scripts_create_no_markup_or_code_from_text() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|dangerouslySetInnerHTML"
    )
    for name, file in files().items():
        if name.startswith("app/") and file.suffix == ".js":
            assert not forbidden.search(file.content.decode()), name
