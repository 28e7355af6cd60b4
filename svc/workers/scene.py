"""What a picture shows: the words of the prompt become a place, a time of day, the weather, colours and things; chance does the rest.

The chance is drawn from the whole prompt, so the same prompt makes the same picture and another one makes another.
"""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from svc.workers.canvas import Color, color, mix

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

# Which words make which place, time of day, weather, mood; the first one of each kind in the prompt decides.
_PLACES = {
    "sea": "sea ocean beach coast coastal shore harbor harbour bay surf wave waves sailing pier island lighthouse marine gulf cliff",
    "lake": "lake river pond reflection reflections fjord stream waterfall swan swans kayak canoe lagoon",
    "mountains": "mountain mountains alps alpine peak peaks summit volcano himalaya everest andes rockies glacier matterhorn fuji",
    "hills": "hill hills valley meadow meadows field fields countryside farm pasture garden park village prairie vineyard grass "
    "landscape nature windmill barn sheep cow horse flower flowers tulip tulips sunflower sunflowers rose roses daisy",
    "forest": "forest woods wood jungle tree trees pine pines woodland rainforest grove bear fox deer owl campfire tent camping",
    "desert": "desert dune dunes sahara sand pyramid pyramids cactus oasis camel camels egypt mars canyon mesa",
    "city": "city town skyline street downtown metropolis skyscraper skyscrapers tokyo paris london york berlin urban cyberpunk "
    "buildings building rooftops traffic apartment office shanghai manhattan",
    "space": "space galaxy galaxies cosmos cosmic universe nebula astronaut planet planets saturn jupiter mars orbit alien asteroid "
    "interstellar spaceship rocket ufo spacecraft",
    "reef": "underwater reef coral fish fishes whale whales dolphin jellyfish octopus submarine aquarium shark seabed mermaid turtle",
    "abstract": "abstract geometric geometry pattern cubist mandala kandinsky mondrian minimalist texture fractal shapes logo icon",
}
_TIMES = {
    "night": "night midnight moon moonlit moonlight stars starry star nocturnal evening aurora firefly fireflies fireworks owl bat",
    "sunset": "sunset sundown crimson romantic",
    "dawn": "dawn sunrise morning daybreak pastel dreamy soft tender",
    "dusk": "dusk twilight nightfall melancholy lonely nostalgic",
    "golden": "golden warm cozy cosy harvest nostalgia peaceful honey",
    "day": "day noon daylight sunny bright clear happy joyful cheerful summer holiday cloud clouds rainbow blue",
    "storm": "storm stormy thunder lightning tempest rain rainy rainstorm hurricane tornado grey gray overcast",
    "winter": "winter snow snowy ice icy frozen arctic antarctic polar cold christmas penguin snowman frost igloo",
    "autumn": "autumn fall october leaves november pumpkin thanksgiving",
    "spring": "spring blossom blossoms cherry april may easter butterfly butterflies blooming bloom",
    "heat": "hot heat scorching dry savanna savannah",
    "neon": "neon cyberpunk futuristic synthwave vaporwave retrowave electric disco scifi",
    "gloom": "dark gloomy scary haunted spooky ghost horror eerie sad halloween graveyard grim death",
}
_WEATHER = {
    "rain": "rain rainy rainstorm raining shower monsoon umbrella storm",
    "snow": "snow snowy snowing snowfall snowflake snowflakes blizzard christmas",
    "fog": "fog foggy mist misty haze hazy smoke eerie haunted mysterious",
    "clouds": "cloud clouds cloudy overcast sky dreamy storm stormy",
    "lightning": "lightning thunder thunderstorm",
    "aurora": "aurora borealis northern lights",
    "rainbow": "rainbow",
    "fireflies": "firefly fireflies magic magical fairy enchanted",
    "stars": "star stars starry galaxy milky constellation night cosmos",
    "sun": "sun sunny sunset sunrise sunshine sunlight",
    "moon": "moon moonlit moonlight lunar crescent werewolf",
    "birds": "bird birds gull gulls seagull seagulls goose geese swallow crow crows raven ravens",
    "fireworks": "fireworks firework celebration",
    "comet": "comet meteor meteors shooting",
}
_THINGS = {
    "lighthouse": "lighthouse",
    "house": "house cottage cabin hut home barn farm farmhouse village inn chalet igloo",
    "castle": "castle palace fortress kingdom medieval",
    "church": "church cathedral chapel monastery",
    "windmill": "windmill mill",
    "bridge": "bridge viaduct",
    "pyramid": "pyramid pyramids egypt",
    "boat": "boat sailboat sail sailing yacht ship regatta canoe kayak vessel pirate",
    "tree": "tree oak maple apple orchard blossom cherry",
    "pine": "pine fir spruce christmas evergreen",
    "palm": "palm tropical island hawaii oasis coconut",
    "cactus": "cactus cacti",
    "flower": "flower flowers tulip tulips sunflower sunflowers rose roses daisy daisies poppy bloom blooming bouquet lavender",
    "mushroom": "mushroom mushrooms toadstool",
    "cat": "cat cats kitten kitty",
    "dog": "dog dogs puppy wolf werewolf fox",
    "bear": "bear bears panda",
    "sheep": "sheep lamb cow cows goat",
    "owl": "owl owls",
    "person": "person man woman girl boy child people human wanderer traveler traveller hiker king queen knight astronaut wizard "
    "father mother family friend friends couple portrait",
    "robot": "robot robots android droid mech",
    "fish": "fish fishes goldfish shark dolphin",
    "whale": "whale whales orca",
    "jellyfish": "jellyfish octopus",
    "butterfly": "butterfly butterflies moth",
    "balloon": "balloon balloons",
    "rocket": "rocket spaceship spacecraft shuttle",
    "ufo": "ufo alien aliens saucer",
    "planet": "planet planets saturn jupiter mars",
    "tent": "tent camp camping",
    "fire": "fire campfire bonfire flame",
    "snowman": "snowman",
    "heart": "heart hearts love valentine",
    "train": "train locomotive railway",
    "car": "car cars taxi automobile jeep",
    "pumpkin": "pumpkin pumpkins halloween",
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
_LAND = ("hills", "mountains", "forest", "lake", "sea")


def _words_of(table: Mapping[str, str]) -> dict[str, list[str]]:
    meanings: dict[str, list[str]] = {}
    for meaning, words in table.items():
        for word in words.split():
            meanings.setdefault(word, []).append(meaning)
    return meanings


@dataclass(frozen=True)
class Scene:
    """What to paint. `things` are names with how many there are; `shades` are the colours that the prompt names."""

    place: str
    time: str
    palette: Palette
    weather: frozenset[str]
    things: tuple[tuple[str, int], ...]
    shades: tuple[Color, ...]
    dice: Dice


def scene_of(prompt: str, variation: int = 0) -> Scene:
    """The scene that `prompt` describes; each `variation` of it is another one."""
    words = [word for word in re.findall(r"[^\W_]+", prompt.lower())[:_MOST_WORDS]]
    dice = Dice(f"{variation}/{' '.join(words) or prompt}")
    things = _things(words)
    place = _first(words, _PLACES)
    time = _first(words, _TIMES)
    weather = frozenset(_all(words, _WEATHER))
    shades = tuple(color(_COLORS[word]) for word in dict.fromkeys(words) if word in _COLORS)
    if place in (None, "hills", "forest", "mountains", "sea") and things and (home := _HOMES.get(things[0][0])):
        place = home if place is None else place
    if place is None:
        place = dice.pick(_LAND) if things or time or weather else "abstract"
    if time is None:
        usual = {"space": ("cosmos",), "reef": ("depths",), "desert": ("heat", "sunset", "golden"), "city": ("dusk", "night", "sunset")}
        time = dice.pick(usual.get(place, ("day", "golden", "sunset", "dawn", "dusk", "spring")))
    palette = PALETTES[{"space": "cosmos", "reef": "depths"}.get(place, time)]
    tints = [shade for shade in shades if 60 < sum(shade) < 660]
    if tints:
        palette = palette.tinted(tints[0], 0.38)
    return Scene(place, time, palette, weather, things, shades, dice)


def _first(words: Sequence[str], table: Mapping[str, str]) -> str | None:
    return next(iter(_all(words, table)), None)


def _all(words: Sequence[str], table: Mapping[str, str]) -> list[str]:
    meanings = _words_of(table)
    return list(dict.fromkeys(meaning for word in words for meaning in meanings.get(word, ())))


def _things(words: Sequence[str]) -> tuple[tuple[str, int], ...]:
    meanings = _words_of(_THINGS)
    found: dict[str, int] = {}
    for index, word in enumerate(words):
        for name in meanings.get(word, ()):
            before = words[max(index - 2, 0) : index]
            numbers = [_NUMBERS[one] if one in _NUMBERS else int(one) for one in before if one in _NUMBERS or one in "23456789"]
            several = 3 if word.endswith("s") and word[:-1] in meanings else 1
            found.setdefault(name, min(numbers[-1] if numbers else several, _MOST_OF_A_KIND))
    return tuple(found.items())[:_MOST_THINGS]
