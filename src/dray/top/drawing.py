"""The picture of a model at a size: head, list or text, last line. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dray.prose.wording import count
from dray.top import pages, screen
from dray.top.model import Reading, Top
from dray.top.pages import PAGES, SYMBOLS
from dray.top.screen import BOLD, CHOSEN, DIM, PLAIN, PROBLEM, Line, Span, line
from dray.views import grouping
from dray.views.fleet import FleetRow, shown_as
from dray.views.service import NodeRow, RuleRow

LEAST = (20, 6)


def draw(top: Top, width: int, height: int) -> list[Line]:
    """Exactly so many lines, none longer than the width."""
    if width < LEAST[0] or height < LEAST[1]:
        return screen.fill([line("too small")], width, height)
    top.width = width
    head = list(_head(top, width))
    room = height - len(head) - 1
    body = _text(top, top.reading, room) if top.reading is not None else _list(top, width, room)
    return screen.fill([*screen.fill([*head, *body], width, height - 1), _foot(top)], width, height)


def draw_whole(top: Top, width: int) -> list[Line]:
    """Everything that the page has, without keys: for `--once`."""
    height = 5 + 2 * len(top.items())
    listing = top.listing
    listing.index, listing.key = -1, ""
    lines = [*_head(top, width, is_whole=True), *_list(top, width, height)]
    told = [line(Span(f"{one}.", PROBLEM)) for one in top.seen.problems] if top.page <= 1 else []
    return [*(screen.clip(one, width) for one in lines), *told]


def _head(top: Top, width: int, *, is_whole: bool = False) -> Iterator[Line]:
    seen, totals = top.seen, top.seen.totals
    yield line(Span("dray top", BOLD), f"  {seen.server}  nodes {seen.ready}/{seen.nodes} ready")
    parts: list[str | Span] = [f"{count(totals.devices, 'device')}: "]
    for word, symbol in SYMBOLS.items():
        parts += [Span(f"{symbol} {getattr(totals, word)} {word}", word), "  "]
    yield line(*parts)
    if seen.missing:
        yield line(Span(screen.cut(f"You do not see everything: {'; '.join(seen.missing)}.", width), PROBLEM))
    if seen.problems and top.page <= 1 and not is_whole:
        more = f" (and {count(len(seen.problems) - 1, 'more pool')})" if len(seen.problems) > 1 else ""
        yield line(Span(screen.cut(f"{seen.problems[0]}{more}.", width), PROBLEM))
    failed = grouping.failure(seen.picked.values()) if seen.picked and top.page <= 1 else None
    if failed is not None:
        told = f"The filter fails on {count(failed.number, 'device')}, as it would in a claim: {failed.why}"
        yield line(Span(screen.cut(told, width), PROBLEM))
    tabs: list[str | Span] = []
    for number, page in enumerate(PAGES):
        told = f" {number + 1} {page.title}{_number(top, page.name)} "
        tabs.append(Span(told, CHOSEN if number == top.page else DIM))
    tabs.append(f"  {_narrowed(top)}")
    yield line(*tabs)


def _number(top: Top, page: str) -> str:
    seen = top.seen
    numbers = {
        "pending": sum(pod.state in ("pending", "gated") for pod in seen.pods),
        "evictions": sum(rule.in_progress for rule in seen.rules)
        + len(seen.emptied)
        + sum(pod.state == "leaving" for pod in seen.pods),
    }
    return f" {numbers[page]}" if numbers.get(page) else ""


def _narrowed(top: Top) -> str:
    parts = [top.place.sorts[top.listing.sort][0] + (" (down)" if top.listing.down else "")]
    if top.page <= 1 and top.expression:
        parts.append(top.expression)
    if top.listing.words:
        parts.append(f"“{top.listing.words}”")
    if top.within is not None and top.place.name == "devices":
        parts.append(f"on {top.within.node}" if top.within.node else f"of {pages.row_name(top.within)}")
    if top.marked:
        parts.append(f"{len(top.marked)} marked")
    return " · ".join(parts)


def _list(top: Top, width: int, room: int) -> Iterator[Line]:
    if not top.items():
        top.rows_on_screen, top.columns_on_screen = max(1, room - 1), 1
        yield line()
        is_narrowed = top.listing.words or (top.page <= 1 and top.expression)
        # Who may not see everything is not told that there is nothing.
        empty = "Nothing here that you may see." if top.seen.missing else top.place.empty
        yield line("  Nothing matches the filter." if is_narrowed else f"  {empty}")
    elif top.place.name == "fleet":
        yield from _map(top, width, room)
    else:
        yield from _table(top, width, room)


def _map(top: Top, width: int, room: int) -> Iterator[Line]:
    rows: list[FleetRow] = top.items()
    called = pages.row_names(rows)
    label = min(max(map(screen.cells, called.values())), max(8, width // 3))
    most = min(max(len(row.states) for row in rows), width - label - 5)
    across = max(1, width // (label + most + 5))
    top.columns_on_screen, top.rows_on_screen = across, room
    first = _scroll(top, -(-len(rows) // across), top.listing.index // across, room)
    for start in range(first * across, min(len(rows), (first + room) * across), across):
        parts: list[Span] = []
        for index in range(start, min(start + across, len(rows))):
            row = rows[index]
            is_here = index == top.listing.index
            sign = ">" if is_here else "*" if top.place.key(row) in top.marked else " "
            name = screen.pad(called[row.key], label)
            parts += [Span(sign, BOLD), Span(name, CHOSEN if is_here else PLAIN), Span(" ")]
            parts += [*pages.squares(row, top.seen, most), Span("  ")]
        yield tuple(parts)


def _table(top: Top, width: int, room: int) -> Iterator[Line]:
    found = top.items()
    top.columns_on_screen, top.rows_on_screen = 1, max(1, room - 1)
    first = _scroll(top, len(found), top.listing.index, room - 1)
    shown = found[first : first + room - 1]
    cells = [top.place.cells(one, top.seen) for one in shown]
    sizes, header = pages.heading(top.place, cells, width - 2)
    yield line("  ", Span(header, BOLD))
    for number, (item, row) in enumerate(zip(shown, cells, strict=True), start=first):
        is_here = number == top.listing.index
        sign = ">" if is_here else "*" if top.place.key(item) in top.marked else " "
        text = "  ".join(screen.pad(one, size) for one, size in zip(row, sizes, strict=True))
        yield line(Span(f"{sign} ", BOLD), Span(text, CHOSEN if is_here else _style(item)))


def _style(item: Any) -> str:
    letter = getattr(item, "letter", "")
    if letter:
        return shown_as(letter)
    return PROBLEM if isinstance(item, RuleRow | NodeRow) and item.held else PLAIN


def _scroll(top: Top, lines: int, at: int, room: int) -> int:
    """The first line that is shown, so that the cursor is in sight."""
    listing = top.listing
    if at < listing.top:
        listing.top = max(0, at)
    elif at >= listing.top + room:
        listing.top = at - room + 1
    listing.top = max(0, min(listing.top, lines - room))
    return listing.top


def _text(top: Top, reading: Reading, room: int) -> Iterator[Line]:
    top.rows_on_screen = max(1, room - 1)
    more = len(reading.lines) - reading.top - room + 1
    yield line(Span(reading.title, BOLD), Span(f"  {more} more lines" if more > 0 else "", DIM))
    for text in reading.lines[reading.top : reading.top + room - 1]:
        yield line(text)


def _foot(top: Top) -> Line:
    if top.writing is not None:
        return line(Span(top.writing.label, BOLD), top.writing.text, Span(" ", CHOSEN))
    if top.sure is not None:
        return line(Span(top.sure.question, PROBLEM))
    if top.message:
        return line(Span(top.message, PROBLEM if top.is_bad else BOLD))
    if top.reading is not None and top.reading.wish is not None:
        other = "NoSchedule" if top.reading.wish.effect == "NoExecute" else "NoExecute"
        return line(Span(f"y apply  e with {other} instead  Esc leave it", BOLD))
    if top.reading is not None:
        return line(Span("Esc back  arrows scroll", DIM))
    drain = "Space mark  d drain  " if top.page <= 1 else ""
    return line(Span(f"{top.place.hints}  {drain}/ filter  s sort  r turn  ? keys  q end", DIM))
