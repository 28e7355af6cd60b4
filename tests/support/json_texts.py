"""JSON texts for hypothesis, written in every way: spaces, escapes, forms of numbers, repeated names."""

import json

from hypothesis import strategies as st

GAPS = st.sampled_from(["", "", " ", "\n  ", "\t\r\n"])
NAMES = st.sampled_from(["model", "n", "a", "tools", 'x"y', "é", "\\", "model "])
TEXTS = st.text('ab"\\/é😀\n:,{}[]', max_size=6)
NUMBERS = st.sampled_from(["0", "1", "-1.50", "1e3", "1E+2", "0.10", "123456789012345678901234567890", "true", "null"])


@st.composite
def strings(draw: st.DrawFn) -> str:
    """A string as JSON, written in one of several ways."""
    text = draw(TEXTS)
    written = json.dumps(text, ensure_ascii=draw(st.booleans()))
    return written.replace("/", "\\/") if draw(st.booleans()) else written


@st.composite
def names(draw: st.DrawFn) -> str:
    name = draw(NAMES)
    if draw(st.integers(0, 5)) == 0:
        return '"' + "".join(f"\\u{ord(letter):04x}" for letter in name) + '"'
    return json.dumps(name)


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(GAPS, names(), GAPS, GAPS, values, GAPS).map(lambda parts: "{}{}{}:{}{}{}".format(*parts))
    return st.lists(member, max_size=5).map(lambda members: "{" + ",".join(members) + "}")


def lists(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    element = st.tuples(GAPS, values, GAPS).map("".join)
    return st.lists(element, max_size=4).map(lambda elements: "[" + ",".join(elements) + "]")


VALUES = st.recursive(NUMBERS | strings(), lambda values: objects(values) | lists(values), max_leaves=12)
