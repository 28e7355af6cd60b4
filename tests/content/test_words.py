"""svc/content/words.py: words of any script, folded, and no text that takes long."""

import time

from svc.content.words import folded, indexed_words, places_of, words_of
from tests.support.cases import each


@each(
    ("text", "wanted"),
    [("Café", "cafe"), ("GROẞE Straße", "grosse strasse"), ("Зубной", "зубной"), ("ещё", "еще"), ("ﬁn", "fin")],
)
def test_folded_word_has_letters_without_case_and_accents(text: str, wanted: str) -> None:
    assert folded(text) == wanted


@each("mark", ["\u0301", "\u0323\u0301", "\u05b0", "\u20d0", "\u0e47"])
def test_runs_of_marks_take_linear_time(mark: str) -> None:
    began = time.thread_time()
    folded("e" + mark * 500_000)
    assert time.thread_time() - began < 1


@each(
    ("text", "words"),
    [
        ("हिन्दी में தமிழ் বাংলা", ["हिन्दी", "में", "தமிழ்", "বাংলা"]),  # vowels are marks
        ("गाज़ियाबाद काँच", ["गाजियाबाद", "कांच"]),
        ("اِمتِحانُ القِيادَةِ", ["امتحان", "قياده"]),
        ("وَالكِتـاب للقطط ال", ["كتاب", "قطط", "ال"]),
        ("שָׁלוֹם־עֲלֵיכֶם", ["שלום", "עליכם"]),
        ("می\u200cخواهم Donau\u00addampf", ["میخواهم", "donaudampf"]),  # noqa: RUF001
    ],
)
def test_words_with_marks_are_whole_and_found_by_their_bare_spelling(text: str, words: list[str]) -> None:
    assert list(words_of(text)) == words and indexed_words(text) == set(words)
    assert len(places_of(text, set(words))) == len(words)


def test_places_refer_to_the_original_text() -> None:
    text = "Zürich, ZURICH and zu\u0308rich"
    assert [text[start:end] for start, end in places_of(text, {"zurich"})] == ["Zürich", "ZURICH", "zu\u0308rich"]
    assert [("x 海鲜")[start:end] for start, end in places_of("x 海鲜", {"海", "鲜", "海鲜"})] == ["海鲜"]
