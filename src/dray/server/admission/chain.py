"""The order in which admission plugins see a write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dray.api.meta import Object
from dray.server.engine import Call, Engine


class Plugin:
    """A rule about writes. Does nothing; subclasses override what they care about, and say for which kinds."""

    kinds: ClassVar[frozenset[str] | None] = None
    """The kinds that it looks at; None for all."""

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:  # noqa: ARG002
        """The object as it should be stored; `old` is None for a create."""
        return new

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Refuses a create (no `old`), update, or delete (no `new`) by raising ApiError."""


class Chain:
    """Runs plugins one after the other, first all that change, later all that refuse."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._mutating = [plugin for plugin in plugins if type(plugin).mutate is not Plugin.mutate]
        self._checking = [plugin for plugin in plugins if type(plugin).check is not Plugin.check]
        self._by_kind: dict[str, tuple[list[Plugin], list[Plugin]]] = {}

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """What all plugins make of the object."""
        for plugin in (self._by_kind.get(call.route.kind.kind) or self._of(call))[0]:
            new = plugin.mutate(engine, call, new, old)
        return new

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Lets any plugin refuse."""
        for plugin in (self._by_kind.get(call.route.kind.kind) or self._of(call))[1]:
            plugin.check(engine, call, new, old)

    def _of(self, call: Call) -> tuple[list[Plugin], list[Plugin]]:
        """The plugins that look at the kind of a call, which are remembered."""
        kind = call.route.kind.kind
        found = self._by_kind[kind] = (_looking_at(kind, self._mutating), _looking_at(kind, self._checking))
        return found


def _looking_at(kind: str, plugins: Sequence[Plugin]) -> list[Plugin]:
    return [plugin for plugin in plugins if plugin.kinds is None or kind in plugin.kinds]
