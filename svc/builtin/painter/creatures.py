"""Who lives in a picture: people and animals."""

import math
from itertools import pairwise

from svc.builtin.painter.canvas import Color, curve, darker, disc, lighter, mix, without
from svc.builtin.painter.figure import Figure

_EYE = (18, 14, 18)
_WHITE = (255, 255, 255)


def _coat(figure: Figure, usual: Color) -> Color:
    return figure.colored(usual, 0.3, 0.55)


def cat(figure: Figure) -> None:
    """A cat that sits and looks at you."""
    coat = _coat(figure, (38, 34, 44))
    tail = curve([(20, 5), (46, 2), (58, 18), (50, 34), (58, 46)])
    for index, (start, end) in enumerate(pairwise(tail)):
        figure.line([start, end], 9 - 5 * index / len(tail), coat)
    half = [(0.0, 64.0), (12, 58), (19, 44), (27, 24), (30, 6), (25, 0), (0, -1)]
    figure.mirrored(curve(half), figure.ramp(64, 0, coat, darker(coat, 0.2)))
    figure.rim(half[1:5])
    for side in (-1, 1):
        figure.polygon([(side * 4, 89), (side * 17, 106), (side * 19.5, 80)], coat)
        figure.polygon([(side * 9, 89), (side * 15.5, 98), (side * 16.5, 85)], mix(coat, (222, 140, 140), 0.4))
    figure.ellipse(0, 76, 21, 18, coat)
    for side in (-1, 1):
        figure.ellipse(side * 8.5, 77.5, 4.6, 4.2, (178, 214, 92))
        figure.ellipse(side * 8.5, 77.5, 1.4, 3.8, _EYE)
        figure.circle(side * 8.5 + 1.3, 79, 0.9, _WHITE)
        for tip in (65.5, 73):
            figure.line([(side * 6, 69), (side * 27, tip)], 0.45, lighter(coat, 0.6), 0.8)
        figure.ellipse(side * 8, 2, 7.5, 4, lighter(coat, 0.08))
    figure.polygon([(-2.4, 71), (2.4, 71), (0, 68)], (214, 122, 128))


def dog(figure: Figure) -> None:
    coat = _coat(figure, (126, 82, 46))
    figure.line(curve([(-30, 30), (-48, 44), (-50, 62)]), 6, coat)
    for leg in (-24, -14, 14, 24):
        figure.rectangle(leg - 4, 30, leg + 4, 0, darker(coat, 0.12) if leg in (-24, 14) else coat)
    figure.ellipse(0, 38, 36, 17, coat)
    figure.polygon([(16, 48), (24, 76), (44, 66), (34, 34)], coat)
    figure.ellipse(35, 76, 15, 13, coat)
    figure.ellipse(49, 72, 11, 7, lighter(coat, 0.15))
    figure.ellipse(58, 75, 3.2, 2.6, _EYE)
    figure.polygon([(22, 84), (18, 62), (29, 66), (31, 86)], darker(coat, 0.35))
    figure.circle(39, 79, 2, _EYE)
    figure.line([(20, 58), (37, 52)], 4, (198, 52, 48))


def bear(figure: Figure) -> None:
    coat = _coat(figure, (92, 62, 42))
    for side in (-1, 1):
        figure.circle(side * 17, 91, 8, coat)
        figure.circle(side * 17, 91, 4, lighter(coat, 0.25))
        figure.ellipse(side * 28, 40, 10, 22, darker(coat, 0.15))
        figure.ellipse(side * 19, 7, 13, 9, darker(coat, 0.1))
    figure.ellipse(0, 33, 32, 34, figure.ramp(66, 0, coat, darker(coat, 0.2)))
    figure.ellipse(0, 28, 19, 22, lighter(coat, 0.2))
    figure.ellipse(0, 78, 24, 21, coat)
    figure.ellipse(0, 71, 11, 9, lighter(coat, 0.3))
    figure.ellipse(0, 75, 4, 3, _EYE)
    for side in (-1, 1):
        figure.ellipse(side * 9, 82, 2.2, 2.6, _EYE)


def sheep(figure: Figure) -> None:
    wool, dark = figure.colored((246, 242, 234), 0.08, 0.4), (46, 42, 48)
    for leg in (-30, -13, 17, 33):
        figure.rectangle(leg - 3.3, 33, leg + 3.3, 0, dark)
    for x, y, radius in ((0, 43, 27), (-23, 40, 20), (25, 40, 20), (-33, 53, 22), (33, 55, 22), (-13, 67, 23), (13, 67, 23)):
        figure.ellipse(x, y, radius, radius * 0.9, wool if y > 50 else darker(wool, 0.1))
    figure.ellipse(55, 67, 13, 17, dark)
    figure.ellipse(45, 73, 10, 4, dark)
    figure.ellipse(52, 82, 12, 7, wool)
    figure.circle(60, 72, 2.5, (250, 250, 250))


def owl(figure: Figure) -> None:
    coat, beak = _coat(figure, (116, 84, 58)), (222, 160, 60)
    figure.line([(-90, -2), (90, 4)], 6, darker(figure.stage.depth(1), 0.3))
    figure.ellipse(0, 45, 30, 46, figure.ramp(90, 0, coat, darker(coat, 0.25)))
    for side in (-1, 1):
        figure.polygon([(side * 6, 84), (side * 27, 104), (side * 28, 72)], coat)
        figure.ellipse(side * 25, 38, 11, 30, darker(coat, 0.3))
    for row in range(5):
        for column in range(-2, 3):
            figure.ellipse(column * 7 + row % 2 * 3.5 - 1.7, 14 + 8 * row, 3.4, 3, lighter(coat, 0.35), 0.6)
    for side in (-1, 1):
        for radius, shade in ((12.5, lighter(coat, 0.5)), (8.5, (246, 190, 50)), (4.8, _EYE)):
            figure.circle(side * 12, 70, radius, shade)
        figure.circle(side * 12 + 2, 72.5, 1.6, _WHITE)
        figure.ellipse(side * 9, 1, 6, 3, beak)
    figure.polygon([(-3.4, 64), (3.4, 64), (0, 54)], beak)


def person(figure: Figure) -> None:
    """Somebody in a coat and a scarf who looks into the picture."""
    land, dice = figure.stage.depth(1), figure.dice
    dark = darker(land, 0.2)
    coat = mix(figure.one_of((176, 60, 52), (50, 84, 128), (206, 150, 60), (70, 104, 84)), land, 0.4)
    for side in (-1, 1):
        figure.line([(side * 5, 42), (side * 6.5, 0)], 7, dark)
        figure.ellipse(side * 7, 1.5, 5.5, 2.4, dark)
        figure.line([(side * 11, 76), (side * 17, 58), (side * 14, 44)], 5.6, darker(coat, 0.2))
    half = [(0.0, 83.0), (11, 79), (12.5, 60), (16, 34)]
    figure.mirrored(curve(half), coat)
    figure.rim(half[1:])
    figure.ellipse(0, 91, 8, 9, mix((226, 176, 140), land, 0.4))
    hair = mix(dice.pick([(40, 30, 26), (92, 58, 34), (190, 140, 70)]), land, 0.3)
    figure.fill(104, 82, without(disc(0, 92.5, 9, 9.4), disc(0, 84, 7.4, 6)), hair)
    scarf, away = mix((236, 190, 80), land, 0.2), -figure.lit_side
    figure.line([(-8, 82), (8, 82)], 4.6, scarf)
    figure.smooth([(away * 6, 83), (away * 20, 85), (away * 32, 80), (away * 22, 79), (away * 6, 79)], scarf)


def fish(figure: Figure) -> None:
    shade = figure.one_of((248, 142, 50), (250, 206, 70), (90, 170, 230), (230, 90, 110), (150, 110, 220))
    ahead = 1 if figure.dice.chance(0.5) else -1
    figure.smooth(
        [(-ahead * 50, 50), (-ahead * 97, 87), (-ahead * 83, 50), (-ahead * 97, 13), (-ahead * 50, 50)], darker(shade, 0.15)
    )
    figure.smooth([(-ahead * 30, 77), (0, 108), (ahead * 27, 80)], darker(shade, 0.2))
    figure.ellipse(0, 50, 67, 37, figure.ramp(87, 13, shade, lighter(shade, 0.42)))
    for stripe in (-20, 13):
        figure.ellipse(ahead * stripe, 50, 5.7, 35 * math.sqrt(1 - (stripe / 67) ** 2), (250, 250, 244), 0.85)
    figure.smooth([(-ahead * 3, 45), (-ahead * 30, 28), (-ahead * 7, 30)], darker(shade, 0.25))
    figure.circle(ahead * 42, 58, 8.3, _WHITE)
    figure.circle(ahead * 43.5, 58, 4.3, _EYE)


def whale(figure: Figure) -> None:
    shade = mix(figure.shade or (58, 96, 140), figure.stage.depth(0.8), 0.3)
    back = curve([(123, 47), (97, 83), (17, 100), (-73, 70), (-140, 63)])
    belly = curve([(-140, 60), (-67, 30), (23, 7), (97, 17), (123, 47)])
    figure.polygon([(-133, 67), (-187, 100), (-167, 63), (-187, 30), (-133, 57)], shade)
    figure.polygon([*back, *belly], shade)
    figure.polygon([*belly, *curve([(123, 47), (67, 32), (0, 30), (-100, 50)])], lighter(shade, 0.5), 0.85)
    for groove in range(5):
        figure.line(curve([(110 - 5 * groove, 38 - 5 * groove), (50, 27 - 5 * groove), (3, 25 - 3 * groove)]), 0.8, shade, 0.7)
    figure.smooth([(37, 30), (7, -17), (-13, -20), (7, 27)], darker(shade, 0.25))
    figure.circle(87, 50, 3.7, _EYE)


def jellyfish(figure: Figure) -> None:
    shade = figure.one_of((250, 160, 210), (160, 190, 255), (190, 150, 250))
    figure.glow(0, 70, 60, shade, 0.45)
    for arm in range(-3, 4):
        phase = figure.dice.between(0, 6)
        points = [(arm * 8 + 0.6 * step * math.sin(step / 2 + phase), 70 - 7.8 * step) for step in range(10)]
        figure.line(points, 2.6 if arm % 2 else 1.4, lighter(shade, 0.3), 0.6)
    dome = [(34 * math.cos(math.pi * step / 20), 70 + 32 * math.sin(math.pi * step / 20)) for step in range(21)]
    hem = curve([(8.5 * step - 34, 65.0 if step % 2 else 70.0) for step in range(9)])
    figure.polygon([*dome, *hem], figure.ramp(102, 65, lighter(shade, 0.5), shade), 0.82)
    figure.ellipse(-10, 88, 9, 5, _WHITE, 0.4)


def butterfly(figure: Figure) -> None:
    shade, dark = figure.one_of((240, 130, 40), (80, 140, 230), (220, 80, 150), (250, 210, 80)), (30, 24, 34)
    for side in (-1, 1):
        for x, y, wide, high in ((33, 72, 37, 28), (25, 27, 25, 23)):
            figure.ellipse(side * x, y, wide, high, dark)
            figure.ellipse(side * x, y, wide - 5, high - 5, shade)
            figure.ellipse(side * (x - 5), y, wide - 18, high - 15, lighter(shade, 0.4))
        figure.line(curve([(0, 77), (side * 8, 97), (side * 18, 105)]), 1.5, dark)
    figure.ellipse(0, 50, 5, 33, dark)


def snowman(figure: Figure) -> None:
    snow, dark = mix((250, 252, 255), figure.stage.depth(0.6), 0.3 if figure.dark else 0.06), (40, 36, 44)
    for side in (-1, 1):
        figure.line([(side * 16, 54), (side * 40, 70), (side * 46, 80)], 2, (88, 58, 38))
    for y, radius in ((20, 26), (54, 20), (80, 14)):
        figure.ellipse(0, y, radius, radius * 0.95, figure.ramp(y + radius, y - radius, snow, mix(snow, (120, 150, 190), 0.4)))
    for x, y in ((-5, 83), (5, 83), (0, 62), (0, 54), (0, 46)):
        figure.circle(x, y, 1.8, dark)
    figure.polygon([(0, 81), (15, 77), (0, 76.5)], (240, 130, 40))
    figure.line([(-13, 68), (13, 68)], 5, figure.shade or (200, 50, 56))
    figure.rectangle(-10, 108, 10, 91, dark)
    figure.rectangle(-16, 93, 16, 90, dark)
