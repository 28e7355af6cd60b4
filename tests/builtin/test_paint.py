"""The built-in painter: real PNGs that show what the prompt says, the same for the same prompt."""

import struct
import time
import zlib
from collections import Counter

import pytest

from svc.builtin.painter.canvas import Canvas, color, disc, without
from svc.builtin.painter.paint import picture
from svc.builtin.painter.scene import scene_of

Pixels = list[list[tuple[int, int, int]]]


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
    previous, pixels = bytes(3 * width), []
    for begin in range(0, len(rows), 1 + 3 * width):
        assert rows[begin] == 2
        previous = bytes((a + b) % 256 for a, b in zip(rows[begin + 1 : begin + 1 + 3 * width], previous, strict=True))
        pixels.append(list(zip(previous[::3], previous[1::3], previous[2::3], strict=True)))
    return pixels


def average(pixels: Pixels) -> tuple[float, ...]:
    count = len(pixels) * len(pixels[0])
    return tuple(sum(pixel[channel] for row in pixels for pixel in row) / count for channel in range(3))


@pytest.mark.parametrize(("width", "height"), [(64, 64), (64, 300), (301, 64), (200, 160)])
def test_a_picture_is_a_png_of_the_size_that_was_asked_for(width: int, height: int) -> None:
    pixels = decoded(picture("a lighthouse by the sea", width, height))
    assert len(pixels) == height and {len(row) for row in pixels} == {width}


PROMPTS = (
    *("a lighthouse at dusk by the sea", "snowy mountains with pines", "a black cat under the moon", "city skyline in the rain"),
    *("hot air balloons over hills", "a red rocket near saturn", "three fish in a reef", "autumn forest, a cabin, fog"),
    *("pyramids in the desert", "a castle and fireworks", "northern lights over a lake", "two sailboats", "robot and car, neon"),
    *("windmill and tulips", "a train in spring", "haunted church with pumpkins", "whale and jellyfish", "an owl and a bear"),
    *(
        "dog, sheep, person",
        "snowman, tent, fire",
        "palm, cactus, mushroom, butterfly",
        "a heart and a ufo",
        "golden bridge, comet",
    ),
    *(
        "rainbow, tree, birds",
        "lightning",
        "quantum",
        "justice",
        "",
        "🙂",
        "naïve façade 北京",
        "x" * 32_000,
        "seven cats " * 3000,
    ),
)


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt[:30])
def test_every_prompt_makes_a_picture_with_many_colours(prompt: str) -> None:
    pixels = decoded(picture(prompt, 96, 72))
    assert len({pixel for row in pixels for pixel in row}) > 60


def test_the_same_prompt_makes_the_same_picture_and_another_variation_another_one() -> None:
    prompt = "a lighthouse and a cat at sunset"
    assert picture(prompt, 120, 120) == picture(prompt, 120, 120)
    assert len({picture(prompt, 120, 120, variation) for variation in range(4)}) == 4
    assert len({picture(f"thought number {number}", 80, 80) for number in range(8)}) == 8


def test_words_of_place_time_colour_and_number_decide_what_is_shown() -> None:
    scene = scene_of("Three black cats and a red lighthouse on a snowy beach")
    assert (scene.place, scene.time) == ("sea", "winter")
    things = {thing.name: (thing.count, thing.shade) for thing in scene.things}
    assert things["cat"] == (3, color("#20222a")) and things["lighthouse"] == (1, color("#d8342f"))
    assert scene_of("a city at night").place == "city" and scene_of("a city at night").palette.dark
    assert scene_of("northern lights").weather >= {"aurora"} and scene_of("foxes in the woods").place == "forest"
    assert scene_of("justice").place == "abstract"


def test_night_is_darker_than_day_and_colours_tint() -> None:
    night, day = (average(decoded(picture(f"hills {time}", 96, 96))) for time in ("at night", "at noon"))
    assert sum(night) * 1.7 < sum(day)
    green, red = (average(decoded(picture(f"{shade} hills by day", 96, 96))) for shade in ("green", "red"))
    assert green[1] - green[0] > 20 > red[1] - red[0]


def test_a_named_thing_is_painted() -> None:
    """The lighthouse's stripes are in the picture with the word and not in the one without."""

    def reds(prompt: str) -> int:
        shades = Counter(pixel for row in decoded(picture(prompt, 160, 160)) for pixel in row)
        return sum(count for (red, green, blue), count in shades.items() if red > 140 and green < 90 and blue < 90)

    assert reds("a sunny noon beach with a lighthouse") > 120 + reds("a sunny noon beach")


def test_edges_are_smooth_and_shapes_may_reach_over_the_edges() -> None:
    canvas = Canvas(40, 40)
    canvas.ellipse(20, 20, 10, 10, (255, 255, 255))
    canvas.polygon([(-50, 45), (-50, 60), (90, 60)], (255, 0, 0))
    canvas.line([(-5, -5), (60, -5)], 3, (255, 0, 0))
    canvas.glow(39, 39, 8, (0, 0, 200), 0.8)
    canvas.fill(-9, 50, without(disc(20, 20, 4, 4), disc(20, 20, 2, 2)), (0, 255, 0), 0.5)
    pixels = decoded(canvas.png())
    assert pixels[0][0] == (0, 0, 0) and pixels[20][20] == (255, 255, 255) and pixels[20][17][1] == 255 > pixels[20][17][0]
    edge = {row[column][0] for row in pixels for column in range(30)} - {0, 255}
    assert len(edge) > 5
    covered = sum(row[column][0] for row in canvas_of_a_disc() for column in range(40)) / 255
    assert abs(covered - 3.14159 * 100) < 2


def canvas_of_a_disc() -> Pixels:
    canvas = Canvas(40, 40)
    canvas.ellipse(20.3, 19.7, 10, 10, (255, 255, 255))
    return decoded(canvas.png())


def test_the_largest_picture_takes_little_time_whatever_the_prompt_asks_for() -> None:
    greedy = "seven lighthouses seven castles seven windmills seven robots seven balloons stars fireworks aurora rain snow fog"
    began = time.process_time()
    png = picture(f"{greedy} in the city", 1024, 1024)
    assert time.process_time() - began < 10  # about 2 s when the machine is free
    assert len(png) < 3_000_000
