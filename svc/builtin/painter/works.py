"""What people have built, in a picture: houses, towers, bridges and camps."""

import math

from svc.builtin.painter.canvas import Color, darker, lighter, mix
from svc.builtin.painter.figure import Figure
from svc.builtin.painter.stage import Stage

WINDOW = (255, 208, 112)
_NIGHT = (12, 14, 34)


def lighthouse(figure: Figure) -> None:
    stage, dark = figure.stage, darker(figure.stage.depth(1), 0.35)
    share = 0.42 if figure.dark else 0.12
    white, red = mix((246, 242, 232), stage.depth(1), share), figure.colored((204, 52, 46), 0.12, 0.42)
    if figure.lamps_are_lit or "fog" in stage.scene.weather:
        far = 1.3 * (stage.width + stage.height) / figure.unit
        for side in (-1, 1):
            for part in range(5):
                spread = (0.05 + 0.03 * part) * far
                figure.polygon(
                    [(0, 83), (side * far, 83 + far * 0.06 + spread), (side * far, 83 + far * 0.06 - spread)],
                    (255, 240, 180),
                    0.055,
                )
        figure.glow(0, 83, 26, (255, 236, 160), 0.85)
    for band in range(6):
        low, high = 10.5 - 4.6 * band / 6, 10.5 - 4.6 * (band + 1) / 6
        bottom, top = 74 * band / 6, 74 * (band + 1) / 6
        figure.polygon([(-low, bottom), (-high, top), (high, top), (low, bottom)], white if band % 2 else red)
    side = -figure.lit_side
    figure.polygon([(side * 10.5, 0), (side * 5.9, 74), (side, 74), (side * 2.5, 0)], _NIGHT, 0.24)
    figure.rectangle(-8.6, 77, 8.6, 74, dark)
    for rail in range(-4, 5):
        figure.rectangle(rail * 2 - 0.25, 80, rail * 2 + 0.25, 77, dark)
    figure.rectangle(-5, 88, 5, 77, (255, 232, 150))
    for post in (-5.0, -1.8, 1.4, 4.6):
        figure.rectangle(post, 88, post + 0.6, 77, dark)
    figure.polygon([(-6.5, 88), (0, 97), (6.5, 88)], red)
    figure.line([(0, 97), (0, 101)], 0.7, dark)
    figure.polygon([(-2.8, 0), (-2.8, 7), (0, 9.5), (2.8, 7), (2.8, 0)], dark)
    for sill in (26, 50):
        figure.rectangle(-1.2, sill + 4, 1.2, sill, dark)


def house(figure: Figure) -> None:
    stage = figure.stage
    wall = mix(figure.one_of((236, 222, 198), (206, 120, 92), (160, 178, 190)), stage.depth(1), 0.5 if figure.dark else 0.22)
    roof = mix((128, 52, 42), stage.depth(1), 0.4)
    figure.rectangle(28, 104, 40, 66, darker(wall, 0.3))
    for puff in range(4):
        figure.ellipse(35 + 6 * puff, 112 + 11 * puff, 5 + 2.5 * puff, 4 + 1.6 * puff, stage.haze, 0.4 - 0.08 * puff)
    figure.rectangle(-60, 50, 60, -3, figure.ramp(50, 0, wall, darker(wall, 0.18)))
    figure.polygon([(-70, 48), (-46, 94), (46, 94), (70, 48)], roof)
    figure.polygon([(-70, 48), (-46, 94), (-40, 94), (-62, 48)], lighter(roof, 0.25))
    if stage.scene.time == "winter":
        figure.polygon([(-72, 46), (-47, 97), (47, 97), (72, 46), (40, 56), (0, 50), (-40, 58)], (245, 249, 252))
    warm = figure.dark or stage.scene.time not in ("day", "spring")
    for left in (-42, 24):
        if warm:
            figure.glow(left + 8, 30, 30, WINDOW, 0.4)
        figure.rectangle(left, 40, left + 18, 19, WINDOW if warm else (176, 206, 222))
        figure.rectangle(left + 8.3, 40, left + 9.7, 19, darker(wall, 0.4))
        figure.rectangle(left, 30.3, left + 18, 29, darker(wall, 0.4))
    figure.rectangle(-9, 35, 9, -3, darker(roof, 0.35))
    figure.circle(5, 16, 1.4, WINDOW)


def castle(figure: Figure) -> None:
    stone = mix((150, 146, 156), figure.stage.depth(0.9), 0.55)
    roof = figure.colored((86, 74, 150), 0.3)
    for x, wide, high in ((-46, 20, 62), (46, 20, 58), (-20, 17, 78), (24, 16, 70), (0, 22, 96), (0, 100, 36)):
        left, right = x - wide / 2, x + wide / 2
        shade = stone if x else lighter(stone, 0.06)
        figure.rectangle(left, high, right, -4, figure.ramp(high, 0, lighter(shade, 0.08), darker(shade, 0.22)))
        edge = left if figure.lit_side < 0 else right - 2
        figure.rectangle(edge, high, edge + 2, 0, figure.stage.palette.light, 0.25)
        if wide == 100:
            for tooth in range(12):
                figure.rectangle(left + tooth * 8.7, high + 5, left + tooth * 8.7 + 4.6, high, shade)
            continue
        tip = high + wide * 1.5
        figure.polygon([(left - 2, high), (x, tip), (right + 2, high)], roof)
        figure.line([(x, tip), (x, tip + 9)], 0.8, darker(stone, 0.5))
        figure.polygon([(x, tip + 9), (x + 9, tip + 6.5), (x, tip + 4)], (206, 62, 62))
        figure.rectangle(x - 1.8, high - 7, x + 1.8, high - 14, WINDOW)
    figure.polygon([(-8, -4), (-8, 14), (-4, 20), (4, 20), (8, 14), (8, -4)], darker(stone, 0.65))


def church(figure: Figure) -> None:
    wall, roof = figure.colored((232, 226, 214), 0.35), mix((96, 66, 62), figure.stage.depth(1), 0.4)
    figure.rectangle(-8, 32, 42, -2, wall)
    figure.polygon([(-10, 30), (0, 52), (36, 52), (46, 30)], roof)
    figure.rectangle(-24, 62, -2, -2, lighter(wall, 0.1))
    figure.polygon([(-26, 60), (-13, 96), (0, 60)], roof)
    figure.line([(-13, 96), (-13, 106)], 1.2, darker(roof, 0.4))
    figure.line([(-16.5, 102), (-9.5, 102)], 1.2, darker(roof, 0.4))
    for x in (2, 16, 30):
        figure.ellipse(x, 20, 3, 7, WINDOW)
    figure.circle(-13, 50, 4, darker(wall, 0.5))


def windmill(figure: Figure) -> None:
    body, dark = figure.colored((206, 186, 160), 0.4), darker(figure.stage.depth(1), 0.15)
    figure.polygon([(-20, -2), (-12, 62), (12, 62), (20, -2)], body)
    figure.polygon([(0, -2), (1, 62), (12, 62), (20, -2)], (20, 16, 30), 0.18)
    figure.polygon([(-14, 60), (0, 78), (14, 60)], mix((120, 60, 46), figure.stage.depth(1), 0.3))
    figure.rectangle(-4.5, 15, 4.5, -2, dark)
    figure.rectangle(-3, 42, 3, 34, WINDOW)
    turn = figure.dice.between(0.2, 1.2)
    for blade in range(4):
        cosine, sine = math.cos(turn + blade * math.pi / 2), math.sin(turn + blade * math.pi / 2)

        def arm(far: float, aside: float, cosine: float = cosine, sine: float = sine) -> tuple[float, float]:
            return far * cosine - aside * sine, 64 + far * sine + aside * cosine

        figure.line([(0, 64), arm(44, 0)], 1.4, dark)
        figure.polygon([arm(8, 0), arm(44, 0), arm(44, 9), arm(8, 9)], (244, 236, 220), 0.62)
        for rib in range(14, 44, 6):
            figure.line([arm(rib, 0), arm(rib, 9)], 0.6, dark)
    figure.circle(0, 64, 2.6, dark)


def pyramid(figure: Figure) -> None:
    sand = mix(figure.shade or (226, 180, 110), figure.stage.depth(0.7), 0.35)
    edge = 20 * -figure.lit_side
    sides = (lighter(sand, 0.12), darker(sand, 0.36))
    left, right = sides if figure.lit_side < 0 else sides[::-1]
    figure.polygon([(-95, 0), (0, 100), (edge, -6)], left)
    figure.polygon([(95, 0), (0, 100), (edge, -6)], right)
    for course in range(1, 12):
        share = course / 12
        high = 100 * (1 - share)
        figure.line([(-95 * share, high), (edge * share, high - 6 * share), (95 * share, high)], 0.5, darker(sand, 0.5), 0.35)


def tent(figure: Figure) -> None:
    cloth = figure.colored((226, 120, 48), 0.25)
    figure.glow(0, 30, 130, (255, 190, 100), 0.4)
    figure.polygon([(-95, 0), (0, 100), (30, 0)], lighter(cloth, 0.16))
    figure.polygon([(30, 0), (0, 100), (95, 5)], darker(cloth, 0.3))
    figure.polygon([(-50, 0), (-6, 80), (0, 0)], (255, 214, 130))


def fire(figure: Figure) -> None:
    figure.glow(0, 40, 300, (255, 150, 60), 0.65)
    outline = ((-34, 0), (-40, 36), (-18, 56), (-10, 100), (14, 64), (30, 74), (40, 30), (30, 0))
    for number, shade in enumerate(((232, 84, 32), (250, 160, 50), (255, 236, 150))):
        figure.smooth([(x * (1 - 0.26 * number), y * (1 - 0.26 * number)) for x, y in outline], shade)
    for side in (-1, 1):
        figure.line([(-side * 60, -8), (side * 60, 10)], 15, (74, 46, 30))


def bridge(stage: Stage, shade: Color | None) -> None:
    """A suspension bridge from side to side of the picture."""
    canvas, unit = stage.canvas, stage.unit
    steel = mix(shade or (192, 78, 52), stage.depth(0.9), 0.3)
    deck, top = stage.horizon + 6 * unit, stage.horizon - 25 * unit
    towers = (stage.width * 0.24, stage.width * 0.76)
    for tower in towers:
        for side in (-1.7, 1.0):
            canvas.rectangle(tower + side * unit, top, tower + (side + 0.8) * unit, deck + 12 * unit, steel)
        for bar in range(5):
            y = top + bar * (deck - top) / 4.4
            canvas.rectangle(tower - 1.7 * unit, y, tower + 1.8 * unit, y + 0.8 * unit, steel)
    ends = (
        (-0.28 * stage.width, towers[0]),
        (stage.width / 2, towers[0]),
        (stage.width / 2, towers[1]),
        (1.28 * stage.width, towers[1]),
    )
    for low, high in ends:
        cable = [(low + (high - low) * step / 24, deck - unit + (top - deck + unit) * (step / 24) ** 2) for step in range(25)]
        canvas.line(cable, 0.5 * unit, steel)
        for x, y in cable[1::2]:
            canvas.line([(x, y), (x, deck)], 0.16 * unit, steel, 0.8)
    canvas.rectangle(0, deck, stage.width, deck + 1.5 * unit, darker(steel, 0.25))
