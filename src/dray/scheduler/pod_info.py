"""What the scheduler needs to know of a pod, read off once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dray.api.generated.core import Container, Pod, PodSpec
from dray.api.quantity import Quantity
from dray.api.sharing import remembered
from dray.api.struct import encode_value

Resources = dict[str, int]
"""Amounts in nano units, by resource name."""

_encode = msgspec.json.Encoder(enc_hook=encode_value).encode


class PodInfo(msgspec.Struct, frozen=True, eq=False):
    """A pod and what follows from its spec."""

    pod: Pod
    requests: Resources
    ports: frozenset[tuple[str, str, int]]
    placement_key: bytes
    """Equal for pods that the same nodes suit, resources and devices aside."""
    unsupported: str = ""
    """What the pod asks for that this scheduler does not do; empty if there is nothing."""
    claims: tuple[tuple[str, str], ...] = ()
    """Namespace and name of the claims that it names, or that were made for it."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.pod.metadata.namespace, self.pod.metadata.name


def read_pod(pod: Pod, known: PodInfo | None = None) -> PodInfo:
    """The facts of a pod; those of `known` where its spec has not changed."""
    if known is not None and known.pod.spec is pod.spec:
        return msgspec.structs.replace(known, pod=pod, claims=_claims(pod))
    return PodInfo(pod, *_facts(pod.spec), claims=_claims(pod))


def _claims(pod: Pod) -> tuple[tuple[str, str], ...]:
    if not pod.spec.resource_claims:
        return ()
    names = [reference.resource_claim_name for reference in pod.spec.resource_claims]
    names += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
    namespace = pod.metadata.namespace
    return tuple([(namespace, name) for name in dict.fromkeys(names) if name])


@remembered
def _facts(spec: PodSpec) -> tuple[Resources, frozenset[tuple[str, str, int]], bytes, str]:
    key = _encode((spec.node_name, spec.node_selector, spec.affinity, spec.tolerations))
    return total_requests(spec), host_ports(spec), key, find_unsupported(spec)


def total_requests(spec: PodSpec) -> Resources:
    """What a pod needs at its hungriest moment: all containers at once, or an init container before them.

    What the pod asks for as a whole counts instead, resource by resource.
    """
    running = _sum(_requests(container) for container in spec.containers)
    sidecars: Resources = {}
    peak: Resources = {}
    for container in spec.init_containers:
        asked = _requests(container)
        if container.restart_policy == "Always":
            sidecars = _sum((sidecars, asked))
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, _sum((sidecars, asked)))
    total = _larger(_sum((running, sidecars)), peak)
    if spec.resources is not None:
        total |= amounts(spec.resources.requests)
    overhead = {name: quantity.nanos for name, quantity in spec.overhead.items()}
    return _sum((total, overhead)) if overhead else total


def _requests(container: Container) -> Resources:
    resources = container.resources
    return {name: quantity.nanos for name, quantity in resources.requests.items()} if resources else {}


def _sum(parts: Iterable[Resources]) -> Resources:
    total: Resources = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _larger(first: Resources, second: Resources) -> Resources:
    return {name: max(first.get(name, 0), second.get(name, 0)) for name in {**first, **second}}


def amounts(quantities: dict[str, Quantity]) -> Resources:
    """Quantities in nano units."""
    return {name: quantity.nanos for name, quantity in quantities.items()}


def host_ports(spec: PodSpec) -> frozenset[tuple[str, str, int]]:
    """The ports of the node that a pod occupies: (address, protocol, port)."""
    return frozenset(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in (*spec.containers, *spec.init_containers)
        for port in container.ports
        if port.host_port
    )


def find_unsupported(spec: PodSpec) -> str:
    """What a pod asks for that would be ignored, and so must keep it pending rather than be scheduled wrongly."""
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            return f"volume {volume.name} needs binding, which this scheduler does not do"
    affinity = spec.affinity
    if affinity is not None:
        for name, terms in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
            if terms is not None and terms.required_during_scheduling_ignored_during_execution:
                return f"required {name} is not supported by this scheduler"
    if any(constraint.when_unsatisfiable == "DoNotSchedule" for constraint in spec.topology_spread_constraints):
        return "topologySpreadConstraints with DoNotSchedule are not supported by this scheduler"
    return ""
