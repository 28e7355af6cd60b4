"""Subtitles: numbers, times, and texts that would break a cue."""

from svc.inference.subtitles import as_srt, as_vtt

SEGMENTS = [
    {"start": 0.0, "end": 1.9996, "text": " Hello,\nworld! --> there"},
    {"start": 3_661.5, "end": 36_000.001, "text": " Bye."},
]


def test_srt_has_numbers_and_commas() -> None:
    assert as_srt(SEGMENTS) == (
        "1\n00:00:00,000 --> 00:00:02,000\nHello, world! -> there\n\n2\n01:01:01,500 --> 10:00:00,001\nBye.\n\n"
    )


def test_vtt_has_a_head_and_points() -> None:
    assert as_vtt(SEGMENTS[1:]) == "WEBVTT\n\n01:01:01.500 --> 10:00:00.001\nBye.\n\n"
    assert as_vtt([]) == "WEBVTT\n\n" and as_srt([]) == ""
