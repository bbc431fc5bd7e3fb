"""What the scheduler needs to know of a pod, read off once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from dray.api.extended_resources import may_be_devices
from dray.api.generated.core import Container, Pod, PodSpec
from dray.api.node_match import NodeMatcher
from dray.api.node_selector import NodeSelector, NodeSelectorRequirement
from dray.api.pod_groups import group_of
from dray.api.pods import containers_of
from dray.api.quantity import Quantity
from dray.api.references import ObjectName, full_name
from dray.api.sharing import remembered
from dray.api.struct import encode_value
from dray.scheduling.pod_terms import MOST_VALUES, PodTerms, read_terms
from dray.scheduling.reasons import PodReason, TooManyTerms

Resources = dict[str, int]
"""Amounts in nano units, by resource name."""

Port = tuple[str, str, int]
"""Address, protocol and number."""

MOST_SAID = 1_000
"""Requirements of nodes, and tolerations, that a pod may have: every node is looked at with all of them."""

_encode = msgspec.json.Encoder(enc_hook=encode_value).encode


class PodInfo(msgspec.Struct, frozen=True, eq=False):
    """A pod and what follows from its spec."""

    pod: Pod
    requests: Resources
    ports: frozenset[Port]
    placement_key: bytes
    """Equal for pods that the same nodes suit, resources and devices aside."""
    fault: PodReason | None = None
    """What is wrong with the pod itself; None if nothing is."""
    claims: tuple[ObjectName, ...] = ()
    """The claims that it names, or that were made for it."""
    terms: PodTerms | None = None
    """What it says about other pods; None if it says nothing."""
    volume_claims: tuple[str, ...] = ()
    """The PersistentVolumeClaims that it mounts."""
    extended: tuple[str, ...] = ()
    """The resources that it asks for and that a device class may stand for."""
    backed: frozenset[str] = frozenset()
    """Those of them for which there is one: where no device plugin has them, they are devices."""
    group: ObjectName | None = None
    """The PodGroup that it is of."""
    required: NodeMatcher | None = None
    """The nodes that its affinity allows; None if it says nothing."""
    preferred: tuple[tuple[int, NodeMatcher], ...] = ()
    """The nodes that it would like, with weights."""

    @property
    def name(self) -> ObjectName:
        """Namespace and name."""
        return ObjectName.of(self.pod)

    @property
    def wants_devices(self) -> bool:
        """Whether devices may decide where it can go."""
        return bool(self.pod.spec.resource_claims or self.extended)

    def are_devices(self, resource: str, allocatable: Resources | None) -> bool:
        """Whether a resource that it asks for is made of devices on a node that offers so much (None: nobody knows)."""
        return resource in self.backed and not (allocatable and allocatable.get(resource))


def read_pod(pod: Pod, known: PodInfo | None = None) -> PodInfo:
    """The facts of a pod; those of `known` where its spec has not changed."""
    if known is not None and known.pod.spec is pod.spec and (not known.terms or _have_same_labels(known.pod, pod)):
        return replace(known, pod=pod, claims=_claims(pod))
    facts = _facts(pod.spec)
    fault = facts.fault
    terms = read_terms(pod)
    if isinstance(terms, PodReason):
        terms, fault = None, fault or terms
    return PodInfo(
        pod,
        facts.requests,
        facts.ports,
        facts.placement_key,
        fault,
        _claims(pod),
        terms,
        volume_claims(pod),
        facts.extended,
        group=group_of(pod),
        required=facts.required,
        preferred=facts.preferred,
    )


def _have_same_labels(one: Pod, other: Pod) -> bool:
    return one.metadata.labels == other.metadata.labels


def identified(pod: Pod) -> Pod:
    """The pod with a uid, by which places, owners and reservations are told apart: manifests have none."""
    if pod.metadata.uid:
        return pod
    return replace(pod, metadata=replace(pod.metadata, uid=full_name(pod)))


def _claims(pod: Pod) -> tuple[ObjectName, ...]:
    extended = pod.status.extended_resource_claim_status
    if not pod.spec.resource_claims and extended is None:
        return ()
    names = [reference.resource_claim_name for reference in pod.spec.resource_claims]
    names += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
    if extended is not None:
        names.append(extended.resource_claim_name)
    namespace = pod.metadata.namespace
    return tuple([ObjectName(namespace, name) for name in dict.fromkeys(names) if name])


def volume_claims(pod: Pod) -> tuple[str, ...]:
    """Those that it names, and those that are made for it and called after it."""
    if not pod.spec.volumes:
        return ()
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.metadata.name}-{volume.name}")
    return tuple(dict.fromkeys(names))


class _Facts(NamedTuple):
    """What follows from a spec, under the names that PodInfo has for it."""

    requests: Resources
    ports: frozenset[Port]
    placement_key: bytes
    extended: tuple[str, ...]
    fault: PodReason | None
    required: NodeMatcher | None
    preferred: tuple[tuple[int, NodeMatcher], ...]


@remembered
def _facts(spec: PodSpec) -> _Facts:
    key = _encode((spec.node_name, spec.node_selector, spec.affinity, spec.tolerations))
    requests = total_requests(spec)
    extended = tuple(sorted(name for name, amount in requests.items() if amount and may_be_devices(name)))
    fault = says_too_much(spec)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None or fault is not None:
        return _Facts(requests, host_ports(spec), key, extended, fault, None, ())
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    return _Facts(
        requests,
        host_ports(spec),
        key,
        extended,
        fault,
        NodeMatcher.of(required) if required is not None else None,
        tuple([(one.weight, NodeMatcher.of(NodeSelector(node_selector_terms=(one.preference,)))) for one in preferred]),
    )


def says_too_much(spec: PodSpec) -> TooManyTerms | None:
    """What a pod says of nodes, if that is more than can be read, or looked at on each node, while others wait."""
    requirements = _requirements(spec)
    said = len(requirements) + len(spec.tolerations)
    if said > MOST_SAID:
        return TooManyTerms("requirements of nodes, and tolerations", said, MOST_SAID)
    values = sum(len(one.values) for one in requirements)
    if values > MOST_VALUES:
        return TooManyTerms("values of labels in requirements of nodes", values, MOST_VALUES)
    return None


def _requirements(spec: PodSpec) -> list[NodeSelectorRequirement]:
    """What there is to look at on each node."""
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None:
        return []
    required = affinity.required_during_scheduling_ignored_during_execution
    terms = [one.preference for one in affinity.preferred_during_scheduling_ignored_during_execution]
    terms += required.node_selector_terms if required is not None else ()
    return [one for term in terms for one in (*term.match_expressions, *term.match_fields)]


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


def host_ports(spec: PodSpec) -> frozenset[Port]:
    """The ports of the node that a pod occupies: (address, protocol, port)."""
    return frozenset(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in containers_of(spec)
        for port in container.ports
        if port.host_port
    )
