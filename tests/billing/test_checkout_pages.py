"""The checkout's pages: every value is escaped."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from svc import languages
from svc.billing import checkout_pages as pages

T = {**languages.texts("en")["shared"], **languages.texts("en")["checkout"]}
TEXT = st.text() | st.sampled_from(
    ['"><script>alert(1)</script>', "{cancel}", "{email}", "' onfocus=alert(1) '", "<!--", "&quot;", "</textarea>"]
)


class Tags(HTMLParser):
    """The tags of a page with their attributes' names."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


@given(TEXT)
def test_values_are_escaped(text: str) -> None:
    for make in (
        lambda value: pages.amounts(T, value, value, value, {"free": 20, "pro": 120}),
        lambda value: pages.sign_in(T, value, [value]),
        lambda value: pages.sandbox(T, value, value),
        lambda value: pages.returned(T, "paid", value),
        lambda value: pages.notices(T, test_money=True, problem=f"x{value}"),
    ):
        assert Tags(make(text)).found == Tags(make("x")).found
