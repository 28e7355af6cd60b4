"""Pictures of prompts that name nothing that can be seen: compositions of discs, arches, waves, rays and tiles."""

import math

from svc.builtin.painter.canvas import Canvas, Color, Gradient, color, curve, darker, disc, lighter, mix, without
from svc.builtin.painter.scene import Dice, Scene

_SCHEMES = [
    "#f4ead7 #e4572e #f3a712 #29335c #669bbc #1b1b2f", "#10142b #f25f5c #ffe066 #247ba0 #70c1b3 #f7fff7",
    "#fdf6ec #264653 #2a9d8f #e9c46a #f4a261 #e76f51", "#1a1423 #b75d69 #eacdc2 #774c60 #372549 #f2e2d2",
    "#eef4ed #134074 #8da9c4 #0b2545 #ef6f6c #f6ae2d", "#fff1e6 #5f0f40 #9a031e #fb8b24 #e36414 #0f4c5c",
    "#0d1b2a #778da9 #e0e1dd #ee964b #f95738 #415a77", "#f7f3e3 #6f9283 #8d9f87 #cdc6a5 #696d7d #f0785a",
]  # fmt: skip


def compose(canvas: Canvas, scene: Scene) -> None:
    dice = scene.dice
    ground, *shades = (color(text) for text in dice.pick(_SCHEMES).split())
    for number, shade in enumerate(scene.shades[:3]):
        shades[number] = shade
    draw = dice.pick([_discs, _arches, _waves, _rays, _tiles, _orbits])
    draw(canvas, dice, ground, shades)


def _background(canvas: Canvas, dice: Dice, ground: Color, shade: Color) -> float:
    canvas.rectangle(
        0, 0, canvas.width, canvas.height, Gradient(0, canvas.height, (lighter(ground, 0.06), mix(ground, shade, 0.12)))
    )
    x, y = dice.between(0.2, 0.8) * canvas.width, dice.between(0.2, 0.8) * canvas.height
    canvas.glow(x, y, max(canvas.width, canvas.height) * 0.7, lighter(ground, 0.5), 0.3)
    return min(canvas.width, canvas.height) / 100


def _discs(canvas: Canvas, dice: Dice, ground: Color, shades: list[Color]) -> None:
    unit = _background(canvas, dice, ground, shades[0])
    for number in range(16):
        x, y = dice.between(-0.05, 1.05) * canvas.width, dice.between(-0.05, 1.05) * canvas.height
        radius, shade = dice.between(4, 30) * unit * (1 if number < 7 else 0.5), dice.pick(shades)
        style = dice.whole(0, 3)
        if style == 0:
            canvas.ellipse(x, y, radius, radius, Gradient(y - radius, y + radius, (lighter(shade, 0.25), shade)), 0.86)
        elif style == 1:
            for ring in range(4):
                outer = radius * (1 - ring * 0.25)
                canvas.fill(
                    y - radius, y + radius, without(disc(x, y, outer, outer), disc(x, y, outer * 0.86, outer * 0.86)), shade, 0.9
                )
        elif style == 2:
            half = disc(x, y, radius, radius)
            canvas.fill(y - radius if dice.chance(0.5) else y, y + radius, half, shade, 0.92)
        else:
            canvas.ellipse(x, y, radius, radius, shade, 0.38)
            canvas.ellipse(x, y, radius * 0.3, radius * 0.3, dice.pick(shades))
    for _ in range(7):
        x, y, angle = dice.between(0, 1) * canvas.width, dice.between(0, 1) * canvas.height, dice.between(0, math.pi)
        reach = dice.between(15, 50) * unit
        ends = [
            (x - math.cos(angle) * reach, y - math.sin(angle) * reach),
            (x + math.cos(angle) * reach, y + math.sin(angle) * reach),
        ]
        canvas.line(ends, dice.between(0.25, 0.9) * unit, dice.pick(shades))


def _arches(canvas: Canvas, dice: Dice, ground: Color, shades: list[Color]) -> None:
    unit = _background(canvas, dice, ground, shades[1])
    for _ in range(6):
        x, foot = dice.between(0.05, 0.95) * canvas.width, canvas.height * dice.between(0.55, 1.05)
        outer, bands = dice.between(18, 38) * unit, dice.whole(3, 6)
        for band in range(bands):
            radius = outer * (1 - band / bands)
            shade = shades[(band + bands) % len(shades)] if band < bands - 1 else ground
            canvas.fill(foot - radius, foot, disc(x, foot, radius, radius), shade)
            canvas.rectangle(x - radius, foot, x + radius, foot + outer * 0.6, shade)
    x, y = dice.between(0.2, 0.8) * canvas.width, dice.between(0.14, 0.3) * canvas.height
    radius = dice.between(8, 13) * unit
    canvas.ellipse(x, y, radius, radius, dice.pick(shades))


def _waves(canvas: Canvas, dice: Dice, ground: Color, shades: list[Color]) -> None:
    unit = _background(canvas, dice, ground, shades[2])
    radius = dice.between(12, 20) * unit
    x, y = dice.between(0.25, 0.75) * canvas.width, canvas.height * dice.between(0.2, 0.34)
    canvas.glow(x, y, radius * 2.4, shades[1], 0.4)
    canvas.ellipse(x, y, radius, radius, Gradient(y - radius, y + radius, (shades[1], shades[0])))
    count = 11
    for layer in range(count):
        base = canvas.height * (0.3 + 0.72 * layer / count)
        tall, often, phase = dice.between(3, 8) * unit, dice.between(0.8, 2.4), dice.between(0, math.tau)
        line = [
            (canvas.width * step / 60, base + tall * math.sin(math.tau * often * step / 60 + phase)) for step in range(-1, 62)
        ]
        shade = mix(shades[layer % len(shades)], ground, 0.32 * (1 - layer / count))
        paint = Gradient(base - tall, base + 22 * unit, (lighter(shade, 0.12), darker(shade, 0.12)))
        canvas.polygon([(-canvas.width, canvas.height * 2), *line, (canvas.width * 2, canvas.height * 2)], paint)
        canvas.line(line, 0.35 * unit, lighter(shade, 0.45), 0.7)


def _rays(canvas: Canvas, dice: Dice, ground: Color, shades: list[Color]) -> None:
    unit = _background(canvas, dice, ground, shades[0])
    x, y = canvas.width * dice.between(0.3, 0.7), canvas.height * dice.between(0.45, 0.75)
    count, far = 2 * dice.whole(9, 14), max(canvas.width, canvas.height) * 1.5
    turn = dice.between(0, 1)
    for ray in range(0, count, 2):
        ends = [
            (
                x + math.cos(math.tau * (ray + step + turn) / count) * far,
                y + math.sin(math.tau * (ray + step + turn) / count) * far,
            )
            for step in (0, 1)
        ]
        canvas.polygon([(x, y), *ends], shades[ray // 2 % len(shades)], 0.72)
    for ring, shade in zip((26, 20, 14, 8), (ground, shades[0], shades[1], ground), strict=True):
        canvas.ellipse(x, y, ring * unit, ring * unit, shade)
    petals = dice.whole(7, 12)
    for petal in range(petals):
        angle = math.tau * petal / petals
        canvas.ellipse(x + math.cos(angle) * 32 * unit, y + math.sin(angle) * 32 * unit, 2.4 * unit, 2.4 * unit, shades[2])


def _tiles(canvas: Canvas, dice: Dice, ground: Color, shades: list[Color]) -> None:
    _background(canvas, dice, ground, shades[0])
    count = dice.whole(5, 7)
    size = min(canvas.width, canvas.height) / count
    for row in range(math.ceil(canvas.height / size)):
        for column in range(math.ceil(canvas.width / size)):
            left, top = column * size, row * size
            first, second = dice.pick(shades), dice.pick([*shades, ground])
            canvas.rectangle(left, top, left + size, top + size, second)
            style = dice.whole(0, 5)
            corner_x, corner_y = left + size * dice.whole(0, 1), top + size * dice.whole(0, 1)
            if style in (0, 1):  # a quarter of a disc

                def clipped(
                    line: float, left: float = left, x: float = corner_x, y: float = corner_y
                ) -> list[tuple[float, float]]:
                    return [(max(start, left), min(end, left + size)) for start, end in disc(x, y, size, size)(line)]

                canvas.fill(top, top + size, clipped, first)
            elif style == 2:
                canvas.ellipse(left + size / 2, top + size / 2, size * 0.36, size * 0.36, first)
            elif style == 3:
                canvas.polygon([(left, top), (left + size, top), (corner_x, top + size)], first)
            elif style == 4:
                for stripe in range(3):
                    canvas.rectangle(
                        left, top + size * (0.08 + 0.33 * stripe), left + size, top + size * (0.24 + 0.33 * stripe), first
                    )


def _orbits(canvas: Canvas, dice: Dice, ground: Color, shades: list[Color]) -> None:
    unit = _background(canvas, dice, ground, shades[0])
    x, y = canvas.width * dice.between(0.35, 0.65), canvas.height * dice.between(0.35, 0.65)
    canvas.ellipse(x, y, 10 * unit, 10 * unit, Gradient(y - 10 * unit, y + 10 * unit, (lighter(shades[0], 0.3), shades[0])))
    for orbit in range(6):
        radius, shade = (18 + 8.5 * orbit) * unit, shades[orbit % len(shades)]
        canvas.fill(
            y - radius,
            y + radius,
            without(disc(x, y, radius, radius), disc(x, y, radius - 0.4 * unit, radius - 0.4 * unit)),
            shade,
            0.8,
        )
        for _ in range(dice.whole(1, 3)):
            angle, size = dice.between(0, math.tau), dice.between(1.2, 4.6) * unit
            at_x, at_y = x + math.cos(angle) * radius, y + math.sin(angle) * radius
            canvas.ellipse(at_x, at_y, size, size, shade)
            canvas.ellipse(at_x - size * 0.25, at_y - size * 0.25, size * 0.42, size * 0.42, lighter(shade, 0.45), 0.7)
    arc = [(x + math.cos(step / 12) * (70 - step) * unit, y + math.sin(step / 12) * (70 - step) * unit) for step in range(60)]
    canvas.line(curve(arc, 2), 0.6 * unit, shades[-1], 0.6)
