"""The order in which admission plugins see a write."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar

from dray.api.meta import Object
from dray.server.admission.dynamic import DynamicAdmission
from dray.server.engine import Call, Engine


class Plugin:
    """A rule about writes. Does nothing; subclasses override what they care about, and say for which kinds."""

    kinds: ClassVar[frozenset[str] | None] = None
    """The kinds that it looks at; None for all."""
    parts: ClassVar[frozenset[str] | None] = None
    """The subresources that it looks at, of which the empty one is the object itself; None for all."""
    switch: ClassVar[str] = ""
    """The name by which it is switched off, as kube-apiserver calls it; empty if it always works."""
    comes_last: ClassVar[bool] = False
    """Whether it refuses only what nobody refuses whom people have configured: it is a rule that Kubernetes lacks, and
    theirs about the same have their own words."""

    def looks_at(self, kind: str, verb: str, part: str) -> bool:
        """Whether it is asked at all about requests with a verb for a part of a kind; the answer is always the same."""
        return (self.kinds is None or kind in self.kinds) and (self.parts is None or part in self.parts)

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """The object as it should be stored; `old` is None for a create."""
        return new

    def check(
        self, engine: Engine, call: Call, new: Object | None, old: Object | None
    ) -> Coroutine[Any, Any, None] | None:
        """Refuses a create (no `old`), update, or delete (no `new`) by raising ApiError.

        What takes long is not done at once, but by whoever awaits what is given back.
        """
        return None


class Chain:
    """Runs plugins one after the other, first all that change, later all that refuse.

    Plugins answer at once, but for comparing many rights. What people have configured (`dynamic`) comes after them, and
    may take its time; only those that want to be the last come after that.
    """

    def __init__(self, plugins: Sequence[Plugin], dynamic: DynamicAdmission | None = None) -> None:
        self._dynamic = dynamic
        self.plugins = tuple(plugins)
        self._mutating = [plugin for plugin in plugins if type(plugin).mutate is not Plugin.mutate]
        self._checking = [plugin for plugin in plugins if type(plugin).check is not Plugin.check]
        self._named = frozenset[str]().union(*(plugin.kinds or () for plugin in plugins))
        self._asked: dict[tuple[str, str, str], tuple[list[Plugin], list[Plugin]]] = {}

    @property
    def is_idle(self) -> bool:
        """Whether people have configured nothing that is to be asked."""
        return self._dynamic is None or self._dynamic.hooks is None

    async def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """What all plugins make of the object."""
        plugins = self._of(call)[0]
        for plugin in plugins:
            new = plugin.mutate(engine, call, new, old)
        dynamic = self._dynamic
        hooks = None if dynamic is None else dynamic.hooks
        if dynamic is None or hooks is None:
            return new

        def again(changed: Object) -> Object:
            for plugin in plugins:
                changed = plugin.mutate(engine, call, changed, old)
            return changed

        return await dynamic.mutate(hooks, engine, call, new, old, again)

    async def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Lets any plugin refuse."""
        plugins = self._of(call)[1]
        dynamic = self._dynamic
        hooks = None if dynamic is None else dynamic.hooks
        if dynamic is None or hooks is None:
            for plugin in plugins:
                if (rest := plugin.check(engine, call, new, old)) is not None:
                    await rest
            return
        for plugin in plugins:
            if not plugin.comes_last and (rest := plugin.check(engine, call, new, old)) is not None:
                await rest
        await dynamic.check(hooks, engine, call, new, old)
        for plugin in plugins:
            if plugin.comes_last and (rest := plugin.check(engine, call, new, old)) is not None:
                await rest

    async def post(self, engine: Engine, call: Call, posted: Object) -> Object:
        """What people have configured to be made of something that is posted where nothing is stored."""
        return posted if self._dynamic is None else await self._dynamic.post(engine, call, posted)

    def _of(self, call: Call) -> tuple[list[Plugin], list[Plugin]]:
        """The plugins that are asked about a call: those for all kinds, and those that name its kind."""
        route = call.route
        kind = route.kind.kind
        asked = (kind if kind in self._named else "", route.verb, route.subresource)
        found = self._asked.get(asked)
        if found is None:
            mutating = [plugin for plugin in self._mutating if plugin.looks_at(*asked)]
            checking = [plugin for plugin in self._checking if plugin.looks_at(*asked)]
            found = self._asked[asked] = (mutating, checking)
        return found
