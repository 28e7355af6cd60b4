"""What lives in a picture: people and animals as silhouettes with a rim of light. Each stands with its foot at (x, foot), `tall` high."""

import math

from svc.workers.canvas import Color, Gradient, Point, curve, darker, disc, lighter, mix, without
from svc.workers.stage import Stage


def _coat(stage: Stage, usual: Color) -> Color:
    """The colour of a fur: what the prompt says, else the usual one, darkened by the light of the scene."""
    shade = stage.scene.shades[0] if stage.scene.shades else usual
    return mix(shade, stage.depth(1), 0.55 if stage.palette.dark else 0.3)


def cat(stage: Stage, x: float, foot: float, tall: float) -> None:
    """A cat that sits and looks away into the distance."""
    canvas, unit = stage.canvas, tall / 100
    coat = _coat(stage, (38, 34, 44))
    tail = curve([(x + 20 * unit, foot - 5 * unit), (x + 46 * unit, foot - 2 * unit), (x + 58 * unit, foot - 18 * unit), (x + 50 * unit, foot - 34 * unit), (x + 58 * unit, foot - 46 * unit)])
    for index, (start, end) in enumerate(zip(tail, tail[1:], strict=False)):
        canvas.line([start, end], (9 - 5 * index / len(tail)) * unit, coat)
    half = [(0, -64), (12, -58), (19, -44), (27, -24), (30, -6), (25, 0), (0, 1)]
    right = curve([(x + dx * unit, foot + dy * unit) for dx, dy in half])
    canvas.polygon([*right, *((2 * x - at_x, at_y) for at_x, at_y in reversed(right))], Gradient(foot - 64 * unit, foot, (coat, darker(coat, 0.2))))
    head = foot - 76 * unit
    for side in (-1, 1):
        ear = [(x + side * 4 * unit, head - 13 * unit), (x + side * 17 * unit, head - 30 * unit), (x + side * 19.5 * unit, head - 4 * unit)]
        canvas.polygon(ear, coat)
        canvas.polygon([(x + side * 9 * unit, head - 13 * unit), (x + side * 15.5 * unit, head - 22 * unit), (x + side * 16.5 * unit, head - 9 * unit)], mix(coat, (222, 140, 140), 0.4))
    canvas.ellipse(x, head, 21 * unit, 18 * unit, coat)
    eye = (178, 214, 92)
    for side in (-1, 1):
        canvas.ellipse(x + side * 8.5 * unit, head - 1.5 * unit, 4.6 * unit, 4.2 * unit, eye)
        canvas.ellipse(x + side * 8.5 * unit, head - 1.5 * unit, 1.4 * unit, 3.8 * unit, (14, 14, 18))
        canvas.ellipse(x + side * 8.5 * unit + 1.3 * unit, head - 3 * unit, 0.9 * unit, 0.9 * unit, (255, 255, 255))
        for whisker in (-1.5, 1.0):
            canvas.line([(x + side * 6 * unit, head + 7 * unit), (x + side * 27 * unit, head + (6 + 3 * whisker) * unit)], 0.45 * unit, lighter(coat, 0.6), 0.8)
        canvas.ellipse(x + side * 8 * unit, foot - 2 * unit, 7.5 * unit, 4 * unit, lighter(coat, 0.08))
    canvas.polygon([(x - 2.4 * unit, head + 5 * unit), (x + 2.4 * unit, head + 5 * unit), (x, head + 8 * unit)], (214, 122, 128))
    _rim(stage, x, foot, [(0, -64), *half[1:5]], unit)


def dog(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    coat = _coat(stage, (126, 82, 46))
    tail = curve([(x - 30 * unit, foot - 30 * unit), (x - 48 * unit, foot - 44 * unit), (x - 50 * unit, foot - 62 * unit)])
    canvas.line(tail, 6 * unit, coat)
    for leg in (-24, -14, 14, 24):
        canvas.rectangle(x + leg * unit - 4 * unit, foot - 30 * unit, x + leg * unit + 4 * unit, foot, darker(coat, 0.12 if leg in (-24, 14) else 0))
    canvas.ellipse(x, foot - 38 * unit, 36 * unit, 17 * unit, coat)
    canvas.polygon([(x + 16 * unit, foot - 48 * unit), (x + 24 * unit, foot - 76 * unit), (x + 44 * unit, foot - 66 * unit), (x + 34 * unit, foot - 34 * unit)], coat)
    canvas.ellipse(x + 35 * unit, foot - 76 * unit, 15 * unit, 13 * unit, coat)
    canvas.ellipse(x + 49 * unit, foot - 72 * unit, 11 * unit, 7 * unit, lighter(coat, 0.15))
    canvas.ellipse(x + 58 * unit, foot - 75 * unit, 3.2 * unit, 2.6 * unit, (22, 18, 20))
    canvas.polygon([(x + 22 * unit, foot - 84 * unit), (x + 18 * unit, foot - 62 * unit), (x + 29 * unit, foot - 66 * unit), (x + 31 * unit, foot - 86 * unit)], darker(coat, 0.35))
    canvas.ellipse(x + 39 * unit, foot - 79 * unit, 1.9 * unit, 2.1 * unit, (18, 14, 16))
    canvas.line([(x + 20 * unit, foot - 58 * unit), (x + 37 * unit, foot - 52 * unit)], 4 * unit, (198, 52, 48))


def bear(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    coat = _coat(stage, (92, 62, 42))
    for side in (-1, 1):
        canvas.ellipse(x + side * 17 * unit, foot - 91 * unit, 8 * unit, 8 * unit, coat)
        canvas.ellipse(x + side * 17 * unit, foot - 91 * unit, 4 * unit, 4 * unit, lighter(coat, 0.25))
        canvas.ellipse(x + side * 28 * unit, foot - 40 * unit, 10 * unit, 22 * unit, darker(coat, 0.15))
        canvas.ellipse(x + side * 19 * unit, foot - 7 * unit, 13 * unit, 9 * unit, darker(coat, 0.1))
    canvas.ellipse(x, foot - 33 * unit, 32 * unit, 34 * unit, Gradient(foot - 66 * unit, foot, (coat, darker(coat, 0.2))))
    canvas.ellipse(x, foot - 28 * unit, 19 * unit, 22 * unit, lighter(coat, 0.2))
    canvas.ellipse(x, foot - 78 * unit, 24 * unit, 21 * unit, coat)
    canvas.ellipse(x, foot - 71 * unit, 11 * unit, 9 * unit, lighter(coat, 0.3))
    canvas.ellipse(x, foot - 75 * unit, 4 * unit, 3 * unit, (20, 16, 18))
    for side in (-1, 1):
        canvas.ellipse(x + side * 9 * unit, foot - 82 * unit, 2.2 * unit, 2.6 * unit, (20, 16, 18))


def sheep(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 60
    wool, dark = mix((246, 242, 234), stage.depth(1), 0.4 if stage.palette.dark else 0.08), (46, 42, 48)
    for leg in (-18, -8, 10, 20):
        canvas.rectangle(x + (leg - 2) * unit, foot - 20 * unit, x + (leg + 2) * unit, foot, dark)
    for dx, dy, radius in ((-20, -32, 13), (-8, -40, 14), (8, -40, 14), (20, -33, 13), (0, -26, 16), (-14, -24, 12), (15, -24, 12)):
        canvas.ellipse(x + dx * unit, foot + dy * unit, radius * unit, radius * 0.9 * unit, wool if dy < -30 else darker(wool, 0.1))
    canvas.ellipse(x + 33 * unit, foot - 40 * unit, 8 * unit, 10.5 * unit, dark)
    canvas.ellipse(x + 27 * unit, foot - 44 * unit, 6 * unit, 2.6 * unit, dark)
    canvas.ellipse(x + 31 * unit, foot - 49 * unit, 7 * unit, 4.5 * unit, wool)
    canvas.ellipse(x + 36 * unit, foot - 43 * unit, 1.5 * unit, 1.5 * unit, (250, 250, 250))


def owl(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    coat = _coat(stage, (116, 84, 58))
    canvas.line([(x - 90 * unit, foot + 2 * unit), (x + 90 * unit, foot - 4 * unit)], 6 * unit, darker(stage.depth(1), 0.3))
    canvas.ellipse(x, foot - 45 * unit, 30 * unit, 46 * unit, Gradient(foot - 90 * unit, foot, (coat, darker(coat, 0.25))))
    for side in (-1, 1):
        canvas.polygon([(x + side * 6 * unit, foot - 84 * unit), (x + side * 27 * unit, foot - 104 * unit), (x + side * 28 * unit, foot - 72 * unit)], coat)
        canvas.ellipse(x + side * 25 * unit, foot - 38 * unit, 11 * unit, 30 * unit, darker(coat, 0.3))
    for row in range(5):
        for column in range(-2, 3):
            canvas.ellipse(x + (column * 7 + (row % 2) * 3.5 - 1.7) * unit, foot - (14 + 8 * row) * unit, 3.4 * unit, 3 * unit, lighter(coat, 0.35), 0.6)
    for side in (-1, 1):
        canvas.ellipse(x + side * 12 * unit, foot - 70 * unit, 12.5 * unit, 12.5 * unit, lighter(coat, 0.5))
        canvas.ellipse(x + side * 12 * unit, foot - 70 * unit, 8.5 * unit, 8.5 * unit, (246, 190, 50))
        canvas.ellipse(x + side * 12 * unit, foot - 70 * unit, 4.8 * unit, 4.8 * unit, (14, 12, 16))
        canvas.ellipse(x + side * 12 * unit + 2 * unit, foot - 72.5 * unit, 1.6 * unit, 1.6 * unit, (255, 255, 255))
        canvas.ellipse(x + side * 9 * unit, foot - 1 * unit, 6 * unit, 3 * unit, (222, 160, 60))
    canvas.polygon([(x - 3.4 * unit, foot - 64 * unit), (x + 3.4 * unit, foot - 64 * unit), (x, foot - 54 * unit)], (222, 160, 60))


def person(stage: Stage, x: float, foot: float, tall: float) -> None:
    """Somebody who stands with a coat and a scarf and looks into the picture."""
    canvas, unit, dice = stage.canvas, tall / 100, stage.dice
    dark = darker(stage.depth(1), 0.2)
    coat = mix(dice.pick(stage.scene.shades) if stage.scene.shades else dice.pick([(176, 60, 52), (50, 84, 128), (206, 150, 60), (70, 104, 84)]), stage.depth(1), 0.4)
    for side in (-1, 1):
        canvas.line([(x + side * 5 * unit, foot - 42 * unit), (x + side * 6.5 * unit, foot)], 7 * unit, dark)
        canvas.ellipse(x + side * 7 * unit, foot - 1.5 * unit, 5.5 * unit, 2.4 * unit, dark)
        canvas.line([(x + side * 11 * unit, foot - 76 * unit), (x + side * 17 * unit, foot - 58 * unit), (x + side * 14 * unit, foot - 44 * unit)], 5.6 * unit, darker(coat, 0.2))
    half = curve([(x, foot - 83 * unit), (x + 11 * unit, foot - 79 * unit), (x + 12.5 * unit, foot - 60 * unit), (x + 16 * unit, foot - 34 * unit)])
    canvas.polygon([*half, *((2 * x - at_x, at_y) for at_x, at_y in reversed(half))], coat)
    canvas.ellipse(x, foot - 91 * unit, 8 * unit, 9 * unit, mix((226, 176, 140), stage.depth(1), 0.4))
    hair = mix(dice.pick([(40, 30, 26), (92, 58, 34), (190, 140, 70)]), stage.depth(1), 0.3)
    shape = without(disc(x, foot - 92.5 * unit, 9 * unit, 9.4 * unit), disc(x, foot - 84 * unit, 7.4 * unit, 6 * unit))
    canvas.fill(foot - 104 * unit, foot - 82 * unit, shape, hair)
    scarf = mix((236, 190, 80), stage.depth(1), 0.2)
    canvas.line([(x - 8 * unit, foot - 82 * unit), (x + 8 * unit, foot - 82 * unit)], 4.6 * unit, scarf)
    side = 1 if stage.left_light else -1
    canvas.polygon(curve([(x + side * 6 * unit, foot - 83 * unit), (x + side * 20 * unit, foot - 85 * unit), (x + side * 32 * unit, foot - 80 * unit), (x + side * 22 * unit, foot - 79 * unit), (x + side * 6 * unit, foot - 79 * unit)]), scarf)  # fmt: skip
    _rim(stage, x, foot, [(0, -83), (11, -79), (12.5, -60), (16, -34)], unit)


def fish(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit, dice = stage.canvas, tall / 60, stage.dice
    shade = dice.pick(stage.scene.shades) if stage.scene.shades else dice.pick([(248, 142, 50), (250, 206, 70), (90, 170, 230), (230, 90, 110), (150, 110, 220)])
    y, side = foot - tall / 2, 1 if dice.chance(0.5) else -1
    canvas.polygon(curve([(x - side * 30 * unit, y), (x - side * 58 * unit, y - 22 * unit), (x - side * 50 * unit, y), (x - side * 58 * unit, y + 22 * unit), (x - side * 30 * unit, y)]), darker(shade, 0.15))  # fmt: skip
    canvas.polygon(curve([(x - side * 18 * unit, y - 16 * unit), (x, y - 35 * unit), (x + side * 16 * unit, y - 18 * unit)]), darker(shade, 0.2))
    canvas.ellipse(x, y, 40 * unit, 22 * unit, Gradient(y - 22 * unit, y + 22 * unit, (shade, lighter(shade, 0.42))))
    for stripe in (-12, 8):
        reach = 22 * unit * math.sqrt(1 - (stripe / 40) ** 2)
        canvas.ellipse(x + side * stripe * unit, y, 3.4 * unit, reach * 0.96, (250, 250, 244), 0.85)
    canvas.polygon(curve([(x - side * 2 * unit, y + 3 * unit), (x - side * 18 * unit, y + 13 * unit), (x - side * 4 * unit, y + 12 * unit)]), darker(shade, 0.25))
    canvas.ellipse(x + side * 25 * unit, y - 5 * unit, 5 * unit, 5 * unit, (255, 255, 255))
    canvas.ellipse(x + side * 26 * unit, y - 5 * unit, 2.6 * unit, 2.6 * unit, (16, 16, 22))


def whale(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 60
    shade = mix((58, 96, 140), stage.depth(0.8), 0.3)
    y = foot - tall / 2
    back = curve([(x + 74 * unit, y + 2 * unit), (x + 58 * unit, y - 20 * unit), (x + 10 * unit, y - 30 * unit), (x - 44 * unit, y - 12 * unit), (x - 84 * unit, y - 8 * unit)])
    belly = curve([(x - 84 * unit, y - 6 * unit), (x - 40 * unit, y + 12 * unit), (x + 14 * unit, y + 26 * unit), (x + 58 * unit, y + 20 * unit), (x + 74 * unit, y + 2 * unit)])
    canvas.polygon([(x - 80 * unit, y - 10 * unit), (x - 112 * unit, y - 30 * unit), (x - 100 * unit, y - 8 * unit), (x - 112 * unit, y + 12 * unit), (x - 80 * unit, y - 4 * unit)], shade)
    canvas.polygon([*back, *belly], shade)
    canvas.polygon([*belly, *curve([(x + 74 * unit, y + 2 * unit), (x + 40 * unit, y + 11 * unit), (x, y + 12 * unit), (x - 60 * unit, y)])], lighter(shade, 0.5), 0.85)
    for groove in range(5):
        canvas.line(curve([(x + (66 - 3 * groove) * unit, y + (7 + 3 * groove) * unit), (x + 30 * unit, y + (14 + 3 * groove) * unit), (x + 2 * unit, y + (15 + 2 * groove) * unit)]), 0.5 * unit, shade, 0.7)
    canvas.polygon(curve([(x + 22 * unit, y + 12 * unit), (x + 4 * unit, y + 40 * unit), (x - 8 * unit, y + 42 * unit), (x + 4 * unit, y + 14 * unit)]), darker(shade, 0.25))
    canvas.ellipse(x + 52 * unit, y, 2.2 * unit, 2.2 * unit, (14, 16, 26))


def jellyfish(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit, dice = stage.canvas, tall / 100, stage.dice
    shade = stage.scene.shades[0] if stage.scene.shades else dice.pick([(250, 160, 210), (160, 190, 255), (190, 150, 250)])
    top = foot - 70 * unit
    canvas.glow(x, top, 60 * unit, shade, 0.45)
    for arm in range(7):
        at, phase = x + (arm - 3) * 8 * unit, dice.between(0, 6)
        points: list[Point] = [(at + 5 * unit * math.sin(step / 2 + phase) * step / 8, top + 70 * unit * step / 9) for step in range(10)]
        canvas.line(points, (2.6 if arm % 2 else 1.4) * unit, lighter(shade, 0.3), 0.6)
    dome = [(x + math.cos(math.pi * step / 20) * 34 * unit, top - math.sin(math.pi * step / 20) * 32 * unit) for step in range(21)]
    hem = [(x + (-34 + 68 * step / 8) * unit, top + (5 if step % 2 else 0) * unit) for step in range(9)]
    canvas.polygon([*dome, *curve(hem)], Gradient(top - 32 * unit, top + 5 * unit, (lighter(shade, 0.5), shade)), 0.82)
    canvas.ellipse(x - 10 * unit, top - 18 * unit, 9 * unit, 5 * unit, (255, 255, 255), 0.4)


def butterfly(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit, dice = stage.canvas, tall / 60, stage.dice
    shade = dice.pick(stage.scene.shades) if stage.scene.shades else dice.pick([(240, 130, 40), (80, 140, 230), (220, 80, 150), (250, 210, 80)])
    y = foot - tall / 2
    for side in (-1, 1):
        for dx, dy, wide, high in ((20, -13, 22, 17), (15, 14, 15, 14)):
            canvas.ellipse(x + side * dx * unit, y + dy * unit, wide * unit, high * unit, (30, 24, 34))
            canvas.ellipse(x + side * dx * unit, y + dy * unit, (wide - 3) * unit, (high - 3) * unit, shade)
            canvas.ellipse(x + side * (dx - 3) * unit, y + dy * unit, (wide - 11) * unit, (high - 9) * unit, lighter(shade, 0.4))
        canvas.line(curve([(x, y - 16 * unit), (x + side * 5 * unit, y - 28 * unit), (x + side * 11 * unit, y - 33 * unit)]), 0.9 * unit, (30, 24, 34))
    canvas.ellipse(x, y, 3 * unit, 20 * unit, (30, 24, 34))


def snowman(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    snow, dark = mix((250, 252, 255), stage.depth(0.6), 0.3 if stage.palette.dark else 0.06), (40, 36, 44)
    for side in (-1, 1):
        canvas.line([(x + side * 16 * unit, foot - 54 * unit), (x + side * 40 * unit, foot - 70 * unit), (x + side * 46 * unit, foot - 80 * unit)], 2 * unit, (88, 58, 38))
    for dy, radius in ((-20, 26), (-54, 20), (-80, 14)):
        y = foot + dy * unit
        canvas.ellipse(x, y, radius * unit, radius * 0.95 * unit, Gradient(y - radius * unit, y + radius * unit, (snow, mix(snow, (120, 150, 190), 0.4))))
    for side in (-1, 1):
        canvas.ellipse(x + side * 5 * unit, foot - 83 * unit, 1.7 * unit, 1.7 * unit, dark)
    for button in (-62, -54, -46):
        canvas.ellipse(x, foot + button * unit, 1.8 * unit, 1.8 * unit, dark)
    canvas.polygon([(x, foot - 81 * unit), (x + 15 * unit, foot - 77 * unit), (x, foot - 76.5 * unit)], (240, 130, 40))
    canvas.line([(x - 13 * unit, foot - 68 * unit), (x + 13 * unit, foot - 68 * unit)], 5 * unit, (200, 50, 56))
    canvas.rectangle(x - 10 * unit, foot - 108 * unit, x + 10 * unit, foot - 91 * unit, dark)
    canvas.rectangle(x - 16 * unit, foot - 93 * unit, x + 16 * unit, foot - 90 * unit, dark)


def pumpkin(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, shade = stage.canvas, mix((232, 122, 30), stage.depth(1), 0.15)
    y, glow = foot - tall * 0.42, (255, 214, 90)
    for dx in (-0.42, 0.42, -0.24, 0.24, 0.0):
        canvas.ellipse(x + dx * tall, y, tall * 0.27, tall * 0.42, mix(shade, (120, 40, 10), abs(dx) * 0.7))
    canvas.line(curve([(x, y - tall * 0.38), (x + tall * 0.03, y - tall * 0.5), (x + tall * 0.12, y - tall * 0.56)]), tall * 0.09, (86, 104, 48))
    if stage.palette.dark or stage.scene.time in ("gloom", "autumn", "dusk"):
        canvas.glow(x, y, tall, glow, 0.4)
        for side in (-1, 1):
            canvas.polygon([(x + side * tall * 0.1, y - tall * 0.04), (x + side * tall * 0.3, y - tall * 0.04), (x + side * tall * 0.22, y - tall * 0.2)], glow)
        mouth = [(-0.34, 0.08), (-0.2, 0.14), (-0.12, 0.09), (0.0, 0.16), (0.12, 0.09), (0.2, 0.14), (0.34, 0.08), (0.2, 0.26), (0.0, 0.3), (-0.2, 0.26)]
        canvas.polygon([(x + dx * tall, y + dy * tall) for dx, dy in mouth], glow)


def _rim(stage: Stage, x: float, foot: float, half: list[tuple[float, float]], unit: float) -> None:
    """A line of light on the side that sun or moon shines on."""
    side = -1 if stage.left_light else 1
    points = curve([(x + side * (dx - 0.8) * unit, foot + dy * unit) for dx, dy in half])
    stage.canvas.line(points, 1.3 * unit, stage.palette.light, 0.5)
