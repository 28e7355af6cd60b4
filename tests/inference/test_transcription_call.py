"""The cost of a transcription: any report of a model server, and never above the hold."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from svc.inference.catalog import Model
from svc.inference.transcription_call import TranscriptionCall, TranscriptionRequest, Used, form_body, reported_use
from tests.support.model_media import form

PRICES = {
    "micros_per_audio_minute": 6_001,
    "input_micros_per_million_tokens": 7,
    "output_micros_per_million_tokens": 1_999_999,
}
values = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
)


def a_call(seconds: float, streams: bool = False, **fields: list[str]) -> TranscriptionCall:
    model = Model("ears/m", "m", None, "transcription", PRICES)
    request = TranscriptionRequest("wav", seconds, "json", streams, ["segment"], fields, {})
    nothing: Any = SimpleNamespace(engines=SimpleNamespace(clock=lambda: 0.0))
    return TranscriptionCall(model, request, nothing, SimpleNamespace())  # type: ignore[arg-type]


@given(st.floats(0, 15_000), st.dictionaries(st.sampled_from(["seconds", "input_tokens", "output_tokens"]), values))
def test_any_report_gives_whole_counts_that_are_not_negative(seconds: float, usage: dict[str, Any]) -> None:
    assert all(type(count) is int and count >= 0 for count in reported_use(usage, a_call(seconds)._estimate()))


@given(values)
def test_report_that_is_no_object_is_ignored(usage: Any) -> None:
    assert reported_use(usage, Used(1, 2, 3)) == Used(1, 2, 3)


@given(st.floats(0.001, 15_000), st.text(max_size=40))
def test_answer_without_a_report_costs_at_most_the_hold(seconds: float, prompt: str) -> None:
    call = a_call(seconds, prompt=[prompt])
    held_micros = call._cost_micros(call._model, call._estimate())
    call._sent = call._ended = True
    call.text = "a" * int(seconds * 20)  # twenty letters a second
    assert 0 < call.bill().cost_micros <= held_micros


def test_started_second_is_whole_and_the_sum_is_rounded_up_once() -> None:
    assert [a_call(seconds)._seconds for seconds in (0.0, 0.1, 1.0, 1.0000001, 1.001)] == [0, 1, 1, 1, 2]
    cost = TranscriptionCall._cost_micros(a_call(1)._model, Used(1, 1, 1))
    assert cost == 103  # 100.016... + 0.000007 + 1.999999


def test_call_that_was_never_sent_costs_nothing() -> None:
    assert a_call(60).bill().cost_micros == 0


def test_form_for_a_server_keeps_odd_names_and_values_apart(tmp_path: Any) -> None:
    (tmp_path / "a").write_bytes(b"RIFF\r\n--b\r\n")
    with (tmp_path / "a").open("rb") as file:
        sent = form_body({'a"\r\nx': ["1\r\n--c"], "b[]": ["2", "3"]}, "matroska", file, b"boundary")
    assert form("multipart/form-data; boundary=boundary", sent).keys() == {"a%22%0D%0Ax", "b[]", "file"}
    assert sent.count(b"--boundary") == 5 and b'filename="audio.webm"' in sent and b"RIFF\r\n--b\r\n\r\n" in sent
