"""The pictures of the painter. An order is `{prompt, width, height, variation}`.

A scene is painted from far to near: the sky, the layers of land and weather, and the figures.
"""

import math
import re
from typing import Any

from svc.builtin.painter.canvas import BLACK, WHITE, Canvas, Color, Point, between, color, mix
from svc.builtin.painter.figures import figures, shapes
from svc.builtin.painter.scene import ABSTRACT, COLORS, DARK, DIM, LEAVES, LOW, Scene, rows

_STEPS = 129
CPU_SECONDS, MEMORY_BYTES = 40, 512 * 1024 * 1024


class Stage:
    """A canvas with its scene. `unit` is a hundredth of the shorter side, `light` the place of the sun or moon."""

    def __init__(self, canvas: Canvas, scene: Scene) -> None:
        self.canvas, self.scene, self.chance = canvas, scene, scene.chance
        self.width, self.height, self.unit = canvas.width, canvas.height, min(canvas.width, canvas.height) / 100
        self.horizon = self.shore = self.height * self.chance.uniform(0.56, 0.64)
        self.side = self.chance.choice((1, -1))  # 1 when the light comes from the left
        high = self.chance.uniform(0.08, 0.16) if scene.time in LOW else self.chance.uniform(0.28, 0.4)
        aside = self.side * self.chance.uniform(0.12, 0.24)
        self.light = self.width * (0.5 - aside), self.horizon - self.height * high
        self.dark = scene.time in DARK
        self.lit = self.dark or scene.time in DIM
        self.near = 1.0  # the distance of the current layer: 0 is the farthest, 1 the nearest
        ones = sum(count for name, (count, _) in scene.things.items() if figures()[name].where != "meadow")
        spots = [(one + self.chance.uniform(0.35, 0.65)) / ones for one in range(ones)]
        self.spots = self.chance.sample(spots, ones) if ones > 1 else [0.5 + self.side * 0.16]
        self.line = [self.height * 0.9] * (_STEPS + 1)  # the height of the ground, from left to right
        self.sky, light, self.lands = scene.colors[:4], scene.colors[4], scene.colors[5:]
        cloud = mix(self.sky[1], BLACK, 0.25) if self.dark or scene.time == "storm" else WHITE
        self.colors = {
            **COLORS,
            "sky": self.sky[2],
            "light": light,
            "haze": mix(self.sky[3], light, 0.2),
            "ground": self.sky[1],
            "cloud": mix(self.sky[2], cloud, 0.55),
            "leaf": color(LEAVES.get(scene.time, "#3f7f45")),
            "window": color("#b0cede" if scene.time in ("day", "spring") else "#ffd070"),
        }

    def paint(self) -> None:
        abstract = self.scene.place == "abstract"
        self._wash(0, self.sky if abstract else [*self.sky, self.sky[3], self.sky[3]])
        for name, row in rows("weather").items():
            if name in self.scene.weather:
                self.layers(row.look)
            elif name == "place":
                self.layers(self.chance.choice(ABSTRACT) if abstract else rows("places")[self.scene.place].look)
                for thing in sorted(self.scene.things, key=lambda thing: figures()[thing].where != "meadow"):
                    (count, shade), figure = self.scene.things[thing], figures()[thing]
                    tall = float(figure.tall)
                    self.scatter(thing, figure.where, count, tall * count**-0.45, tall, shade)

    def layers(self, text: str) -> None:
        for layer in filter(None, map(str.strip, text.split(";"))):
            name, *rest = layer.split()
            if name in self.scene.without:
                continue
            if name in figures():
                self.scatter(name, rest[0], int(rest[1]), float(rest[2]), float(rest[3]))
            else:
                getattr(self, name)(*map(float, rest))  # `ridge` or `water`

    def _wash(self, top: float, stops: list[Color]) -> None:
        self.canvas.fill([[(0, top), (self.width, top), (self.width, self.height), (0, self.height)]], stops)

    def _depth(self, near: float) -> Color:
        """Return the colour of land at this distance: far land has more of the sky's colour."""
        return mix(between(self.lands, near), self.sky[3], 0.45 * (1 - near) ** 2)

    def ridge(self, down: float, tall: float, waves: float, near: float, drop: float = 0) -> None:
        """Paint land with about `waves` crests of `tall` units, `down` hundredths of the way from horizon to bottom.

        Below a distance `near` of 0 it is only a line for figures. It falls by `drop` units toward the light.
        """
        base, self.near = self.horizon + (self.height - self.horizon) * down / 100, near / 100
        octaves = ((1, 0.28), (2.1, 0.14), (4.3, 0.06))
        parts = [(waves * often, weight, self.chance.uniform(0, 6.28)) for often, weight in octaves]
        for step in range(_STEPS + 1):
            place = step / _STEPS
            rise = sum(weight * (1 + math.sin(math.tau * often * place + phase)) for often, weight, phase in parts)
            fall = drop * max((1 - place if self.side > 0 else place) - 0.34, 0)
            self.line[step] = base + (fall - tall * rise) * self.unit
        shade = self._depth(self.near)
        if self.scene.time == "winter":
            shade = mix(shade, mix(self.lands[0], WHITE, 0.8), 0.85 - 0.35 * self.near)
        foot = mix(shade, self.colors["haze"], 0.5 * (1 - self.near)) if near < 95 else mix(shade, BLACK, 0.2)
        if near >= 0:
            crest = [(step / _STEPS * self.width, y) for step, y in enumerate(self.line)]
            self.canvas.fill([[(0, self.height * 1.2), *crest, (self.width, self.height * 1.2)]], (shade, foot, foot))

    def water(self, down: float) -> None:
        """Paint water that mirrors the picture, from `down` hundredths of the way from horizon to bottom."""
        self.shore = self.horizon + (self.height - self.horizon) * down / 100
        deep, bright = mix(self.sky[0], self.lands[-1], 0.45), mix(self.sky[3], self.sky[1], 0.42)
        self._wash(self.shore, [bright, mix(bright, deep, 0.62), deep])
        self.canvas.mirror(math.ceil(self.shore))
        self.scatter("ripple", "field", 130, 0.15, 0.7)
        if self.scene.weather & {"sun", "moon"}:
            self.scatter("glint", "path", 110, 0.25, 0.75)

    def scatter(self, name: str, area: str, count: int, low: float, high: float, shade: Color | None = None) -> None:
        """Paint `count` figures, `low` units high for the farthest and `high` for the nearest."""
        width, height, horizon, chance = self.width, self.height, self.horizon, self.chance
        first, last = {
            "sky": (0.92 * horizon, 0.06 * horizon), "air": (0.5 * horizon, 0.8 * horizon), "all": (0, 1.02 * height),
            "water": (0.9 * self.shore + 0.1 * height, 0.7 * self.shore + 0.3 * height),
            "meadow": (0.75 * horizon + 0.25 * height, 1.05 * height),
        }.get(area, (self.shore, height))  # fmt: skip
        for number, near in enumerate(sorted(chance.random() for _ in range(count))):
            size = (low + (high - low) * near) * self.unit
            x, y = chance.uniform(-0.02, 1.02) * width, first + (last - first) * near
            if area == "light":
                x, y = self.light[0], self.light[1] + size / 2
            elif area == "path":
                x = self.light[0] + chance.gauss(0, 2.5 + 5 * near) * self.unit
            elif area == "row":
                x, size = (number + chance.random()) / count * width, chance.uniform(low, high) * self.unit
            elif area in ("land", "water", "air"):
                x, y = self.spots.pop() * width, max(y, 1.05 * size)
            if area in ("row", "land"):
                y = self.line[min(max(round(x / width * _STEPS), 0), _STEPS)] + 0.06 * size
            self.draw(name, x, y, size, shade)

    def draw(self, name: str, x: float, foot: float, tall: float, shade: Color | None = None) -> None:
        """Paint a figure `tall` pixels high with its foot at (`x`, `foot`), in `shade` or one of its colours."""
        figure, unit, chance = figures()[name], tall / 100, self.chance
        jitter = float(figure.jitter)
        self.colors["land"] = self.colors["main"] = self._depth(self.near)
        tint = min((0.42 if self.dark else 0.12) + 0.6 * (1 - self.near), 0.9)
        if self.scene.place == "abstract":
            tint, self.colors["scheme"] = 0, chance.choice(self.lands)
        if shade or figure.colors:
            self.colors["main"] = shade or self._shade(chance.choice(figure.colors.split()), 0)
        one, two = chance.uniform(0, 99), chance.uniform(0, 99)

        def at(point: complex) -> Point:
            aside = jitter * math.sin(one + 0.05 * point.real + 0.06 * point.imag)
            up = jitter * math.sin(two + 0.06 * point.real - 0.05 * point.imag)
            return x + self.side * (point.real + aside) * unit, foot - (point.imag + up) * unit

        for when, kind, keep, paint, alpha, outlines, holes in shapes(figure.shapes):
            if (when == "lit" and not self.lit) or (when == "snow" and self.scene.time != "winter"):
                continue
            shades = [self._shade(text, 0 if keep else tint) for text in paint]
            # Only half of the windows are lit.
            shown = [points for points in outlines if kind != "panes" or chance.random() < 0.5]
            visible = [list(map(at, points)) for points in shown]
            if kind == "glow":
                self.canvas.glow(visible[0], shades[0], alpha)
            else:
                self.canvas.fill(visible, shades, alpha, holes)

    def _shade(self, text: str, tint: float) -> Color:
        name, tones = re.findall(r"(#[0-9a-f]{6}|[a-z]+)(.*)", text)[0]
        shade = color(name) if name[0] == "#" else self.colors[name]
        for kind, share in re.findall(r"([-+~])(\d+)", tones):
            shade = mix(shade, {"-": BLACK, "+": WHITE, "~": self.colors["haze"]}[kind], int(share) / 100)
        return shade if name in ("land", "haze") else mix(shade, self.colors["land"], tint)


def picture(prompt: str, width: int, height: int, variation: int = 0) -> tuple[str, bytes]:
    """Return a description and a PNG for a prompt. Each `variation` (from 0) is another picture."""
    canvas, scene = Canvas(width, height), Scene(prompt, variation)
    Stage(canvas, scene).paint()
    return scene.description, canvas.png()


def answer(order: dict[str, Any]) -> bytes:
    """Return a line of description and the PNG."""
    description, png = picture(**order)
    return description.encode() + b"\n" + png
