"""The content of a picture: the words of the prompt become a place, an hour, weather, colours and things.

The rest is random, with the prompt as the seed. `description` names only what is drawn.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice, pairwise
from random import Random
from typing import NamedTuple

from svc.builtin.painter.canvas import WHITE, Color, color, mix
from svc.builtin.painter.figures import figures, table

# Hours of the night, of lit lamps, and of a low sun; the colours of leaves; the usual hours of some places.
DARK, DIM, LOW = ("night", "neon"), ("dusk", "sunset", "storm"), ("sunset", "dawn", "golden", "dusk")
LEAVES = {"autumn": "#ce5c24", "spring": "#f4b0c8", "winter": "#ced0e8"}
LAND = ["hills", "mountains", "forest", "lake", "sea"]
TIMES_OF_LAND = ["day", "golden", "sunset", "dawn", "dusk", "spring"]
USUAL = {"desert": ["golden", "sunset"], "city": ["dusk", "night", "sunset"]}

PHRASES = {"northern lights": "aurora", "christmas tree": "christmas pine", "pine tree": "pine", "palm tree": "palm"}
# The figures of places and weather that a refused name also removes.
FIGURES_OF = {
    "trees": "pine far palm tree flower", "pine": "pine far", "clouds": "cloud", "stars": "star spark", "birds": "bird",
    "mountains": "peak", "city": "tower slab spire", "desert": "dune", "fog": "mist", "snow": "winter",
}  # fmt: skip
# Numbers in a description, and in a prompt.
WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
NUMBERS = {"pair": 2, "few": 3, "many": 7, "village": 5, **{word: number for number, word in WORDS.items()}}
_COLORS = """
black #20222a red #d8342f orange #f0862c yellow #f2cc2f gold #e0ab2e green #3f9e4d emerald #1f9d6b lime #9acd32
olive #7d8033 teal #1e9a96 turquoise #33c3bd cyan #2cc0e0 blue #2f6fd6 indigo #3d3aa8 navy #1d2b66 purple #8238b8
violet #8a4fd0 lavender #a78be0 magenta #d02fa0 pink #f07aa8 brown #8a5a34 maroon #803428 white #f6f4ee silver #b4bcc6
gray #84888c grey #84888c
"""

# The layers of abstract compositions, and their colours: the ground and then the shapes.
ABSTRACT = [
    "halo all 5 10 40; disc all 7 8 56; rings all 6 12 50; half all 5 14 50; disc all 6 2 9",
    "disc sky 1 40 30; ridge -70 12 1.3 0; ridge -40 12 1.1 20; ridge -10 12 1.5 40; ridge 20 11 1.2 60; "
    "ridge 52 10 1.6 90",
]
SCHEMES = [
    "#f4ead7 #e4572e #f3a712 #29335c #669bbc #1b1b2f", "#10142b #f25f5c #ffe066 #247ba0 #70c1b3 #f7fff7",
    "#fdf6ec #264653 #2a9d8f #e9c46a #f4a261 #e76f51", "#1a1423 #b75d69 #eacdc2 #774c60 #372549 #f2e2d2",
    "#eef4ed #134074 #8da9c4 #0b2545 #ef6f6c #f6ae2d", "#fff1e6 #5f0f40 #9a031e #fb8b24 #e36414 #0f4c5c",
]  # fmt: skip

_MOST_WORDS, _MOST_THINGS, _MOST_OF_A_KIND, _IN_A_MEADOW = 400, 6, 7, 70
_MOST_CHARACTERS = 4_000
COLORS = {name: color(shade) for name, shade in re.findall(r"(\w+) (#\w+)", _COLORS)}
_COLOR_NAMES = {shade: name for name, shade in COLORS.items()}


class Row(NamedTuple):
    """A place, an hour or a weather: its words in a prompt and in a description, and its layers or colours."""

    words: str
    description: str = ""
    look: str = ""


@cache
def rows(table_name: str) -> dict[str, Row]:
    """Return the `places`, `times`, `weather` or words that are only `refused`, by name."""
    return {name: Row(*columns) for name, columns in table(table_name).items()}


@cache
def _names_by_word(table_name: str) -> dict[str, list[str]]:
    """Return the names of a table's rows by their words, in the singular and plural."""
    known: dict[str, list[str]] = {}
    for name, (words, *_) in table(table_name).items():
        for one in words.split():
            for form in (one, one + "s", one + "es", re.sub("y$", "ies", one), re.sub("f$", "ves", one)):
                known.setdefault(form, []).append(name)
    return known


Things = dict[str, tuple[int, Color | None]]  # by name: the number, and the colour of the prompt


class Scene:
    """The content of a picture of `prompt`. Without a known word the place is `abstract`.

    `colors` are four of the sky, the light, and the land from far to near, or the shapes of an abstract composition.
    `without` are the refused things, figures, places, times and weather.
    """

    def __init__(self, prompt: str, variation: int = 0) -> None:
        text = re.sub("|".join(PHRASES), lambda found: PHRASES[found[0]], prompt.lower())
        words = re.findall(r"[^\W_]+", text)[:_MOST_WORDS]
        seed = hashlib.sha256(f"{variation}/{' '.join(words) or prompt}".encode("utf-8", "replace"))
        self.chance = Random(seed.digest())  # noqa: S311 - a picture, no secret
        words, refused = _kept_and_refused(text[:_MOST_CHARACTERS])
        words = words[:_MOST_WORDS]
        self.without = {name for word in refused for name in _refused(word)}
        self.things = {name: drawn for name, drawn in _things(words).items() if name not in self.without}
        self.weather = set(_named(words, "weather")) - self.without
        found, times = ([one for one in _named(words, name) if one not in self.without] for name in ("places", "times"))
        tints = [COLORS[word] for word, after in pairwise([*words, ""]) if word in COLORS and not _things([after])]
        self.tint = _COLOR_NAMES[tints[0]] if tints else ""
        self.place, self.time = found[0] if found else "", times[0] if times else ""
        if self.place or self.things or self.time or self.weather:
            self._look(tints)
        else:
            ground, *shapes = map(color, self.chance.choice(SCHEMES).split())
            shapes = [*tints, *shapes][:5]
            self.place, sky = "abstract", [mix(ground, WHITE, 0.06), ground, ground, mix(ground, shapes[0], 0.12)]
            self.colors = [*sky, ground, *shapes]

    def _look(self, tints: list[Color]) -> None:
        first = next((figures()[name] for name in self.things), None)
        if not self.place and first and first.home not in self.without:
            self.place = first.home
        self.place = self.place or self.chance.choice(self._allowed(LAND))
        if first and first.where == "water" and self.place not in ("sea", "lake", "city"):
            self.place = "sea" if "lake" in self.without else "lake"
        usual = self._allowed(USUAL.get(self.place, TIMES_OF_LAND))
        if not self.time:
            self.time = self.chance.choice(usual)
        dark = self.time in DARK
        if dark or self.time == "dusk":
            self.weather.add("stars")
        if self.time != "storm" and not self.weather & {"fog", "rain", "moon"}:
            self.weather.add("moon" if dark else "sun")
        self.weather -= self.without
        self.colors = [color(text) for text in rows("times")[self.time].look.split()]
        for number in (1, 2, 3, 5, 6) if tints else ():
            self.colors[number] = mix(self.colors[number], tints[0], 0.3)

    def _allowed(self, names: list[str]) -> list[str]:
        return [name for name in names if name not in self.without] or names

    @property
    def description(self) -> str:
        if self.place == "abstract":
            return f"An abstract composition of shapes{f' in {self.tint}' if self.tint else ''}."
        things = [_counted(name, count, shade) for name, (count, shade) in self.things.items()]
        behind = [row.description for name, row in rows("weather").items() if name in self.weather]
        if "cloud" not in self.without and self.weather & {"sun", "moon"} and "clouds" not in behind:
            behind.append("clouds")
        place = "hills" if self.place == "forest" and "pine" in self.without else self.place
        where, when = rows("places")[place].description, rows("times")[self.time].description
        text = f"{_listed(things or ['a scene'])} {where} {when}"
        text += f", with {_listed(behind)}" if behind else ""
        return text[0].upper() + text[1:] + (f", tinted {self.tint}." if self.tint else ".")


def _counted(name: str, count: int, shade: Color | None) -> str:
    one = f"{_COLOR_NAMES[shade]} {name}" if shade else name
    if count == 1:
        return f"{'an' if one[0] in 'aeiou' else 'a'} {one}"
    return f"{WORDS.get(count, count)} {one}{'es' if name.endswith('x') else 's'}"


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _refused(word: str) -> list[str]:
    """Return the names of a refused word, with the figures of places and weather that show it."""
    names = [name for known in ("things", "weather", "refused") for name in _named([word], known)]
    names = names or _named([word], "places") + _named([word], "times")  # only for words without another meaning
    return [*names, *(figure for name in names for figure in FIGURES_OF.get(name, "").split())]


def _named(words: Iterable[str], table_name: str) -> list[str]:
    known = _names_by_word(table_name)
    return list(dict.fromkeys(name for word in words for name in known.get(word, ())))


def _things(words: list[str]) -> Things:
    found: Things = {}
    for index, word in enumerate(words):
        for name in _named([word], "things"):
            before, figure = words[max(index - 2, 0) : index], figures()[name]
            numbers = [one for one in (*before, word) if one in NUMBERS or (one.isdecimal() and len(one) < 3)]
            usual = 1 if word in figure.words.split() else 3
            count = int(NUMBERS.get(numbers[-1], numbers[-1])) if numbers else usual
            in_a_meadow = figure.where == "meadow" and count > 2
            count = _IN_A_MEADOW if in_a_meadow else min(max(count, 1), _MOST_OF_A_KIND)
            shades = [COLORS[one] for one in before if one in COLORS]
            found.setdefault(name, (count, shades[-1] if shades else None))
    return dict(islice(found.items(), _MOST_THINGS))


# --- negations: "no cats or dogs", "without birds", "not at night", "cloudless", "cat-free"

# After a negator these words make no negation: "not only cats", "no less than three", "not so dark".
_NO_NEGATION = {
    "only", "just", "less", "fewer", "more", "longer", "matter", "doubt", "without", "far", "so", "too", "very", "quite"
}  # fmt: skip
# The number of words after a negator that it may negate; "zero gravity" negates nothing else.
_NEGATORS = {
    "no": 6, "not": 6, "without": 6, "neither": 6, "nor": 6, "minus": 6, "lacking": 6, "except": 6, "avoid": 6,
    "exclude": 6, "omit": 6, "zero": 1, "0": 1,
}  # fmt: skip
_JOINS = {",", "or", "nor", "and"}
_ARTICLES = {"a", "an", "the", "one", "some", "many", "few", "several", *WORDS.values()}
_PREPOSITIONS = {
    "on", "in", "at", "by", "near", "under", "over", "above", "below", "beside", "behind", "before", "during", "from"
}  # fmt: skip
_ENDS = {"but", "with", "while", "instead", "that", "who", "which", "because", "only", "just", "is", "are", "was"}
_QUALIFIERS = {"other", "more", "further", "additional", "second", "extra", "another", "big", "small", "large"}
_BEHIND_A_JOIN, _LIST = 3, 10


def _kept_and_refused(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a prompt in lower case without the negated ones, and the negated words with a meaning.

    A negated word with a colour or another qualifier ("no black cats", "no other cats") is in neither list.
    """
    text = re.sub(r"([^\W_]+)-free\b", r"without \1;", re.sub("n['\u2019]t\\b", " not ", text))
    tokens = re.findall(r"[^\W_]+|[,.;:!?\n]", text)
    kept, refused = [], []
    reach, found, qualified = 0, False, False
    for place, token in enumerate(tokens):
        before, behind = tokens[place - 1] if place else "", tokens[place + 1 : place + _LIST]
        if token in _NEGATORS and before != "not" and not _NO_NEGATION.intersection(behind[:1]):
            reach, found, qualified = _NEGATORS[token], False, False
        elif token.endswith("less") and _refused(token[:-4]):
            refused.append(token[:-4])
        elif reach and not _ends(before, token, behind, found):
            if token in _JOINS:
                reach, found, qualified = _BEHIND_A_JOIN, False, False
            elif _refused(token):
                found = True
                refused += [] if qualified else [token]
            else:
                reach, qualified = reach - 1, qualified or token in _QUALIFIERS or token in COLORS
        else:
            reach = 0
            kept += [token] if token[0].isalnum() else []
    return kept, refused


def _ends(before: str, token: str, behind: Sequence[str], found: bool) -> bool:
    """Return whether a negation ends at a token. `found`: the word before is a negated word."""
    continues = behind and behind[0] not in _ARTICLES and not behind[0].isdecimal()
    if token == ",":  # a negated list has an "or" before its last word
        return not (continues and {"or", "nor"}.intersection(behind))
    if token in ("or", "nor"):
        return False
    if token == "and":
        return not (continues and behind[0] not in _PREPOSITIONS | _ENDS)
    return found or token in _ENDS or not token[0].isalnum() or (token in _PREPOSITIONS and before not in _NEGATORS)
