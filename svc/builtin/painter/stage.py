"""What every place of a picture shares: the sky, the light and where it comes from, the weather, the lie of the land."""

import math
from collections.abc import Callable

from svc.builtin.painter.canvas import Canvas, Color, Gradient, Point, darker, disc, lighter, mix, without
from svc.builtin.painter.scene import Scene

_WHITE = (255, 255, 255)


class Stage:
    """A canvas with its scene. `unit` is a hundredth of the shorter side; `light` is where sun or moon stands."""

    def __init__(self, canvas: Canvas, scene: Scene) -> None:
        self.canvas = canvas
        self.scene = scene
        self.dice = scene.dice
        self.palette = scene.palette
        self.width = canvas.width
        self.height = canvas.height
        self.unit = min(canvas.width, canvas.height) / 100
        self.horizon = self.height * self.dice.between(0.56, 0.64)
        self.left_light = self.dice.chance(0.5)
        low = scene.time in ("sunset", "dawn", "golden", "dusk")
        across = self.dice.between(0.26, 0.38)
        self.light: Point = (
            self.width * (across if self.left_light else 1 - across),
            self.horizon - self.height * (self.dice.between(0.08, 0.16) if low else self.dice.between(0.28, 0.4)),
        )
        # Where a thing stands: the ground of the foreground, which each place sets.
        self.ground: Callable[[float], float] = lambda x: self.height * 0.86
        self.haze = mix(self.palette.sky[-1], self.palette.light, 0.2)

    def depth(self, share: float) -> Color:
        """The colour of land at a depth: 0 is the farthest, 1 the nearest."""
        return mix(self.palette.far, self.palette.near, share)

    # --- the sky

    def sky(self) -> None:
        scene, palette, canvas = self.scene, self.palette, self.canvas
        canvas.rectangle(0, 0, self.width, self.height, Gradient(0, self.horizon, palette.sky))
        if scene.place in ("space", "reef"):
            return
        if palette.dark or scene.time == "dusk" or "stars" in scene.weather:
            self.stars(self.dice.whole(90, 150))
        if "aurora" in scene.weather:
            self._aurora()
        if scene.time != "storm" and "fog" not in scene.weather and "rain" not in scene.weather:
            self._moon() if palette.dark or "moon" in scene.weather else self._sun()
        if "rainbow" in scene.weather:
            self._rainbow()
        if "comet" in scene.weather:
            self._comet()
        if "fireworks" in scene.weather:
            self._fireworks()
        cloudy = "clouds" in scene.weather or scene.time == "storm"
        for _ in range(self.dice.whole(7, 10) if cloudy else self.dice.whole(0 if palette.dark else 2, 4)):
            self._cloud()
        if "lightning" in scene.weather:
            self._lightning()

    def stars(self, count: int) -> None:
        lowest = self.horizon if self.scene.place != "space" else self.height
        for _ in range(count):
            x, y = self.dice.between(0, self.width), self.dice.between(0, lowest * 0.92)
            size = self.dice.between(0.1, 0.34) * self.unit
            alpha = self.dice.between(0.35, 1) * (1 - 0.8 * y / lowest)
            self.canvas.ellipse(x, y, size, size, _WHITE, alpha)
            if size > 0.3 * self.unit:
                self.canvas.glow(x, y, size * 6, self.palette.light, 0.4)

    def _sun(self) -> None:
        (x, y), light = self.light, self.palette.light
        radius = self.unit * self.dice.between(6, 8.5)
        self.canvas.glow(x, y, radius * 8, light, 0.62, 2.4)
        self.canvas.glow(x, y, radius * 2.1, lighter(light, 0.5), 0.6, 1.4)
        self.canvas.ellipse(x, y, radius, radius, Gradient(y - radius, y + radius, (lighter(light, 0.5), light)))

    def _moon(self) -> None:
        (x, y), light = self.light, self.palette.light
        radius = self.unit * self.dice.between(6, 8.5)
        self.canvas.glow(x, y, radius * 6, light, 0.4, 2.2)
        if self.dice.chance(0.35):
            offset = radius * (0.45 if self.left_light else -0.45)
            shape = without(disc(x, y, radius, radius), disc(x + offset, y - radius * 0.16, radius * 0.92, radius * 0.92))
            self.canvas.fill(y - radius, y + radius, shape, light)
            return
        self.canvas.ellipse(x, y, radius, radius, light)
        for dx, dy, size in ((-0.35, -0.2, 0.24), (0.3, 0.35, 0.18), (0.2, -0.45, 0.13), (-0.15, 0.5, 0.15), (0.5, -0.05, 0.1)):
            self.canvas.ellipse(x + dx * radius, y + dy * radius, size * radius, size * radius, darker(light, 0.14), 0.7)

    def _cloud(self) -> None:
        dice, unit = self.dice, self.unit
        x, y = dice.between(-0.05, 1.05) * self.width, dice.between(0.06, 0.78) * self.horizon
        size = dice.between(0.6, 1.35) * unit * (0.55 + 0.6 * (1 - y / self.horizon))
        dark = self.palette.dark or self.scene.time == "storm"
        body = mix(self.palette.sky[2], darker(self.palette.sky[1], 0.25) if dark else _WHITE, 0.55)
        alpha = 0.75 if self.scene.time == "storm" else 0.4 if dark else 0.62
        puffs = [(dice.between(-9, 9), dice.between(1.6, 4.2)) for _ in range(7)]
        intervals = [disc(x + dx * size, y, radius * size * 1.25, radius * size) for dx, radius in puffs]
        foot = disc(x, y, 13 * size, 1.6 * size)

        def at(line: float) -> list[tuple[float, float]]:
            if line > y:  # a flat underside
                return list(foot(line))
            return _joined(sorted(piece for interval in (*intervals, foot) for piece in interval(line)))

        shade = mix(body, self.palette.light, 0.25)
        self.canvas.fill(
            y - 5 * size, y + 1.6 * size, at, Gradient(y - 4 * size, y + 1.6 * size, (lighter(shade, 0.2), body)), alpha
        )

    def _aurora(self) -> None:
        for band in range(3):
            shade = [(92, 240, 170), (80, 220, 210), (170, 110, 230)][band]
            phase, base = self.dice.between(0, 6), self.horizon * (0.62 - 0.13 * band)
            steps = 110
            for step in range(steps):
                x = self.width * step / steps
                foot = (
                    base
                    + self.horizon * 0.09 * math.sin(step / 9 + phase)
                    + self.horizon * 0.05 * math.sin(step / 4.2 + 2 * phase)
                )
                tall = self.horizon * (0.26 + 0.12 * math.sin(step / 3.1 + phase))
                strength = 0.16 + 0.1 * math.sin(step / 2.3 + phase)
                for part in range(8):
                    low, high = foot - tall * part / 8, foot - tall * (part + 1) / 8
                    self.canvas.rectangle(x, high, x + self.width / steps, low, shade, strength * (1 - part / 8) ** 1.4)

    def _rainbow(self) -> None:
        x, y = self.width * (0.7 if self.left_light else 0.3), self.horizon + self.height * 0.1
        outer, band = self.unit * 62, self.unit * 1.5
        shades = ((220, 60, 60), (240, 140, 50), (245, 215, 80), (90, 190, 100), (70, 130, 220), (130, 80, 190))
        for number, shade in enumerate(shades):
            radius = outer - number * band
            ring = without(disc(x, y, radius, radius), disc(x, y, radius - band, radius - band))
            self.canvas.fill(y - radius, self.horizon, ring, shade, 0.42)

    def _comet(self) -> None:
        for _ in range(self.dice.whole(2, 4)):
            x, y = self.dice.between(0.15, 0.9) * self.width, self.dice.between(0.06, 0.5) * self.horizon
            long, thick = self.dice.between(16, 30) * self.unit, 0.32 * self.unit
            for part in range(10):
                start, end = part / 10 * long, (part + 1) / 10 * long
                points = [(x - start, y - start * 0.45), (x - end, y - end * 0.45)]
                self.canvas.line(points, thick * (1.4 - part / 9), _WHITE, 0.85 * (1 - part / 10) ** 1.5)
            self.canvas.glow(x, y, 3 * self.unit, self.palette.light, 0.9)

    def _fireworks(self) -> None:
        shades = ((255, 120, 110), (255, 214, 110), (130, 220, 255), (200, 150, 255), (150, 240, 160))
        for number in range(self.dice.whole(5, 7)):
            x, y = self.dice.between(0.1, 0.9) * self.width, self.dice.between(0.1, 0.62) * self.horizon
            radius, shade = self.dice.between(8, 15) * self.unit, shades[number % len(shades)]
            self.canvas.glow(x, y, radius * 1.2, shade, 0.35)
            for ray in range(26):
                angle = math.tau * ray / 26
                for part in range(3, 10):
                    reach = radius * part / 9
                    dot = self.unit * 0.06 * part
                    place = (x + math.cos(angle) * reach, y + math.sin(angle) * reach + radius * 0.02 * part * part / 9)
                    self.canvas.ellipse(*place, dot, dot, lighter(shade, 0.3), 0.3 + part * 0.06)

    def _lightning(self) -> None:
        x, y = self.dice.between(0.3, 0.7) * self.width, self.horizon * 0.12
        points = [(x, y)]
        while y < self.horizon:
            x, y = x + self.dice.between(-5, 5) * self.unit, y + self.dice.between(4, 8) * self.unit
            points.append((x, y))
        self.canvas.glow(points[1][0], points[1][1], 45 * self.unit, (220, 225, 255), 0.5)
        self.canvas.line(points, 1.1 * self.unit, (225, 230, 255), 0.45)
        self.canvas.line(points, 0.45 * self.unit, _WHITE)

    # --- before everything

    def weather(self) -> None:
        """Fog, rain, snow, lights and birds, over all that is painted by now."""
        scene, dice, unit, canvas = self.scene, self.dice, self.unit, self.canvas
        if "fog" in scene.weather:
            for _ in range(9):
                x, y = dice.between(0, 1) * self.width, self.horizon + dice.between(-8, 26) * unit
                self.mist(x, y, dice.between(28, 60) * unit, dice.between(2.5, 5) * unit, 0.34)
        if "rain" in scene.weather:
            for _ in range(220):
                x, y, long = (
                    dice.between(-0.1, 1.1) * self.width,
                    dice.between(-0.05, 1) * self.height,
                    dice.between(2.5, 5.5) * unit,
                )
                canvas.line([(x, y), (x - long * 0.28, y + long)], 0.2 * unit, (225, 235, 245), dice.between(0.25, 0.55))
        if "snow" in scene.weather:
            for _ in range(230):
                x, y, size = dice.between(0, 1) * self.width, dice.between(0, 1) * self.height, dice.between(0.18, 0.62) * unit
                canvas.ellipse(x, y, size, size, _WHITE, dice.between(0.5, 0.95))
        if "fireflies" in scene.weather:
            for _ in range(45):
                x, y = dice.between(0, 1) * self.width, dice.between(self.horizon * 0.8, self.height * 0.97)
                canvas.glow(x, y, dice.between(1.2, 2.6) * unit, (255, 232, 130), 0.9)
                canvas.ellipse(x, y, 0.24 * unit, 0.24 * unit, (255, 250, 215))
        if "birds" in scene.weather or (scene.place in ("sea", "mountains", "hills", "lake") and dice.chance(0.55)):
            self._birds()

    def mist(self, x: float, y: float, width: float, height: float, alpha: float) -> None:
        """A soft flat cloud of haze."""
        for ring in range(18):
            share = 1 - ring / 18
            self.canvas.ellipse(x, y, width * share, height * share, self.haze, alpha / 10)

    def _birds(self) -> None:
        if self.palette.dark:
            return
        x, y = self.dice.between(0.25, 0.75) * self.width, self.dice.between(0.25, 0.55) * self.horizon
        for _ in range(self.dice.whole(4, 8)):
            at_x, at_y = x + self.dice.between(-15, 15) * self.unit, y + self.dice.between(-7, 7) * self.unit
            size = self.dice.between(0.9, 1.9) * self.unit
            wing = [(-1.0, -0.42), (-0.5, -0.5), (0.0, 0.0), (0.5, -0.5), (1.0, -0.42), (0.5, -0.32), (0.0, 0.24), (-0.5, -0.32)]
            self.canvas.polygon([(at_x + dx * size, at_y + dy * size) for dx, dy in wing], self.palette.near, 0.85)

    # --- the land

    def ridge(self, base: float, tall: float, waves: float, rough: float = 0.0) -> list[Point]:
        """A line of hills from left to right around `base`, up to `tall` high, with about `waves` crests."""
        parts = [
            (waves * factor, weight, self.dice.between(0, math.tau)) for factor, weight in ((1, 0.55), (2.1, 0.28), (4.3, 0.12))
        ]
        points = []
        for step in range(-1, 131):
            place = step / 129
            value = sum(weight * (0.5 + 0.5 * math.sin(math.tau * often * place + phase)) for often, weight, phase in parts)
            points.append((place * self.width, base - tall * (value + rough * self.dice.between(-0.1, 0.1))))
        return points

    def land(self, line: list[Point], shade: Color, foot: Color | None = None) -> None:
        """Everything below `line`, lighter toward `foot` at the bottom of its slopes."""
        top = min(y for _, y in line)
        paint = Gradient(top, top + self.height * 0.34, (shade, foot)) if foot else shade
        self.canvas.polygon([(-self.width, self.height * 2), *line, (self.width * 2, self.height * 2)], paint)

    def stand_on(self, line: list[Point]) -> None:
        """Makes `line` the ground for things."""
        step = line[1][0] - line[0][0]

        def ground(x: float) -> float:
            place = min(max((x - line[0][0]) / step, 0), len(line) - 1.001)
            return line[int(place)][1] + (line[int(place) + 1][1] - line[int(place)][1]) * (place % 1)

        self.ground = ground


def _joined(pieces: list[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for start, end in pieces:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
