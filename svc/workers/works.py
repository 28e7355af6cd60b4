"""What people have made, in a picture: houses, towers, boats, vehicles, machines. Each stands with its foot at (x, foot), `tall` high."""

import math

from svc.workers.canvas import Color, Gradient, curve, darker, disc, lighter, mix, without
from svc.workers.stage import Stage

_WINDOW = (255, 208, 112)


def lighthouse(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    red = stage.scene.shades[0] if stage.scene.shades else (204, 52, 46)
    white, red = (mix(shade, stage.depth(1), 0.42 if stage.palette.dark else 0.12) for shade in ((246, 242, 232), red))
    lamp = (x, foot - 84 * unit)
    if stage.palette.dark or stage.scene.time in ("dusk", "sunset", "storm") or "fog" in stage.scene.weather:
        for side in (-1, 1):
            for part in range(7):
                spread = (9 + 3 * part) * unit
                reach = stage.width * (0.3 + 0.16 * part)
                beam = [(lamp[0], lamp[1]), (lamp[0] + side * reach, lamp[1] - spread - 8 * unit), (lamp[0] + side * reach, lamp[1] + spread - 8 * unit)]
                canvas.polygon(beam, (255, 240, 180), 0.055)
        canvas.glow(*lamp, 26 * unit, (255, 236, 160), 0.85)

    def half(share: float) -> float:
        return (10.5 - 4.6 * share) * unit

    for band in range(6):
        low, high = band / 6, (band + 1) / 6
        bottom, top = foot - low * 74 * unit, foot - high * 74 * unit
        canvas.polygon([(x - half(low), bottom), (x - half(high), top), (x + half(high), top), (x + half(low), bottom)], white if band % 2 else red)
    side = 1 if stage.left_light else -1
    canvas.polygon([(x + side * half(0), foot), (x + side * half(1), foot - 74 * unit), (x + side * unit, foot - 74 * unit), (x + side * 2.5 * unit, foot)], (12, 14, 34), 0.24)  # fmt: skip
    dark = darker(stage.depth(1), 0.35)
    canvas.rectangle(x - 8.6 * unit, foot - 77 * unit, x + 8.6 * unit, foot - 74 * unit, dark)
    for rail in range(-4, 5):
        canvas.rectangle(x + rail * 2 * unit - 0.25 * unit, foot - 80 * unit, x + rail * 2 * unit + 0.25 * unit, foot - 77 * unit, dark)
    canvas.rectangle(x - 5 * unit, foot - 88 * unit, x + 5 * unit, foot - 77 * unit, (255, 232, 150))
    for post in (-5.0, -1.8, 1.4, 4.6):
        canvas.rectangle(x + post * unit, foot - 88 * unit, x + (post + 0.6) * unit, foot - 77 * unit, dark)
    canvas.polygon([(x - 6.5 * unit, foot - 88 * unit), (x, foot - 97 * unit), (x + 6.5 * unit, foot - 88 * unit)], red)
    canvas.line([(x, foot - 97 * unit), (x, foot - 101 * unit)], 0.7 * unit, dark)
    canvas.polygon([(x - 2.8 * unit, foot), (x - 2.8 * unit, foot - 7 * unit), (x, foot - 9.5 * unit), (x + 2.8 * unit, foot - 7 * unit), (x + 2.8 * unit, foot)], dark)
    for number in range(2):
        canvas.rectangle(x - 1.2 * unit, foot - (30 + 24 * number) * unit, x + 1.2 * unit, foot - (26 + 24 * number) * unit, dark)


def house(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    wall = mix(stage.dice.pick(stage.scene.shades) if stage.scene.shades else stage.dice.pick([(236, 222, 198), (206, 120, 92), (160, 178, 190)]), stage.depth(1), 0.5 if stage.palette.dark else 0.22)  # fmt: skip
    roof = mix((128, 52, 42), stage.depth(1), 0.4)
    canvas.rectangle(x + 28 * unit, foot - 104 * unit, x + 40 * unit, foot - 66 * unit, darker(wall, 0.3))
    for puff in range(4):
        canvas.ellipse(x + (35 + 6 * puff) * unit, foot - (112 + 11 * puff) * unit, (5 + 2.5 * puff) * unit, (4 + 1.6 * puff) * unit, stage.haze, 0.4 - 0.08 * puff)
    canvas.rectangle(x - 60 * unit, foot - 50 * unit, x + 60 * unit, foot + 3 * unit, Gradient(foot - 50 * unit, foot, (wall, darker(wall, 0.18))))
    canvas.polygon([(x - 70 * unit, foot - 48 * unit), (x - 46 * unit, foot - 94 * unit), (x + 46 * unit, foot - 94 * unit), (x + 70 * unit, foot - 48 * unit)], roof)
    canvas.polygon([(x - 70 * unit, foot - 48 * unit), (x - 46 * unit, foot - 94 * unit), (x - 40 * unit, foot - 94 * unit), (x - 62 * unit, foot - 48 * unit)], lighter(roof, 0.25))
    if stage.scene.time == "winter":
        canvas.polygon([(x - 72 * unit, foot - 46 * unit), (x - 47 * unit, foot - 97 * unit), (x + 47 * unit, foot - 97 * unit), (x + 72 * unit, foot - 46 * unit), (x + 40 * unit, foot - 56 * unit), (x, foot - 50 * unit), (x - 40 * unit, foot - 58 * unit)], (245, 249, 252))  # fmt: skip
    warm = stage.palette.dark or stage.scene.time not in ("day", "spring")
    glass = _WINDOW if warm else (176, 206, 222)
    for at in (-42, 24):
        if warm:
            canvas.glow(x + (at + 8) * unit, foot - 30 * unit, 30 * unit, _WINDOW, 0.4)
        canvas.rectangle(x + at * unit, foot - 40 * unit, x + (at + 18) * unit, foot - 19 * unit, glass)
        canvas.rectangle(x + (at + 8.3) * unit, foot - 40 * unit, x + (at + 9.7) * unit, foot - 19 * unit, darker(wall, 0.4))
        canvas.rectangle(x + at * unit, foot - 30.3 * unit, x + (at + 18) * unit, foot - 29 * unit, darker(wall, 0.4))
    canvas.rectangle(x - 9 * unit, foot - 35 * unit, x + 9 * unit, foot + 3 * unit, darker(roof, 0.35))
    canvas.ellipse(x + 5 * unit, foot - 16 * unit, 1.4 * unit, 1.4 * unit, _WINDOW)


def castle(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    stone = mix((150, 146, 156), stage.depth(0.9), 0.55)
    roof = mix(stage.scene.shades[0] if stage.scene.shades else (86, 74, 150), stage.depth(1), 0.3)
    for at, wide, high, pointed in ((-46, 20, 62, True), (46, 20, 58, True), (-20, 17, 78, True), (24, 16, 70, True), (0, 22, 96, True), (0, 100, 36, False)):
        left, right, top = x + (at - wide / 2) * unit, x + (at + wide / 2) * unit, foot - high * unit
        shade = stone if at else lighter(stone, 0.06)
        canvas.rectangle(left, top, right, foot + 4 * unit, Gradient(top, foot, (lighter(shade, 0.08), darker(shade, 0.22))))
        edge = left if stage.left_light else right - 2 * unit
        canvas.rectangle(edge, top, edge + 2 * unit, foot, stage.palette.light, 0.25)
        if pointed:
            canvas.polygon([(left - 2 * unit, top), ((left + right) / 2, top - wide * 1.5 * unit), (right + 2 * unit, top)], roof)
            canvas.line([((left + right) / 2, top - wide * 1.5 * unit), ((left + right) / 2, top - (wide * 1.5 + 9) * unit)], 0.8 * unit, darker(stone, 0.5))
            tip = top - (wide * 1.5 + 9) * unit
            canvas.polygon([((left + right) / 2, tip), ((left + right) / 2 + 9 * unit, tip + 2.5 * unit), ((left + right) / 2, tip + 5 * unit)], (206, 62, 62))
            canvas.rectangle((left + right) / 2 - 1.8 * unit, top + 7 * unit, (left + right) / 2 + 1.8 * unit, top + 14 * unit, _WINDOW)
        else:
            for tooth in range(12):
                canvas.rectangle(left + tooth * 8.7 * unit, top - 5 * unit, left + (tooth * 8.7 + 4.6) * unit, top, shade)
    arch = [(x - 8 * unit, foot + 4 * unit), (x - 8 * unit, foot - 14 * unit), (x - 4 * unit, foot - 20 * unit), (x + 4 * unit, foot - 20 * unit), (x + 8 * unit, foot - 14 * unit), (x + 8 * unit, foot + 4 * unit)]  # fmt: skip
    canvas.polygon(arch, darker(stone, 0.65))


def church(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    wall, roof = mix((232, 226, 214), stage.depth(1), 0.35), mix((96, 66, 62), stage.depth(1), 0.4)
    canvas.rectangle(x - 8 * unit, foot - 32 * unit, x + 42 * unit, foot + 2 * unit, wall)
    canvas.polygon([(x - 10 * unit, foot - 30 * unit), (x, foot - 52 * unit), (x + 36 * unit, foot - 52 * unit), (x + 46 * unit, foot - 30 * unit)], roof)
    canvas.rectangle(x - 24 * unit, foot - 62 * unit, x - 2 * unit, foot + 2 * unit, lighter(wall, 0.1))
    canvas.polygon([(x - 26 * unit, foot - 60 * unit), (x - 13 * unit, foot - 96 * unit), (x, foot - 60 * unit)], roof)
    canvas.line([(x - 13 * unit, foot - 96 * unit), (x - 13 * unit, foot - 106 * unit)], 1.2 * unit, darker(roof, 0.4))
    canvas.line([(x - 16.5 * unit, foot - 102 * unit), (x - 9.5 * unit, foot - 102 * unit)], 1.2 * unit, darker(roof, 0.4))
    for at in (2, 16, 30):
        canvas.ellipse(x + at * unit, foot - 20 * unit, 3 * unit, 7 * unit, _WINDOW)
    canvas.ellipse(x - 13 * unit, foot - 50 * unit, 4 * unit, 4 * unit, darker(wall, 0.5))


def windmill(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    body, dark = mix((206, 186, 160), stage.depth(1), 0.4), darker(stage.depth(1), 0.15)
    canvas.polygon([(x - 20 * unit, foot + 2 * unit), (x - 12 * unit, foot - 62 * unit), (x + 12 * unit, foot - 62 * unit), (x + 20 * unit, foot + 2 * unit)], body)
    canvas.polygon([(x, foot + 2 * unit), (x + 1 * unit, foot - 62 * unit), (x + 12 * unit, foot - 62 * unit), (x + 20 * unit, foot + 2 * unit)], (20, 16, 30), 0.18)
    canvas.polygon([(x - 14 * unit, foot - 60 * unit), (x, foot - 78 * unit), (x + 14 * unit, foot - 60 * unit)], mix((120, 60, 46), stage.depth(1), 0.3))
    canvas.rectangle(x - 4.5 * unit, foot - 15 * unit, x + 4.5 * unit, foot + 2 * unit, dark)
    canvas.rectangle(x - 3 * unit, foot - 42 * unit, x + 3 * unit, foot - 34 * unit, _WINDOW)
    hub, turn = (x, foot - 64 * unit), stage.dice.between(0.2, 1.2)
    for blade in range(4):
        angle = turn + blade * math.pi / 2
        along, across = (math.cos(angle), math.sin(angle)), (-math.sin(angle), math.cos(angle))
        tip = (hub[0] + along[0] * 44 * unit, hub[1] + along[1] * 44 * unit)
        canvas.line([hub, tip], 1.4 * unit, dark)
        corners = [(8, 0), (44, 0), (44, 9), (8, 9)]
        canvas.polygon([(hub[0] + (along[0] * far + across[0] * off) * unit, hub[1] + (along[1] * far + across[1] * off) * unit) for far, off in corners], (244, 236, 220), 0.62)  # fmt: skip
        for rib in range(1, 6):
            far = 8 + 6 * rib
            canvas.line([(hub[0] + along[0] * far * unit, hub[1] + along[1] * far * unit), (hub[0] + (along[0] * far + across[0] * 9) * unit, hub[1] + (along[1] * far + across[1] * 9) * unit)], 0.6 * unit, dark)  # fmt: skip
    canvas.ellipse(*hub, 2.6 * unit, 2.6 * unit, dark)


def bridge(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, stage.unit
    shade = mix(stage.scene.shades[0] if stage.scene.shades else (192, 78, 52), stage.depth(0.9), 0.3)
    deck, top = stage.horizon + 6 * unit, stage.horizon - tall * 0.62
    towers = (stage.width * 0.24, stage.width * 0.76)
    for tower in towers:
        for side in (-1.7, 1.0):
            canvas.rectangle(tower + side * unit, top, tower + (side + 0.8) * unit, deck + 12 * unit, shade)
        for bar in range(5):
            canvas.rectangle(tower - 1.7 * unit, top + bar * (deck - top) / 4.4, tower + 1.8 * unit, top + bar * (deck - top) / 4.4 + 0.8 * unit, shade)
    points = [(-0.28 * stage.width, deck - unit), (towers[0], top), (stage.width / 2, deck - 2.5 * unit), (towers[1], top), (1.28 * stage.width, deck - unit)]
    for (x1, y1), (x2, y2) in zip(points, points[1:], strict=False):
        cable = []
        for step in range(25):
            share = step / 24
            bend = share**2 if y2 > y1 and abs(x2 - x1) < stage.width * 0.6 else share
            bend = 1 - (1 - share) ** 2 if y2 > y1 else share**2
            cable.append((x1 + (x2 - x1) * share, y1 + (y2 - y1) * bend))
        canvas.line(cable, 0.5 * unit, shade)
        for at_x, at_y in cable[1::2]:
            canvas.line([(at_x, at_y), (at_x, deck)], 0.16 * unit, shade, 0.8)
    canvas.rectangle(0, deck, stage.width, deck + 1.5 * unit, darker(shade, 0.25))


def pyramid(stage: Stage, x: float, foot: float, tall: float) -> None:
    sand = mix((226, 180, 110), stage.depth(0.7), 0.35)
    ridge_x, base = x + tall * (0.2 if stage.left_light else -0.2), foot + tall * 0.06
    left, right, top = (x - tall * 0.95, foot), (x + tall * 0.95, foot), (x, foot - tall)
    bright, dim = lighter(sand, 0.12), darker(sand, 0.36)
    stage.canvas.polygon([left, top, (ridge_x, base)], bright if stage.left_light else dim)
    stage.canvas.polygon([right, top, (ridge_x, base)], dim if stage.left_light else bright)
    for course in range(1, 12):
        share = course / 12
        y = foot - tall * (1 - share)
        edge = (x + (ridge_x - x) * share, y + (base - foot) * share)
        stage.canvas.line([(x - tall * 0.95 * share, y), edge, (x + tall * 0.95 * share, y)], 0.14 * stage.unit, darker(sand, 0.5), 0.35)


def boat(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    hull = mix(stage.scene.shades[0] if stage.scene.shades else (150, 54, 46), stage.depth(1), 0.3)
    cloth = mix((250, 244, 230), stage.palette.sky[2], 0.25)
    for part in range(5):  # its reflection
        canvas.ellipse(x + stage.dice.between(-5, 5) * unit, foot + (9 + 6 * part) * unit, (24 - 3.5 * part) * unit, 1.3 * unit, cloth, 0.34 - 0.05 * part)
    canvas.line([(x, foot - 4 * unit), (x, foot - 98 * unit)], 1.6 * unit, darker(hull, 0.5))
    sail = curve([(x + 2 * unit, foot - 94 * unit), (x + 27 * unit, foot - 50 * unit), (x + 38 * unit, foot - 16 * unit)])
    canvas.polygon([(x + 2 * unit, foot - 94 * unit), *sail, (x + 2 * unit, foot - 14 * unit)], cloth)
    jib = curve([(x - 2 * unit, foot - 88 * unit), (x - 17 * unit, foot - 48 * unit), (x - 33 * unit, foot - 14 * unit)])
    canvas.polygon([*jib, (x - 2 * unit, foot - 16 * unit)], mix(cloth, stage.palette.near, 0.2))
    body = curve([(x - 40 * unit, foot - 10 * unit), (x - 30 * unit, foot + 3 * unit), (x, foot + 6 * unit), (x + 32 * unit, foot + 3 * unit), (x + 46 * unit, foot - 12 * unit)])
    canvas.polygon([*body, (x, foot - 8 * unit)], Gradient(foot - 12 * unit, foot + 6 * unit, (lighter(hull, 0.12), darker(hull, 0.3))))


def balloon(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    first = stage.dice.pick(stage.scene.shades) if stage.scene.shades else stage.dice.pick([(214, 70, 62), (240, 160, 60), (70, 140, 190), (130, 90, 170)])
    second = mix((250, 238, 214), first, 0.12)
    middle = foot - 66 * unit

    def envelope(line: float, share: float) -> float:
        if line <= middle:
            return 30 * unit * share * math.sqrt(max(1 - ((line - middle) / (34 * unit)) ** 2, 0))
        fall = (line - middle) / (42 * unit)
        return 30 * unit * share * max(1 - 0.78 * fall**1.45, 0)

    shares = (1.0, 0.78, 0.48, 0.16)
    for number, share in enumerate(shares):
        paint = first if number % 2 == 0 else second
        canvas.fill(middle - 34 * unit, middle + 42 * unit, lambda line, share=share: ((x - envelope(line, share), x + envelope(line, share)),), paint)  # type: ignore[misc]
    side = 0.42 if stage.left_light else -0.42
    canvas.fill(middle - 34 * unit, middle + 42 * unit, lambda line: (tuple(sorted((x + envelope(line, side), x + envelope(line, math.copysign(1, side))))),), (20, 10, 40), 0.16)  # type: ignore[arg-type, return-value]  # fmt: skip
    for at in (-5.5, 5.5):
        canvas.line([(x + at * 1.15 * unit, middle + 41 * unit), (x + at * 0.8 * unit, foot - 10 * unit)], 0.5 * unit, darker(stage.palette.near, 0.2))
    canvas.rectangle(x - 5 * unit, foot - 11 * unit, x + 5 * unit, foot - 2 * unit, (116, 74, 42))
    canvas.rectangle(x - 5.6 * unit, foot - 12.2 * unit, x + 5.6 * unit, foot - 10.2 * unit, (84, 52, 30))


def rocket(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    accent = stage.scene.shades[0] if stage.scene.shades else (214, 62, 56)
    for number, shade in enumerate(((255, 120, 40), (255, 196, 70), (255, 246, 210))):
        wide, long = (11 - 3 * number) * unit, (44 - 11 * number) * unit
        flame = curve([(x - wide, foot - 16 * unit), (x - wide * 0.7, foot + long * 0.25), (x, foot + long), (x + wide * 0.7, foot + long * 0.25), (x + wide, foot - 16 * unit)])
        canvas.polygon(flame, shade, 0.85)
    canvas.glow(x, foot + 6 * unit, 40 * unit, (255, 170, 80), 0.5)
    for side in (-1, 1):
        canvas.polygon([(x + side * 9 * unit, foot - 40 * unit), (x + side * 26 * unit, foot - 8 * unit), (x + side * 24 * unit, foot - 4 * unit), (x + side * 8 * unit, foot - 16 * unit)], accent)
    half = curve([(x, foot - 100 * unit), (x + 9 * unit, foot - 82 * unit), (x + 14 * unit, foot - 55 * unit), (x + 13 * unit, foot - 30 * unit), (x + 8 * unit, foot - 14 * unit)])
    mirrored = [(2 * x - at_x, at_y) for at_x, at_y in reversed(half)]
    canvas.polygon([*half, *mirrored], (238, 240, 244))
    shaded = half if stage.left_light else mirrored
    canvas.polygon([*shaded, *((x + (at_x - x) * 0.4, at_y) for at_x, at_y in reversed(shaded))], (60, 70, 110), 0.26)
    nose = [point for point in half if point[1] < foot - 80 * unit]
    canvas.polygon([*nose, *((2 * x - at_x, at_y) for at_x, at_y in reversed(nose))], accent)
    canvas.ellipse(x, foot - 62 * unit, 7 * unit, 7 * unit, (70, 80, 110))
    canvas.ellipse(x, foot - 62 * unit, 5.2 * unit, 5.2 * unit, (130, 206, 240))
    canvas.rectangle(x - 8 * unit, foot - 18 * unit, x + 8 * unit, foot - 12 * unit, (80, 84, 100))


def ufo(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit, y = stage.canvas, tall / 100, foot - tall * 0.7
    canvas.polygon([(x - 16 * unit, y), (x + 16 * unit, y), (x + 52 * unit, y + 130 * unit), (x - 52 * unit, y + 130 * unit)], (190, 255, 190), 0.18)
    canvas.ellipse(x, y - 12 * unit, 24 * unit, 22 * unit, (150, 220, 235), 0.9)
    canvas.ellipse(x, y, 58 * unit, 15 * unit, Gradient(y - 15 * unit, y + 15 * unit, ((196, 202, 214), (84, 90, 112))))
    for light in range(-3, 4):
        canvas.ellipse(x + light * 15 * unit, y + 5 * unit, 2.6 * unit, 2.6 * unit, (255, 236, 140))


def tent(stage: Stage, x: float, foot: float, tall: float) -> None:
    cloth = mix(stage.scene.shades[0] if stage.scene.shades else (226, 120, 48), stage.depth(1), 0.25)
    top = (x, foot - tall)
    stage.canvas.glow(x, foot - tall * 0.3, tall * 1.3, (255, 190, 100), 0.4)
    stage.canvas.polygon([(x - tall * 0.95, foot), top, (x + tall * 0.3, foot)], lighter(cloth, 0.16))
    stage.canvas.polygon([(x + tall * 0.3, foot), top, (x + tall * 0.95, foot - tall * 0.05)], darker(cloth, 0.3))
    stage.canvas.polygon([(x - tall * 0.5, foot), (x - tall * 0.06, foot - tall * 0.8), (x, foot)], (255, 214, 130))


def fire(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas = stage.canvas
    canvas.glow(x, foot - tall * 0.4, tall * 3, (255, 150, 60), 0.65)
    for number, shade in enumerate(((232, 84, 32), (250, 160, 50), (255, 236, 150))):
        size = tall * (1 - 0.26 * number)
        flame = [(x - size * 0.34, foot), (x - size * 0.4, foot - size * 0.36), (x - size * 0.18, foot - size * 0.56), (x - size * 0.1, foot - size), (x + size * 0.14, foot - size * 0.64), (x + size * 0.3, foot - size * 0.74), (x + size * 0.4, foot - size * 0.3), (x + size * 0.3, foot)]  # fmt: skip
        canvas.polygon(curve(flame), shade)
    for side in (-1, 1):
        canvas.line([(x - side * tall * 0.6, foot + tall * 0.08), (x + side * tall * 0.6, foot - tall * 0.1)], tall * 0.15, (74, 46, 30))


def car(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 50
    paint = stage.scene.shades[0] if stage.scene.shades else (200, 58, 50)
    body = [(-58, -10), (-56, -24), (-34, -28), (-20, -46), (22, -46), (38, -28), (56, -24), (60, -10)]
    canvas.polygon([(x + dx * unit, foot + dy * unit) for dx, dy in body], Gradient(foot - 46 * unit, foot - 10 * unit, (lighter(paint, 0.15), darker(paint, 0.25))))
    for pane in ([(-28, -28), (-17, -42), (-1, -42), (-1, -28)], [(3, -28), (3, -42), (19, -42), (31, -28)]):
        canvas.polygon([(x + dx * unit, foot + dy * unit) for dx, dy in pane], (186, 216, 230))
    for wheel in (-33, 33):
        canvas.ellipse(x + wheel * unit, foot - 10 * unit, 11 * unit, 11 * unit, (26, 26, 32))
        canvas.ellipse(x + wheel * unit, foot - 10 * unit, 5 * unit, 5 * unit, (190, 194, 200))
    canvas.ellipse(x + 57 * unit, foot - 20 * unit, 3 * unit, 3 * unit, (255, 240, 180))
    if stage.palette.dark or stage.scene.time in ("dusk", "sunset", "storm"):
        canvas.polygon([(x + 58 * unit, foot - 20 * unit), (x + 150 * unit, foot - 34 * unit), (x + 150 * unit, foot + 2 * unit)], (255, 240, 180), 0.22)


def train(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 50
    paint = mix(stage.scene.shades[0] if stage.scene.shades else (52, 88, 74), stage.depth(1), 0.2)
    for puff in range(8):
        size = (5 + 2.4 * puff) * unit
        canvas.ellipse(x + (44 - 17 * puff) * unit, foot - (58 + 4.5 * puff) * unit, size * 1.3, size, lighter(stage.haze, 0.4), 0.6 - 0.06 * puff)
    for wagon in range(1, 4):
        left = x - (16 + 62 * wagon) * unit
        canvas.rectangle(left, foot - 36 * unit, left + 56 * unit, foot - 8 * unit, lighter(paint, 0.07 * wagon))
        for pane in range(4):
            canvas.rectangle(left + (6 + 12.5 * pane) * unit, foot - 31 * unit, left + (14 + 12.5 * pane) * unit, foot - 21 * unit, _WINDOW)
    canvas.rectangle(x - 16 * unit, foot - 46 * unit, x + 10 * unit, foot - 8 * unit, darker(paint, 0.15))
    canvas.rectangle(x - 10 * unit, foot - 40 * unit, x + 4 * unit, foot - 28 * unit, _WINDOW)
    canvas.rectangle(x + 8 * unit, foot - 32 * unit, x + 56 * unit, foot - 10 * unit, paint)
    canvas.rectangle(x + 40 * unit, foot - 48 * unit, x + 48 * unit, foot - 30 * unit, darker(paint, 0.4))
    canvas.polygon([(x + 56 * unit, foot - 14 * unit), (x + 68 * unit, foot - 2 * unit), (x + 54 * unit, foot - 2 * unit)], darker(paint, 0.5))
    for wheel in range(-14, 4):
        canvas.ellipse(x + (wheel * 14.5 + 6) * unit, foot - 6 * unit, 6 * unit, 6 * unit, (26, 24, 28))
    canvas.rectangle(x - 220 * unit, foot, stage.width + unit, foot + 1.5 * unit, (60, 54, 54))


def robot(stage: Stage, x: float, foot: float, tall: float) -> None:
    canvas, unit = stage.canvas, tall / 100
    metal = stage.scene.shades[0] if stage.scene.shades else (142, 158, 176)
    metal = mix(metal, stage.depth(1), 0.22)
    dark, glow = darker(metal, 0.5), (110, 230, 240)
    for side in (-1, 1):
        canvas.line([(x + side * 9 * unit, foot - 34 * unit), (x + side * 10 * unit, foot)], 8 * unit, dark)
        canvas.rectangle(x + side * 11 * unit - 8 * unit, foot - 5 * unit, x + side * 11 * unit + 8 * unit, foot, metal)
        canvas.line([(x + side * 20 * unit, foot - 60 * unit), (x + side * 30 * unit, foot - 44 * unit), (x + side * 26 * unit, foot - 30 * unit)], 6 * unit, dark)
        canvas.ellipse(x + side * 26 * unit, foot - 29 * unit, 5 * unit, 5 * unit, metal)
    canvas.rectangle(x - 19 * unit, foot - 68 * unit, x + 19 * unit, foot - 30 * unit, Gradient(foot - 68 * unit, foot - 30 * unit, (lighter(metal, 0.25), darker(metal, 0.15))))
    canvas.rectangle(x - 11 * unit, foot - 60 * unit, x + 11 * unit, foot - 45 * unit, dark)
    for bar in range(4):
        canvas.rectangle(x + (-9 + 5 * bar) * unit, foot - (48 + stage.dice.between(1, 9)) * unit, x + (-6 + 5 * bar) * unit, foot - 47 * unit, glow)
    canvas.rectangle(x - 15 * unit, foot - 93 * unit, x + 15 * unit, foot - 70 * unit, Gradient(foot - 93 * unit, foot - 70 * unit, (lighter(metal, 0.35), metal)))
    for side in (-1, 1):
        canvas.glow(x + side * 6.5 * unit, foot - 82 * unit, 9 * unit, glow, 0.6)
        canvas.ellipse(x + side * 6.5 * unit, foot - 82 * unit, 3.8 * unit, 3.8 * unit, lighter(glow, 0.5))
    canvas.line([(x, foot - 93 * unit), (x, foot - 102 * unit)], 1.4 * unit, dark)
    canvas.ellipse(x, foot - 103 * unit, 2.6 * unit, 2.6 * unit, (240, 90, 80))


def heart(stage: Stage, x: float, foot: float, tall: float) -> None:
    shade: Color = stage.scene.shades[0] if stage.scene.shades else (222, 56, 84)
    points = []
    for step in range(64):
        angle = math.tau * step / 64
        wide = 16 * math.sin(angle) ** 3
        high = 13 * math.cos(angle) - 5 * math.cos(2 * angle) - 2 * math.cos(3 * angle) - math.cos(4 * angle)
        points.append((x + wide * tall / 30, foot - tall * 0.56 - high * tall / 30))
    stage.canvas.glow(x, foot - tall * 0.55, tall * 1.1, lighter(shade, 0.4), 0.5)
    stage.canvas.polygon(points, Gradient(foot - tall, foot, (lighter(shade, 0.22), darker(shade, 0.22))))
    gleam = without(disc(x - tall * 0.24, foot - tall * 0.72, tall * 0.15, tall * 0.13), disc(x - tall * 0.2, foot - tall * 0.68, tall * 0.15, tall * 0.13))
    stage.canvas.fill(foot - tall, foot, gleam, (255, 255, 255), 0.6)
