"""A pod has its node with claims that are reserved for it, and they stay so until it needs them no more.

A scheduler reserves claims for a pod, then binds it; one that gives up takes its reservation back. Those are writes of
two objects, and with several schedulers one may bind what another is just letting go of:

    one     reserves the claim ─ no answer ─ has the pod a node? no ──────────────── lets go of the claim
    other              sees that it is reserved ──────────────────── binds the pod ─┘ whoever is second is refused

So each is judged by the other object, as it is stored and as it is going to be, in the same transaction. Kubernetes
has no such rule. People may do as they like, as there; components (users of the system) are refused with a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dray.api.generated.core import Pod
from dray.api.kinds import CLAIMS, PODS
from dray.api.pod_claims import is_reserved_for
from dray.api.pod_groups import group_of, is_group
from dray.api.pods import is_finished
from dray.api.resource import ResourceClaim, ResourceClaimConsumerReference
from dray.server import errors
from dray.server.engine import Call, Engine
from dray.store import Basis, Finish, Key

User = ResourceClaimConsumerReference


def is_judged(call: Call) -> bool:
    """Whether a caller is a component."""
    return call.caller.user.startswith("system:")


def binding(engine: Engine, pod: Pod, finish: Finish) -> tuple[Finish, Basis]:
    """How the store completes a pod that gets its node, and what that is judged by.

    The store is refused (ApiError 409) when it asks if a claim is not reserved for the pod. One that is not there is
    nobody's to let go of: a scheduler for which claims are switched off does not look at them.
    """
    namespace = pod.metadata.namespace
    claims = tuple(Key(CLAIMS.resource, namespace, name) for name in _claim_names(pod))
    if not claims:
        return finish, Basis()

    def complete(revision: int) -> tuple[Any, bytes]:
        for key in claims:
            states = [record.obj for record in (engine.store.get(key), engine.store.pending(key)) if record is not None]
            if not all(is_reserved_for(claim, pod) for claim in states):
                why = f"ResourceClaim {key.name} is not reserved for it; schedule it anew"
                raise errors.conflict(PODS, pod.metadata.name, why)
        return finish(revision)

    return complete, Basis(keys=claims)


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

    pods = tuple(Key(PODS.resource, namespace, user.name) for user in gone if _is_pod(user))
    groups = ((PODS.resource, namespace),) if any(is_group(user) for user in gone) else ()
    return complete, Basis(keys=pods, namespaces=groups)


def _is_pod(user: User) -> bool:
    return user.resource == "pods" and not user.api_group


def _pods_of(engine: Engine, claim: ResourceClaim, user: User) -> Iterator[Pod]:
    """The pods that use a claim as a user, or as members of it, in each state in which they are or are going to be."""
    namespace = claim.metadata.namespace
    if _is_pod(user):
        for pod in _states(engine, Key(PODS.resource, namespace, user.name)):
            # A pod with a node may have got another claim for its extended resources than this one.
            if pod.metadata.uid == user.uid and claim.metadata.name in _claim_names(pod):
                yield pod
    elif is_group(user):
        for record in engine.store.list(PODS.resource, namespace).records:
            group = group_of(record.obj)
            if group is not None and group.name == user.name:
                yield from (pod for pod in _states(engine, record.key) if claim.metadata.name in _claim_names(pod))


def _states(engine: Engine, key: Key) -> Iterator[Pod]:
    for record in (engine.store.get(key), engine.store.pending(key)):
        if record is not None:
            yield record.obj


def _claim_names(pod: Pod) -> list[str]:
    """The claims that a pod runs with. One that is still to be made for it is called nothing yet."""
    recorded = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    names = [entry.resource_claim_name or recorded.get(entry.name, "") for entry in pod.spec.resource_claims]
    if pod.status.extended_resource_claim_status is not None:
        names.append(pod.status.extended_resource_claim_status.resource_claim_name)
    return [name for name in names if name is not None]
