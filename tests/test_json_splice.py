"""The edits of JSON texts: what stays the same keeps its bytes."""

import json
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.json_splice import items_of, spliced
from tests.support.json_texts import GAPS, NAMES, VALUES, objects

LOOSE = st.sampled_from([None, 2, "other", [], {"new": 1}, 10**30, 'model"'])


@st.composite
def edited(draw: st.DrawFn, value: Any) -> Any:
    """The value with members and elements changed, added and removed at any depth."""
    action = draw(st.integers(0, 3))
    if type(value) is dict and action:
        kept = {name: draw(edited(item)) for name, item in value.items() if draw(st.integers(0, 4))}
        return kept | draw(st.dictionaries(NAMES, LOOSE, max_size=action - 1))
    if type(value) is list and action:
        if draw(st.booleans()):
            return [item for item in value if draw(st.integers(0, 2))]
        return [draw(edited(item)) for item in value]
    return value if action else draw(LOOSE)


def check_kept(text: bytes, old: Any, new_text: bytes, new: Any) -> None:
    """Check that equal members, and equal elements of lists of the same length, have the same bytes."""
    if type(old) is not type(new) or type(old) not in (dict, list) or (type(old) is list and len(old) != len(new)):
        return
    before, after = (
        {item.name: item for item in items_of(one, one.index(one.strip()[:1]))} for one in (text, new_text)
    )
    for name, item in after.items():
        if name not in before:
            continue
        was, now = (one[place.value_start : place.end] for one, place in ((text, before[name]), (new_text, item)))
        if old[name] == new[name]:
            assert was == now
        else:
            check_kept(was, old[name], now, new[name])


@given(st.data())
def test_everything_that_stays_the_same_keeps_its_bytes(data: st.DataObject) -> None:
    gap = data.draw(GAPS)
    text = f"{gap}{data.draw(objects(VALUES))}{gap}".encode()
    old = json.loads(text)
    new = data.draw(edited(old).filter(lambda value: type(value) is dict))
    result = spliced(text, old, new)
    assert json.loads(result) == new
    check_kept(text, old, result, new)
    if new == old:
        assert result is text


@pytest.mark.parametrize(
    ("text", "new", "result"),
    [
        ('{ "a" : 1.0 ,"b":[ 1, 2.50 ,3]}', {"a": 1, "b": [1, 3]}, '{ "a" : 1.0 ,"b":[ 1 ,3]}'),
        ('{"a":1,"b":2 , "c":3}', {"b": 2}, '{"b":2}'),
        ('{"a":[1 , 2]}', {"a": []}, '{"a":[]}'),
        ('{"a":1,"a":2,"b":3}', {"a": 5, "b": 3}, '{"a":5,"b":3}'),
        ('{"a":1,"a":2,"b":3}', {"a": 2, "b": 4}, '{"a":1,"a":2,"b":4}'),
        ('{"\\u0061":1,"x":{"a":1}}', {"a": 5, "x": {"a": 1}}, '{"\\u0061":5,"x":{"a":1}}'),
        ('{"b\\"a":1,"\\u0061":1}', {'b"a': 1, "a": 5}, '{"b\\"a":1,"\\u0061":5}'),
        ('{"a":1,"x":"a"}', {"a": 5, "x": "a"}, '{"a":5,"x":"a"}'),
        ('{"a":1}', {"a": 1, "n": b"1.50"}, '{"n":1.50,"a":1}'),
        ('{"a":[{"b":1},2]}', {"a": [b"{ }", 2]}, '{"a":[{ },2]}'),
        ("{}", {"a": 1}, '{"a":1}'),
    ],
)
def test_only_what_differs_is_edited(text: str, new: dict[str, Any], result: str) -> None:
    assert spliced(text.encode(), json.loads(text), new) == result.encode()


@pytest.mark.parametrize(
    "value",
    [
        b"[" * 90 + b"1" + b"]" * 90,
        b'"' + b'\\"' * 1_000_000 + b'"',
        b'["' + b"a" * 200_000 + b'"]',
        b"[" + b",".join([b'[[[[[["' + b"y" * 1000 + b'"]]]]]]'] * 2000) + b"]",
        b"[" * 50 + b'"' + b"z" * 65_000 + b'",' + b"[" * 40 + b'"' + b"z" * 100_000 + b'"' + b"]" * 90,
        b'[["' + b"q" * 60_000 + b'",' + b"[[[[[[1]]]]]]," * 10_000 + b"1]]",
        b"[" + b"12345," * 50_000 + b"1]",
    ],
    ids=["deep", "escapes", "long", "nested", "at the end of a slice", "after a long text", "numbers"],
)
def test_large_texts_are_edited_in_linear_time(value: bytes) -> None:
    text = b'{"a":%b,"model":"x","b":"model"}' % value
    old = orjson.loads(text)
    began = time.process_time()
    assert spliced(text, old, {**old, "model": "y"}) == text.replace(b'"x"', b'"y"')
    assert time.process_time() - began < 2
