"""Links to an artifact's content: good for an hour, for one account's one file, and for nothing else."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from svc.content.content_links import LINK_SECONDS, account_of_link, content_url
from tests.conftest import Service, bearer

KEY, NOW = b"k" * 32, 1_790_000_000.0
ARTIFACT, ACCOUNT = "art_1", "user_1"


def query_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


QUERY = query_of(content_url(KEY, "https://here", ACCOUNT, ARTIFACT, NOW))


def test_link_names_its_account_for_an_hour() -> None:
    assert account_of_link(KEY, QUERY, ARTIFACT, NOW) == ACCOUNT
    assert account_of_link(KEY, QUERY, ARTIFACT, NOW + LINK_SECONDS - 1) == ACCOUNT
    assert account_of_link(KEY, QUERY, ARTIFACT, NOW + LINK_SECONDS) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"account": "user_2"},
        {"expires": "1990000000"},
        {"expires": "-1"},
        {"expires": "9" * 5_000},
        {"expires": "\u0661"},
        {"signature": ""},
        {"signature": QUERY["signature"] + "="},
        {"signature": "é\0"},
        {"account": "user_1\nart_1"},
    ],
)
def test_any_change_invalidates_the_link(changes: dict[str, str]) -> None:
    assert account_of_link(KEY, QUERY | changes, ARTIFACT, NOW) is None
    assert account_of_link(KEY, QUERY, "art_2", NOW) is None and account_of_link(b"x" * 32, QUERY, ARTIFACT, NOW) is None
    assert account_of_link(KEY, {}, ARTIFACT, NOW) is None


async def make(service: Service, headers: dict[str, str]) -> dict[str, Any]:
    body = {"name": "a.png", "content_type": "image/png", "content_base64": "iVBORw0KGgo="}
    made: dict[str, Any] = (await service.client.post("/artifacts", json=body, headers=headers)).json()
    return made


async def test_img_on_another_site_needs_no_token(service: Service) -> None:
    made = await make(service, await service.bearer())
    for method in ("GET", "HEAD"):
        answer = await service.client.request(method, made["content_url"])
        assert answer.status_code == 200 and answer.headers["content-type"] == "image/png"
        assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
        assert (
            answer.headers["content-disposition"].startswith("inline") and answer.headers["x-content-type-options"] == "nosniff"
        )
    assert (await service.client.put(made["content_url"], content=b"x")).status_code == 401
    assert (await service.client.get(made["content_url"].replace("/content?", "?"))).status_code == 401


async def test_link_expires_with_its_hour_artifact_and_account(service: Service) -> None:
    session = await service.sign_up()
    headers = bearer(session["access_token"])
    first, second = await make(service, headers), await make(service, headers)
    assert (await service.client.delete(f"/artifacts/{first['id']}", headers=headers)).status_code == 204
    assert (await service.client.get(first["content_url"])).status_code == 404
    assert (await service.client.get(second["content_url"])).status_code == 200
    service.clocks.advance(LINK_SECONDS)
    assert (await service.client.get(second["content_url"])).status_code == 401
    again = (await service.client.get(f"/artifacts/{second['id']}", headers=headers)).json()["content_url"]
    assert (await service.client.get(again)).status_code == 200
    gone = await service.client.request("DELETE", "/user/me", json={"password": "correct horse battery"}, headers=headers)
    assert gone.status_code == 204 and (await service.client.get(again)).status_code in (401, 404)
