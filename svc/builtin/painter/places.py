"""The places of a picture: sea, lake, mountains, hills, forest, desert, city, space and reef, from far to near."""

from svc.builtin.painter.canvas import Gradient, Point, darker, disc, lighter, mix, without
from svc.builtin.painter.figure import Figure
from svc.builtin.painter.growth import grass, pine
from svc.builtin.painter.stage import Stage
from svc.builtin.painter.terrain import (
    building,
    city_lights,
    coral,
    dune,
    far_ranges,
    mountain,
    planet,
    reflection,
    row_of_pines,
    row_of_trees,
    water,
)


def hills(stage: Stage) -> None:
    far_ranges(stage, 2)
    snow = stage.scene.time == "winter"
    line: list[Point] = []
    for layer in range(4):
        share = 0.3 + 0.22 * layer
        base = stage.horizon + stage.height * (0.03 + 0.095 * layer)
        line = stage.ridge(base, stage.unit * (9 - layer), 1.3 + 0.4 * layer)
        shade = lighter(stage.palette.far, 0.75 - 0.12 * layer) if snow else stage.depth(share)
        stage.land(line, shade, mix(shade, stage.haze, 0.22 if layer < 3 else 0.0))
        if layer in (1, 2):
            row_of_trees(stage, line, stage.unit * (1.6 + layer * 1.3), stage.depth(min(share + 0.22, 1)))
    stage.stand_on(line)
    if not snow:
        grass(stage, line, stage.depth(1))


def mountains(stage: Stage) -> None:
    far_ranges(stage, 2)
    dice = stage.dice
    count = dice.whole(4, 6)
    peaks = [(number + dice.between(0.2, 0.8)) / count * stage.width for number in range(count)]
    for x in sorted(peaks, key=lambda x: -abs(x - stage.width * (0.66 if stage.left_light else 0.34))):
        nearness = 1 - abs(x / stage.width - (0.66 if stage.left_light else 0.34))
        mountain(stage, x, stage.horizon + stage.unit * 4, stage.unit * dice.between(24, 32) * (0.5 + 0.75 * nearness))
    stage.mist(stage.width / 2, stage.horizon + stage.unit * 3, stage.width * 0.7, stage.unit * 6, 0.6)
    line: list[Point] = []
    for layer in range(3):
        line = stage.ridge(stage.horizon + stage.height * (0.09 + 0.1 * layer), stage.unit * (8 - layer), 1.2 + layer * 0.5)
        shade = stage.depth(0.5 + 0.24 * layer)
        stage.land(line, shade, mix(shade, stage.haze, 0.2 if layer < 2 else 0))
        if layer < 2:
            row_of_pines(stage, line, stage.unit * (2.6 + layer * 3), stage.depth(0.66 + 0.24 * layer))
    stage.stand_on(line)
    grass(stage, line, stage.depth(1))


def forest(stage: Stage) -> None:
    far_ranges(stage, 1)
    line: list[Point] = []
    for layer in range(4):
        line = stage.ridge(stage.horizon + stage.height * (0.01 + 0.1 * layer), stage.unit * 5, 1.6)
        shade = stage.depth(0.25 + 0.22 * layer)
        row_of_pines(stage, line, stage.unit * (9 + 5 * layer), shade, dense=True)
        stage.land(line, shade, mix(shade, stage.haze, 0.4 if layer < 3 else 0))
        if layer < 3:
            stage.mist(
                stage.dice.between(0, 1) * stage.width, line[60][1] + 2 * stage.unit, stage.width * 0.6, 4 * stage.unit, 0.4
            )
    stage.stand_on(line)
    for x, side in ((-0.01, 1), (1.01, -1)):  # two great trees frame the view
        for number in range(2):
            at = (x + side * number * 0.085) * stage.width
            pine(Figure(stage, at, stage.height * 1.02, stage.unit * (72 - 17 * number)), stage.depth(1))
    grass(stage, line, stage.depth(1))


def sea(stage: Stage) -> None:
    if stage.dice.chance(0.6):
        far_ranges(stage, 1)
    water(stage, stage.horizon, stage.height)
    line = []
    for x, y in stage.ridge(0, stage.unit * 9, 0.8):  # a coast that falls off toward the light
        place = 1 - x / stage.width if stage.left_light else x / stage.width
        drop = stage.height * 0.22 * max(place - 0.34, 0) ** 1.15 * 2.6
        line.append((x, stage.height * 0.83 + y + drop))
    shade = stage.depth(0.92)
    foam = [(x, y - stage.unit * 0.5) for x, y in line]
    stage.canvas.polygon(
        [(-stage.width, stage.height * 2), *foam, (stage.width * 2, stage.height * 2)], stage.palette.light, 0.25
    )
    stage.land(line, shade, darker(shade, 0.25))
    stage.stand_on(line)
    grass(stage, line, darker(shade, 0.1))


def lake(stage: Stage) -> None:
    far_ranges(stage, 2)
    for number, x in enumerate((0.2, 0.52, 0.84)):
        tall = stage.unit * stage.dice.between(14, 24)
        mountain(
            stage,
            (x + stage.dice.between(-0.07, 0.07)) * stage.width,
            stage.horizon + stage.unit,
            tall + (number == 1) * 5 * stage.unit,
        )
    line = stage.ridge(stage.horizon + stage.unit, stage.unit * 3, 2.2)
    row_of_pines(stage, line, stage.unit * 4.5, stage.depth(0.62), dense=True)
    stage.land(line, stage.depth(0.62))
    water(stage, stage.horizon + stage.unit * 2.2, stage.height)
    reflection(stage, stage.horizon + stage.unit * 2.2)
    near = stage.ridge(stage.height * 0.97, stage.unit * 9, 0.9)
    stage.land(near, stage.depth(1))
    stage.stand_on(near)
    grass(stage, near, stage.depth(1), tall=1.8)


def desert(stage: Stage) -> None:
    far_ranges(stage, 1)
    line: list[Point] = []
    for layer in range(5):
        base = stage.horizon + stage.height * (0.01 + 0.085 * layer)
        line = stage.ridge(base, stage.unit * (6 + layer), 0.9 + 0.25 * layer)
        shade = stage.depth(0.12 + 0.19 * layer)
        stage.land(line, lighter(mix(shade, stage.palette.light, 0.22), 0.05), shade)
        # The side of each dune that lies in the shade, under a crest that winds down from the top.
        for index in range(8, len(line) - 24, 1):
            if line[index][1] < line[index - 1][1] and line[index][1] <= line[index + 1][1]:
                dune(stage, line, index, darker(shade, 0.3))
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
            building(stage, x, foot - layer * unit, wide, tall + (2 - layer) * 7 * unit, shade, lit and layer > 0)
            x += wide + dice.between(-0.5, 1.6) * unit
        stage.canvas.rectangle(0, foot - 16 * unit, stage.width, foot, stage.haze, 0.1 if layer < 2 else 0)
    water(stage, foot, stage.height)
    if lit:
        city_lights(stage, foot)
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
    planet(stage, stage.width * (0.7 if stage.left_light else 0.3), stage.height * 0.4, big, dice.chance(0.6))
    planet(stage, stage.width * (0.2 if stage.left_light else 0.8), stage.height * 0.2, big * 0.22, False)
    stage.horizon = stage.height * 0.9
    if any(thing.name not in ("planet", "rocket", "ufo") for thing in stage.scene.things) or dice.chance(0.35):
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
        points = [
            (x - wide / 3, -unit),
            (x + wide / 3, -unit),
            (x + spread + wide * 2, stage.height),
            (x + spread - wide * 2, stage.height),
        ]
        canvas.polygon(points, Gradient(0, stage.height, (stage.palette.light, stage.palette.sky[1])), 0.09)
    stage.horizon = stage.height * 0.7
    for layer in range(3):
        line = stage.ridge(stage.height * (0.8 + 0.075 * layer), unit * (12 - 3 * layer), 1.4 + layer * 0.6, 0.2)
        stage.land(line, stage.depth(0.25 + 0.33 * layer), darker(stage.depth(0.3 + 0.33 * layer), 0.3))
        for _ in range(7):
            x = dice.between(0, 1) * stage.width
            coral(stage, x, stage.height * (0.8 + 0.075 * layer), (0.55 + 0.3 * layer) * unit, layer)
        stage.stand_on(line)
    for _ in range(40):
        size = dice.between(0.3, 1.1) * unit
        x, y = dice.between(0, 1) * stage.width, dice.between(0.05, 0.9) * stage.height
        canvas.fill(
            y - size, y + size, without(disc(x, y, size, size), disc(x, y, size * 0.78, size * 0.78)), (240, 255, 250), 0.5
        )
        canvas.ellipse(x - size * 0.3, y - size * 0.35, size * 0.18, size * 0.18, (255, 255, 255), 0.8)


PLACES = {
    "hills": hills, "mountains": mountains, "forest": forest, "sea": sea, "lake": lake, "desert": desert,
    "city": city, "space": space, "reef": reef,
}  # fmt: skip
