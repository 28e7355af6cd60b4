"""Work after the start that requests would do otherwise."""

from collections.abc import Iterator
from dataclasses import replace

from starlette.datastructures import Headers

import app
from svc.config import Config
from svc.routes import pages
from svc.server.first_use import prepare
from svc.server.middleware import lacks_descriptors
from tests.conftest import Service
from tests.support.full_disk import no_free_descriptors


async def test_steps_run_in_order_and_one_without_a_descriptor_is_left_out() -> None:
    done: list[str] = []

    def fail() -> None:
        raise OSError(24, "Too many open files")

    def steps() -> Iterator[object]:
        yield lambda: done.append("first")
        yield fail
        yield lambda: done.append("last")

    await prepare(steps())  # type: ignore[arg-type]
    assert done == ["first", "last"]


def test_pages_need_no_file_afterwards(config: Config) -> None:
    for step in app._first_use(replace(config, smtp_url=None)):
        step()
    with no_free_descriptors():
        assert pages.not_found(Headers()).status_code == 404
        for step in app._first_use(replace(config, smtp_url=None)):
            step()


async def test_request_without_a_free_descriptor_is_503_and_the_next_one_works(service: Service) -> None:
    pages.files.cache_clear()
    pages._page.cache_clear()
    pages._frame.cache_clear()
    browser = {"accept": "text/html"}
    await service.client.get("/healthz")
    with no_free_descriptors():
        for path in ("/", "/nothing"):
            answer = await service.client.get(path, headers=browser)
            expected = (503, "overloaded") if path == "/" else (404, "not_found")
            assert (answer.status_code, answer.json()["error"]["code"]) == expected
    assert (await service.client.get("/", headers=browser)).status_code == 200
    assert "text/html" in (await service.client.get("/nothing", headers=browser)).headers["content-type"]


def test_library_that_cannot_be_opened_is_503_and_a_missing_one_is_a_bug() -> None:
    missing = "_rust.so: cannot open shared object file: "
    found = [lacks_descriptors(ImportError(missing + why)) for why in ("Too many open files", "No such file")]
    assert found == [True, False]
