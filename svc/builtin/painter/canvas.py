"""A picture in memory: anti-aliased shapes, translucent layers and glows in plain Python, and its PNG file.

Each colour has a plane, because `bytes.translate` blends a part of a row at the speed of C. Coordinates are pixels, y
grows downward, and shapes may extend beyond the edges.
"""

import math
import struct
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

Color = tuple[int, int, int]
Point = tuple[float, float]
Stops = Sequence[Color]  # from top to bottom, at equal distances

BLACK, WHITE = (0, 0, 0), (255, 255, 255)
_SUBROWS, _ALPHAS, _FAINT, _MOST_RINGS = 4, 256, 0.004, 80


def color(text: str) -> Color:
    """Return the colour `#rrggbb`."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def mix(first: Color, second: Color, share: float) -> Color:
    """Return `first` with `share` (0..1) of `second`."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def between(stops: Stops, share: float) -> Color:
    """Return the colour at `share` (0..1) of the way from the first colour to the last."""
    place = min(max(share, 0), 1) * (len(stops) - 1)
    return mix(stops[int(place)], stops[min(int(place) + 1, len(stops) - 1)], place % 1)


@lru_cache(maxsize=8192)
def _blend(value: int, alpha: int) -> bytes:
    return bytes((old * (_ALPHAS - alpha) + value * alpha + _ALPHAS // 2) // _ALPHAS for old in range(256))


class Canvas:
    """A picture of `width` times `height` pixels. It begins black."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._planes = [bytearray(width * height) for _ in range(3)]

    def _span(self, y: int, start: int, end: int, shade: Color, alpha: float) -> None:
        start, end = max(start, 0), min(end, self.width)
        begin, stop, level = y * self.width + start, y * self.width + end, round(alpha * _ALPHAS)
        for plane, value in zip(self._planes, shade, strict=True) if end > start else ():
            if level >= _ALPHAS:
                plane[begin:stop] = bytes((value,)) * (stop - begin)
            elif stop - begin == 1:
                plane[begin] += (value - plane[begin]) * level // _ALPHAS
            else:
                plane[begin:stop] = plane[begin:stop].translate(_blend(value, level))

    def fill(self, outlines: Sequence[Sequence[Point]], stops: Stops, alpha: float = 1.0, holes: int = 0) -> None:
        """Paint polygons as one shape without double coverage; the last `holes` of them are cut out of the others.

        Coverage is exact along x, and has four samples for each row along y.
        """
        edges = []
        for number, points in enumerate(outlines):
            closed = list(pairwise((*points, points[0])))
            clockwise = sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in closed) > 0
            sign = (-1 if clockwise else 1) * (1 if number < len(outlines) - holes else holes - len(outlines))
            for (x1, y1), (x2, y2) in closed:
                slope = (x2 - x1) / (y2 - y1) if y1 != y2 else 0.0
                edges.append((y1, y2, x1, slope, sign) if y1 < y2 else (y2, y1, x2, slope, -sign))
        edges.sort(reverse=True)
        solid = [y for points in outlines[: len(outlines) - holes] for _, y in points]
        top, bottom = min(solid), max(solid)
        active: list[tuple[float, float, float, float, int]] = []
        for row in range(max(math.floor(top), 0), min(math.ceil(bottom), self.height)):
            changes: dict[int, float] = {}
            for subrow in range(_SUBROWS):
                y = row + (subrow + 0.5) / _SUBROWS
                while edges and edges[-1][0] <= y:
                    active.append(edges.pop())
                active = [edge for edge in active if edge[1] > y]
                for upper, _, x, slope, sign in active:
                    crossing = min(max(x + (y - upper) * slope, 0.0), self.width)
                    pixel = int(crossing)
                    part = (crossing - pixel) * sign
                    changes[pixel] = changes.get(pixel, 0.0) + sign - part
                    changes[pixel + 1] = changes.get(pixel + 1, 0.0) + part
            shade, covered = between(stops, (row - top) / max(bottom - top, 1)), 0.0
            for pixel, following in pairwise(sorted(changes)):
                covered += changes[pixel]
                if covered * alpha > _FAINT:
                    self._span(row, pixel, following, shade, min(covered / _SUBROWS, 1.0) * alpha)

    def glow(self, outline: Sequence[Point], shade: Color, alpha: float) -> None:
        """Paint light in an ellipse, from `alpha` in its centre to 0 at its outline."""
        (left, right), (top, bottom) = ((min(places), max(places)) for places in zip(*outline, strict=True))
        x, y, width, height = (left + right) / 2, (top + bottom) / 2, (right - left) / 2, (bottom - top) / 2
        rings = min(_MOST_RINGS, 4 + int(min(width, height)), 8 + int(alpha * 128))
        alphas = [alpha * (1 - (ring + 0.5) / rings) ** 2 for ring in range(rings)]
        for row in range(max(math.floor(y - height), 0), min(math.ceil(y + height), self.height)):
            off = ((row + 0.5 - y) / height) ** 2
            reaches = [width * math.sqrt(max((ring / rings) ** 2 - off, 0)) for ring in range(rings + 1)]
            for inner, outer, level in zip(reaches, reaches[1:], alphas, strict=False):
                if outer > 0 and level > _FAINT:
                    self._span(row, round(x - outer), round(x - inner), shade, level)
                    self._span(row, round(x + inner), round(x + outer), shade, level)

    def mirror(self, top: int) -> None:
        """Blend the rows above `top`, upside down and with small waves, into the rows below it, like water."""
        width, tall = self.width, self.height - top
        for down in range(tall):
            near = down / tall
            shift = round(width * 0.012 * (0.15 + near) * math.sin(70 / (near + 0.12)))
            above, here = (top - 1 - down * min(top, tall) // tall) * width, (top + down) * width
            for plane in self._planes:
                row = plane[above : above + width]
                row = row[:1] * shift + row[: width - shift] if shift > 0 else row[-shift:] + row[-1:] * -shift
                below = plane[here : here + width]
                plane[here : here + width] = bytes((old + new) // 2 for old, new in zip(below, row, strict=True))

    def png(self) -> bytes:
        """Return the picture as a PNG with 8 bits for each colour. No filter makes flat shapes smaller."""
        pixels, size = bytearray(3 * self.width * self.height), 3 * self.width
        for offset, plane in enumerate(self._planes):
            pixels[offset::3] = plane
        rows = b"".join(b"\0" + pixels[begin : begin + size] for begin in range(0, len(pixels), size))
        head = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        png = b"\x89PNG\r\n\x1a\n"
        for kind, data in ((b"IHDR", head), (b"sRGB", b"\0"), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
            png += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        return png
