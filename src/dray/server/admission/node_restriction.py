"""Nodes, and drivers that run on them, write what is theirs (SVS-63, 4381-179)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from dray.api.meta import Object
from dray.api.resource import ResourceSlice
from dray.server.admission.chain import Plugin
from dray.server.admission.most_stored import check_size
from dray.server.engine import Call, Engine
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.authorization import Attributes, refused
from dray.server.security.driver_restriction import check_driver_write
from dray.server.security.node_restriction import check_node_write, is_node


class _Restriction(Plugin):
    """Who acts for a node may write what is that node's."""

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles

    def _refuse(
        self,
        judge: Callable[..., str | None],
        engine: Engine,
        call: Call,
        new: Object | None,
        old: Object | None,
    ) -> None:
        """Raises ApiError if there is a reason why the write must not be."""
        attributes = _attributes(call, new)
        why = judge(
            call.caller,
            attributes,
            old,
            new,
            engine.get,
            engine.published_pools.slices,
            may=lambda asked: self._roles.allowed(call.caller, asked).allowed,
        )
        if why is not None:
            raise refused(attributes, why)


class NodeRestriction(_Restriction):
    """Refuses writes of a node to what belongs to others."""

    def check(
        self, engine: Engine, call: Call, new: Object | None, old: Object | None
    ) -> Coroutine[Any, Any, None] | None:
        """Looks at the object before and after; for an eviction or a token also at what is posted."""
        if not is_node(call.caller):
            return None
        self._refuse(check_node_write, engine, call, new, old)
        return check_size(engine, call, new) if call.is_large and new is not None else None


class DriverRestriction(_Restriction):
    """Refuses slices that a driver's ServiceAccount may not write."""

    kinds = frozenset({"ResourceSlice"})
    comes_last = True

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Looks at the slice before and after."""
        if not isinstance(new if new is not None else old, ResourceSlice):
            return
        self._refuse(check_driver_write, engine, call, new, old)


def _attributes(call: Call, new: Object | None) -> Attributes:
    """What the call does; the name of a new object may have been generated meanwhile."""
    route = call.route
    name = route.name or (new.metadata.name if new is not None else "")
    return Attributes(route.verb, route.kind.group, route.kind.plural, route.subresource, route.namespace, name)
