"""Who may write which part of a claim's status, as Kubernetes 1.37 has it.

`resourceclaims/status` alone is the right to write nothing in particular. Two rights that are no subresources, and are
asked for besides it, say what may be written:

    allocation, reservedFor   the verb of the request on `resourceclaims/binding`, everywhere, of all names
    devices                   on `resourceclaims/driver`, by name of each driver whose entries change:
                              `associated-node:VERB` for a ServiceAccount whose token was issued for a pod on the node
                              that the claim is allocated for, `arbitrary-node:VERB` for everybody else, and any claim

Whoever may write claims, but not free their devices, may not do that by taking away what keeps a claim that is in use:
once it is gone, its devices are given to others, and its pods still have them.
"""

from __future__ import annotations

from collections.abc import Callable

from dray.api import field
from dray.api.field import FieldError
from dray.api.registry import RESOURCE_GROUP
from dray.api.resource import AllocatedDeviceStatus, ResourceClaim, ResourceClaimStatus
from dray.api.resource.allocated_node import allocated_node
from dray.api.resource.claim import FINALIZER
from dray.server.security.authorization import Attributes, Decision, forbidden
from dray.server.security.driver_restriction import ARBITRARY_NODE
from dray.server.security.identity import Identity, node_of_pod

ASSOCIATED_NODE = "associated-node:"

_CLAIMS = "resourceclaims"

Authorize = Callable[[Identity, Attributes], Decision]


def status_problems(
    identity: Identity, verb: str, old: ResourceClaim, new: ResourceClaim, authorize: Authorize
) -> list[FieldError]:
    """What of a write to `resourceclaims/status` the identity has no right to; empty if nothing."""
    problems = _binding_problems(identity, verb, old.status, new.status, authorize)
    if new.status.allocation is None:
        return problems  # what was said of devices goes with the allocation, whoever ends it
    drivers = _changed_drivers(old.status, new.status)
    if not drivers:
        return problems
    node = node_of_pod(identity)
    prefixes = [ARBITRARY_NODE]
    if node and node == allocated_node(new.status.allocation):
        prefixes.insert(0, ASSOCIATED_NODE)
    for driver in drivers:
        wanted = [
            Attributes(f"{prefix}{verb}", RESOURCE_GROUP, _CLAIMS, "driver", new.metadata.namespace, driver)
            for prefix in prefixes
        ]
        decisions = [authorize(identity, each) for each in wanted]
        if not any(decision.allowed for decision in decisions):
            verbs = " or ".join(each.verb for each in wanted)
            denial = forbidden(identity, wanted[0], decisions[0])
            detail = f"changing the devices of driver {driver} needs {verbs} on resourceclaims/driver: {denial}"
            problems.append(field.forbidden("status.devices", detail))
    return problems


def _binding_problems(
    identity: Identity, verb: str, old: ResourceClaimStatus, new: ResourceClaimStatus, authorize: Authorize
) -> list[FieldError]:
    if new.allocation == old.allocation and new.reserved_for == old.reserved_for:
        return []
    denial = _may_not_bind(identity, verb, authorize)
    if not denial:
        return []
    detail = f"changing allocation or reservedFor needs {verb} on resourceclaims/binding: {denial}"
    return [field.forbidden("status.allocation", detail)]


def protection_problems(
    identity: Identity, verb: str, old: ResourceClaim, new: ResourceClaim, authorize: Authorize
) -> list[FieldError]:
    """What of a write to a claim frees devices that are in use, without the right to; empty if nothing does."""
    had = old.metadata.finalizers
    if FINALIZER not in had or FINALIZER in new.metadata.finalizers:
        return []
    users = old.status.reserved_for
    if old.status.allocation is None or not users:
        return []
    denial = _may_not_bind(identity, verb, authorize)
    if not denial:
        return []
    user = f"{users[0].resource} {users[0].name}"
    detail = f"{user} uses the claim: delete that first, or have {verb} on resourceclaims/binding: {denial}"
    return [field.forbidden("metadata.finalizers", detail)]


def _may_not_bind(identity: Identity, verb: str, authorize: Authorize) -> str:
    """Why somebody may not say what claims have; empty if they may."""
    wanted = Attributes(verb, RESOURCE_GROUP, _CLAIMS, "binding")
    decision = authorize(identity, wanted)
    return "" if decision.allowed else str(forbidden(identity, wanted, decision))


def _changed_drivers(old: ResourceClaimStatus, new: ResourceClaimStatus) -> list[str]:
    """The drivers of which entries were added, changed or taken away."""
    if new.devices is old.devices or not (new.devices or old.devices):
        return []
    before = {_device_of(entry): entry for entry in old.devices}
    drivers = {entry.driver for entry in new.devices if before.pop(_device_of(entry), None) != entry}
    return sorted(drivers.union(entry.driver for entry in before.values()))


def _device_of(entry: AllocatedDeviceStatus) -> tuple[str, str, str, str]:
    return entry.driver, entry.pool, entry.device, entry.share_id or ""
