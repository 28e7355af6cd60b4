"""The helper of run_python: what the values, the output and the end of the code become."""

import json
import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.builtin import sandbox
from svc.builtin.processes import ProcessPool
from svc.builtin.sandbox import RESULT_BYTES, Output, cut, fitting, plain
from tests.support.voice import until_children

pytestmark = pytest.mark.skipif(sandbox.binary() is None, reason="needs the extra python")


@pytest.fixture
async def pool() -> AsyncIterator[ProcessPool]:
    pool = ProcessPool("svc.builtin.sandbox", at_once=4)
    yield pool
    await pool.close()


async def nobody(question: bytes) -> bytes:
    raise AssertionError(question)


def order(code: str, **tools: list[str]) -> dict[str, Any]:
    return sandbox.order(code, tools)


async def played(pool: ProcessPool, code: str) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(await pool.converse(order(code), nobody, account_id="a"))
    return found


async def test_output_and_value_are_returned(pool: ProcessPool) -> None:
    assert await played(pool, "print('Grüße', 1)\nx = 40\nx + 2") == {"output": "Grüße 1\n", "value": 42}
    assert await played(pool, "x = 1") == {"output": "", "value": None}
    value = "{'a': (1, 2.5, None, True), 2: {3}, 'big': 2 ** 70, 'nan': float('nan'), 'b': b'x', 'o': print}"
    found = (await played(pool, value))["value"]
    expected = {"a": [1, 2.5, None, True], "2": [3], "big": str(2**70), "nan": "nan", "b": "b'x'"}
    assert expected.items() <= found.items() and "print" in found["o"]


@pytest.mark.slow
async def test_exception_is_its_last_line_after_the_output(pool: ProcessPool) -> None:
    for code, failure in (
        ("print('a')\n1 / 0", "ZeroDivisionError: division by zero"),
        ("print('a')\nraise ValueError('no')", "ValueError: no"),
        ("print('a')\nnothing", "NameError: name 'nothing' is not defined"),
    ):
        assert await played(pool, code) == {"output": "a\n", "failure": failure}
    assert (await played(pool, "print('a')\nx ="))["failure"].startswith("SyntaxError: ")


@pytest.mark.slow
async def test_long_output_and_value_are_cut_and_say_so(pool: ProcessPool) -> None:
    found = await played(pool, "print('é' * 100_000)\n'z' * 100_000")
    assert found["output"].startswith("éé") and found["output"].endswith("[The output is longer. It is cut here.]")
    assert found["value"].startswith("zz") and found["value"].endswith(" [cut]")
    assert RESULT_BYTES - 4 <= len(found["output"].encode()) + len(found["value"].encode()) <= RESULT_BYTES
    found = await played(pool, f"print('x' * {RESULT_BYTES - 1})")
    assert found["output"] == "x" * (RESULT_BYTES - 1) + "\n"
    found = await played(pool, "print('x' * 100_000)\nraise ValueError('y' * 100_000)")
    assert found["failure"].startswith("ValueError: yy") and found["output"].startswith("xx")


@pytest.mark.slow
async def test_memory_is_limited_and_its_end_is_a_failure(pool: ProcessPool) -> None:
    assert (await played(pool, "len('x' * (200 << 20))"))["value"] == 200 << 20
    for code in ("x = 'x' * (300 << 20)", "x = []\nwhile True:\n    x.append('y' * 1_000_000)", "'x' * (200 << 20)"):
        assert "MemoryError" in (await played(pool, code))["failure"]


async def test_questions_are_answered_until_the_result(pool: ProcessPool) -> None:
    questions: list[Any] = []

    async def answer(question: bytes) -> bytes:
        questions.append(orjson.loads(question))
        return b'{"failure": "it is gone"}' if len(questions) == 3 else b'{"result": [1, "\xc3\xa9"]}'

    code = (
        "a = find('x', most=2)\nb = find(what=(1, 2))\ntry:\n    find()\nexcept RuntimeError as e:\n    print(e)\na + b"
    )
    found = await pool.converse(order(code, find=["what", "most"]), answer, account_id="a")
    assert orjson.loads(found) == {"output": "it is gone\n", "value": [1, "é", 1, "é"]}
    assert questions == [
        {"name": "find", "arguments": arguments} for arguments in ({"what": "x", "most": 2}, {"what": [1, 2]}, {})
    ]
    with pytest.raises(KeyError):  # the exception of an answer ends the process
        await pool.converse(order("find()", find=[]), failing, account_id="a")
    await until_children(0)
    assert pool.at_work() == 0


async def failing(question: bytes) -> bytes:
    raise KeyError


async def test_worker_has_no_environment_and_no_further_descriptors(pool: ProcessPool) -> None:
    """The worker is inspected while the code waits for an answer."""
    seen: dict[str, Any] = {}

    async def answer(question: bytes) -> bytes:
        (helper,) = await until_children(1)
        (worker,) = Path(f"/proc/{helper}/task/{helper}/children").read_text().split()
        seen["environment"] = Path(f"/proc/{worker}/environ").read_text()
        limits = Path(f"/proc/{worker}/limits").read_text()
        seen["limits"] = {line[:26].strip(): line[26:].split()[1] for line in limits.splitlines()}
        return b'{"result": 1}'

    await pool.converse(order("look()", look=[]), answer, account_id="a")
    assert seen["environment"] == ""
    limits = seen["limits"]
    assert (limits["Max cpu time"], limits["Max file size"], limits["Max core file size"]) == ("10", "0", "0")
    assert limits["Max address space"] == str(sandbox.MEMORY_BYTES)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(lambda: 2**20_000),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(VALUES)
def test_any_value_becomes_json(value: Any) -> None:
    found = plain(value)
    assert orjson.loads(json.dumps(found)) == found
    if isinstance(value, float) and math.isfinite(value):
        assert found == value


@given(VALUES, st.integers(10, 100))
def test_long_value_becomes_the_beginning_of_its_text(value: Any, most: int) -> None:
    found = fitting(plain(value), most)
    assert found == plain(value) or (found.endswith(" [cut]") and len(found.encode()) <= most)


@given(st.lists(st.text(min_size=1)), st.integers(50, 200))
def test_output_is_cut_between_characters(texts: list[str], most: int) -> None:
    output = Output()
    for text in texts:
        output("stdout", text)
    whole = "".join(texts).encode("utf-8", "replace")
    assert len(output.text(most).encode()) <= most
    assert output.text(most) == (whole.decode() if len(whole) <= most else cut(whole.decode(), most, sandbox.CUT))


def test_value_in_itself_ends() -> None:
    value: list[Any] = []
    value.append(value)
    assert "[...]" in str(plain(value))
