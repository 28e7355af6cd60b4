"""The start page carries the limits that its scripts name, and they are those of the interface document."""

import re
from typing import Any

import orjson

from svc.routes.pages import files
from tests.conftest import Service

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
    "message": "CreateMessageRequest",
    "image": "ImageRequest",
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
            schema = next((part for part in schema.get("anyOf", ()) if "$ref" in part), schema)
            schema = schemas[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
            assert bounds == {ATTRIBUTES[keyword]: schema[keyword] for keyword in ATTRIBUTES if keyword in schema}, (form, field)


async def test_page_carries_every_limit_that_a_script_names(service: Service) -> None:
    limits = await limits_of(service)
    named = {name for file in files().values() for name in re.findall(r"\blimits\.([\w.]+)", file.content.decode("latin-1"))}
    assert len(named) > 20
    for name in named - {"js"}:
        value: Any = limits
        for part in name.split("."):
            value = value[part]
        assert isinstance(value, int) or name in ("chats_per_minute", "provider_name_pattern"), name


def test_no_script_states_a_length_itself() -> None:
    for name, file in files().items():
        if name.startswith("app/") and name.endswith(".js"):
            assert not re.search(rb'(?:maxlength|minlength)=(?:"|\$\{)\d', file.content), name


async def test_password_page_names_the_length_that_the_service_requires(service: Service) -> None:
    least = (await limits_of(service))["sign_up"]["password"]["minlength"]
    page = (await service.client.get("/password-reset")).text
    assert f'minlength="{least}"' in page
    assert "{" not in page
