"""A pod has its node with claims that are reserved for it and a group that is there, and both stay while it needs them.

A scheduler reserves claims for a pod, then binds it; one that gives up takes its reservation back. Those are writes of
two objects, and with several schedulers one may bind what another is just letting go of:

    one     reserves the claim ─ no answer ─ has the pod a node? no ──────────────── lets go of the claim
    other              sees that it is reserved ──────────────────── binds the pod ─┘ whoever is second is refused

So each is judged by the other object, as it is stored and as it is going to be, in the same transaction. The same is
so for a pod of a group, whose node is on its way while the group, which seems to have no pods left, is let go.
Kubernetes has no such rule. People may do as they like, as there; components (users of the system) are refused with a
conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dray.api.generated.core import Binding, Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.kinds import CLAIMS, POD_GROUPS, PODS
from dray.api.pod_claims import is_pod, is_reserved_for
from dray.api.pod_groups import FINALIZER, is_group
from dray.api.pods import is_finished
from dray.api.references import ObjectName
from dray.api.resource import ResourceClaim, ResourceClaimConsumerReference
from dray.server import errors
from dray.server.engine import Call, Engine
from dray.server.objects import is_done
from dray.store import Basis, Finish, Key

User = ResourceClaimConsumerReference


def is_judged(call: Call) -> bool:
    """Whether a caller is a component, a node or a ServiceAccount, and no person, who may know better."""
    return call.caller.user.startswith("system:")


def binding(engine: Engine, given: Binding, pod: Pod, finish: Finish) -> tuple[Finish, Basis]:
    """How the store completes a pod that gets its node, and what that is judged by.

    The store is refused (ApiError 409) when it asks if a claim is not reserved for the pod, or a group that the binding
    names as its owner is not there. What is not there may be nobody's to let go of: a scheduler for which claims or
    groups are switched off does not look at them.
    """
    namespace = pod.metadata.namespace
    claims = tuple(Key(CLAIMS.resource, namespace, name) for name in _claim_names(pod))
    owners = [owner for owner in given.metadata.owner_references if owner.kind == POD_GROUPS.kind]
    groups = tuple(Key(POD_GROUPS.resource, namespace, owner.name) for owner in owners)
    if not claims and not groups:
        return finish, Basis()

    def complete(revision: int) -> tuple[Any, bytes]:
        for owner, key in zip(owners, groups, strict=True):
            if not _stays(engine, key, owner.uid):
                raise errors.conflict(PODS, pod.metadata.name, f"PodGroup {key.name} is not there; schedule it anew")
        for key in claims:
            states = [record.obj for record in (engine.store.get(key), engine.store.pending(key)) if record is not None]
            if not all(is_reserved_for(claim, pod) for claim in states):
                why = f"ResourceClaim {key.name} is not reserved for it; schedule it anew"
                raise errors.conflict(PODS, pod.metadata.name, why)
        return finish(revision)

    return complete, Basis(keys=(*claims, *groups))


def release(engine: Engine, new: ResourceClaim, old: ResourceClaim, finish: Finish) -> tuple[Finish, Basis]:
    """How the store completes a claim that has fewer users, and what that is judged by.

    The store is refused (ApiError 409) when it asks if one of them has a node and still needs the claim.
    """
    left = {user.uid for user in new.status.reserved_for}
    gone = [user for user in old.status.reserved_for if user.uid not in left]
    if not gone:
        return finish, Basis()
    namespace = new.metadata.namespace

    def complete(revision: int) -> tuple[Any, bytes]:
        for user in gone:
            for pod in _pods_of(engine, old, user):
                if pod.spec.node_name and not is_finished(pod):
                    why = f"pod {pod.metadata.name} has a node and uses it"
                    raise errors.conflict(CLAIMS, new.metadata.name, why)
        return finish(revision)

    pods = tuple(Key(PODS.resource, namespace, user.name) for user in gone if is_pod(user))
    groups = ((PODS.resource, namespace),) if any(is_group(user) for user in gone) else ()
    return complete, Basis(keys=pods, namespaces=groups)


def dissolution(engine: Engine, new: PodGroup, old: PodGroup, finish: Finish) -> tuple[Finish, Basis]:
    """How the store completes a group that pods keep no longer, and what that is judged by.

    The store is refused (ApiError 409) when it asks if one of its pods is there and not finished.
    """
    if FINALIZER in new.metadata.finalizers or FINALIZER not in old.metadata.finalizers:
        return finish, Basis()
    name = ObjectName.of(old)

    def complete(revision: int) -> tuple[Any, bytes]:
        for pod in _members(engine, name):
            if not is_finished(pod):
                raise errors.conflict(POD_GROUPS, name.name, f"pod {pod.metadata.name} is of it")
        return finish(revision)

    return complete, Basis(namespaces=((PODS.resource, name.namespace),))


def _pods_of(engine: Engine, claim: ResourceClaim, user: User) -> Iterator[Pod]:
    """The pods that use a claim as a user, or as members of it, in each state in which they are or are going to be."""
    namespace = claim.metadata.namespace
    if is_pod(user):
        for pod in _states(engine, Key(PODS.resource, namespace, user.name)):
            # A pod with a node may have got another claim for its extended resources than this one.
            if pod.metadata.uid == user.uid and claim.metadata.name in _claim_names(pod):
                yield pod
    elif is_group(user):
        members = _members(engine, ObjectName(namespace, user.name))
        yield from (pod for pod in members if claim.metadata.name in _claim_names(pod))


def _members(engine: Engine, group: ObjectName) -> Iterator[Pod]:
    """The pods of a group, in each state in which they are or are going to be."""
    for pod in engine.pods_of_group(group):
        yield from _states(engine, Key(PODS.resource, pod.metadata.namespace, pod.metadata.name))


def _states(engine: Engine, key: Key) -> Iterator[Any]:
    for record in (engine.store.get(key), engine.store.pending(key)):
        if record is not None:
            yield record.obj


def _stays(engine: Engine, key: Key, uid: str) -> bool:
    """Whether an object is there, and nothing is on its way that takes it away."""
    states = list(_states(engine, key))
    is_same = all(state.metadata.uid == uid and not is_done(state) for state in states)
    return is_same and engine.store.get(key) is not None


def _claim_names(pod: Pod) -> list[str]:
    """The claims that a pod runs with. One that is still to be made for it is called nothing yet."""
    recorded = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    names = [entry.resource_claim_name or recorded.get(entry.name, "") for entry in pod.spec.resource_claims]
    if pod.status.extended_resource_claim_status is not None:
        names.append(pod.status.extended_resource_claim_status.resource_claim_name)
    return [name for name in names if name is not None]
