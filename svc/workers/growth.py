"""What grows in a picture: trees, grass, flowers, mushrooms."""

import math

from svc.workers.canvas import Color, Gradient, Point, curve, darker, lighter, mix
from svc.workers.stage import Stage

_PETALS = ((226, 64, 70), (246, 190, 60), (240, 130, 170), (250, 240, 235), (150, 100, 210))


def pine(stage: Stage, x: float, foot: float, tall: float, shade: Color) -> None:
    """A pine with ragged branches; its lit side is lighter."""
    tiers = 6 if tall > 12 * stage.unit else 4
    half: list[Point] = [(0.0, 0.0)]
    for tier in range(1, tiers + 1):
        reach, low = 0.06 + 0.2 * (tier / tiers) ** 0.9, 0.9 * tier / tiers
        half += [(reach * stage.dice.between(0.85, 1.15), low), (reach * 0.45, low - 0.02)]
    outline = [(x + dx * tall, foot - tall + dy * tall) for dx, dy in half]
    mirrored = [(2 * x - at_x, at_y) for at_x, at_y in reversed(outline)]
    trunk = 0.03 * tall
    stage.canvas.rectangle(x - trunk, foot - 0.14 * tall, x + trunk, foot, darker(shade, 0.3))
    stage.canvas.polygon([*outline, *mirrored], shade)
    if tall > 8 * stage.unit:
        lit = outline if not stage.left_light else mirrored[::-1]
        stage.canvas.polygon([*lit, (x, outline[-1][1])], stage.palette.light, 0.07)
        if stage.scene.time == "winter":
            for at_x, at_y in lit[1::2]:
                stage.canvas.polygon([(x, at_y - 0.13 * tall), (at_x, at_y), (x + (at_x - x) * 0.3, at_y - 0.02 * tall)], (244, 248, 252), 0.85)


def tree(stage: Stage, x: float, foot: float, tall: float, shade: Color) -> None:
    """A broad-leaved tree: a trunk and a crown of round masses, lit from one side."""
    canvas, dice = stage.canvas, stage.dice
    trunk = tall * 0.05
    canvas.polygon([(x - trunk * 1.5, foot), (x - trunk * 0.6, foot - tall * 0.5), (x + trunk * 0.6, foot - tall * 0.5), (x + trunk * 1.5, foot)], darker(shade, 0.35))  # fmt: skip
    crown = [(dice.between(-0.2, 0.2), dice.between(0.48, 0.84), dice.between(0.14, 0.22)) for _ in range(6)] + [(0.0, 0.66, 0.24)]
    for dx, dy, radius in crown:
        canvas.ellipse(x + dx * tall, foot - dy * tall, radius * tall * 1.1, radius * tall, shade)
    if tall > 6 * stage.unit:
        side = -1 if stage.left_light else 1
        for dx, dy, radius in crown:
            canvas.ellipse(x + (dx + side * 0.04) * tall, foot - (dy + 0.045) * tall, radius * tall * 0.72, radius * tall * 0.62, mix(shade, stage.palette.light, 0.5), 0.2)  # fmt: skip


def leafy(stage: Stage, x: float, foot: float, tall: float) -> None:
    """A single tree in the foreground, in the colours of the season."""
    seasons = {"autumn": (206, 92, 36), "spring": (244, 176, 200), "winter": (206, 222, 232)}
    shade = seasons.get(stage.scene.time, mix((58, 120, 62), stage.depth(0.9), 0.5))
    if stage.palette.dark:
        shade = mix(shade, stage.depth(1), 0.6)
    canvas, dice = stage.canvas, stage.dice
    bark = darker(stage.depth(1), 0.2)
    for lean, high in ((-0.16, 0.62), (0.18, 0.6), (0.02, 0.7)):
        points = curve([(x, foot), (x + lean * 0.25 * tall, foot - high * 0.5 * tall), (x + lean * tall, foot - high * tall)])
        canvas.line(points, tall * 0.035, bark)
    canvas.polygon([(x - tall * 0.06, foot + tall * 0.02), (x - tall * 0.018, foot - tall * 0.4), (x + tall * 0.018, foot - tall * 0.4), (x + tall * 0.06, foot + tall * 0.02)], bark)  # fmt: skip
    side = -1 if stage.left_light else 1
    masses = [(dice.between(-0.3, 0.3), dice.between(0.5, 0.92), dice.between(0.1, 0.17)) for _ in range(17)]
    for level, tone in enumerate((darker(shade, 0.28), shade, mix(shade, stage.palette.light, 0.32))):
        for dx, dy, radius in masses:
            size = radius * (1 - 0.24 * level)
            squeeze = 1 - max(dy - 0.72, 0) * 1.3
            canvas.ellipse(x + (dx * squeeze + side * 0.03 * level) * tall, foot - (dy + 0.025 * level) * tall, size * tall, size * tall * 0.9, tone, 1 if level < 2 else 0.55)  # fmt: skip


def palm(stage: Stage, x: float, foot: float, tall: float) -> None:
    bark, leaf = darker(mix((120, 84, 52), stage.depth(1), 0.5), 0.1), mix((46, 120, 70), stage.depth(1), 0.5)
    lean = stage.dice.between(0.1, 0.22) * (1 if stage.dice.chance(0.5) else -1)
    trunk = curve([(x, foot), (x + lean * 0.3 * tall, foot - 0.45 * tall), (x + lean * tall, foot - 0.86 * tall)])
    for index, (at, following) in enumerate(zip(trunk, trunk[1:], strict=False)):
        stage.canvas.line([at, following], tall * (0.05 - 0.025 * index / len(trunk)), bark)
    top_x, top_y = trunk[-1]
    for frond in range(9):
        angle = math.pi * (0.02 + 0.96 * frond / 8)
        reach = tall * 0.36
        tip = (top_x - math.cos(angle) * reach, top_y - math.sin(angle) * reach * 0.45 + reach * 0.42 * abs(math.cos(angle)))
        middle = ((top_x + tip[0]) / 2, (top_y + tip[1]) / 2 - reach * 0.24)
        upper, lower = curve([(top_x, top_y), middle, tip]), curve([(top_x, top_y), (middle[0], middle[1] + reach * 0.14), tip])
        stage.canvas.polygon([*upper, *reversed(lower)], leaf if frond % 2 else lighter(leaf, 0.12))


def cactus(stage: Stage, x: float, foot: float, tall: float) -> None:
    shade = mix((52, 112, 72), stage.depth(1), 0.4)
    for dx, low, high, bend in ((0.0, 0.0, 1.0, 0.0), (-0.24, 0.34, 0.72, 1.0), (0.24, 0.46, 0.86, -1.0)):
        thick = tall * (0.15 if dx == 0 else 0.1)
        points = [(x + dx * tall, foot - low * tall), (x + dx * tall, foot - high * tall)]
        if bend:
            stage.canvas.line([(x, foot - low * tall), points[0]], thick, shade)
            stage.canvas.ellipse(*points[0], thick / 2, thick / 2, shade)
        stage.canvas.line(points, thick, shade)
        stage.canvas.ellipse(*points[1], thick / 2, thick / 2, shade)
        stage.canvas.line([(at_x - thick * 0.16, at_y) for at_x, at_y in points], thick * 0.12, lighter(shade, 0.35), 0.7)


def flower(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, dice = stage.canvas, stage.dice
    petal = dice.pick(stage.scene.shades) if stage.scene.shades else dice.pick(_PETALS)
    petal = mix(petal, stage.depth(1), 0.45) if stage.palette.dark else petal
    stem = mix((58, 128, 66), stage.depth(1), 0.35)
    lean = dice.between(-0.12, 0.12) * tall
    stalk = curve([(x, foot), (x + lean * 0.2, foot - tall * 0.5), (x + lean, foot - tall)])
    canvas.line(stalk, tall * 0.035, stem)
    for side in (-1, 1):
        canvas.polygon([(x, foot - tall * 0.1), (x + side * tall * 0.2, foot - tall * 0.42), (x + side * tall * 0.03, foot - tall * 0.3)], stem)
    head_x, head_y = stalk[-1]
    for ring, count in ((1.0, 9), (0.66, 7)):
        for number in range(count):
            angle = math.tau * number / count + ring
            reach = tall * 0.15 * ring
            at = (head_x + math.cos(angle) * reach, head_y + math.sin(angle) * reach)
            canvas.ellipse(*at, tall * 0.085 * ring, tall * 0.085 * ring, petal if ring == 1 else lighter(petal, 0.22))
    canvas.ellipse(head_x, head_y, tall * 0.07, tall * 0.07, (120, 72, 30) if sum(petal) > 420 else (250, 205, 90))


def mushroom(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas = stage.canvas
    cap = stage.scene.shades[0] if stage.scene.shades else (206, 58, 48)
    cap = mix(cap, stage.depth(1), 0.3) if stage.palette.dark else cap
    cream = mix((244, 234, 214), stage.depth(1), 0.25)
    canvas.polygon([(x - tall * 0.13, foot), (x - tall * 0.09, foot - tall * 0.6), (x + tall * 0.09, foot - tall * 0.6), (x + tall * 0.13, foot)], cream)
    top = foot - tall * 0.55
    dome = [(x + math.cos(math.pi * step / 16) * tall * 0.42, top - math.sin(math.pi * step / 16) * tall * 0.45) for step in range(17)]
    canvas.ellipse(x, top, tall * 0.42, tall * 0.08, darker(cream, 0.2))
    canvas.polygon(dome, Gradient(top - tall * 0.45, top, (lighter(cap, 0.2), cap)))
    for dx, dy, size in ((-0.2, 0.14, 0.055), (0.05, 0.3, 0.065), (0.24, 0.13, 0.05), (0.0, 0.1, 0.04)):
        canvas.ellipse(x + dx * tall, top - dy * tall, size * tall, size * tall * 0.85, cream)


def grass(stage: Stage, line: list[Point], shade: Color, tall: float = 1.0) -> None:
    """Blades along the foreground."""
    for _ in range(int(190 * stage.width / (100 * stage.unit))):
        index = stage.dice.whole(0, len(line) - 2)
        x = line[index][0] + stage.dice.between(0, 1) * stage.width / 129
        long, lean = stage.dice.between(0.9, 2.6) * tall * stage.unit, stage.dice.between(-0.8, 0.8) * tall * stage.unit
        y = line[index][1] + 0.4 * stage.unit
        wide = 0.18 * stage.unit
        stage.canvas.polygon([(x - wide, y), (x + lean, y - long), (x + wide, y)], shade)
