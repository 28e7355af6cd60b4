"""What holds for every path: which methods it takes, errors, HEAD."""

import logging
import re

from app import ROUTES
from tests.conftest import PASSWORD, Service
from tests.support.answers import assert_error
from tests.support.cases import each


def filled(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "some-id", path)


async def test_405_lists_the_methods_of_each_path(service: Service) -> None:
    for path in {path for _, path, _ in ROUTES}:
        methods = {method for method, other, _ in ROUTES if other == path}
        answer = await service.client.request("TRACE", filled(path))
        assert_error(answer, 405, "method_not_allowed")
        assert set(answer.headers["allow"].split(", ")) == methods | ({"HEAD"} if "GET" in methods else set()), path


@each("path", ["/nothing", "/v1/embeddings", "/v1/chat/completions/", "/v1/", "/static/../app.py", "/%00"])
async def test_unknown_path_is_404_without_redirect(service: Service, path: str) -> None:
    assert_error(await service.client.post(path), 404, "not_found")


async def test_head_works_on_get_paths(service: Service) -> None:
    answer = await service.client.head("/healthz")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_library_loggers_stay_at_warning(service: Service) -> None:
    assert PASSWORD  # the fixture's lifespan has set the loggers up
    for name in ("aiosqlite", "httpx", "httpcore"):
        assert logging.getLogger(name).getEffectiveLevel() >= logging.WARNING
