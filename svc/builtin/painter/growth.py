"""What grows in a picture: trees, grass, flowers, mushrooms, pumpkins."""

import math
from itertools import pairwise

from svc.builtin.painter.canvas import Color, Point, curve, darker, lighter, mix
from svc.builtin.painter.figure import Figure
from svc.builtin.painter.stage import Stage

_PETALS = ((226, 64, 70), (246, 190, 60), (240, 130, 170), (250, 240, 235), (150, 100, 210))
_SNOW = (244, 248, 252)


def pine(figure: Figure, shade: Color) -> None:
    """A pine with ragged branches; its lit side is lighter."""
    tall = figure.unit * 100 / figure.stage.unit
    tiers = 4 if tall < 12 else 6 if tall < 40 else 9
    half: list[Point] = [(0.0, 100.0)]
    for tier in range(1, tiers + 1):
        reach, low = 6 + 20 * (tier / tiers) ** 0.9, 100 - 90 * tier / tiers
        half += [(reach * figure.dice.between(0.85, 1.15), low), (reach * 0.45, low + 2)]
    figure.rectangle(-3, 14, 3, 0, darker(shade, 0.3))
    figure.mirrored(half, shade)
    if tall < 8:
        return
    lit = [(x * figure.lit_side, y) for x, y in half]
    figure.polygon([*lit, (0, half[-1][1])], figure.stage.palette.light, 0.07)
    if figure.stage.scene.time == "winter":
        for x, y in lit[1::2]:
            figure.polygon([(0, y + 13), (x, y), (x * 0.3, y + 2)], _SNOW, 0.85)


def tree(figure: Figure, shade: Color) -> None:
    """A broad-leaved tree in the distance."""
    dice = figure.dice
    figure.polygon([(-7, 0), (-3, 50), (3, 50), (7, 0)], darker(shade, 0.35))
    crown = [(dice.between(-20, 20), dice.between(48, 84), dice.between(14, 22)) for _ in range(6)] + [(0.0, 66.0, 24.0)]
    for x, y, radius in crown:
        figure.ellipse(x, y, radius * 1.1, radius, shade)
    for x, y, radius in crown:
        figure.ellipse(
            x + figure.lit_side * 4, y + 4.5, radius * 0.7, radius * 0.6, mix(shade, figure.stage.palette.light, 0.3), 0.16
        )


def leafy(figure: Figure) -> None:
    """A great tree in the foreground, in the colours of the season."""
    stage, dice = figure.stage, figure.dice
    seasons = {"autumn": (206, 92, 36), "spring": (244, 176, 200), "winter": (206, 222, 232)}
    shade = figure.shade or seasons.get(stage.scene.time, mix((58, 120, 62), stage.depth(0.9), 0.5))
    if figure.dark:
        shade = mix(shade, stage.depth(1), 0.6)
    bark = darker(stage.depth(1), 0.2)
    for lean, high in ((-16, 62), (18, 60), (2, 70)):
        figure.line(curve([(0, 0), (lean * 0.25, high * 0.5), (lean, high)]), 3.5, bark)
    figure.polygon([(-6, -2), (-1.8, 40), (1.8, 40), (6, -2)], bark)
    masses = [(dice.between(-30, 30), dice.between(50, 92), dice.between(10, 17)) for _ in range(17)]
    for level, tone in enumerate((darker(shade, 0.28), shade, mix(shade, stage.palette.light, 0.32))):
        for x, y, radius in masses:
            size, squeeze = radius * (1 - 0.24 * level), 1 - max(y - 72, 0) * 0.013
            figure.ellipse(
                x * squeeze + figure.lit_side * 3 * level, y + 2.5 * level, size, size * 0.9, tone, 1 if level < 2 else 0.55
            )


def palm(figure: Figure) -> None:
    land = figure.stage.depth(1)
    bark, leaf = darker(mix((120, 84, 52), land, 0.5), 0.1), mix((46, 120, 70), land, 0.5)
    lean = figure.dice.between(10, 22) * (1 if figure.dice.chance(0.5) else -1)
    trunk = curve([(0, 0), (lean * 0.3, 45), (lean, 86)])
    for index, (start, end) in enumerate(pairwise(trunk)):
        figure.line([start, end], 5 - 2.5 * index / len(trunk), bark)
    for frond in range(9):
        angle = math.pi * (0.02 + 0.96 * frond / 8)
        along = -math.cos(angle) * 36
        tip = (lean + along, 86 + math.sin(angle) * 16 - abs(along) * 0.42)
        middle = (lean + along / 2, (86 + tip[1]) / 2 + 8.6)
        upper, lower = curve([(lean, 86), middle, tip]), curve([(lean, 86), (middle[0], middle[1] - 5), tip])
        figure.polygon([*upper, *reversed(lower)], leaf if frond % 2 else lighter(leaf, 0.12))


def cactus(figure: Figure) -> None:
    shade = figure.colored((52, 112, 72), 0.4)
    for x, low, high, thick in ((0, 0, 100, 15), (-24, 34, 72, 10), (24, 46, 86, 10)):
        if x:
            figure.line([(0, low), (x, low)], thick, shade)
            figure.circle(x, low, thick / 2, shade)
        figure.line([(x, low), (x, high)], thick, shade)
        figure.circle(x, high, thick / 2, shade)
        figure.line([(x - thick * 0.16, low), (x - thick * 0.16, high)], thick * 0.12, lighter(shade, 0.35), 0.7)


def flower(figure: Figure) -> None:
    petal = figure.one_of(*_PETALS)
    petal = mix(petal, figure.stage.depth(1), 0.45) if figure.dark else petal
    stem = mix((58, 128, 66), figure.stage.depth(1), 0.35)
    lean = figure.dice.between(-12, 12)
    figure.line(curve([(0, 0), (lean * 0.2, 50), (lean, 100)]), 3.5, stem)
    for side in (-1, 1):
        figure.polygon([(0, 10), (side * 20, 42), (side * 3, 30)], stem)
    for ring, count in ((1.0, 9), (0.66, 7)):
        for number in range(count):
            angle = math.tau * number / count + ring
            shade = petal if ring == 1 else lighter(petal, 0.22)
            figure.circle(lean + 15 * ring * math.cos(angle), 100 + 15 * ring * math.sin(angle), 8.5 * ring, shade)
    figure.circle(lean, 100, 7, (120, 72, 30) if sum(petal) > 420 else (250, 205, 90))


def meadow(stage: Stage, shade: Color | None) -> None:
    """Flowers all over the foreground, the nearer the larger."""
    usual = stage.dice.pick([_PETALS, _PETALS[:2], _PETALS[2:]])
    for number in range(90):
        share = number / 90
        petal = shade or stage.dice.pick(usual)
        petal = mix(petal, stage.depth(1), 0.5) if stage.palette.dark else petal
        x, tall = stage.dice.between(-0.02, 1.02) * stage.width, (2.5 + 9 * share**2) * stage.unit
        foot = stage.horizon + (0.22 + 0.8 * share) * (stage.height - stage.horizon)
        if share > 0.86:
            flower(Figure(stage, x, foot + tall, tall * 1.5, petal))
            continue
        stage.canvas.line([(x, foot), (x, foot - tall)], tall * 0.06, mix((58, 128, 66), stage.depth(1), 0.4))
        for dx, dy in ((-0.14, 0.0), (0.14, 0.0), (0.0, -0.13), (0.0, 0.13)):
            stage.canvas.ellipse(x + dx * tall, foot - tall + dy * tall, tall * 0.15, tall * 0.13, petal)
        stage.canvas.ellipse(x, foot - tall, tall * 0.09, tall * 0.08, (250, 210, 100))


def mushroom(figure: Figure) -> None:
    cap, cream = figure.colored((206, 58, 48), 0.0, 0.3), mix((244, 234, 214), figure.stage.depth(1), 0.25)
    figure.polygon([(-13, 0), (-9, 60), (9, 60), (13, 0)], cream)
    figure.ellipse(0, 55, 42, 8, darker(cream, 0.2))
    dome = [(42 * math.cos(math.pi * step / 16), 55 + 45 * math.sin(math.pi * step / 16)) for step in range(17)]
    figure.polygon(dome, figure.ramp(100, 55, lighter(cap, 0.2), cap))
    for x, y, size in ((-20, 69, 5.5), (5, 85, 6.5), (24, 68, 5), (0, 65, 4)):
        figure.ellipse(x, y, size, size * 0.85, cream)


def pumpkin(figure: Figure) -> None:
    shade, glow = mix((232, 122, 30), figure.stage.depth(1), 0.15), (255, 214, 90)
    for x in (-42, 42, -24, 24, 0):
        figure.ellipse(x, 42, 27, 42, mix(shade, (120, 40, 10), abs(x) * 0.007))
    figure.line(curve([(0, 80), (3, 92), (12, 98)]), 9, (86, 104, 48))
    if figure.dark or figure.stage.scene.time in ("autumn", "dusk"):
        figure.glow(0, 42, 100, glow, 0.4)
        for side in (-1, 1):
            figure.polygon([(side * 10, 46), (side * 30, 46), (side * 22, 62)], glow)
        mouth = [(-34, 34), (-20, 28), (-12, 33), (0, 26), (12, 33), (20, 28), (34, 34), (20, 16), (0, 12), (-20, 16)]
        figure.polygon(mouth, glow)


def grass(stage: Stage, line: list[Point], shade: Color, tall: float = 1.0) -> None:
    """Blades along the foreground."""
    for _ in range(min(int(1.9 * stage.width / stage.unit), 800)):
        index = stage.dice.whole(0, len(line) - 2)
        x = line[index][0] + stage.dice.between(0, 1) * stage.width / 129
        long, lean = stage.dice.between(0.9, 2.6) * tall * stage.unit, stage.dice.between(-0.8, 0.8) * tall * stage.unit
        y = line[index][1] + 0.4 * stage.unit
        wide = 0.18 * stage.unit
        stage.canvas.polygon([(x - wide, y), (x + lean, y - long), (x + wide, y)], shade)
