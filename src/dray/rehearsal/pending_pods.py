"""The pods that wait for a node, with the claims that the claim controller would have made for them. Pure."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from dray.api.generated.core import Pod
from dray.api.registry import by_kind
from dray.api.resource import ResourceClaim, ResourceClaimTemplate
from dray.controllers.resource_claim.pod_plan import claim_for, plan_pod, with_statuses
from dray.snapshot import Snapshot

TEMPLATES = by_kind("resource.k8s.io/v1", "ResourceClaimTemplate").resource
CLAIMS = by_kind("resource.k8s.io/v1", "ResourceClaim").resource
FINISHED = ("Succeeded", "Failed")


class PendingPods(msgspec.Struct, frozen=True):
    """Pods in the order in which a scheduler takes them, claims that are not stored, and pods that cannot be helped."""

    pods: tuple[Pod, ...]
    claims: tuple[ResourceClaim, ...] = ()
    problems: dict[str, str] = {}


def pending_pods(snapshot: Snapshot) -> PendingPods:
    """By priority, then by age, then as they were loaded."""
    waiting = [_with_uid(pod) for pod in snapshot.objects(Pod) if _is_pending(pod)]
    waiting.sort(key=lambda pod: (-(pod.spec.priority or 0), str(pod.metadata.creation_timestamp or "")))
    pods: list[Pod] = []
    claims: list[ResourceClaim] = []
    problems: dict[str, str] = {}
    for pod in waiting:
        made = _missing_claims(pod, snapshot)
        if isinstance(made, str):
            problems[f"{pod.metadata.namespace}/{pod.metadata.name}"] = made
            continue
        claims += made.values()
        names = {entry: claim.metadata.name for entry, claim in made.items()}
        status = replace(pod.status, resource_claim_statuses=with_statuses(pod, names)) if made else pod.status
        pods.append(replace(pod, status=status))
    return PendingPods(tuple(pods), tuple(claims), problems)


def _is_pending(pod: Pod) -> bool:
    return not pod.spec.node_name and pod.metadata.deletion_timestamp is None and pod.status.phase not in FINISHED


def _with_uid(pod: Pod) -> Pod:
    """Manifests have none; owners and reservations are told apart by it."""
    if pod.metadata.uid:
        return pod
    uid = f"{pod.metadata.namespace}/{pod.metadata.name}"
    return replace(pod, metadata=replace(pod.metadata, uid=uid))


def _missing_claims(pod: Pod, snapshot: Snapshot) -> dict[str, ResourceClaim] | str:
    """By entry of the pod, the claims that are still to be made from templates; a text if one cannot be."""
    namespace = pod.metadata.namespace

    def find(name: str) -> ResourceClaim | None:
        found = snapshot.get(CLAIMS, namespace, name)
        return found if isinstance(found, ResourceClaim) else None

    made: dict[str, ResourceClaim] = {}
    for entry in plan_pod(pod, find, dict).make:
        name = entry.resource_claim_template_name or ""
        template = snapshot.get(TEMPLATES, namespace, name)
        if not isinstance(template, ResourceClaimTemplate):
            return f"there is no ResourceClaimTemplate {namespace}/{name}"
        claim = claim_for(pod, entry, template)
        meta = replace(
            claim.metadata,
            name=f"{pod.metadata.name}/{entry.name}",  # no stored claim can be called like this
            generate_name="",
            uid=f"{pod.metadata.uid}/{entry.name}",
        )
        made[entry.name] = replace(claim, metadata=meta)
    return made
