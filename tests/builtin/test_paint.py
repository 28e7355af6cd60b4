"""The built-in painter: real PNGs that show what the prompt says, the same for the same prompt."""

import re
import struct
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.builtin.painter import canvas as canvas_module
from svc.builtin.painter.canvas import Canvas, color
from svc.builtin.painter.figures import figures, shapes
from svc.builtin.painter.paint import Stage, picture
from svc.builtin.painter.scene import ABSTRACT, Scene, rows
from tests.support.cases import each

Pixels = list[list[tuple[int, int, int]]]


def painted(prompt: str, width: int, height: int, variation: int = 0) -> bytes:
    return picture(prompt, width, height, variation)[1]


def decoded(png: bytes) -> Pixels:
    """The pixels of a PNG, by a reader of the tests' own; fails where a chunk, a checksum or a row is wrong."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    place, chunks = 8, []
    while place < len(png):
        (size,) = struct.unpack_from(">I", png, place)
        kind, data = png[place + 4 : place + 8], png[place + 8 : place + 8 + size]
        assert struct.unpack_from(">I", png, place + 8 + size)[0] == zlib.crc32(kind + data)
        chunks.append((kind, data))
        place += 12 + size
    assert [kind for kind, _ in chunks] == [b"IHDR", b"sRGB", b"IDAT", b"IEND"]
    width, height, bits, colors, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    assert (bits, colors, rest) == (8, 2, [0, 0, 0])
    rows = zlib.decompress(chunks[2][1])
    assert len(rows) == height * (1 + 3 * width)
    pixels = []
    for begin in range(0, len(rows), 1 + 3 * width):
        assert rows[begin] == 0, "no filter"
        row = rows[begin + 1 : begin + 1 + 3 * width]
        pixels.append(list(zip(row[::3], row[1::3], row[2::3], strict=True)))
    return pixels


def average(pixels: Pixels) -> tuple[float, ...]:
    count = len(pixels) * len(pixels[0])
    return tuple(sum(pixel[channel] for row in pixels for pixel in row) / count for channel in range(3))


@each(("width", "height"), [(64, 64), (64, 300), (301, 64), (200, 160)])
def test_picture_is_a_png_of_the_requested_size(width: int, height: int) -> None:
    pixels = decoded(painted("a lighthouse by the sea", width, height))
    assert len(pixels) == height and {len(row) for row in pixels} == {width}


PROMPTS = (
    *(
        "a lighthouse at dusk by the sea",
        "snowy mountains with pines",
        "a black cat under the moon",
        "city skyline in the rain",
    ),
    *("hot air balloons over hills", "autumn forest, a cabin, fog", "pyramids and camels", "a castle and fireworks"),
    *(
        "northern lights over a lake",
        "two sailboats in the desert",
        "neon city, birds",
        "tulips",
        "palm tree, rainbow, clouds",
    ),
    *(
        "quantum",
        "justice",
        "",
        "🙂",
        "naïve façade 北京",
        "x" * 32_000,
        "seven cats " * 3000,
        "\ud800 \0 %s {} | ; ~",
        "٣ foxes ² cats",
    ),
)


@each("prompt", PROMPTS)
def test_every_prompt_makes_a_picture_with_many_colours(prompt: str) -> None:
    pixels = decoded(painted(prompt, 64, 64))
    assert len({pixel for row in pixels for pixel in row}) > 40


def test_same_prompt_makes_the_same_picture_and_each_variation_another() -> None:
    prompt = "a lighthouse and a cat at sunset"
    assert painted(prompt, 64, 64) == painted(prompt, 64, 64)
    assert len({painted(prompt, 64, 64, variation) for variation in range(4)}) == 4
    assert len({painted(f"thought number {number}", 64, 64) for number in range(8)}) == 8


def test_place_time_colour_and_number_words_set_the_scene() -> None:
    scene = Scene("Three black cats and a red lighthouse on a snowy beach")
    assert (scene.place, scene.time) == ("sea", "winter")
    assert scene.things == {"cat": (3, color("#20222a")), "lighthouse": (1, color("#d8342f"))}
    assert Scene("a city at night").place == "city" and Scene("a city at night").time == "night"
    assert Scene("northern lights").weather >= {"aurora"} and Scene("foxes in the woods").place == "forest"
    assert Scene("a sailboat in the desert").place == "lake", "no boat on dry land"
    assert Scene("two villages").things["house"][0] == 2 and Scene("99 cats").things["cat"][0] == 7
    assert len(Scene(" ".join(figures())).things) == 6


@each("prompt", ["justice", "a cup of coffee", "a dinosaur", "a robot", ""])
def test_unknown_subject_becomes_an_abstract_composition(prompt: str) -> None:
    assert Scene(prompt).place == "abstract" and not Scene(prompt).things


@each("name", figures())
def test_every_figure_is_drawable(name: str) -> None:
    for prompt in ("a snowy day", "night", "justice"):
        canvas = Canvas(80, 80)
        stage = Stage(canvas, Scene(prompt))
        stage.colors["scheme"] = (200, 60, 60)
        stage.draw(name, 40, 60, 40)
        if prompt != "justice" or figures()[name].colors == "scheme":
            assert len({pixel for row in decoded(canvas.png()) for pixel in row}) > 1


@each("layers", [*(row.look for row in (*rows("places").values(), *rows("weather").values())), *ABSTRACT])
def test_every_layer_of_a_place_and_weather_is_paintable(layers: str) -> None:
    canvas = Canvas(64, 64)
    blank, stage = canvas.png(), Stage(canvas, Scene("night sky"))
    stage.colors["scheme"] = (200, 60, 60)
    stage.layers(layers)
    assert (canvas.png() != blank) == bool(layers)


def test_every_thing_has_words_and_an_existing_home() -> None:
    for name, figure in figures().items():
        assert bool(figure.words) == (figure.where in ("land", "water", "meadow", "air")) == (float(figure.tall) > 0), (
            name
        )
        assert figure.home in ("", *rows("places"))
        assert all(0 < alpha <= 1 for _, _, _, _, alpha, _, _ in shapes(figure.shapes))
        for word in figure.words.split():
            assert name in Scene(word).things
    assert all(len(row.look.split()) == 7 for row in rows("times").values())


def test_text_that_is_not_a_shape_is_rejected() -> None:
    with pytest.raises(ValueError, match="Not a shape: blob red 1,2"):
        shapes("blob red 1,2")


def test_night_is_darker_than_day_and_colours_tint() -> None:
    night, day = (average(decoded(painted(f"hills {time}", 64, 64))) for time in ("at night", "at noon"))
    assert sum(night) * 1.7 < sum(day)
    green, red = (average(decoded(painted(f"{shade} hills by day", 64, 64))) for shade in ("green", "red"))
    assert green[1] - green[0] > 20 > red[1] - red[0]


def test_named_thing_is_painted() -> None:
    """The lighthouse's stripes are in the picture with the word and not in the one without."""

    def reds(prompt: str) -> int:
        shades = Counter(pixel for row in decoded(painted(prompt, 160, 160)) for pixel in row)
        return sum(count for (red, green, blue), count in shades.items() if red > 140 and green < 90 and blue < 90)

    assert reds("a sunny noon beach with a lighthouse") > 120 + reds("a sunny noon beach")


def test_shapes_have_smooth_edges_and_may_extend_beyond_the_canvas() -> None:
    canvas = Canvas(40, 40)
    canvas.fill([[(-50, 45), (-50, 60), (90, 60)]], [(255, 0, 0)])
    canvas.fill([[(-5, -5), (-5, 5), (60, 5), (60, -5)]], [(255, 0, 0)], 0.5)
    canvas.glow([(31, 31), (47, 31), (47, 47), (31, 47)], (0, 0, 200), 0.8)
    canvas.fill([[(10.5, 10.5), (10.5, 30.25), (30.5, 30.25), (30.5, 10.5)]], [(255, 255, 255), (255, 255, 255)])
    pixels = decoded(canvas.png())
    assert pixels[2][0][0] in (127, 128) and pixels[20][20] == (255, 255, 255) and pixels[8][20] == (0, 0, 0)
    assert [pixels[20][column][1] for column in (9, 10, 11, 30, 31)] == [0, 127, 255, 127, 0]
    assert [pixels[row][20][1] for row in (9, 10, 11, 30, 31)] == [0, 128, 255, 64, 0]


def test_overlapping_outlines_are_one_shape_with_holes() -> None:
    def square(low: int, high: int) -> list[tuple[float, float]]:
        return [(low, low), (high, low), (high, high), (low, high)]

    for hole in (square(8, 12), square(8, 12)[::-1]):
        canvas = Canvas(20, 20)
        canvas.fill([square(2, 14)[::-1], square(6, 18), hole], [(200, 200, 200)], 0.5, holes=1)
        values = {row: decoded(canvas.png())[row][row][0] for row in (1, 4, 7, 10, 13, 16, 19)}
        assert values == {1: 0, 4: 100, 7: 100, 10: 0, 13: 100, 16: 100, 19: 0}


def test_water_mirrors_the_picture_above_it() -> None:
    canvas = Canvas(32, 32)
    canvas.fill([[(0, 0), (32, 0), (32, 8), (0, 8)]], [(0, 200, 0)])
    canvas.fill([[(0, 16), (32, 16), (32, 32), (0, 32)]], [(0, 0, 100)])
    canvas.mirror(16)
    pixels = decoded(canvas.png())
    assert (pixels[17][16], pixels[30][16]) == ((0, 0, 50), (0, 100, 50))


@pytest.mark.slow
def test_largest_picture_takes_little_time_for_any_prompt() -> None:
    greedy = "seven lighthouses seven castles seven camels seven foxes tulips stars fireworks aurora rainbow snow fog"
    sizes, seconds = [], []
    for prompt in ("a house", f"{greedy} in the city", "a house"):
        began = time.process_time()
        sizes.append(len(painted(prompt, 448, 256)))  # a sixteenth of the largest
        seconds.append(time.process_time() - began)
    # Seconds of CPU, of which the process has 40.
    assert seconds[1] < 12.5 * (seconds[0] + seconds[2])
    assert max(sizes) < 5_000_000 / 16


# --- what a prompt refuses, and the description


class Counting(Stage):
    """A stage that counts the figures to draw in the place of drawing them, which takes long."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(Canvas(16, 16), scene)
        self.drawn: Counter[str] = Counter()

    def draw(self, name: str, *place: Any) -> None:
        self.drawn[name] += 1


def drawn(prompt: str, variation: int = 0) -> tuple[Scene, Counter[str]]:
    stage = Counting(Scene(prompt, variation))
    stage.paint()
    return stage.scene, stage.drawn


@each(
    ("prompt", "kept", "refused"),
    [
        ("no cats", "", "cat"),
        ("a house without cats", "house", "cat"),
        ("no cats and a house", "house", "cat"),
        ("no cats, a house", "house", "cat"),
        ("no cats or foxes", "", "cat fox"),
        ("no cats, foxes or houses by a lake", "", "cat fox house"),
        ("neither cats nor foxes, two boats", "boat", "cat fox"),
        ("a castle. There should not be any cats in it", "castle", "cat"),
        ("don't draw a cat but a fox", "fox", "cat"),
        ("it isn\u2019t a cat; a fox", "fox", "cat"),
        ("0 cats and 3 foxes", "fox", "cat"),
        ("a cat-free farm", "house", "cat"),
        ("two foxes and no dogs and no houses", "fox", "house"),
        ("no dogs in the castle", "castle", ""),
        ("not only cats but foxes", "cat fox", ""),
        ("no less than three cats", "cat", ""),
        ("not without a cat", "cat", ""),
        ("no other cats, one cat", "cat", ""),
        ("no black cats, only white cats", "cat", ""),
        ("zero gravity cats", "cat", ""),
        ("a not so small house", "house", ""),
        ("a forest without trees", "", "pine far tree palm"),
        ("cloudless sky over hills by day", "", "cloud"),
        ("hills by day, no clouds, no sun", "", "cloud sun"),
        ("a lighthouse at night without stars or a moon", "lighthouse", "star spark moon"),
        ("a forest without mist", "", "mist"),
        ("a city with no birds", "", "bird"),
    ],
)
def test_negated_words_are_left_out_and_the_rest_is_drawn(prompt: str, kept: str, refused: str) -> None:
    for variation in range(3):
        scene, counted = drawn(prompt, variation)
        assert set(scene.things) == set(kept.split())
        assert not counted.keys() & set(refused.split()), scene.description


def test_places_hours_and_weather_can_be_negated() -> None:
    for variation in range(8):
        assert Scene("a lighthouse, not by the sea, not at dawn", variation).place != "sea"
        assert Scene("hills, not at dawn, sunset or dusk", variation).time not in ("dawn", "sunset", "dusk")
        assert not Scene("a stormy sea without rain or fog", variation).weather & {"rain", "fog"}
    assert (
        Scene("two foxes at night, no moon").time == "night" and Scene("hills without snow in winter").time != "winter"
    )
    assert Scene("a boat, no lake").place == "sea" and Scene("no sea").place == "abstract"


WORDS = [
    *(
        "no",
        "without",
        "not",
        "and",
        "or",
        ",",
        "a",
        "two",
        "seven",
        "red",
        "99",
        "tulips",
        "at",
        "in",
        "the",
        "cats",
        "house",
        "moon",
    ),
    *(
        "trees",
        "clouds",
        "night",
        "winter",
        "forest",
        "sea",
        "boat",
        "balloons",
        "fog",
        "birds",
        "rainbow",
        "stars",
        "x",
        "0",
    ),
]


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.integers(0, 3))
def test_description_names_exactly_the_drawn_things(words: list[str], variation: int) -> None:
    scene, counted = drawn(" ".join(words), variation)
    if scene.place == "abstract":
        assert scene.description.startswith("An abstract composition of shapes")
        return
    numbers = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "70": 70}
    told = {
        match[3]: numbers[match[1].lower()]
        for match in re.finditer(
            rf"(?i)\b({'|'.join(numbers)}) (\w+ )?({'|'.join(scene.things)})(?:e?s)?\b", scene.description
        )
        if scene.things
    }
    # The description of a place includes its own figures, such as pines.
    assert told == {name: count for name, (count, _) in scene.things.items()}
    assert all(counted[name] >= count for name, count in told.items())
    shown = {
        "sun": "the sun",
        "moon": "the moon",
        "cloud": "clouds",
        "star": "stars",
        "bird": "birds",
        "rainbow": "rainbow",
    }
    for figure, name in shown.items():
        assert (counted[figure] > 0) == (name in scene.description), (figure, scene.description)
    assert not counted.keys() & scene.without


@each("prompt", ["no " * 8_000, "no cats or " * 2_900, "not, " * 6_400, "without trees and " * 1_700, "-free" * 6_000])
def test_prompt_of_only_negations_takes_little_time(prompt: str) -> None:
    began = time.process_time()
    assert Scene(prompt).description
    assert time.process_time() - began < 0.5


def test_the_painter_stays_small() -> None:
    folder = Path(canvas_module.__file__).parent
    lines = {
        ending: "".join(path.read_text() for path in folder.glob(f"*.{ending}")).splitlines()
        for ending in ("py", "txt")
    }
    assert len(lines["py"]) <= 710 and len(lines["txt"]) <= 170 and max(map(len, lines["py"] + lines["txt"])) <= 130
