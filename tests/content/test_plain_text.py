"""svc/content/plain_text.py: the words of Markdown without its signs, and no text that takes long."""

import time

from svc.content.plain_text import plain
from tests.support.cases import each


@each(
    ("text", "wanted"),
    [
        ("# Head **bold** _it_ `code`", "Head bold it code"),
        ("snake_case, 2 * 3 and a_b_c", "snake_case, 2 * 3 and a_b_c"),
        ("[link](http://x/y) and ![alt](/a.png)", "link and alt"),
        ("> quote\n- item\n* [x] done\n\n***\nend", "quote item done end"),
        ("```py\nprint(1)\n```", "print(1)"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a b 1 2"),
        ("\\*kept\\* ~~gone~~", "*kept* gone"),
        ("Title\n=====\nmany   blanks", "Title many blanks"),
    ],
)
def test_plain_text_has_no_signs_of_markdown(text: str, wanted: str) -> None:
    assert plain(text) == wanted


@each("part", ["[", "[a](", "|", "> ", "- ", "_ ", "* ", "`", "|-"])
def test_repeated_signs_take_little_cpu_time(part: str) -> None:
    began = time.thread_time()
    plain((part * 1_000)[:1_000] + "x")
    assert time.thread_time() - began < 0.5
