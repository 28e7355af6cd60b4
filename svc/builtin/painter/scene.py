"""What a picture shows: the words of the prompt become a place, an hour, weather, colours and things; chance does the rest.

The chance is drawn from the whole prompt, so the same prompt makes the same picture and another one makes another.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from random import Random

from svc.builtin.painter import places
from svc.builtin.painter.canvas import WHITE, Color, color, mix
from svc.builtin.painter.figures import FIGURES, entries

_MOST_WORDS, _MOST_THINGS, _MOST_OF_A_KIND, _IN_A_MEADOW = 400, 6, 7, 70
PLACES, TIMES, WEATHER = ({row[0]: row[1:] for row in entries(text)} for text in (places.PLACES, places.TIMES, places.WEATHER))
COLORS = dict(zip(places.COLORS.split()[::2], map(color, places.COLORS.split()[1::2]), strict=True))
_THINGS = {name: [" ".join(figure.words)] for name, figure in FIGURES.items()}
Things = dict[str, tuple[int, Color | None]]  # by name: how many of it, and the colour that the prompt gives it


class Scene:
    """What to paint for `prompt`; each `variation` of it is another scene. Its place is `abstract` if it names nothing known.

    `colors` are four of the sky, the light, and the land from far to near, or the shapes of an abstract composition.
    """

    def __init__(self, prompt: str, variation: int = 0) -> None:
        text = re.sub("|".join(places.PHRASES), lambda found: places.PHRASES[found[0]], prompt.lower())
        words = re.findall(r"[^\W_]+", text)[:_MOST_WORDS]
        seed = hashlib.sha256(f"{variation}/{' '.join(words) or prompt}".encode("utf-8", "replace"))
        self.chance = Random(seed.digest())  # noqa: S311 - a picture, no secret
        self.things, self.weather = _things(words), set(_named(words, WEATHER))
        found, times = _named(words, PLACES), _named(words, TIMES)
        tints = [COLORS[word] for word, after in pairwise([*words, ""]) if word in COLORS and not _things([after])]
        self.place, self.time = found[0] if found else "", times[0] if times else ""
        if self.place or self.things or self.time or self.weather:
            self._look(tints)
        else:
            ground, *shapes = map(color, self.chance.choice(places.SCHEMES).split())
            shapes = [*tints, *shapes][:5]
            self.place, sky = "abstract", [mix(ground, WHITE, 0.06), ground, ground, mix(ground, shapes[0], 0.12)]
            self.colors = [*sky, ground, *shapes]

    def _look(self, tints: list[Color]) -> None:
        first = next((FIGURES[name] for name in self.things), None)
        self.place = self.place or (first and first.home) or self.chance.choice(places.LAND)
        if first and first.where == "water" and self.place not in ("sea", "lake", "city"):
            self.place = "lake"
        usual = places.USUAL.get(self.place, places.TIMES_OF_LAND)
        if not self.time:
            self.time = self.chance.choice(usual)
        dark = self.time in places.DARK
        if dark or self.time == "dusk":
            self.weather.add("stars")
        if self.time != "storm" and not self.weather & {"fog", "rain", "moon"}:
            self.weather.add("moon" if dark else "sun")
        self.colors = [color(text) for text in TIMES[self.time][1].split()]
        for number in (1, 2, 3, 5, 6) if tints else ():
            self.colors[number] = mix(self.colors[number], tints[0], 0.3)


def _named(words: Iterable[str], table: Mapping[str, list[str]]) -> list[str]:
    """The rows of `table` that the words name in the singular or plural, each once, in the order of the words."""
    known: dict[str, list[str]] = {}
    for name, (names, *_) in table.items():
        for one in names.split():
            for form in (one, one + "s", one + "es", re.sub("y$", "ies", one), re.sub("f$", "ves", one)):
                known.setdefault(form, []).append(name)
    return list(dict.fromkeys(name for word in words for name in known.get(word, ())))


def _things(words: list[str]) -> Things:
    found: Things = {}
    for index, word in enumerate(words):
        for name in _named([word], _THINGS):
            before = words[max(index - 2, 0) : index]
            numbers = [one for one in (*before, word) if one in places.NUMBERS or (one.isdecimal() and len(one) < 3)]
            count = int(places.NUMBERS.get(numbers[-1], numbers[-1])) if numbers else 1 if word in FIGURES[name].words else 3
            shades = [COLORS[one] for one in before if one in COLORS]
            if len(found) < _MOST_THINGS:
                most = _IN_A_MEADOW if FIGURES[name].where == "meadow" and count > 2 else min(max(count, 1), _MOST_OF_A_KIND)
                found.setdefault(name, (most, shades[-1] if shades else None))
    return found
