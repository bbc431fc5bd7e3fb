"""Which pods fit in the same places: what is found out about one of them is so for all."""

from __future__ import annotations

import msgspec

from dray.allocator import Options
from dray.api import codec
from dray.scheduling.cluster import Cluster
from dray.scheduling.extended_devices import look_for_devices
from dray.scheduling.pod_info import PodInfo


def find_likeness(
    cluster: Cluster, pod: PodInfo, options: Options, *, keeps_away: bool | None = None
) -> tuple[bytes, ...] | None:
    """Equal for pods that fit in the same places; None if others may help the pod to fit, or share its claim.

    `keeps_away` says whether some pods keep others away, so that it matters which labels a pod has.
    """
    if (
        pod.terms is not None
        or pod.volume_claims
        or any(entry.resource_claim_name for entry in pod.pod.spec.resource_claims)
    ):
        return None
    found = cluster.claims_of(pod.pod)
    if found.problem is not None:
        return None
    devices = look_for_devices(cluster, pod, found.claims, options) if pod.extended else None
    claims = devices.pending if devices is not None else found.claims
    needs = msgspec.json.encode([sorted(pod.requests.items()), sorted(pod.ports)])
    if cluster.nodes.topology.keeps_any_away if keeps_away is None else keeps_away:
        needs += msgspec.json.encode([pod.pod.metadata.namespace, sorted(pod.pod.metadata.labels.items())])
    return (pod.placement_key, needs, *(codec.encode(claim.spec) for claim in claims))
