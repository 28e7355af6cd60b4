"""The cookie of the checkout pages cannot be forged or extended."""

from starlette.datastructures import Headers
from starlette.responses import Response

from svc.billing.checkout_cookie import COOKIE, COOKIE_SECONDS, read_cookie, set_cookie
from tests.support.cases import each

SECRET, NOW = b"s" * 32, 1_790_000_000.25


def cookie_of(account_id: str = "user_1") -> str:
    response = Response()
    set_cookie(response, SECRET, account_id, NOW)
    return response.headers["set-cookie"].partition(";")[0].partition("=")[2]


def read(value: str, now: float = NOW, secret: bytes = SECRET) -> tuple[str, int] | None:
    return read_cookie(Headers({"cookie": f"{COOKIE}={value}"}), secret, now)


def test_cookie_is_valid_for_8_hours() -> None:
    assert read(cookie_of()) == ("user_1", int(NOW * 1000))
    assert read(cookie_of(), NOW + COOKIE_SECONDS - 1) is not None
    assert read(cookie_of(), NOW + COOKIE_SECONDS) is None


@each("position", range(len("user_1.1790000000250.") + 43))
def test_changed_character_makes_the_cookie_invalid(position: int) -> None:
    value = cookie_of()
    for other in "A.9z":
        if value[position] != other:
            assert read(value[:position] + other + value[position + 1 :]) is None


def test_another_secret_or_form_makes_the_cookie_invalid() -> None:
    assert read(cookie_of(), secret=b"t" * 32) is None
    for value in ("", ".", "user_1", "user_1.1", cookie_of() + "A", "é" * 40, "\\" * 60_000):
        assert read(value) is None
