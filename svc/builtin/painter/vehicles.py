"""What moves, made by people, in a picture: boats, balloons, rockets, cars, trains, robots; and hearts, which nobody made."""

import math
from collections.abc import Callable

from svc.builtin.painter.canvas import Intervals, curve, darker, disc, lighter, mix, without
from svc.builtin.painter.figure import Figure
from svc.builtin.painter.works import WINDOW

_TYRE = (26, 26, 32)


def boat(figure: Figure) -> None:
    hull = figure.colored((150, 54, 46), 0.3)
    cloth = mix((250, 244, 230), figure.stage.palette.sky[2], 0.25)
    for part in range(5):  # its reflection
        figure.ellipse(figure.dice.between(-5, 5), -9 - 6 * part, 24 - 3.5 * part, 1.3, cloth, 0.34 - 0.05 * part)
    figure.line([(0, 4), (0, 98)], 1.6, darker(hull, 0.5))
    figure.polygon([(2, 94), *curve([(2, 94), (27, 50), (38, 16)]), (2, 14)], cloth)
    figure.polygon([*curve([(-2, 88), (-17, 48), (-33, 14)]), (-2, 16)], mix(cloth, figure.stage.palette.near, 0.2))
    body = curve([(-40, 10), (-30, -3), (0, -6), (32, -3), (46, 12)])
    figure.polygon([*body, (0, 8)], figure.ramp(12, -6, lighter(hull, 0.12), darker(hull, 0.3)))


def balloon(figure: Figure) -> None:
    first = figure.one_of((214, 70, 62), (240, 160, 60), (70, 140, 190), (130, 90, 170))
    second = mix((250, 238, 214), first, 0.12)

    def reach(y: float) -> float:
        if y >= 66:
            return 30 * math.sqrt(max(1 - ((y - 66) / 34) ** 2, 0))
        return max(30 - 23.4 * math.pow((66 - y) / 42, 1.45), 0)

    def gore(left: float, right: float) -> Callable[[float], Intervals]:
        """The part of the envelope between two meridians, -1 at its left edge and 1 at its right one."""
        return lambda y: ((left * reach(y), right * reach(y)),)

    for number, share in enumerate((1.0, 0.78, 0.48, 0.16)):
        figure.fill(100, 24, gore(-share, share), second if number % 2 else first)
    shaded = (0.42, 1.0) if figure.lit_side < 0 else (-1.0, -0.42)
    figure.fill(100, 24, gore(*shaded), (20, 10, 40), 0.16)
    for side in (-1, 1):
        figure.line([(side * 6.3, 25), (side * 4.4, 10)], 0.5, darker(figure.stage.palette.near, 0.2))
    figure.rectangle(-5, 11, 5, 2, (116, 74, 42))
    figure.rectangle(-5.6, 12.2, 5.6, 10.2, (84, 52, 30))


def rocket(figure: Figure) -> None:
    accent = figure.one_of((214, 62, 56))
    for number, shade in enumerate(((255, 120, 40), (255, 196, 70), (255, 246, 210))):
        wide, long = 11 - 3 * number, 44 - 11 * number
        figure.smooth([(-wide, 16), (-wide * 0.7, -long * 0.25), (0, -long), (wide * 0.7, -long * 0.25), (wide, 16)], shade, 0.85)
    figure.glow(0, -6, 40, (255, 170, 80), 0.5)
    for side in (-1, 1):
        figure.polygon([(side * 9, 40), (side * 26, 8), (side * 24, 4), (side * 8, 16)], accent)
    half = curve([(0, 100), (9, 82), (14, 55), (13, 30), (8, 14)])
    figure.mirrored(half, (238, 240, 244))
    shaded = [(x * -figure.lit_side, y) for x, y in half]
    figure.polygon([*shaded, *((x * 0.4, y) for x, y in reversed(shaded))], (60, 70, 110), 0.26)
    figure.mirrored([point for point in half if point[1] > 80], accent)
    figure.circle(0, 62, 7, (70, 80, 110))
    figure.circle(0, 62, 5.2, (130, 206, 240))
    figure.rectangle(-8, 18, 8, 12, (80, 84, 100))


def ufo(figure: Figure) -> None:
    figure.polygon([(-16, 70), (16, 70), (52, -60), (-52, -60)], (190, 255, 190), 0.18)
    figure.ellipse(0, 82, 24, 22, (150, 220, 235), 0.9)
    figure.ellipse(0, 70, 58, 15, figure.ramp(85, 55, (196, 202, 214), (84, 90, 112)))
    for light in range(-3, 4):
        figure.circle(light * 15, 65, 2.6, (255, 236, 140))


def car(figure: Figure) -> None:
    paint = figure.one_of((200, 58, 50), (60, 110, 170), (230, 180, 60))
    body = [(-116, 20), (-112, 48), (-68, 56), (-40, 92), (44, 92), (76, 56), (112, 48), (120, 20)]
    figure.polygon(body, figure.ramp(92, 20, lighter(paint, 0.15), darker(paint, 0.25)))
    for pane in ([(-56, 56), (-34, 84), (-2, 84), (-2, 56)], [(6, 56), (6, 84), (38, 84), (62, 56)]):
        figure.polygon(pane, (186, 216, 230))
    for wheel in (-66, 66):
        figure.circle(wheel, 20, 22, _TYRE)
        figure.circle(wheel, 20, 10, (190, 194, 200))
    figure.circle(114, 40, 6, (255, 240, 180))
    if figure.lamps_are_lit:
        figure.polygon([(116, 40), (300, 68), (300, -4)], (255, 240, 180), 0.22)


def train(figure: Figure) -> None:
    paint = figure.colored((52, 88, 74), 0.2)
    for puff in range(8):
        size = 10 + 4.8 * puff
        figure.ellipse(88 - 34 * puff, 116 + 9 * puff, size * 1.3, size, lighter(figure.stage.haze, 0.4), 0.6 - 0.06 * puff)
    for wagon in range(1, 4):
        left = -32 - 124 * wagon
        figure.rectangle(left, 72, left + 112, 16, lighter(paint, 0.07 * wagon))
        for pane in range(4):
            figure.rectangle(left + 12 + 25 * pane, 62, left + 28 + 25 * pane, 42, WINDOW)
    figure.rectangle(-32, 92, 20, 16, darker(paint, 0.15))
    figure.rectangle(-20, 80, 8, 56, WINDOW)
    figure.rectangle(16, 64, 112, 20, paint)
    figure.rectangle(80, 96, 96, 60, darker(paint, 0.4))
    figure.polygon([(112, 28), (136, 4), (108, 4)], darker(paint, 0.5))
    for wheel in range(-14, 4):
        figure.circle(wheel * 29 + 12, 12, 12, _TYRE)
    figure.rectangle(-2000, 0, 2000, -3, (60, 54, 54))


def robot(figure: Figure) -> None:
    metal = figure.colored((142, 158, 176), 0.22)
    dark, glow = darker(metal, 0.5), (110, 230, 240)
    for side in (-1, 1):
        figure.line([(side * 9, 34), (side * 10, 0)], 8, dark)
        figure.rectangle(side * 11 - 8, 5, side * 11 + 8, 0, metal)
        figure.line([(side * 20, 60), (side * 30, 44), (side * 26, 30)], 6, dark)
        figure.circle(side * 26, 29, 5, metal)
    figure.rectangle(-19, 68, 19, 30, figure.ramp(68, 30, lighter(metal, 0.25), darker(metal, 0.15)))
    figure.rectangle(-11, 60, 11, 45, dark)
    for bar in range(4):
        figure.rectangle(5 * bar - 9, 48 + figure.dice.between(1, 9), 5 * bar - 6, 47, glow)
    figure.rectangle(-15, 93, 15, 70, figure.ramp(93, 70, lighter(metal, 0.35), metal))
    for side in (-1, 1):
        figure.glow(side * 6.5, 82, 9, glow, 0.6)
        figure.circle(side * 6.5, 82, 3.8, lighter(glow, 0.5))
    figure.line([(0, 93), (0, 102)], 1.4, dark)
    figure.circle(0, 103, 2.6, (240, 90, 80))


def heart(figure: Figure) -> None:
    shade = figure.one_of((222, 56, 84))
    points = []
    for step in range(64):
        angle = math.tau * step / 64
        high = 13 * math.cos(angle) - 5 * math.cos(2 * angle) - 2 * math.cos(3 * angle) - math.cos(4 * angle)
        points.append((160 / 3 * math.sin(angle) ** 3, 56 + high * 10 / 3))
    figure.glow(0, 55, 110, lighter(shade, 0.4), 0.5)
    figure.polygon(points, figure.ramp(100, 0, lighter(shade, 0.22), darker(shade, 0.22)))
    figure.fill(100, 0, without(disc(-24, 72, 15, 13), disc(-20, 68, 15, 13)), (255, 255, 255), 0.6)
