"""Pictures as SVG. Shapes of a colour become one path, so that forty thousand devices are a file one can send."""

from __future__ import annotations

from html import escape

from dray.api.visible import visible
from dray.reports.shapes import PAPER, TEXT_HEIGHT, Picture, Rect, Shape, Stroke, Text


def draw(picture: Picture) -> str:
    """An SVG element, to stand alone or in a page."""
    told = escape(visible(picture.told))
    size = f'width="{picture.width}" height="{picture.height}" viewBox="0 0 {picture.width} {picture.height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{told}">',
        f"<title>{told}</title>",
        f'<rect width="{picture.width}" height="{picture.height}" fill="{PAPER}"/>',
    ]
    # Colour by colour, in the order in which colours come: what lies on something else comes after it.
    paint: dict[tuple[int, str], list[Shape]] = {}
    for shape in picture.shapes:
        paint.setdefault((_depth(shape), shape.colour), []).append(shape)
    for (depth, colour), shapes in sorted(paint.items(), key=lambda item: item[0][0]):
        rects = "".join(
            f"M{one.x} {one.y}h{one.width}v{one.height}h-{one.width}z" for one in shapes if isinstance(one, Rect)
        )
        strokes = "".join(
            f"M{one.x + 0.5} {one.y + 0.5}L{one.to_x + 0.5} {one.to_y + 0.5}"
            for one in shapes
            if isinstance(one, Stroke)
        )
        if rects:
            parts.append(f'<path fill="{colour}" d="{rects}"/>')
        if strokes:
            parts.append(f'<path stroke="{colour}" fill="none" d="{strokes}"/>')
        if depth == 2:
            parts += [_text(one) for one in shapes if isinstance(one, Text)]
    return "\n".join([*parts, "</svg>"])


def _depth(shape: Shape) -> int:
    if isinstance(shape, Text):
        return 2
    return 0 if isinstance(shape, Rect) and min(shape.width, shape.height) > 3 else 1


def _text(text: Text) -> str:
    weight = ' font-weight="600"' if text.bold else ""
    size = 13 if text.bold else 11
    place = f'x="{text.x}" y="{text.y + TEXT_HEIGHT}"'
    said = escape(visible(text.text))
    font = f'font-family="system-ui, sans-serif" font-size="{size}"{weight}'
    return f'<text {place} {font} fill="{text.colour}">{said}</text>'
