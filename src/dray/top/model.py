"""What the screen shows and what keys do: keys in, lines and questions out. Pure.

list ──Enter──▶ reading a text ──Esc──▶ list          list ──/──▶ writing a filter ──Enter──▶ list
list ──d──▶ preview (a text) ──y, or a number and Enter──▶ list of evictions
evictions ──c x u──▶ sure? ──y──▶ evictions
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from dray.api.resource.taint import EFFECT_NO_EXECUTE, EFFECT_NO_SCHEDULE
from dray.prose.wording import count
from dray.snapshot.device_selection import DeviceSelection
from dray.top import keys, pages, texts
from dray.top.asks import Act, Apply, Ask, Describe, Explain, Filter, Preview, Quit, Redraw
from dray.top.pages import PAGES, Page, Scope
from dray.top.seen import Seen, Spot, selection_of
from dray.views.fleet import FleetRow
from dray.views.service import NodeRow, RuleRow
from dray.views.waiting import PodRow

MOST_MARKED: Final = 64


class Listing(msgspec.Struct):
    """How somebody looks at a page."""

    index: int = 0
    key: str = ""
    """Of the item at the cursor: it stays there when others come and go."""
    top: int = 0
    sort: int = 0
    down: bool = False
    words: str = ""


class Reading(msgspec.Struct):
    """A text that is open."""

    title: str
    lines: tuple[str, ...]
    top: int = 0
    wish: Preview | None = None
    """Of a preview: what it is of."""
    digest: str = ""
    number: int = 0
    """What has to be typed to go on; 0 if `y` does."""


class Writing(msgspec.Struct):
    """Text that is being typed, and who gets it."""

    label: str
    done: Callable[[str], list[Ask]]
    text: str = ""


class Sure(msgspec.Struct, frozen=True):
    """Something that is done if the next key is `y`."""

    question: str
    ask: Ask


class Top:
    """`see` what is new, `press` keys, `draw` (in `drawing`) as often as one likes."""

    def __init__(self) -> None:
        self.seen = Seen()
        self.page = 0
        self.listings = [Listing() for _ in PAGES]
        self.within: FleetRow | None = None
        """Only devices of the node of this row, or of its pool if that is of no single node."""
        self.expression = ""
        """Only devices of which this is true."""
        self.marked: dict[str, DeviceSelection] = {}
        self.reading: Reading | None = None
        self.writing: Writing | None = None
        self.sure: Sure | None = None
        self.message = ""
        self.is_bad = False
        self.width = 80
        self.rows_on_screen = 20
        self.columns_on_screen = 1
        self._items: tuple[object, list[Any]] | None = None

    # What there is

    @property
    def place(self) -> Page:
        """The page."""
        return PAGES[self.page]

    @property
    def listing(self) -> Listing:
        """How it is looked at."""
        return self.listings[self.page]

    def items(self) -> list[Any]:
        """What the page shows, in order; worked out once for every change."""
        listing = self.listing
        within = self.within if self.place.name == "devices" else None
        of = (id(self.seen), self.page, listing.words, listing.sort, listing.down, within)
        if self._items is None or self._items[0] != of:
            scope = Scope(listing.words, within)
            self._items = (of, pages.in_order(self.place, self.seen, scope, listing.sort, down=listing.down))
            self._find_cursor()
        return self._items[1]

    def see(self, seen: Seen) -> None:
        """The cluster is different."""
        self._items = None
        self.seen = seen

    def _find_cursor(self) -> None:
        listing, found = self.listing, self._items[1] if self._items is not None else []
        if not found:
            return
        key = self.place.key
        if not (listing.index < len(found) and key(found[listing.index]) == listing.key):
            places = (number for number, one in enumerate(found) if key(one) == listing.key)
            listing.index = next(places, min(listing.index, len(found) - 1))
        listing.key = key(found[listing.index])

    def current(self) -> Any | None:
        """The item at the cursor."""
        found = self.items()
        return found[min(self.listing.index, len(found) - 1)] if found else None

    # Answers

    def say(self, text: str, *, is_bad: bool = False) -> None:
        """On the last line, until the next key."""
        self.message, self.is_bad = text, is_bad

    def show(self, title: str, text: str) -> None:
        """A text to read."""
        self.say("")
        self.reading = Reading(title, tuple(text.split("\n")))

    def filtered(self, expression: str) -> None:
        """The filter is good."""
        self.expression = expression
        self.say(f"devices of which {expression}" if expression else "all devices")

    def previewed(self, wish: Preview, text: str, digest: str, number: int) -> None:
        """Who would be hit; `number` has to be typed to go on, or `y` if it is 0."""
        self.say("")
        self.reading = Reading("Take out of service", tuple(text.split("\n")), wish=wish, digest=digest, number=number)

    def applied(self, rules: Sequence[str]) -> None:
        """It was done: follow it."""
        self.marked.clear()
        self.reading = None
        self._go(len(PAGES) - 1)
        self.listing.key = f"rule {rules[0]}" if rules else ""
        self._items = None
        self.say(f"{count(len(rules), 'rule')} written; x stops it, u puts back")

    # Keys

    def press(self, key: str) -> list[Ask]:
        """What a key asks for."""
        if key == keys.QUIT:
            return [Quit()]
        if key == keys.REDRAW:
            return [Redraw()]
        if self.writing is not None:
            return self._write(self.writing, key)
        self.say("")
        if self.sure is not None:
            sure, self.sure = self.sure, None
            return [sure.ask] if key in ("y", "Y") else []
        if self.reading is not None:
            return self._read(self.reading, key)
        return self._list(key)

    def _write(self, writing: Writing, key: str) -> list[Ask]:
        if key == keys.ESCAPE:
            self.writing = None
        elif key == keys.ENTER:
            self.writing = None
            return writing.done(writing.text.strip())
        elif key == keys.BACKSPACE:
            writing.text = writing.text[:-1]
        elif key == "clear":
            writing.text = ""
        elif len(key) == 1:
            writing.text += key
        return []

    def _read(self, reading: Reading, key: str) -> list[Ask]:
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -self.rows_on_screen, "pagedown": self.rows_on_screen}
        steps |= {" ": self.rows_on_screen, "home": -len(reading.lines), "end": len(reading.lines)}
        last = max(0, len(reading.lines) - self.rows_on_screen)
        if key in (keys.ESCAPE, "q", "left", keys.BACKSPACE):
            self.reading = None
        elif key in steps:
            reading.top = max(0, min(reading.top + steps[key], last))
        elif reading.wish is not None and key == "e":
            effect = EFFECT_NO_SCHEDULE if reading.wish.effect == EFFECT_NO_EXECUTE else EFFECT_NO_EXECUTE
            return self._working(Preview(reading.wish.selections, effect))
        elif reading.wish is not None and key == "y":
            return self._apply(reading, reading.wish)
        return []

    def _apply(self, reading: Reading, wish: Preview) -> list[Ask]:
        ask = Apply(wish.selections, wish.effect, reading.digest)
        if not reading.number:
            return self._working(ask)

        def typed(text: str) -> list[Ask]:
            if text == str(reading.number):
                return self._working(ask)
            self.say(f"nothing was changed: {text or 'nothing'} is not {reading.number}", is_bad=True)
            return []

        self.writing = Writing(f"type {reading.number} to go on: ", typed)
        return []

    def _working(self, ask: Ask) -> list[Ask]:
        self.say("working it out …")
        return [ask]

    def _list(self, key: str) -> list[Ask]:
        if key == "q":
            return [Quit()]
        if key in ("?", "h"):
            self.show("Keys", texts.HELP)
        elif key in ("1", "2", "3", "4"):
            self._go(int(key) - 1)
        elif key in (keys.TAB, "backtab"):
            self._go((self.page + (1 if key == keys.TAB else -1)) % len(PAGES))
        elif key == "/":
            self._begin_filter()
        elif key == "s":
            self.listing.sort = (self.listing.sort + 1) % len(self.place.sorts)
            self.say(f"sorted by {self.place.sorts[self.listing.sort][0]}")
        elif key == "r":
            self.listing.down = not self.listing.down
        elif key == keys.ESCAPE:
            return self._back()
        elif self._move(key):
            return []
        else:
            return self._on_item(key, self.current())
        return []

    def _go(self, page: int) -> None:
        self.page = page
        self._items = None

    def _back(self) -> list[Ask]:
        """Takes back what narrows the list, one thing at a time."""
        if self.marked:
            self.marked.clear()
        elif self.within is not None and self.place.name == "devices":
            self.within = None
            self._go(0)
        elif self.listing.words:
            self.listing.words = ""
        elif self.expression:
            return [Filter("")]
        return []

    def _begin_filter(self) -> None:
        if self.page <= 1:
            self.writing = Writing("filter (CEL): ", lambda text: [Filter(text)], self.expression)
            return
        listing = self.listing

        def done(text: str) -> list[Ask]:
            listing.words = text
            return []

        self.writing = Writing("filter (words): ", done, listing.words)

    def _move(self, key: str) -> bool:
        number = len(self.items())
        line = self.columns_on_screen if self.place.name == "fleet" else 1
        page = line * max(1, self.rows_on_screen - 1)
        steps = {"up": -line, "k": -line, "down": line, "j": line, "pageup": -page, "pagedown": page}
        steps |= {"home": -number, "end": number, "g": -number, "G": number}
        if self.place.name == "fleet":
            steps |= {"left": -1, "right": 1}
        if key not in steps:
            return False
        listing = self.listing
        listing.index = max(0, min(listing.index + steps[key], number - 1))
        listing.key = self.place.key(self.items()[listing.index]) if number else ""
        return True

    def _on_item(self, key: str, item: Any | None) -> list[Ask]:
        if item is None:
            return []
        if isinstance(item, FleetRow | Spot):
            return self._on_devices(key, item)
        if isinstance(item, PodRow) and key in (keys.ENTER, "e"):
            return self._working(Explain(item.name))
        if isinstance(item, RuleRow) and key in (keys.ENTER, "e"):
            self.show(f"Rule {item.name}", texts.tell_rule(item, self.width))
        if isinstance(item, NodeRow) and key in (keys.ENTER, "e"):
            self.show(f"Node {item.name}", texts.tell_node(item, self.width))
        if isinstance(item, RuleRow | NodeRow):
            return self._on_cause(key, item)
        return []

    def _on_devices(self, key: str, item: FleetRow | Spot) -> list[Ask]:
        if key in (keys.ENTER, "e"):
            if isinstance(item, Spot):
                return self._working(Describe(item.id, item.row.node))
            self.within = item
            self._go(1)
        elif key == " ":
            self._mark(self.place.key(item), selection_of(item))
        elif key == "d":
            chosen = tuple(self.marked.values()) or (selection_of(item),)
            return self._working(Preview(chosen, EFFECT_NO_EXECUTE))
        return []

    def _mark(self, key: str, selection: DeviceSelection) -> None:
        if self.marked.pop(key, None) is None:
            if len(self.marked) >= MOST_MARKED:
                self.say(f"{MOST_MARKED} marks are the most; use dray drain device --cel for more", is_bad=True)
                return
            self.marked[key] = selection
        self._move("right" if self.place.name == "fleet" else "down")

    def _on_cause(self, key: str, cause: RuleRow | NodeRow) -> list[Ask]:
        """Keys on what makes pods leave."""
        name, is_node = cause.name, isinstance(cause, NodeRow)
        if key == "c" and cause.held:
            self.sure = Sure(f"{name}: let its pods leave? (y)", Act("confirm", name, is_node))
        elif key == "c":
            self.say("nothing holds it: there is nothing to confirm")
        elif key == "x" and isinstance(cause, RuleRow) and not (cause.effect == EFFECT_NO_EXECUTE or cause.drained):
            self.say(f"it evicts nobody: the effect is {cause.effect}")
        elif key == "x":
            self.sure = Sure(f"{name}: nobody else leaves? (y)", Act("stop", name, is_node))
        elif key == "u" and isinstance(cause, RuleRow):
            self.sure = Sure(f"{name}: put its devices back in service? (y)", Act("undo", name))
        elif key == "u":
            self.say(f"dray untaint node {name} puts it back")
        return []
