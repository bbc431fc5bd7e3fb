"""Whoever creates an object needs the right to create it, by whatever verb it comes about."""

from __future__ import annotations

from dray.api.meta import Object
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.authorization import Attributes, forbidden


class CreationRight(Plugin):
    """Refuses an apply that would create an object to those who may only patch what is there."""

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles

    def looks_at(self, kind: str, verb: str, part: str) -> bool:
        """A create was judged at the door."""
        return verb != "create" and super().looks_at(kind, verb, part)

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Whatever else stores a new object is judged here."""
        route = call.route
        if old is not None or new is None:
            return
        kind = route.kind
        asked = Attributes("create", kind.group, kind.plural, "", route.namespace, route.name)
        decision = self._roles.allowed(call.caller, asked)
        if not decision.allowed:
            raise forbidden(call.caller, asked, decision)
