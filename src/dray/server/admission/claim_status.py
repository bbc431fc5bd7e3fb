"""Each part of a claim's status is written by those who have the right for it."""

from __future__ import annotations

from dray.api.meta import Object
from dray.api.resource import ResourceClaim
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.claim_status import status_problems

GATE = "DRAResourceClaimGranularStatusAuthorization"


class ClaimStatusRights(Plugin):
    """Refuses changes of allocation, reservations and devices to those who have only `resourceclaims/status`."""

    kinds = frozenset({"ResourceClaim"})

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Compares the status before and after."""
        if call.route.subresource != "status" or GATE in engine.disabled_gates:
            return
        if isinstance(new, ResourceClaim) and isinstance(old, ResourceClaim) and new.status is not old.status:
            problems = status_problems(call.caller, call.route.verb, old, new, self._roles.allowed)
            if problems:
                raise errors.invalid(call.route.kind, new.metadata.name, problems)
