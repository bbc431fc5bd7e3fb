"""Who says that evictions are meant: a right of its own, because those who taint devices and nodes must not have it."""

from __future__ import annotations

from dray.api.meta import Object
from dray.eviction.confirmations import CONFIRM_ANNOTATION, adds_confirmation
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.authorization import Attributes

VERB = "confirm"


class ConfirmationRight(Plugin):
    """Refuses the annotation that confirms evictions to whoever may not `confirm` the object, by its name."""

    kinds = frozenset({"DeviceTaintRule", "Node", "ResourceSlice"})

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Taking a confirmation back, or leaving it as it is, is anybody's who may write the object."""
        before = {} if old is None else old.metadata.annotations
        if new is None or not adds_confirmation(before, new.metadata.annotations):
            return
        kind, name, user = call.route.kind, new.metadata.name, call.caller.user
        asked = Attributes(VERB, kind.group, kind.plural, "", "", name)
        if not self._roles.allowed(call.caller, asked).allowed:
            why = f"the annotation {CONFIRM_ANNOTATION} needs the right to {VERB} {kind.plural}, which {user} lacks"
            raise errors.forbidden(kind, name, why)
