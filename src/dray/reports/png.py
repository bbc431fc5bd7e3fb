"""Pictures as PNG, for chats that show no SVG: a raster with a palette, compressed by zlib, written by hand.

Libraries that make PNGs bring decoders for a hundred formats, and their history of holes, for what is forty lines here.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

from dray.reports.letters import WIDTH, rows_of
from dray.reports.shapes import PAPER, Picture, Rect, Shape, Stroke, Text

MOST_PIXELS: Final = 8_000_000
"""A picture of more is drawn once its size instead of twice."""


def draw(picture: Picture) -> bytes:
    """A PNG file, two pixels for one where that is not too large."""
    scale = 2 if 4 * picture.width * picture.height <= MOST_PIXELS else 1
    colours = sorted({PAPER, *(shape.colour for shape in picture.shapes)})
    raster = _Raster(picture.width * scale, picture.height * scale, colours.index(PAPER), scale)
    for shape in picture.shapes:
        raster.draw(shape, colours.index(shape.colour))
    return _encode(raster, colours)


class _Raster:
    """A byte for each pixel: the number of its colour."""

    def __init__(self, width: int, height: int, paper: int, scale: int) -> None:
        self.width, self.height, self.scale = width, height, scale
        self.data = bytearray([paper]) * (width * height)

    def draw(self, shape: Shape, colour: int) -> None:
        if isinstance(shape, Rect):
            self._fill(shape.x, shape.y, shape.width, shape.height, colour)
        elif isinstance(shape, Stroke):
            self._line(shape, colour)
        else:
            self._write(shape, colour)

    def _fill(self, x: int, y: int, width: int, height: int, colour: int) -> None:
        scale = self.scale
        left, right = max(0, x * scale), min(self.width, (x + width) * scale)
        if right <= left:
            return
        row = bytes([colour]) * (right - left)
        for line in range(max(0, y * scale), min(self.height, (y + height) * scale)):
            start = line * self.width + left
            self.data[start : start + len(row)] = row

    def _line(self, shape: Stroke, colour: int) -> None:
        steps = max(abs(shape.to_x - shape.x), abs(shape.to_y - shape.y), 1)
        for step in range(steps + 1):
            x = shape.x + (shape.to_x - shape.x) * step // steps
            y = shape.y + (shape.to_y - shape.y) * step // steps
            self._fill(x, y, 1, 1, colour)

    def _write(self, shape: Text, colour: int) -> None:
        for number, letter in enumerate(shape.text):
            for down, bits in enumerate(rows_of(letter)):
                for across in range(WIDTH):
                    if bits >> (WIDTH - 1 - across) & 1:
                        x = shape.x + number * (WIDTH + 1) + across
                        self._fill(x, shape.y + down, 2 if shape.bold else 1, 1, colour)


def _encode(raster: _Raster, colours: list[str]) -> bytes:
    lines = bytearray()
    for number in range(raster.height):
        lines.append(0)  # this line is not predicted from others
        lines += raster.data[number * raster.width : (number + 1) * raster.width]
    palette = b"".join(bytes.fromhex(colour.removeprefix("#")) for colour in colours)
    header = struct.pack(">IIBBBBB", raster.width, raster.height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(bytes(lines), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
