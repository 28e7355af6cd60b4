"""A picture in memory: anti-aliased shapes, translucent layers and glows in plain Python, and the PNG file that it becomes.

The three colours lie in planes of their own: so a stretch of a row is painted by one slice assignment, or blended by one
`bytes.translate`, at the speed of C. Coordinates are pixels, y grows downward, and shapes may reach over the edges.
"""

import math
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

Color = tuple[int, int, int]
Point = tuple[float, float]
Intervals = Sequence[tuple[float, float]]

_SUBROWS = 4
_ALPHAS = 256
_FAINT = 0.004
_RINGS = 80


def color(text: str) -> Color:
    """`#rrggbb` as a colour."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def mix(first: Color, second: Color, share: float) -> Color:
    """`first` with `share` (0..1) of `second`."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def lighter(shade: Color, share: float) -> Color:
    return mix(shade, (255, 255, 255), share)


def darker(shade: Color, share: float) -> Color:
    return mix(shade, (0, 0, 0), share)


@dataclass(frozen=True)
class Gradient:
    """Colours from top to bottom, spread evenly from row `top` to row `bottom`."""

    top: float
    bottom: float
    stops: tuple[Color, ...]

    def at(self, y: float) -> Color:
        place = min(max((y - self.top) / max(self.bottom - self.top, 1), 0), 0.9999) * (len(self.stops) - 1)
        return mix(self.stops[int(place)], self.stops[int(place) + 1], place % 1)


Paint = Color | Gradient


@lru_cache(maxsize=8192)
def _blend(value: int, alpha: int) -> bytes:
    """What becomes of each byte when `value` is laid over it with `alpha` of `_ALPHAS`."""
    return bytes((old * (_ALPHAS - alpha) + value * alpha + _ALPHAS // 2) // _ALPHAS for old in range(256))


class Canvas:
    """A picture of `width` times `height` pixels, black at first."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self._planes = [bytearray(width * height) for _ in range(3)]

    # --- painting

    def span(self, y: int, start: int, end: int, shade: Color, alpha: float = 1.0) -> None:
        """Paints the pixels `start` to `end` (exclusive) of row `y`."""
        start, end = max(start, 0), min(end, self.width)
        if end <= start or not 0 <= y < self.height:
            return
        begin, stop = y * self.width + start, y * self.width + end
        level = round(alpha * _ALPHAS)
        for plane, value in zip(self._planes, shade, strict=True):
            if level >= _ALPHAS:
                plane[begin:stop] = bytes((value,)) * (stop - begin)
            elif stop - begin == 1:
                plane[begin] += (value - plane[begin]) * level // _ALPHAS
            else:
                plane[begin:stop] = plane[begin:stop].translate(_blend(value, level))

    def rectangle(self, left: float, top: float, right: float, bottom: float, paint: Paint, alpha: float = 1.0) -> None:
        self.fill(top, bottom, lambda y: ((left, right),) if top <= y < bottom else (), paint, alpha)

    def fill(self, top: float, bottom: float, at: Callable[[float], Intervals], paint: Paint, alpha: float = 1.0) -> None:
        """Paints the shape whose intervals on the line `y` are `at(y)`; exact along x, four lines to a row along y."""
        width = self.width
        for row in range(max(math.floor(top), 0), min(math.ceil(bottom), self.height)):
            changes: dict[int, float] = {}
            for subrow in range(_SUBROWS):
                for start, end in at(row + (subrow + 0.5) / _SUBROWS):
                    start, end = max(start, 0.0), min(end, width)
                    if end > start:
                        for place, sign in ((start, 1), (end, -1)):
                            pixel = int(place)
                            part = (place - pixel) * sign
                            changes[pixel] = changes.get(pixel, 0.0) + sign - part
                            changes[pixel + 1] = changes.get(pixel + 1, 0.0) + part
            if changes:
                shade = paint.at(row) if isinstance(paint, Gradient) else paint
                covered = 0.0
                for pixel, following in pairwise(sorted(changes)):
                    covered += changes[pixel]
                    if covered * alpha > _FAINT:
                        self.span(row, pixel, following, shade, min(covered / _SUBROWS, 1.0) * alpha)

    def polygon(self, points: Sequence[Point], paint: Paint, alpha: float = 1.0) -> None:
        """A polygon by the even-odd rule."""
        edges = []
        for (x1, y1), (x2, y2) in pairwise((*points, points[0])):
            if y1 != y2:
                (upper_y, x), (lower_y, _) = sorted(((y1, x1), (y2, x2)))
                edges.append((upper_y, lower_y, x, (x2 - x1) / (y2 - y1)))
        if not edges:
            return
        edges.sort(reverse=True)
        active: list[tuple[float, float, float, float]] = []
        bottom = max(edge[1] for edge in edges)

        def at(y: float) -> Intervals:
            nonlocal active
            while edges and edges[-1][0] <= y:
                active.append(edges.pop())
            active = [edge for edge in active if edge[1] > y]
            crossings = sorted(x + (y - upper_y) * slope for upper_y, _, x, slope in active)
            return list(zip(crossings[::2], crossings[1::2], strict=False))

        self.fill(edges[-1][0], bottom, at, paint, alpha)

    def ellipse(self, x: float, y: float, width: float, height: float, paint: Paint, alpha: float = 1.0) -> None:
        """An ellipse by its centre and its half axes."""
        self.fill(y - height, y + height, disc(x, y, width, height), paint, alpha)

    def line(self, points: Sequence[Point], thickness: float, paint: Paint, alpha: float = 1.0) -> None:
        """Straight strokes from point to point."""
        for (x1, y1), (x2, y2) in pairwise(points):
            length = math.hypot(x2 - x1, y2 - y1) or 1.0
            dx, dy = (y2 - y1) / length * thickness / 2, (x1 - x2) / length * thickness / 2
            self.polygon([(x1 + dx, y1 + dy), (x2 + dx, y2 + dy), (x2 - dx, y2 - dy), (x1 - dx, y1 - dy)], paint, alpha)

    def glow(self, x: float, y: float, radius: float, shade: Color, alpha: float, sharpness: float = 2.0) -> None:
        """Light around a point, from `alpha` in the middle to nothing at `radius`."""
        alphas = [alpha * (1 - (ring + 0.5) / _RINGS) ** sharpness for ring in range(_RINGS)]
        for row in range(max(math.floor(y - radius), 0), min(math.ceil(y + radius), self.height)):
            off = row + 0.5 - y
            reaches = [
                math.sqrt(reach) if (reach := (radius * ring / _RINGS) ** 2 - off * off) > 0 else 0.0
                for ring in range(_RINGS + 1)
            ]
            for ring in range(_RINGS):
                inner, outer = reaches[ring], reaches[ring + 1]
                if outer > 0 and alphas[ring] > _FAINT:
                    self.span(row, round(x - outer), round(x - inner), shade, alphas[ring])
                    self.span(row, round(x + inner), round(x + outer), shade, alphas[ring])

    # --- the file

    def png(self) -> bytes:
        """The picture as a PNG: 8 bits a colour, filter "up", which suits skies."""
        width = self.width
        deflate = zlib.compressobj(6)
        size = 3 * width
        high = int.from_bytes(b"\x80" * size, "little")
        previous = 0
        packed = bytearray()
        row = bytearray(size)
        for begin in range(0, width * self.height, width):
            for offset, plane in enumerate(self._planes):
                row[offset::3] = plane[begin : begin + width]
            current = int.from_bytes(row, "little")
            # The difference of all bytes at once, modulo 256 each: the top bit keeps the borrow from its neighbour.
            difference = ((current | high) - (previous & ~high)) ^ ((current ^ ~previous) & high)
            packed += deflate.compress(b"\x02" + difference.to_bytes(size, "little"))
            previous = current
        packed += deflate.flush()
        head = struct.pack(">IIBBBBB", width, self.height, 8, 2, 0, 0, 0)
        chunks = ((b"IHDR", head), (b"sRGB", b"\0"), (b"IDAT", bytes(packed)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def disc(x: float, y: float, width: float, height: float) -> Callable[[float], Intervals]:
    """The intervals of an ellipse, for `Canvas.fill`."""

    def at(line: float) -> Intervals:
        square = 1 - ((line - y) / height) ** 2
        if square <= 0:
            return ()
        reach = width * math.sqrt(square)
        return ((x - reach, x + reach),)

    return at


def without(whole: Callable[[float], Intervals], hole: Callable[[float], Intervals]) -> Callable[[float], Intervals]:
    """The intervals of `whole` that are not in `hole`."""

    def at(line: float) -> Intervals:
        rest = list(whole(line))
        for low, high in hole(line):
            rest = [(a, b) for start, end in rest for a, b in ((start, min(end, low)), (max(start, high), end)) if b > a]
        return rest

    return at


def curve(points: Iterable[Point], steps: int = 8) -> list[Point]:
    """A smooth line through the points (Catmull-Rom)."""
    known = list(points)
    known = [known[0], *known, known[-1]]
    smooth: list[Point] = []
    for (ax, ay), (bx, by), (cx, cy), (dx, dy) in zip(known, known[1:], known[2:], known[3:], strict=False):
        for step in range(steps):
            t = step / steps
            u, v, w = t * (2 * t - t * t - 1) / 2, (t * t * (3 * t - 5) + 2) / 2, t * ((4 - 3 * t) * t + 1) / 2
            z = t * t * (t - 1) / 2
            smooth.append((u * ax + v * bx + w * cx + z * dx, u * ay + v * by + w * cy + z * dy))
    return [*smooth, known[-1]]


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
