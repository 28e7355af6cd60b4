"""The content of a picture: the words of the prompt become a place, an hour, weather, colours and things. The rest is
random.

The prompt is the seed, so the same prompt makes the same picture. `description` names only what is drawn.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice, pairwise
from random import Random
from typing import NamedTuple

from svc.builtin.painter import places
from svc.builtin.painter.canvas import WHITE, Color, color, mix
from svc.builtin.painter.figures import Figure, figures, table
from svc.builtin.painter.negation import kept_and_refused

_MOST_WORDS, _MOST_THINGS, _MOST_OF_A_KIND, _IN_A_MEADOW = 400, 6, 7, 70
_MOST_CHARACTERS = 4_000
COLORS = dict(zip(places.COLORS.split()[::2], map(color, places.COLORS.split()[1::2]), strict=True))
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
    named: Mapping[str, Row | Figure] = figures() if table_name == "things" else rows(table_name)
    known: dict[str, list[str]] = {}
    for name, row in named.items():
        for one in row.words.split():
            for form in (one, one + "s", one + "es", re.sub("y$", "ies", one), re.sub("f$", "ves", one)):
                known.setdefault(form, []).append(name)
    return known


Things = dict[str, tuple[int, Color | None]]  # by name: the number, and the colour of the prompt


class Scene:
    """The content of a picture of `prompt`; each `variation` is another one. The place is `abstract` without a known
    word.

    `colors` are four of the sky, the light, and the land from far to near, or the shapes of an abstract composition.
    `without` are the refused things, figures, places, times and weather.
    """

    def __init__(self, prompt: str, variation: int = 0) -> None:
        text = re.sub("|".join(places.PHRASES), lambda found: places.PHRASES[found[0]], prompt.lower())
        words = re.findall(r"[^\W_]+", text)[:_MOST_WORDS]
        seed = hashlib.sha256(f"{variation}/{' '.join(words) or prompt}".encode("utf-8", "replace"))
        self.chance = Random(seed.digest())  # noqa: S311 - a picture, no secret
        words, refused = kept_and_refused(text[:_MOST_CHARACTERS], _refused, list(COLORS))
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
            ground, *shapes = map(color, self.chance.choice(places.SCHEMES).split())
            shapes = [*tints, *shapes][:5]
            self.place, sky = "abstract", [mix(ground, WHITE, 0.06), ground, ground, mix(ground, shapes[0], 0.12)]
            self.colors = [*sky, ground, *shapes]

    def _look(self, tints: list[Color]) -> None:
        first = next((figures()[name] for name in self.things), None)
        if not self.place and first and first.home not in self.without:
            self.place = first.home
        self.place = self.place or self.chance.choice(self._allowed(places.LAND))
        if first and first.where == "water" and self.place not in ("sea", "lake", "city"):
            self.place = "sea" if "lake" in self.without else "lake"
        usual = self._allowed(places.USUAL.get(self.place, places.TIMES_OF_LAND))
        if not self.time:
            self.time = self.chance.choice(usual)
        dark = self.time in places.DARK
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
        """Return a sentence about the picture."""
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
    return f"{places.WORDS.get(count, count)} {one}{'es' if name.endswith('x') else 's'}"


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _refused(word: str) -> list[str]:
    """Return the names of a refused word, with the figures of places and weather that show it."""
    names = [name for known in ("things", "weather", "refused") for name in _named([word], known)]
    names = names or _named([word], "places") + _named([word], "times")  # only for words without another meaning
    return [*names, *(figure for name in names for figure in places.FIGURES_OF.get(name, "").split())]


def _named(words: Iterable[str], table_name: str) -> list[str]:
    known = _names_by_word(table_name)
    return list(dict.fromkeys(name for word in words for name in known.get(word, ())))


def _things(words: list[str]) -> Things:
    found: Things = {}
    for index, word in enumerate(words):
        for name in _named([word], "things"):
            before, figure = words[max(index - 2, 0) : index], figures()[name]
            numbers = [one for one in (*before, word) if one in places.NUMBERS or (one.isdecimal() and len(one) < 3)]
            usual = 1 if word in figure.words.split() else 3
            count = int(places.NUMBERS.get(numbers[-1], numbers[-1])) if numbers else usual
            in_a_meadow = figure.where == "meadow" and count > 2
            count = _IN_A_MEADOW if in_a_meadow else min(max(count, 1), _MOST_OF_A_KIND)
            shades = [COLORS[one] for one in before if one in COLORS]
            found.setdefault(name, (count, shades[-1] if shades else None))
    return dict(islice(found.items(), _MOST_THINGS))
