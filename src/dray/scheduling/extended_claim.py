"""The claim that stands for the extended resources of a pod: which requests it has, and which container gets which.

    init 1 ─▶ sidecar 2 ─▶ init 3 ─▶ containers 4, 5

Sidecars and containers run until the end: each has a request of its own. An init container uses what those hold that
start after it, and what it needs beyond that is one request for all init containers, as large as the hungriest needs.
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.allocator import Explanation
from dray.allocator.reasons import RequestReport
from dray.api.extended_resources import CLAIM_ANNOTATION, is_for_extended
from dray.api.generated.core import (
    Container,
    ContainerExtendedResourceRequest,
    Pod,
    PodExtendedResourceClaimStatus,
    PodSpec,
)
from dray.api.meta import ObjectMeta, OwnerReference
from dray.api.pod_claims import LONGEST_BASE
from dray.api.pods import containers_of
from dray.api.quantity import Quantity
from dray.api.resource import DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaim, ResourceClaimSpec
from dray.api.resource.claim import MODE_EXACT_COUNT

_SUFFIX: Final = "-extended-resources-"
_UNIT: Final = 10**9


class ExtendedClaim(msgspec.Struct, frozen=True):
    """A claim, and which request of it serves which resource of which container."""

    claim: ResourceClaim
    mappings: tuple[ContainerExtendedResourceRequest, ...]

    @property
    def status(self) -> PodExtendedResourceClaimStatus:
        """What the pod's status says of it."""
        return PodExtendedResourceClaimStatus(
            request_mappings=self.mappings, resource_claim_name=self.claim.metadata.name
        )


def make_claim(pod: Pod, name: str, classes: Mapping[str, str]) -> ExtendedClaim:
    """The claim, not stored yet, for those extended resources of a pod that are devices: class names by resource."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(classes):
        found = _Requests(pod.spec, resource, classes[resource])
        requests += found.requests
        mappings += found.mappings
    requests.sort(key=lambda request: request.name)
    meta = pod.metadata
    owner = OwnerReference(api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True)
    claim = ResourceClaim(
        kind="ResourceClaim",
        api_version="resource.k8s.io/v1",
        metadata=ObjectMeta(
            name=name,
            generate_name=_base(meta.name),
            namespace=meta.namespace,
            annotations={CLAIM_ANNOTATION: "true"},
            owner_references=(owner,),
        ),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests))),
    )
    return ExtendedClaim(claim, tuple(mappings))


def claim_name(pod: Pod, attempt: int = 0) -> str:
    """What the claim of a pod is called: always the same, so that an unanswered create is not repeated unnoticed.

    A later `attempt` is another name, if somebody else has the first one.
    """
    digest = sha256(f"{pod.metadata.uid}/{attempt}".encode()).digest()
    return _base(pod.metadata.name) + b32encode(digest)[:5].decode().lower()


def name_resources(report: Explanation, pod: Pod, claims: Sequence[ResourceClaim]) -> Explanation:
    """What was said of claims in this order, with the resources of the pod that requests stand for."""
    containers = containers_of(pod.spec)

    def named(request: RequestReport) -> RequestReport:
        _, place, _, among = request.name.split("-")
        return replace(request, resource=sorted(_requests(containers[int(place)]))[int(among)])

    told = tuple(
        replace(one, requests=tuple(map(named, one.requests))) if is_for_extended(claim) else one
        for one, claim in zip(report.claims, claims, strict=False)
    )
    return replace(report, claims=told)


def _base(pod: str) -> str:
    return pod[: LONGEST_BASE - len(_SUFFIX)].rstrip(".-") + _SUFFIX


class _Requests:
    """The requests for one resource of a pod."""

    def __init__(self, spec: PodSpec, resource: str, class_name: str) -> None:
        self._containers = containers_of(spec)
        self._resource = resource
        self._class = class_name
        self.requests: list[DeviceRequest] = []
        self.mappings: list[ContainerExtendedResourceRequest] = []
        starts = len(spec.init_containers)
        brief = [place for place in range(starts) if spec.init_containers[place].restart_policy != "Always"]
        lasting = [place for place in range(len(self._containers)) if place not in brief]
        own = {place: self._request(place, count) for place in lasting if (count := self._count(place))}
        for place, request in own.items():
            self._map(place, request)
        extra = self._serve_brief(brief, own)
        self.requests += [*([extra] if extra is not None else []), *own.values()]

    def _serve_brief(self, brief: list[int], own: Mapping[int, DeviceRequest]) -> DeviceRequest | None:
        """Maps the init containers that end; what they need beyond what starts after them."""
        lacking: dict[int, int] = {}
        shared: list[tuple[int, DeviceRequest]] = []
        for place in brief:
            missing = self._count(place)
            for later, request in own.items():
                if later > place and missing > 0:
                    assert request.exactly is not None
                    missing -= request.exactly.count
                    shared.append((place, request))
            if missing > 0:
                lacking[place] = missing
        largest = max(lacking, key=lambda place: (lacking[place], -place), default=None)
        extra = self._request(largest, lacking[largest]) if largest is not None else None
        for place in brief:
            for user, request in shared:
                if user == place:
                    self._map(place, request)
            if place in lacking and extra is not None:
                self._map(place, extra)
        return extra

    def _count(self, place: int) -> int:
        quantity = _requests(self._containers[place]).get(self._resource)
        return -(-quantity.nanos // _UNIT) if quantity is not None else 0

    def _request(self, place: int, count: int) -> DeviceRequest:
        """Named after the container's place and that of the resource among its requests by name."""
        among = sorted(_requests(self._containers[place])).index(self._resource)
        exactly = ExactDeviceRequest(device_class_name=self._class, allocation_mode=MODE_EXACT_COUNT, count=count)
        return DeviceRequest(name=f"container-{place}-request-{among}", exactly=exactly)

    def _map(self, place: int, request: DeviceRequest) -> None:
        self.mappings.append(
            ContainerExtendedResourceRequest(
                container_name=self._containers[place].name, resource_name=self._resource, request_name=request.name
            )
        )


def _requests(container: Container) -> Mapping[str, Quantity]:
    return container.resources.requests if container.resources is not None else {}
