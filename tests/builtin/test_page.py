"""The readable text of pages: ten saved ones (tests/pages/README.md), the forms of HTML, and hostile ones."""

import json
import re
import time
from collections.abc import AsyncIterator

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.builtin.page import TEXT_BYTES, read
from svc.builtin.processes import ProcessPool
from svc.errors import UpstreamFault
from tests.support.cases import each
from tests.support.server import ROOT

URL = "https://example.org/docs/page.html"
# By page: its title, what must be in its text, and what must not. Marked by hand.
PAGES: dict[str, tuple[str, list[str], list[str]]] = {
    "documentation": (
        "textwrap — Text wrapping and filling — Python 3.11.2 documentation",
        [
            "# `textwrap` — Text wrapping and filling",
            "[Lib/textwrap.py](https://github.com/python/cpython/tree/3.11/Lib/textwrap.py)",
            "Wraps the single paragraph in *text* (a string) so every line is at most *width* characters long.",
            '>>> textwrap.shorten("Hello  world!", width=12)',
            "returns a single string containing the wrapped paragraph.",
        ],
        ["Previous topic", "Report a Bug", "Table of Contents", "Please donate", "¶", "Found a bug?", "Show Source"],
    ),
    "code": (
        "Sorting HOW TO — Python 3.11.2 documentation",
        [
            "# Sorting HOW TO",
            "```\n>>> sorted([5, 2, 3, 1, 4])\n[1, 2, 3, 4, 5]\n```",
            "[`list.sort()`](https://example.org/library/stdtypes.html#list.sort)",
            "## Sort Stability and Complex Sorts",
            "can be used to sort a separate list of student names:",
        ],
        ["Socket Programming HOWTO", "This Page", "Navigation", "Python Software Foundation is a non-profit"],
    ),
    "article": (
        "Appropriate Uses For SQLite",
        [
            "# Appropriate Uses For SQLite",
            "SQLite competes with [fopen()](http://man.he.net/man3/fopen).",
            "## Situations Where SQLite Works Well",
            "- **Embedded devices and the internet of things**",
            'It keeps things simple. SQLite "just works".',
        ],
        ["Changelog", "Purchase", "function toggle_div", "Download"],
    ),
    "news": (
        "Recent SQLite News",
        [
            "### 2022-12-28 - [Version 3.40.1](https://example.org/docs/releaselog/3_40_1.html)",
            "> The two most important fixes are these:",
            "requested by the Firefox developers at Mozilla.",
            "> SQLite [version 3.10.0](",
        ],
        ["Purchase", "antiRobot", "Documentation\n"],
    ),
    "tables": (
        "8.1. Numeric Types",
        [
            "| Name | Storage Size | Description | Range |\n|---|---|---|---|\n| `smallint` | 2 bytes | small-range integer |",
            "| `bigserial` | 8 bytes | large autoincrementing integer | 1 to 9223372036854775807 |",
            "The sequence created for a `serial` column is automatically dropped when the owning column is dropped.",
            "CREATE TABLE",
        ],
        ["Prev", "8.2. Monetary Types", "Chapter 8. Data Types"],
    ),
    "wiki": (
        "GmManualBasicEmrStructuring < Gnumed < Foswiki",
        [
            "# How to Keep the EMR Nicely Structured",
            "## Regrouping of, Editing, and Deleting Clinical Data",
            "The GNUmed tree system was made so that a Health Issue would have Episodes attached to it.",
            "- vaccination history",
            "[FamilyHistory](https://example.org/docs/FamilyHistory.html)",
        ],
        ["RSS Feed", "@import", "foswikiTopic"],
    ),
    "questions": (
        "Chapter 3. Choosing a Debian distribution",
        [
            "# Chapter 3. Choosing a Debian distribution",
            "If all your user data (i.e. your `/home`) is under a separate partition",
            "Will there be different versions of packages in different distributions?",
        ],
        ["Chapter 4. Compatibility issues", "Chapter 2. Getting and installing"],
    ),
    "discussion": (
        "Blog Post - Start Bootstrap Template",
        [
            "# Welcome to Blog Post!",
            "Posted on January 1, 2023 by Start Bootstrap",
            "## I have odd cosmic thoughts every day",
            "And under those conditions, you cannot establish a capital-market evaluation of that enterprise.",
            "I find it hard to reconcile that with statements of beneficence.",
        ],
        ["Copyright", "About", "JavaScript", "Go!", "Join the discussion"],
    ),
    "blog": (
        "Clean Blog - Start Bootstrap Theme",
        [
            "# Man must explore, and this is exploration at its greatest",
            "a round earth in which all the directions eventually meet",
            "[Space Ipsum](http://spaceipsum.com/)",
            "> The dreams of yesterday are the hopes of today and the reality of tomorrow.",
        ],
        ["Copyright", "Sample Post", "Contact"],
    ),
    "shop": (
        "Shop Item - Start Bootstrap Template",
        ["# Shop item template", "SKU: BST-498", "$45.00 $40.00", "ipsam minima ea iste laborum vero?"],
        ["Copyright", "New Arrivals", "Add to cart", "All Products"],
    ),
}


@each("name", list(PAGES))
def test_saved_page_has_its_text_and_no_menus(name: str) -> None:
    title, wanted, unwanted = PAGES[name]
    found = read((ROOT / f"tests/pages/{name}.html").read_text("utf-8", "replace"), URL)
    assert (found["title"], found["truncated"]) == (title, False)
    assert [one for one in wanted if one not in found["text"]] == []
    assert [one for one in unwanted if one in found["text"]] == []


def body(html: str) -> str:
    text: str = read(f"<html><body>{html}</body></html>", URL)["text"]
    return text


@each(
    ("html", "text"),
    [
        ("<h2>A  &amp;\n b</h2><p>one<p>two", "## A & b\n\none\n\ntwo"),
        ("a <b>bold </b>and <em>x</em> <code>f()</code>", "a **bold** and *x* `f()`"),
        ("<a href='../x y?a=(1)'>up</a>", "[up](https://example.org/x%20y?a=%281%29)"),
        ("<a href='#part'>part</a> <a href='javascript:x()'>js</a> <a>none</a>", "part js none"),
        ("<a href='mailto:a@example.org'>mail</a>", "mail"),
        ("<ul><li>a<li>b<ol><li>c</ol></ul>", "- a\n- b\n  1. c"),
        ("<ol><li><p>a</p><p>b</p></li></ol>", "1. a\n   b"),
        ("<pre><code>a  b\n  c</code></pre>", "```\na  b\n  c\n```"),
        ("<pre>a\n\n\n\nb</pre>", "```\na\n\n\n\nb\n```"),
        ("a<br><br><br><br>b", "a\n\nb"),
        ("<pre>```</pre>", "~~~~\n```\n~~~~"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        ("<dl><dt>t<dd>d</dl>", "t\n\n: d"),
        ("a<br>b<hr>c", "a\nb\n\n---\n\nc"),
        ("<table><tr><th>a|b<th>c<tr><td>1<td>2</table>", "| a\\|b | c |\n|---|---|\n| 1 | 2 |"),
        ("<table><tr><td><h1>layout</h1><p>text</p></td></tr></table>", "# layout\n\ntext"),
        ("<div hidden>x</div><p style='display: none'>y</p><p aria-hidden='true'>z</p>ok", "ok"),
        ("<script>x</script><style>y</style><noscript>z</noscript><svg><text>w</text></svg>ok", "ok"),
        ("<nav>menu</nav><div role=navigation>x</div><div class='site-footer'>y</div><p>" + "ok " * 20, "ok " * 19 + "ok"),
        ("<ul><li><a href=/1>One</a><li><a href=/2>Two</a><li><a href=/3>Three</a></ul>text", "text"),
        ("<p>text</p><img alt='A cat' src=x><img alt='...'>", "text\n\nA cat"),
        ("&#0;&#xD800;&#x110000;&nosuch;&lt;b&gt;", "\ufffd\ufffd\ufffd&nosuch;<b>"),
        ("<form>" + "long text of the page " * 5 + "<input value=x></form>", ("long text of the page " * 5).strip()),
    ],
)  # fmt: skip
def test_html_becomes_markdown(html: str, text: str) -> None:
    assert body(html) == text


def test_main_part_is_preferred_and_keeps_the_heading_above_it() -> None:
    html = f"<h1>Top</h1><div>left</div><main><p>{'word ' * 50}</p></main><div>right</div>"
    assert body(html) == "# Top\n\n" + ("word " * 50).strip()
    assert body(html.replace("<h1>", "<h1><img src=x></h1><h1>")) == body(html), "the first heading with a text"
    assert "left" in body(html.replace("<main>", "<article>").replace("word " * 50, "word")), (
        "a small article is a part"
    )


def test_title_is_that_of_the_head_or_the_first_heading() -> None:
    assert read("<title> a \n b </title><h1>c</h1>", URL)["title"] == "a b"
    assert read("<title></title><h1>c</h1><h1>d</h1>", URL)["title"] == "c"
    assert read("x", URL)["title"] == "" and len(read(f"<title>{'x' * 9_999}", URL)["title"]) == 300


def test_base_of_the_page_is_that_of_its_links() -> None:
    found = read("<head><base href='/other/'></head><body><a href=x>l</a>", URL)
    assert found["text"] == "[l](https://example.org/other/x)"


def test_long_text_is_cut_between_characters() -> None:
    found = read("<p>" + "é" * TEXT_BYTES, URL)
    assert found["truncated"] and TEXT_BYTES - 1 <= len(found["text"].encode()) <= TEXT_BYTES


HOSTILE = {
    "deep": "<div>" * 200_000 + "text",
    "deep inline": "<b>" * 50_000 + "text" + "</b>" * 50_000,
    "deep lists": "<ul><li>" * 50_000 + "text",
    "deep tables": "<table><tr><td>" * 5_000 + "text",
    "many": "<p>x</p>" * 50_000,
    "entities": "&amp;" * 1_000_000,
    "half entities": "&am" * 1_000_000,
    "open tags": "<a " * 3_000,
    "attributes": "<a " + " ".join(f"a{n}=x" for n in range(200_000)) + ">text</a>",
    "comments": "<!--" * 20_000,
    "declarations": "<!" * 50_000,
    "instructions": "<?" * 20_000,
    "marked": "<![CDATA[" * 10_000,
    "ends": "</div>" * 500_000 + "text",
    "mixed ends": "<i><p></i>" * 100_000,
    "one word": "x" * 4_000_000,
    "spaces": " \n" * 2_000_000,
    "zeros": "\0" * 2_000_000,
    "classes": f"<div class='{'nav' * 500_000}'>text</div>",
    "tables": "<table>" + "<tr>" + "<td>x" * 50_000 + "</table>",
}


@pytest.fixture
async def pool() -> AsyncIterator[ProcessPool]:
    pool = ProcessPool("svc.builtin.page", seconds=30.0)
    yield pool
    await pool.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", list(HOSTILE))
async def test_hostile_page_ends_within_its_limits(pool: ProcessPool, name: str) -> None:
    began = time.process_time()
    try:
        found = orjson.loads(await pool.run({"html": HOSTILE[name], "url": URL}))
        assert len(found["text"].encode()) <= TEXT_BYTES and found.keys() == {"title", "text", "truncated"}
    except UpstreamFault as fault:
        assert fault.kind in ("cut", "timeout")
    assert time.process_time() - began < 2, "the server itself does not parse"


@given(st.text(alphabet=st.sampled_from("<>/!-=\"'& ;aptrdulibh1x\n#[]"), max_size=300))
def test_any_text_is_read(html: str) -> None:
    found = read(html, URL)
    assert orjson.loads(json.dumps(found)) == found


NAMES = "p div ul li ol table tr td th dl dt dd b a pre code h1 section br blockquote caption"
TAGS = st.sampled_from(NAMES.split())


@given(st.lists(st.one_of(TAGS.map(lambda tag: f"<{tag}>"), TAGS.map(lambda tag: f"</{tag}>"), st.just(" word "))))
def test_words_outside_of_menus_are_kept_in_any_structure(parts: list[str]) -> None:
    html = "".join(parts)
    found = read(html, URL)["text"]
    assert len(re.findall("word", found)) == html.count("word")
