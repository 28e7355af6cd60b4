"""A thing that is being drawn, in coordinates of its own: hundredths of its height from the middle of its foot, y upward."""

from collections.abc import Callable, Sequence

from svc.builtin.painter.canvas import Canvas, Color, Gradient, Intervals, Paint, Point, curve, mix
from svc.builtin.painter.stage import Stage


class Figure:
    """A thing whose foot stands at (`x`, `foot`) of the picture, `tall` pixels high.

    `shade` is the colour that the prompt gives it. The methods are those of the canvas, in the figure's coordinates.
    """

    def __init__(self, stage: Stage, x: float, foot: float, tall: float, shade: Color | None = None) -> None:
        self.stage = stage
        self.dice = stage.dice
        self.canvas: Canvas = stage.canvas
        self.x = x
        self.foot = foot
        self.unit = tall / 100
        self.shade = shade
        self.dark = stage.palette.dark
        # The side that sun or moon shines on.
        self.lit_side = -1 if stage.left_light else 1
        self.lamps_are_lit = self.dark or stage.scene.time in ("dusk", "sunset", "storm")

    def colored(self, usual: Color, share: float, dark_share: float | None = None) -> Color:
        """The prompt's colour or else the usual one, with `share` of the land's, `dark_share` of it at night."""
        taken = share if dark_share is None or not self.dark else dark_share
        return mix(self.shade or usual, self.stage.depth(1), taken)

    def one_of(self, *usual: Color) -> Color:
        """The prompt's colour, else one of the usual ones."""
        return self.shade or self.dice.pick(usual)

    def ramp(self, top: float, bottom: float, *stops: Color) -> Gradient:
        return Gradient(self.foot - top * self.unit, self.foot - bottom * self.unit, stops)

    def at(self, x: float, y: float) -> Point:
        return self.x + x * self.unit, self.foot - y * self.unit

    def polygon(self, points: Sequence[Point], paint: Paint, alpha: float = 1.0) -> None:
        self.canvas.polygon([self.at(x, y) for x, y in points], paint, alpha)

    def smooth(self, points: Sequence[Point], paint: Paint, alpha: float = 1.0) -> None:
        """A polygon with a rounded outline from its first point to its last."""
        self.polygon(curve(points), paint, alpha)

    def mirrored(self, half: Sequence[Point], paint: Paint, alpha: float = 1.0) -> None:
        """A shape out of its right half, from top to bottom."""
        self.polygon([*half, *((-x, y) for x, y in reversed(half))], paint, alpha)

    def line(self, points: Sequence[Point], thickness: float, paint: Paint, alpha: float = 1.0) -> None:
        self.canvas.line([self.at(x, y) for x, y in points], thickness * self.unit, paint, alpha)

    def rectangle(self, left: float, top: float, right: float, bottom: float, paint: Paint, alpha: float = 1.0) -> None:
        self.canvas.rectangle(*self.at(left, top), *self.at(right, bottom), paint, alpha)

    def ellipse(self, x: float, y: float, width: float, height: float, paint: Paint, alpha: float = 1.0) -> None:
        self.canvas.ellipse(*self.at(x, y), width * self.unit, height * self.unit, paint, alpha)

    def circle(self, x: float, y: float, radius: float, paint: Paint, alpha: float = 1.0) -> None:
        self.ellipse(x, y, radius, radius, paint, alpha)

    def glow(self, x: float, y: float, radius: float, shade: Color, alpha: float) -> None:
        self.canvas.glow(*self.at(x, y), radius * self.unit, shade, alpha)

    def fill(self, top: float, bottom: float, at: Callable[[float], Intervals], paint: Paint, alpha: float = 1.0) -> None:
        """A shape by its intervals `at(y)`, in the figure's coordinates."""

        def on_canvas(line: float) -> Intervals:
            found = at((self.foot - line) / self.unit)
            return [(self.x + start * self.unit, self.x + end * self.unit) for start, end in found]

        self.canvas.fill(self.foot - top * self.unit, self.foot - bottom * self.unit, on_canvas, paint, alpha)

    def rim(self, half: Sequence[Point]) -> None:
        """A line of light along the lit side of a mirrored shape."""
        points = curve([(self.lit_side * (x - 0.8), y) for x, y in half])
        self.line(points, 1.3, self.stage.palette.light, 0.5)
