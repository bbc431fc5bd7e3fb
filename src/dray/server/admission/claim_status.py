"""Each part of a claim's status is written by those who have the right for it, and so is what keeps it in use."""

from __future__ import annotations

from dray.api.meta import Object
from dray.api.resource import ResourceClaim
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.indexes.stored_roles import StoredRoles
from dray.server.security.claim_status import protection_problems, status_problems

GATE = "DRAResourceClaimGranularStatusAuthorization"


class ClaimStatusRights(Plugin):
    """Refuses changes of allocation, reservations and devices to those who have only `resourceclaims/status`, and to
    those who have only `resourceclaims` to free devices that are in use."""

    kinds = frozenset({"ResourceClaim"})

    def __init__(self, roles: StoredRoles) -> None:
        self._roles = roles

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Compares the status before and after."""
        if not isinstance(new, ResourceClaim) or not isinstance(old, ResourceClaim):
            return
        verb, allowed = call.route.verb, self._roles.allowed
        problems = protection_problems(call.caller, verb, old, new, allowed)
        is_judged = call.route.subresource == "status" and GATE not in engine.disabled_gates
        if is_judged and new.status is not old.status:
            problems += status_problems(call.caller, verb, old, new, allowed)
        if problems:
            raise errors.invalid(call.route.kind, new.metadata.name, problems)
