"""The parts that places are made of: mountains, rows of trees, water and what it mirrors, dunes, buildings, planets, corals."""

import math

from svc.builtin.painter.canvas import Color, Gradient, Point, darker, disc, lighter, mix, without
from svc.builtin.painter.figure import Figure
from svc.builtin.painter.growth import pine, tree
from svc.builtin.painter.stage import Stage


def far_ranges(stage: Stage, count: int) -> None:
    for number in range(count):
        line = stage.ridge(stage.horizon + stage.unit * (1 + 2 * number), stage.unit * (15 - 4 * number), 1.5 + number, 0.25)
        shade = mix(stage.depth(0.12 + 0.1 * number), stage.palette.sky[-1], 0.45 - 0.15 * number)
        stage.land(line, shade, mix(shade, stage.haze, 0.5))


def mountain(stage: Stage, x: float, foot: float, tall: float) -> None:
    dice, canvas = stage.dice, stage.canvas
    half = tall * dice.between(0.85, 1.15)

    def slope(side: int) -> list[Point]:
        points = []
        for step in range(13):
            share = step / 12
            bulge = dice.between(-0.02, 0.035) if 0 < step < 12 else 0
            points.append((x + side * half * (share + bulge), foot - tall * (1 - share**0.94)))
        return points

    left, right = slope(-1), slope(1)
    spine = [
        (x + tall * (dice.between(-0.07, 0.07) + 0.1 * step / 7) * min(step, 1), foot - tall * (1 - step / 7))
        for step in range(8)
    ]
    shade = mix(stage.depth(0.34), stage.palette.sky[-1], 0.12)
    bright, dim = mix(shade, stage.palette.light, 0.24), darker(shade, 0.2)
    if not stage.left_light:
        bright, dim = dim, bright
    for outline, paint in ((left, bright), (right, dim)):
        fade = Gradient(foot - tall, foot, (paint, mix(paint, stage.haze, 0.45)))
        canvas.polygon([*outline, *reversed(spine)], fade)
    snow = lighter(stage.palette.light, 0.35)
    shadow = mix(snow, shade, 0.38)
    caps = (snow, shadow) if stage.left_light else (shadow, snow)
    for outline, paint in zip((left, right), caps, strict=True):
        edge = outline[:5]
        end_x, end_y = edge[-1]
        middle_x, middle_y = spine[2][0], spine[2][1] + tall * 0.03
        zigzag = []
        for step in range(1, 6):
            share = step / 6
            dip = tall * (0.085 if step % 2 else -0.03) * dice.between(0.6, 1.2)
            zigzag.append((end_x + (middle_x - end_x) * share, end_y + (middle_y - end_y) * share + dip))
        canvas.polygon([*edge, *zigzag, (middle_x, middle_y), *reversed(spine[:2])], paint, 0.92)


def row_of_pines(stage: Stage, line: list[Point], tall: float, shade: Color, *, dense: bool = False) -> None:
    x = -stage.dice.between(0, tall)
    while x < stage.width + tall:
        place = min(max(int(x / stage.width * 129) + 1, 0), len(line) - 1)
        if dense or stage.dice.chance(0.75):
            pine(Figure(stage, x, line[place][1] + tall * 0.12, tall * stage.dice.between(0.6, 1.1)), shade)
        x += tall * (stage.dice.between(0.2, 0.36) if dense else stage.dice.between(0.3, 1.5))


def row_of_trees(stage: Stage, line: list[Point], tall: float, shade: Color) -> None:
    for _ in range(stage.dice.whole(10, 16)):
        index = stage.dice.whole(2, len(line) - 3)
        tree(Figure(stage, line[index][0], line[index][1] + tall * 0.1, tall * stage.dice.between(0.7, 1.5)), shade)


def water(stage: Stage, top: float, bottom: float) -> None:
    canvas, dice, palette, unit = stage.canvas, stage.dice, stage.palette, stage.unit
    deep = mix(palette.sky[0], palette.near, 0.45)
    bright = mix(palette.sky[-1], palette.sky[1], 0.42)
    canvas.rectangle(0, top, stage.width, bottom, Gradient(top, bottom, (bright, mix(bright, deep, 0.62), deep)))
    canvas.rectangle(0, top, stage.width, top + 0.35 * unit, palette.light, 0.35)
    tall = bottom - top
    for _ in range(150):  # ripples: longer and thicker toward the viewer
        share = dice.between(0, 1) ** 1.4
        y, long = top + share * tall, (1.2 + 9 * share) * unit * dice.between(0.5, 1.3)
        x = dice.between(-0.05, 1.05) * stage.width
        shade = palette.light if dice.chance(0.45) else deep
        canvas.ellipse(x, y, long, (0.1 + 0.34 * share) * unit, shade, 0.08 + 0.16 * share)
    if stage.scene.time == "storm" or stage.scene.weather & {"fog", "rain"}:
        return
    x = stage.light[0]
    for _ in range(120):  # the light's path
        share = dice.between(0, 1)
        reach = (3 + 13 * share) * unit
        at = x + dice.between(-1, 1) * reach * dice.between(0.2, 1)
        long = dice.between(0.8, 3.4) * unit * (0.5 + share)
        canvas.ellipse(at, top + share * tall, long, (0.12 + 0.26 * share) * unit, palette.light, 0.6 * (1 - 0.55 * share))


def reflection(stage: Stage, shore: float) -> None:
    line = stage.ridge(0, stage.unit * 6, 2.2)
    shade = stage.depth(0.62)
    points = [(x, shore - y * 1.5) for x, y in line]
    paint = Gradient(shore, shore + 12 * stage.unit, (shade, stage.depth(0.3)))
    stage.canvas.polygon([(-stage.width, shore), *points, (stage.width * 2, shore)], paint, 0.5)
    for number in range(26):
        y = shore + stage.unit * (0.6 + number * 0.55)
        x = stage.dice.between(0, 1) * stage.width
        stage.canvas.ellipse(x, y, stage.dice.between(5, 16) * stage.unit, 0.12 * stage.unit, stage.haze, 0.4)


def dune(stage: Stage, line: list[Point], index: int, shade: Color) -> None:
    x, y = line[index]
    side = 1 if stage.left_light else -1
    long = stage.unit * stage.dice.between(20, 34)
    crest = [(x, y)]
    for step in range(1, 9):
        share = step / 8
        crest.append((x + side * long * 0.5 * math.sin(share * 2.6) * share, y + long * 0.62 * share))
    outer = [point for point in (line[index:] if side > 0 else line[index::-1]) if abs(point[0] - x) < long * 1.25]
    stage.canvas.polygon([*crest, *reversed(outer)], Gradient(y, y + long * 0.7, (shade, mix(shade, stage.haze, 0.3))), 0.5)


def building(stage: Stage, x: float, foot: float, wide: float, tall: float, shade: Color, lit: bool) -> None:
    canvas, dice, unit = stage.canvas, stage.dice, stage.unit
    top = foot - tall
    canvas.rectangle(x, top, x + wide, foot, Gradient(top, foot, (shade, mix(shade, stage.haze, 0.18))))
    edge = x if stage.left_light else x + wide - 0.4 * unit
    canvas.rectangle(edge, top, edge + 0.4 * unit, foot, stage.palette.light, 0.22)
    roof = dice.whole(0, 4)
    if roof == 0:
        canvas.line([(x + wide / 2, top), (x + wide / 2, top - dice.between(4, 9) * unit)], 0.35 * unit, shade)
    elif roof == 1:
        canvas.rectangle(x + wide * 0.2, top - 2.4 * unit, x + wide * 0.8, top, shade)
        canvas.rectangle(x + wide * 0.36, top - 4.6 * unit, x + wide * 0.64, top - 2.4 * unit, shade)
    elif roof == 2:
        canvas.polygon([(x, top), (x + wide / 2, top - wide * 0.6), (x + wide, top)], shade)
    pane, gap = 0.75 * unit, 1.75 * unit
    glass = mix(stage.palette.light, (255, 196, 92), 0.55) if lit else lighter(shade, 0.16)
    rows = int((tall - 2 * unit) / gap)
    columns = int((wide - unit) / gap)
    margin = (wide - columns * gap + gap - pane) / 2
    for row in range(rows):
        for column in range(columns):
            if dice.chance(0.4 if lit else 0.75):
                at_x, at_y = x + margin + column * gap, top + unit + row * gap
                canvas.rectangle(at_x, at_y, at_x + pane, at_y + 1.05 * unit, glass, dice.between(0.5, 1) if lit else 0.5)


def city_lights(stage: Stage, foot: float) -> None:
    for _ in range(60):
        x, long = stage.dice.between(0, 1) * stage.width, stage.dice.between(2, 9) * stage.unit
        glass = stage.dice.pick([(255, 205, 120), (255, 150, 120), (150, 210, 255), stage.palette.light])
        for part in range(5):
            y = foot + long * part / 5
            stage.canvas.ellipse(x, y, 0.5 * stage.unit, long / 12, glass, 0.34 * (1 - part / 5))


def planet(stage: Stage, x: float, y: float, size: float, ringed: bool) -> None:
    canvas, dice = stage.canvas, stage.dice
    named = [thing.shade for thing in stage.scene.things if thing.name == "planet" and thing.shade]
    base = named[0] if named else dice.pick([(214, 120, 84), (112, 148, 214), (196, 164, 112), (120, 190, 170), (186, 110, 170)])
    canvas.glow(x, y, size * 1.7, base, 0.34, 2)
    bands = tuple(mix(base, dice.pick([lighter(base, 0.4), darker(base, 0.25), base]), dice.between(0.3, 0.9)) for _ in range(9))
    if ringed:
        ring(stage, x, y, size, base, behind=True)
    canvas.ellipse(x, y, size, size, Gradient(y - size, y + size, bands))
    side = -0.42 if stage.left_light else 0.42
    for step in range(7):  # the night side, with a soft edge
        offset = size * side * (1 - step * 0.13)
        night = without(disc(x, y, size, size), disc(x + offset, y - size * 0.16, size * 1.02, size * 1.02))
        canvas.fill(y - size, y + size, night, (4, 4, 16), 0.2)
    if ringed:
        ring(stage, x, y, size, base, behind=False)


def ring(stage: Stage, x: float, y: float, size: float, base: Color, *, behind: bool) -> None:
    for width, alpha in ((2.05, 0.5), (1.82, 0.75), (1.62, 0.55)):
        band = without(
            disc(x, y, size * width, size * width * 0.24), disc(x, y, size * (width - 0.14), size * (width - 0.14) * 0.2)
        )
        top, bottom = (y - size, y) if behind else (y, y + size)
        stage.canvas.fill(top, bottom, band, lighter(base, 0.4), alpha)


def coral(stage: Stage, x: float, foot: float, size: float, layer: int) -> None:
    dice, canvas = stage.dice, stage.canvas
    shade = mix(
        dice.pick([(240, 110, 110), (245, 160, 90), (220, 110, 180), (120, 200, 160), (250, 210, 120)]),
        stage.depth(0.5),
        0.72 - 0.3 * layer,
    )
    if dice.chance(0.45):  # weed that sways
        for number in range(4):
            sway, long = dice.between(1, 3) * size * 2, dice.between(12, 24) * size
            points = [
                (x + number * size * 1.6 + sway * math.sin(step / 2 + number), foot + 6 * size - long * step / 8)
                for step in range(9)
            ]
            canvas.line(points, size * 0.9, mix((60, 160, 110), stage.depth(0.5), 0.6 - 0.2 * layer))
        return
    branches = [(x, foot + 4 * size, -math.pi / 2, 9 * size)]
    for depth in range(4):
        following = []
        for at_x, at_y, angle, long in branches:
            end = (at_x + math.cos(angle) * long, at_y + math.sin(angle) * long)
            canvas.line([(at_x, at_y), end], size * (1.9 - 0.38 * depth), shade)
            canvas.ellipse(*end, size * (0.95 - 0.19 * depth), size * (0.95 - 0.19 * depth), shade)
            following += [
                (*end, angle + turn, long * dice.between(0.6, 0.8))
                for turn in (-dice.between(0.25, 0.6), dice.between(0.25, 0.6))
            ]
        branches = following
