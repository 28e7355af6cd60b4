"""The places of a picture: sea, lake, mountains, hills, forest, desert, city, space and reef, from far to near."""

import math

from svc.workers.canvas import Color, Gradient, Point, darker, disc, lighter, mix, without
from svc.workers.growth import grass, pine, tree
from svc.workers.stage import Stage


def hills(stage: Stage) -> None:
    _far_ranges(stage, 2)
    snow = stage.scene.time == "winter"
    line: list[Point] = []
    for layer in range(4):
        share = 0.3 + 0.22 * layer
        base = stage.horizon + stage.height * (0.03 + 0.095 * layer)
        line = stage.ridge(base, stage.unit * (9 - layer), 1.3 + 0.4 * layer)
        shade = lighter(stage.palette.far, 0.75 - 0.12 * layer) if snow else stage.depth(share)
        stage.land(line, shade, mix(shade, stage.haze, 0.22 if layer < 3 else 0.0))
        if layer in (1, 2):
            _row_of_trees(stage, line, stage.unit * (1.6 + layer * 1.3), stage.depth(min(share + 0.22, 1)))
    stage.stand_on(line)
    if not snow:
        grass(stage, line, stage.depth(1))


def mountains(stage: Stage) -> None:
    _far_ranges(stage, 2)
    dice = stage.dice
    count = dice.whole(4, 6)
    peaks = [(number + dice.between(0.2, 0.8)) / count * stage.width for number in range(count)]
    for x in sorted(peaks, key=lambda x: -abs(x - stage.width * (0.66 if stage.left_light else 0.34))):
        nearness = 1 - abs(x / stage.width - (0.66 if stage.left_light else 0.34))
        _mountain(stage, x, stage.horizon + stage.unit * 4, stage.unit * dice.between(24, 32) * (0.5 + 0.75 * nearness))
    stage.mist(stage.width / 2, stage.horizon + stage.unit * 3, stage.width * 0.7, stage.unit * 6, 0.6)
    line: list[Point] = []
    for layer in range(3):
        line = stage.ridge(stage.horizon + stage.height * (0.09 + 0.1 * layer), stage.unit * (8 - layer), 1.2 + layer * 0.5)
        shade = stage.depth(0.5 + 0.24 * layer)
        stage.land(line, shade, mix(shade, stage.haze, 0.2 if layer < 2 else 0))
        if layer < 2:
            _row_of_pines(stage, line, stage.unit * (2.6 + layer * 3), stage.depth(0.66 + 0.24 * layer))
    stage.stand_on(line)
    grass(stage, line, stage.depth(1))


def forest(stage: Stage) -> None:
    _far_ranges(stage, 1)
    line: list[Point] = []
    for layer in range(4):
        line = stage.ridge(stage.horizon + stage.height * (0.01 + 0.1 * layer), stage.unit * 5, 1.6)
        shade = stage.depth(0.25 + 0.22 * layer)
        _row_of_pines(stage, line, stage.unit * (9 + 5 * layer), shade, dense=True)
        stage.land(line, shade, mix(shade, stage.haze, 0.4 if layer < 3 else 0))
        if layer < 3:
            stage.mist(stage.dice.between(0, 1) * stage.width, line[60][1] + 2 * stage.unit, stage.width * 0.6, 4 * stage.unit, 0.4)
    stage.stand_on(line)
    for x, side in ((-0.01, 1), (1.01, -1)):  # two great trees frame the view
        for number in range(2):
            at = (x + side * number * 0.085) * stage.width
            pine(stage, at, stage.height * 1.02, stage.unit * (72 - 17 * number), stage.depth(1))
    grass(stage, line, stage.depth(1))


def sea(stage: Stage) -> None:
    if stage.dice.chance(0.6):
        _far_ranges(stage, 1)
    _water(stage, stage.horizon, stage.height)
    coast = [(x, y) for x, y in stage.ridge(0, stage.unit * 9, 0.8)]
    left = not stage.left_light
    line = []
    for x, y in coast:
        place = x / stage.width if left else 1 - x / stage.width
        drop = stage.height * 0.22 * max(place - 0.34, 0) ** 1.15 * 2.6
        line.append((x, stage.height * 0.83 + y + drop))
    shade = stage.depth(0.92)
    stage.canvas.polygon([(-stage.width, stage.height * 2), *[(x, y - stage.unit * 0.5) for x, y in line], (stage.width * 2, stage.height * 2)],
                         lighter(stage.palette.light, 0.2), 0.25)  # fmt: skip
    stage.land(line, shade, darker(shade, 0.25))
    stage.stand_on(line)
    grass(stage, line, darker(shade, 0.1))


def lake(stage: Stage) -> None:
    _far_ranges(stage, 2)
    for number, x in enumerate((0.2, 0.52, 0.84)):
        tall = stage.unit * stage.dice.between(14, 24)
        _mountain(stage, (x + stage.dice.between(-0.07, 0.07)) * stage.width, stage.horizon + stage.unit, tall + (number == 1) * 5 * stage.unit)
    line = stage.ridge(stage.horizon + stage.unit, stage.unit * 3, 2.2)
    _row_of_pines(stage, line, stage.unit * 4.5, stage.depth(0.62), dense=True)
    stage.land(line, stage.depth(0.62))
    _water(stage, stage.horizon + stage.unit * 2.2, stage.height)
    _reflection(stage, stage.horizon + stage.unit * 2.2)
    near = stage.ridge(stage.height * 0.97, stage.unit * 9, 0.9)
    stage.land(near, stage.depth(1))
    stage.stand_on(near)
    grass(stage, near, stage.depth(1), tall=1.8)


def desert(stage: Stage) -> None:
    _far_ranges(stage, 1)
    line: list[Point] = []
    for layer in range(5):
        base = stage.horizon + stage.height * (0.01 + 0.085 * layer)
        line = stage.ridge(base, stage.unit * (6 + layer), 0.9 + 0.25 * layer)
        shade = stage.depth(0.12 + 0.19 * layer)
        stage.land(line, lighter(mix(shade, stage.palette.light, 0.22), 0.05), shade)
        # The side of each dune that lies in the shade, under a crest that winds down from the top.
        for index in range(8, len(line) - 24, 1):
            if line[index][1] < line[index - 1][1] and line[index][1] <= line[index + 1][1]:
                _dune(stage, line, index, darker(shade, 0.3))
    stage.stand_on(line)


def city(stage: Stage) -> None:
    dice, unit = stage.dice, stage.unit
    stage.canvas.glow(stage.width / 2, stage.horizon + unit * 6, stage.width * 0.75, stage.palette.sky[-1], 0.55, 1.5)
    foot = stage.height * 0.84
    lit = stage.palette.dark or stage.scene.time in ("dusk", "sunset", "storm")
    for layer in range(3):
        shade = stage.depth(0.2 + 0.34 * layer)
        x = -dice.between(0, 6) * unit
        while x < stage.width:
            wide = dice.between(5, 11) * unit * (0.75 + 0.25 * layer)
            middle = 1 - abs((x + wide / 2) / stage.width - 0.5)
            tall = unit * dice.between(14, 40) * (1.12 - 0.22 * layer) * middle
            _building(stage, x, foot - layer * unit, wide, tall + (2 - layer) * 7 * unit, shade, lit and layer > 0)
            x += wide + dice.between(-0.5, 1.6) * unit
        stage.canvas.rectangle(0, foot - 16 * unit, stage.width, foot, stage.haze, 0.1 if layer < 2 else 0)
    _water(stage, foot, stage.height)
    if lit:
        _city_lights(stage, foot)
    line = [(step / 129 * stage.width, stage.height * 0.955) for step in range(-1, 131)]
    stage.land(line, stage.depth(1))
    stage.canvas.rectangle(0, stage.height * 0.955, stage.width, stage.height * 0.96, lighter(stage.depth(1), 0.2))
    stage.stand_on(line)


def space(stage: Stage) -> None:
    dice, unit, canvas = stage.dice, stage.unit, stage.canvas
    clouds = [(200, 70, 160), (70, 90, 220), (40, 160, 190), (240, 120, 90), (120, 60, 200)]
    first = stage.scene.shades[0] if stage.scene.shades else dice.pick(clouds)
    for number in range(13):  # a nebula along a diagonal
        place = number / 12
        x = place * stage.width + dice.between(-10, 10) * unit
        y = (0.78 - 0.56 * place) * stage.height + dice.between(-13, 13) * unit
        canvas.glow(x, y, dice.between(14, 34) * unit, mix(first, clouds[number % 5], 0.45 if number % 3 else 0.9), 0.3, 1.6)
    stage.stars(330)
    big = dice.between(17, 23) * unit
    _planet(stage, stage.width * (0.7 if stage.left_light else 0.3), stage.height * 0.4, big, dice.chance(0.6))
    _planet(stage, stage.width * (0.2 if stage.left_light else 0.8), stage.height * 0.2, big * 0.22, False)
    stage.horizon = stage.height * 0.9
    if any(name not in ("planet", "rocket", "ufo") for name, _ in stage.scene.things) or dice.chance(0.35):
        line = stage.ridge(stage.height * 0.93, unit * 8, 1.1, 0.15)
        stage.land(line, mix(stage.palette.far, (150, 140, 160), 0.35), (26, 22, 40))
        for _ in range(12):
            x = dice.between(0, 1) * stage.width
            y = dice.between(0.92, 0.99) * stage.height
            canvas.ellipse(x, y, dice.between(1, 4) * unit, dice.between(0.3, 1) * unit, (20, 16, 32), 0.5)
        stage.stand_on(line)


def reef(stage: Stage) -> None:
    dice, unit, canvas = stage.dice, stage.unit, stage.canvas
    canvas.rectangle(0, 0, stage.width, stage.height, Gradient(0, stage.height, stage.palette.sky))
    top = stage.width * dice.between(0.35, 0.65)
    for _ in range(9):
        x, spread = top + dice.between(-30, 30) * unit, dice.between(-45, 45) * unit
        wide = dice.between(2, 6) * unit
        points = [(x - wide / 3, -unit), (x + wide / 3, -unit), (x + spread + wide * 2, stage.height), (x + spread - wide * 2, stage.height)]
        canvas.polygon(points, Gradient(0, stage.height, (stage.palette.light, stage.palette.sky[1])), 0.09)
    stage.horizon = stage.height * 0.7
    for layer in range(3):
        line = stage.ridge(stage.height * (0.8 + 0.075 * layer), unit * (12 - 3 * layer), 1.4 + layer * 0.6, 0.2)
        stage.land(line, stage.depth(0.25 + 0.33 * layer), darker(stage.depth(0.3 + 0.33 * layer), 0.3))
        for _ in range(7):
            x = dice.between(0, 1) * stage.width
            _coral(stage, x, stage.height * (0.8 + 0.075 * layer), (0.55 + 0.3 * layer) * unit, layer)
        stage.stand_on(line)
    for _ in range(40):
        size = dice.between(0.3, 1.1) * unit
        x, y = dice.between(0, 1) * stage.width, dice.between(0.05, 0.9) * stage.height
        canvas.fill(y - size, y + size, without(disc(x, y, size, size), disc(x, y, size * 0.78, size * 0.78)), (240, 255, 250), 0.5)
        canvas.ellipse(x - size * 0.3, y - size * 0.35, size * 0.18, size * 0.18, (255, 255, 255), 0.8)


PLACES = {
    "hills": hills, "mountains": mountains, "forest": forest, "sea": sea, "lake": lake, "desert": desert,
    "city": city, "space": space, "reef": reef,
}  # fmt: skip


# --- parts


def _far_ranges(stage: Stage, count: int) -> None:
    for number in range(count):
        line = stage.ridge(stage.horizon + stage.unit * (1 + 2 * number), stage.unit * (15 - 4 * number), 1.5 + number, 0.25)
        shade = mix(stage.depth(0.12 + 0.1 * number), stage.palette.sky[-1], 0.45 - 0.15 * number)
        stage.land(line, shade, mix(shade, stage.haze, 0.5))


def _mountain(stage: Stage, x: float, foot: float, tall: float) -> None:
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
    spine = [(x + tall * (dice.between(-0.07, 0.07) + 0.1 * step / 7) * min(step, 1), foot - tall * (1 - step / 7)) for step in range(8)]
    shade = mix(stage.depth(0.34), stage.palette.sky[-1], 0.12)
    bright, dim = mix(shade, stage.palette.light, 0.24), darker(shade, 0.2)
    if not stage.left_light:
        bright, dim = dim, bright
    for outline, paint in ((left, bright), (right, dim)):
        fade = Gradient(foot - tall, foot, (paint, mix(paint, stage.haze, 0.45)))
        canvas.polygon([*outline, *reversed(spine)], fade)
    snow = lighter(stage.palette.light, 0.35)
    shadow = mix(snow, shade, 0.38)
    for side, outline, paint in ((-1, left, snow if stage.left_light else shadow), (1, right, shadow if stage.left_light else snow)):
        count = 5
        edge = outline[:count]
        end_x, end_y = edge[-1]
        middle_x, middle_y = spine[2][0], spine[2][1] + tall * 0.03
        zigzag = []
        for step in range(1, 6):
            share = step / 6
            dip = tall * (0.085 if step % 2 else -0.03) * dice.between(0.6, 1.2)
            zigzag.append((end_x + (middle_x - end_x) * share, end_y + (middle_y - end_y) * share + dip))
        canvas.polygon([*edge, *zigzag, (middle_x, middle_y), *reversed(spine[:2])], paint, 0.92)


def _row_of_pines(stage: Stage, line: list[Point], tall: float, shade: Color, *, dense: bool = False) -> None:
    x = -stage.dice.between(0, tall)
    while x < stage.width + tall:
        place = min(max(int(x / stage.width * 129) + 1, 0), len(line) - 1)
        if dense or stage.dice.chance(0.75):
            pine(stage, x, line[place][1] + tall * 0.12, tall * stage.dice.between(0.6, 1.1), shade)
        x += tall * (stage.dice.between(0.2, 0.36) if dense else stage.dice.between(0.3, 1.5))


def _row_of_trees(stage: Stage, line: list[Point], tall: float, shade: Color) -> None:
    for _ in range(stage.dice.whole(10, 16)):
        index = stage.dice.whole(2, len(line) - 3)
        tree(stage, line[index][0], line[index][1] + tall * 0.1, tall * stage.dice.between(0.7, 1.5), shade)


def _water(stage: Stage, top: float, bottom: float) -> None:
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
    if stage.scene.time == "storm" or "fog" in stage.scene.weather:
        return
    x = stage.light[0]
    for _ in range(120):  # the light's path
        share = dice.between(0, 1)
        reach = (3 + 13 * share) * unit
        at = x + dice.between(-1, 1) * reach * dice.between(0.2, 1)
        long = dice.between(0.8, 3.4) * unit * (0.5 + share)
        canvas.ellipse(at, top + share * tall, long, (0.12 + 0.26 * share) * unit, palette.light, 0.6 * (1 - 0.55 * share))


def _reflection(stage: Stage, shore: float) -> None:
    line = stage.ridge(0, stage.unit * 6, 2.2)
    shade = stage.depth(0.62)
    points = [(x, shore - y * 1.5) for x, y in line]
    stage.canvas.polygon([(-stage.width, shore), *points, (stage.width * 2, shore)], Gradient(shore, shore + 12 * stage.unit, (shade, stage.depth(0.3))), 0.5)  # fmt: skip
    for number in range(26):
        y = shore + stage.unit * (0.6 + number * 0.55)
        x = stage.dice.between(0, 1) * stage.width
        stage.canvas.ellipse(x, y, stage.dice.between(5, 16) * stage.unit, 0.12 * stage.unit, stage.haze, 0.4)


def _dune(stage: Stage, line: list[Point], index: int, shade: Color) -> None:
    x, y = line[index]
    side = 1 if stage.left_light else -1
    long = stage.unit * stage.dice.between(20, 34)
    crest = [(x, y)]
    for step in range(1, 9):
        share = step / 8
        crest.append((x + side * long * 0.5 * math.sin(share * 2.6) * share, y + long * 0.62 * share))
    outer = [point for point in (line[index:] if side > 0 else line[index::-1]) if abs(point[0] - x) < long * 1.25]
    stage.canvas.polygon([*crest, *reversed(outer)], Gradient(y, y + long * 0.7, (shade, mix(shade, stage.haze, 0.3))), 0.5)


def _building(stage: Stage, x: float, foot: float, wide: float, tall: float, shade: Color, lit: bool) -> None:
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


def _city_lights(stage: Stage, foot: float) -> None:
    for _ in range(60):
        x, long = stage.dice.between(0, 1) * stage.width, stage.dice.between(2, 9) * stage.unit
        glass = stage.dice.pick([(255, 205, 120), (255, 150, 120), (150, 210, 255), stage.palette.light])
        for part in range(5):
            y = foot + long * part / 5
            stage.canvas.ellipse(x, y, 0.5 * stage.unit, long / 12, glass, 0.34 * (1 - part / 5))


def _planet(stage: Stage, x: float, y: float, size: float, ringed: bool) -> None:
    canvas, dice = stage.canvas, stage.dice
    base = stage.scene.shades[-1] if stage.scene.shades else dice.pick([(214, 120, 84), (112, 148, 214), (196, 164, 112), (120, 190, 170), (186, 110, 170)])
    canvas.glow(x, y, size * 1.7, base, 0.34, 2)
    bands = tuple(mix(base, dice.pick([lighter(base, 0.4), darker(base, 0.25), base]), dice.between(0.3, 0.9)) for _ in range(9))
    if ringed:
        _ring(stage, x, y, size, base, behind=True)
    canvas.ellipse(x, y, size, size, Gradient(y - size, y + size, bands))
    side = -0.42 if stage.left_light else 0.42
    for step in range(7):  # the night side, with a soft edge
        offset = size * side * (1 - step * 0.13)
        night = without(disc(x, y, size, size), disc(x + offset, y - size * 0.16, size * 1.02, size * 1.02))
        canvas.fill(y - size, y + size, night, (4, 4, 16), 0.2)
    if ringed:
        _ring(stage, x, y, size, base, behind=False)


def _ring(stage: Stage, x: float, y: float, size: float, base: Color, *, behind: bool) -> None:
    for width, alpha in ((2.05, 0.5), (1.82, 0.75), (1.62, 0.55)):
        band = without(disc(x, y, size * width, size * width * 0.24), disc(x, y, size * (width - 0.14), size * (width - 0.14) * 0.24))
        top, bottom = (y - size, y) if behind else (y, y + size)
        stage.canvas.fill(top, bottom, band, lighter(base, 0.4), alpha)


def _coral(stage: Stage, x: float, foot: float, size: float, layer: int) -> None:
    dice, canvas = stage.dice, stage.canvas
    shade = mix(dice.pick([(240, 110, 110), (245, 160, 90), (220, 110, 180), (120, 200, 160), (250, 210, 120)]), stage.depth(0.5), 0.72 - 0.3 * layer)
    if dice.chance(0.45):  # weed that sways
        for number in range(4):
            sway, long = dice.between(1, 3) * size * 2, dice.between(12, 24) * size
            points = [(x + number * size * 1.6 + sway * math.sin(step / 2 + number), foot + 6 * size - long * step / 8) for step in range(9)]
            canvas.line(points, size * 0.9, mix((60, 160, 110), stage.depth(0.5), 0.6 - 0.2 * layer))
        return
    branches = [(x, foot + 4 * size, -math.pi / 2, 9 * size)]
    for depth in range(4):
        following = []
        for at_x, at_y, angle, long in branches:
            end = (at_x + math.cos(angle) * long, at_y + math.sin(angle) * long)
            canvas.line([(at_x, at_y), end], size * (1.9 - 0.38 * depth), shade)
            canvas.ellipse(*end, size * (0.95 - 0.19 * depth), size * (0.95 - 0.19 * depth), shade)
            following += [(*end, angle + turn, long * dice.between(0.6, 0.8)) for turn in (-dice.between(0.25, 0.6), dice.between(0.25, 0.6))]
        branches = following
