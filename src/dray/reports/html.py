"""A page in one file: it asks for nothing, runs nothing, and shows what came from a cluster as text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from html import escape
from typing import Final, NamedTuple, TypeAlias

from dray.api.visible import visible
from dray.reports import svg
from dray.reports.shapes import Picture
from dray.what_if.difference_text import Rows

STYLE: Final = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; background: #fff; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 2rem 0 0.5rem; }
.quiet { color: #5b6672; }
.lead { font-size: 1.1rem; }
.scroll { overflow-x: auto; }
svg { max-width: 100%; height: auto; border: 1px solid #dde2e7; border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
caption { text-align: left; font-weight: 600; padding: 0.8rem 0 0.3rem; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.7rem 0.3rem 0; border-bottom: 1px solid #dde2e7; }
td { overflow-wrap: anywhere; }
th { color: #5b6672; font-weight: 600; }
footer { margin-top: 3rem; border-top: 1px solid #dde2e7; padding-top: 0.7rem; font-size: 0.85rem; }
@media print { body { margin: 0; } section { break-inside: avoid-page; } }
"""
_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"


Part: TypeAlias = str | Rows | Picture
"""A paragraph, a table or a picture."""


class Section(NamedTuple):
    """Some of a report, with a title."""

    title: str
    parts: tuple[Part, ...]


class Document(NamedTuple):
    """A report."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    made: str
    """By what, of what, when."""


def page(document: Document) -> str:
    """The file."""
    return "\n".join(_page(document)) + "\n"


def _page(document: Document) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield '<head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{_text(document.title)}</title>"
    yield f"<style>{STYLE}</style></head>"
    yield f'<body><main><h1>{_text(document.title)}</h1><p class="lead">{_text(document.lead)}</p>'
    for section in document.sections:
        yield f"<section><h2>{_text(section.title)}</h2>"
        for part in section.parts:
            yield from _part(part)
        yield "</section>"
    yield f'</main><footer class="quiet">{_text(document.made)}</footer></body></html>'


def _part(part: Part) -> Iterator[str]:
    if isinstance(part, str):
        yield f"<p>{_text(part)}</p>"
    elif isinstance(part, Picture):
        yield f'<div class="scroll">{svg.draw(part)}</div>'
    else:
        yield f'<div class="scroll"><table><caption>{_text(part.title)}</caption>'
        yield f"<thead><tr>{_cells('<th scope=col>', part.header)}</tr></thead><tbody>"
        yield from (f"<tr>{_cells('<td>', row)}</tr>" for row in part.rows)
        yield "</tbody></table></div>"


def _cells(tag: str, row: Iterable[str]) -> str:
    """The ends of cells need not be written."""
    return "".join(f"{tag}{_text(cell)}" for cell in row)


def _text(text: str) -> str:
    return escape(visible(text))
