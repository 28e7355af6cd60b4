"""What a picture shows: the words of the prompt become a place, a time, weather, colours and things; chance does the rest.

The chance is drawn from the whole prompt, so the same prompt makes the same picture and another one makes another.
"""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from svc.builtin.painter.canvas import Color, color, mix

T = TypeVar("T")
_MOST_WORDS = 400
_MOST_THINGS = 6
_MOST_OF_A_KIND = 7


class Dice:
    """Chance that the prompt decides."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(hashlib.sha256(seed.encode("utf-8", "replace")).digest())  # noqa: S311 - a picture, no secret

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self._random.random()

    def whole(self, low: int, high: int) -> int:
        return low + int((high - low + 1) * self._random.random())

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(len(choices) * self._random.random())]


@dataclass(frozen=True)
class Palette:
    """The colours of a time of day: the sky from top to horizon, the light, and the land from far to near."""

    sky: tuple[Color, ...]
    light: Color
    far: Color
    near: Color
    dark: bool = False

    def tinted(self, tint: Color, share: float) -> "Palette":
        def toward(shade: Color) -> Color:
            # The tint as bright as the colour that it replaces, so that light and shade stay where they are.
            brightness = (sum(shade) + 40) / (sum(tint) + 40)
            fitted = tuple(min(round(value * brightness), 255) for value in tint)
            return mix(shade, (fitted[0], fitted[1], fitted[2]), share)

        return Palette(tuple(map(toward, self.sky)), self.light, toward(self.far), toward(self.near), self.dark)


def _palette(sky: str, light: str, far: str, near: str, *, dark: bool = False) -> Palette:
    return Palette(tuple(map(color, sky.split())), color(light), color(far), color(near), dark)


PALETTES = {
    "day": _palette("#2f7fc9 #6fb4e6 #c3e4f5 #eaf6fa", "#fff7dc", "#8db9cf", "#1f5a4a"),
    "dawn": _palette("#4f63a0 #a987b8 #f3a9a0 #ffdcae", "#fff3d0", "#a88fb5", "#35355c"),
    "sunset": _palette("#2b2a5e #8d3f7a #f0695a #ffc36b", "#fff2c4", "#a3527a", "#24183a"),
    "golden": _palette("#5a9db0 #a9c7b0 #f3d692 #ffc266", "#fff6d6", "#c79a6b", "#4a3326"),
    "dusk": _palette("#101a40 #38397a #9a5f9c #f2a08a", "#ffe3c2", "#6d5a93", "#131833"),
    "night": _palette("#040818 #0b1738 #1b3566 #38578a", "#f7f2d8", "#274472", "#060b1a", dark=True),
    "storm": _palette("#1d242b #3d4852 #77818a #aab0b0", "#e8ecec", "#6c7880", "#171d22"),
    "winter": _palette("#5f8fb8 #9dc0da #d6e6f0 #f2f7fa", "#ffffff", "#b3cbdc", "#3d5a70"),
    "autumn": _palette("#6f98b5 #c9cdb8 #f0d6a4 #f7e6c4", "#fff2d0", "#c98f58", "#6b2f1c"),
    "spring": _palette("#62aee0 #a9d8ee #dff1ee #fbeef2", "#fffbe6", "#9ccfae", "#2f7d4f"),
    "heat": _palette("#2f78ad #7fb3c9 #f0cf94 #f9dfae", "#fffbe8", "#d9a566", "#8a4a26"),
    "neon": _palette("#0d0524 #34105c #a3217f #ff6f61", "#ffe6ff", "#5a1e78", "#0b0420", dark=True),
    "cosmos": _palette("#020209 #080a20 #120f38 #241a55", "#fff6e0", "#3b2a78", "#05040f", dark=True),
    "depths": _palette("#8fe0dc #3aa6bd #12648f #06284f", "#eafff8", "#2b88a3", "#04203c"),
    "gloom": _palette("#15171d #2e3238 #565c58 #8a8b78", "#d9dcc0", "#4c524f", "#0c0e10", dark=True),
}

# Which words, each in the singular, make which place, time of day, weather and thing; the first of each kind decides.
_PLACES = {
    "sea": "sea ocean beach coast coastal shore harbor harbour bay surf wave sailing pier island lighthouse marine gulf cliff",
    "lake": "lake river pond reflection fjord stream waterfall swan kayak canoe lagoon",
    "mountains": "mountain alps alpine peak summit volcano himalaya everest andes rockies glacier matterhorn fuji",
    "hills": "hill valley meadow field countryside farm pasture garden park village prairie vineyard grass landscape nature "
    "windmill barn sheep cow horse flower tulip sunflower rose daisy",
    "forest": "forest woods wood jungle tree pine woodland rainforest grove bear fox deer owl campfire tent camping",
    "desert": "desert dune sahara sand pyramid cactus oasis camel egypt canyon mesa",
    "city": "city town skyline street downtown metropolis skyscraper tokyo paris london york berlin urban cyberpunk building "
    "rooftop traffic apartment office shanghai manhattan",
    "space": "space galaxy cosmos cosmic universe nebula astronaut planet saturn jupiter mars orbit alien asteroid interstellar "
    "spaceship rocket ufo spacecraft",
    "reef": "underwater reef coral fish whale dolphin jellyfish octopus submarine aquarium shark seabed mermaid turtle",
    "abstract": "abstract geometric geometry pattern cubist mandala kandinsky mondrian minimalist texture fractal shape logo",
}
_TIMES = {
    "night": "night midnight moon moonlit moonlight star starry nocturnal evening aurora firefly firework owl bat",
    "sunset": "sunset sundown crimson romantic",
    "dawn": "dawn sunrise morning daybreak pastel dreamy soft tender",
    "dusk": "dusk twilight nightfall melancholy lonely nostalgic",
    "golden": "golden warm cozy cosy harvest nostalgia peaceful honey",
    "day": "day noon daylight sunny bright clear happy joyful cheerful summer holiday cloud rainbow",
    "storm": "storm stormy thunder lightning tempest rain rainy rainstorm hurricane tornado overcast",
    "winter": "winter snow snowy ice icy frozen arctic antarctic polar cold christmas penguin snowman frost igloo",
    "autumn": "autumn fall october leaf november pumpkin thanksgiving",
    "spring": "spring blossom cherry april may easter butterfly blooming bloom",
    "heat": "hot heat scorching dry savanna savannah",
    "neon": "neon cyberpunk futuristic synthwave vaporwave retrowave electric disco scifi",
    "gloom": "dark gloomy scary haunted spooky ghost horror eerie sad halloween graveyard grim death",
}
_WEATHER = {
    "rain": "rain rainy rainstorm raining shower monsoon umbrella storm",
    "snow": "snow snowing snowfall snowflake blizzard christmas",
    "fog": "fog foggy mist misty haze hazy smoke eerie haunted mysterious",
    "clouds": "cloud cloudy overcast sky dreamy storm stormy",
    "lightning": "lightning thunder thunderstorm",
    "aurora": "aurora",
    "rainbow": "rainbow",
    "fireflies": "firefly magic magical fairy enchanted",
    "stars": "star starry galaxy milky constellation night cosmos",
    "moon": "moon moonlit moonlight lunar crescent werewolf",
    "birds": "bird gull seagull goose geese swallow crow raven",
    "fireworks": "firework celebration",
    "comet": "comet meteor shooting",
}
_THINGS = {
    "lighthouse": "lighthouse",
    "house": "house cottage cabin hut home barn farm farmhouse village inn chalet igloo",
    "castle": "castle palace fortress kingdom medieval",
    "church": "church cathedral chapel monastery",
    "windmill": "windmill mill",
    "bridge": "bridge viaduct",
    "pyramid": "pyramid egypt",
    "boat": "boat sailboat sail sailing yacht ship regatta canoe kayak vessel pirate",
    "tree": "tree oak maple apple orchard blossom cherry",
    "pine": "pine fir spruce christmas evergreen",
    "palm": "palm tropical island hawaii oasis coconut",
    "cactus": "cactus cacti",
    "flower": "flower tulip sunflower rose daisy poppy bloom blooming bouquet lavender",
    "mushroom": "mushroom toadstool",
    "cat": "cat kitten kitty",
    "dog": "dog puppy wolf werewolf fox",
    "bear": "bear panda",
    "sheep": "sheep lamb cow goat",
    "owl": "owl",
    "person": "person man woman girl boy child people human wanderer traveler traveller hiker king queen knight astronaut wizard "
    "father mother family friend couple portrait",
    "robot": "robot android droid mech",
    "fish": "fish goldfish shark dolphin",
    "whale": "whale orca",
    "jellyfish": "jellyfish octopus",
    "butterfly": "butterfly moth",
    "balloon": "balloon",
    "rocket": "rocket spaceship spacecraft shuttle",
    "ufo": "ufo alien saucer",
    "planet": "planet saturn jupiter mars",
    "tent": "tent camp camping",
    "fire": "fire campfire bonfire flame",
    "snowman": "snowman",
    "heart": "heart love valentine",
    "train": "train locomotive railway",
    "car": "car taxi automobile jeep",
    "pumpkin": "pumpkin halloween",
}
_COLORS = {
    "red": "#d8342f", "crimson": "#b81f3a", "scarlet": "#e03a20", "orange": "#f0862c", "amber": "#f5a623", "yellow": "#f2cc2f",
    "gold": "#e0ab2e", "green": "#3f9e4d", "emerald": "#1f9d6b", "lime": "#9acd32", "olive": "#7d8033", "teal": "#1e9a96",
    "turquoise": "#33c3bd", "cyan": "#2cc0e0", "blue": "#2f6fd6", "azure": "#3d9be9", "indigo": "#3d3aa8", "navy": "#1d2b66",
    "purple": "#8238b8", "violet": "#8a4fd0", "lavender": "#a78be0", "magenta": "#d02fa0", "pink": "#f07aa8", "rose": "#e0607e",
    "brown": "#8a5a34", "white": "#f0f0ee", "silver": "#b4bcc6", "gray": "#84888c", "grey": "#84888c", "black": "#20222a",
}  # fmt: skip
_NUMBERS = {"two": 2, "pair": 2, "couple": 2, "three": 3, "few": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "many": 7}
# Where a thing is at home, when the prompt names no place; what is not here may be anywhere on land.
_HOMES = {
    "lighthouse": "sea", "boat": "sea", "whale": "reef", "fish": "reef", "jellyfish": "reef", "palm": "sea", "cactus": "desert",
    "pyramid": "desert", "planet": "space", "rocket": "space", "ufo": "space", "castle": "mountains", "bridge": "lake",
    "heart": "hills", "robot": "city", "car": "city", "bear": "forest", "mushroom": "forest", "tent": "forest",
}  # fmt: skip
_USUAL_TIMES = {
    "space": ("cosmos",),
    "reef": ("depths",),
    "desert": ("heat", "sunset", "golden"),
    "city": ("dusk", "night", "sunset"),
}
_LAND = ("hills", "mountains", "forest", "lake", "sea")


@dataclass(frozen=True)
class Thing:
    """Something in the picture, how many of it, and the colour that the prompt gives it."""

    name: str
    count: int
    shade: Color | None


@dataclass(frozen=True)
class Scene:
    """What to paint; `shades` are the colours that the prompt names for no thing in particular."""

    place: str
    time: str
    palette: Palette
    weather: frozenset[str]
    things: tuple[Thing, ...]
    shades: tuple[Color, ...]
    dice: Dice


def scene_of(prompt: str, variation: int = 0) -> Scene:
    """The scene that `prompt` describes; each `variation` of it is another one."""
    text = re.sub(r"northern lights|aurora borealis", "aurora", prompt.lower())
    words = re.findall(r"[^\W_]+", text)[:_MOST_WORDS]
    dice = Dice(f"{variation}/{' '.join(words) or prompt}")
    things = _things(words)
    weather = frozenset(_meanings(words, _WEATHER))
    shades = tuple(color(_COLORS[word]) for word, after in pairwise([*words, ""]) if _is_for_all(word, after))
    time = next(iter(_meanings(words, _TIMES)), None)
    place = next(iter(_meanings(words, _PLACES)), None)
    if place is None and (things or time or weather):
        place = _HOMES.get(things[0].name) if things else None
        place = place or dice.pick(_LAND)
    if place is None:
        place = "abstract"
    time = time or dice.pick(_USUAL_TIMES.get(place, ("day", "golden", "sunset", "dawn", "dusk", "spring")))
    palette = PALETTES[{"space": "cosmos", "reef": "depths"}.get(place, time)]
    tints = [shade for shade in shades if 60 < sum(shade) < 660]
    if tints:
        palette = palette.tinted(tints[0], 0.42)
    return Scene(place, time, palette, weather, things, shades, dice)


def _meanings(words: Sequence[str], table: Mapping[str, str]) -> list[str]:
    """What the words mean in `table`, each meaning once, in the order of the words."""
    known: dict[str, list[str]] = {}
    for meaning, names in table.items():
        for name in names.split():
            known.setdefault(name, []).append(meaning)
    return list(dict.fromkeys(meaning for word in words for one in _forms(word) for meaning in known.get(one, ())))


def _forms(word: str) -> list[str]:
    """The word and what it may be the plural of."""
    endings = (("ies", "y"), ("ves", "f"), ("es", ""), ("s", ""))
    return [word, *(word.removesuffix(plural) + single for plural, single in endings if word.endswith(plural) and len(word) > 3)]


def _is_for_all(word: str, after: str) -> bool:
    return word in _COLORS and not _meanings([after], _THINGS)


def _things(words: Sequence[str]) -> tuple[Thing, ...]:
    found: dict[str, Thing] = {}
    for index, word in enumerate(words):
        for name in _meanings([word], _THINGS):
            before = words[max(index - 2, 0) : index]
            counts = [_NUMBERS[one] if one in _NUMBERS else int(one) for one in before if one in _NUMBERS or one in "23456789"]
            several = 3 if word.endswith("s") and len(_forms(word)) > 1 and word not in ("cactus", "cross") else 1
            shades = [color(_COLORS[one]) for one in before if one in _COLORS]
            thing = Thing(name, min(counts[-1] if counts else several, _MOST_OF_A_KIND), shades[-1] if shades else None)
            found.setdefault(name, thing)
    return tuple(found.values())[:_MOST_THINGS]
