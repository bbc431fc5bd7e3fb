"""What objects use up of quotas, by the names that quotas use. Admission and the quota controller count alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dray.api.generated.core import PersistentVolumeClaim, Pod, Service
from dray.api.meta import Object
from dray.api.pods import is_finished
from dray.api.quantity import Quantity
from dray.api.registry import Kind, by_resource
from dray.api.resource import DeviceRequest, ResourceClaim
from dray.api.resource.claim import ALLOCATION_RESULTS, MODE_ALL
from dray.validation.pod_resources import ZERO, limits_of, requests_of, total_of
from dray.validation.quota_devices import Neighbours, by_class_resource, charged_pod, may_count_claims
from dray.validation.resource_amounts import is_huge_page

DEVICES: Final = "deviceclass.resource.k8s.io/devices"
COUNT: Final = "count/"
STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
OLD_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
LOAD_BALANCER: Final = "LoadBalancer"
ONE: Final = Quantity.of_int(1)
COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
MUST_SPECIFY: Final = {
    f"{prefix}{name}": (prefix == "limits.", name) for prefix in ("", "requests.", "limits.") for name in COMPUTE[:2]
}
"""What every container must say if a quota limits it: whether that is a limit, and of what."""

# Objects that quotas can also count by their plural alone.
COUNTED: Final = frozenset(
    ("configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services")
)

Usage = dict[str, Quantity]


def usage(resource: str, obj: Object, neighbours: Neighbours | None = None) -> Usage:
    """What an object counts for. `resource` is its plural with the group: `pods`, `resourceclaims.resource.k8s.io`.

    Without `neighbours`, claims do not count as extended resources.
    """
    used: Usage = {f"{COUNT}{resource}": ONE}
    if resource in COUNTED:
        used[resource] = ONE
    if isinstance(obj, ResourceClaim):
        used.update(_claim(obj, neighbours))
    elif isinstance(obj, Pod):
        used.update(_pod(obj))
    elif isinstance(obj, PersistentVolumeClaim):
        used.update(_volume_claim(obj))
    elif isinstance(obj, Service):
        used.update(_service(obj))
    return used


def _claim(claim: ResourceClaim, neighbours: Neighbours | None) -> Usage:
    devices: Usage = {}
    for request in claim.spec.devices.requests:
        for class_name, count in _devices(request).items():
            devices[class_name] = devices.get(class_name, ZERO) + count
    used = {f"{class_name}.{DEVICES}": count for class_name, count in devices.items()}
    if neighbours is not None and devices:
        pod = charged_pod(claim, neighbours)
        charged = _pod(pod) if pod is not None else {}
        for name, amount in by_class_resource(devices, neighbours).items():
            left = amount - charged.get(name, ZERO)
            if left > ZERO:
                used[name] = left
    return used


def _devices(request: DeviceRequest) -> dict[str, int]:
    """Devices by class, in the worst case: All may take 32 (4381-147), of alternatives the one that takes most."""
    alternatives = [request.exactly] if request.exactly is not None else list(request.first_available)
    worst: dict[str, int] = {}
    for asked in alternatives:
        count = ALLOCATION_RESULTS if asked.allocation_mode == MODE_ALL else asked.count
        worst[asked.device_class_name] = max(worst.get(asked.device_class_name, 0), count)
    return worst


def _pod(pod: Pod) -> Usage:
    """A pod that has finished uses nothing but the place of an object."""
    if is_finished(pod):
        return {}
    used: Usage = {"pods": ONE}
    overhead = pod.spec.overhead
    for name, amount in total_of((requests_of(pod.spec), overhead)).items():
        if name in COMPUTE or is_huge_page(name):
            used[name] = amount
        used[f"requests.{name}"] = amount
    for name, amount in limits_of(pod.spec).items():
        if name in COMPUTE:
            used[f"limits.{name}"] = amount + overhead[name] if name in overhead else amount
    return used


def missing_amounts(limited: Iterable[str], obj: Object) -> str:
    """What containers of a pod must ask for because a quota limits it, and do not; empty if there is nothing."""
    if not isinstance(obj, Pod) or obj.spec.resources is not None:
        return ""
    containers = (*obj.spec.containers, *obj.spec.init_containers)
    missing = []
    for name in sorted(MUST_SPECIFY.keys() & set(limited)):
        is_limit, plain = MUST_SPECIFY[name]
        without = {
            container.name
            for container in containers
            if plain not in (container.resources.limits if is_limit else container.resources.requests)
        }
        if without:
            missing.append(f"{name} for: {','.join(sorted(without))}")
    return f"must specify {'; '.join(missing)}" if missing else ""


def _service(service: Service) -> Usage:
    """Ports on nodes that it gets, and whether it wants a load balancer."""
    spec = service.spec
    ports = 0
    if spec.type == "NodePort" or (spec.type == LOAD_BALANCER and spec.allocate_load_balancer_node_ports is not False):
        ports = len(spec.ports)
    elif spec.type == LOAD_BALANCER:
        ports = sum(1 for port in spec.ports if port.node_port)
    balancers = ONE if spec.type == LOAD_BALANCER else ZERO
    return {"services.nodeports": Quantity.of_int(ports), "services.loadbalancers": balancers}


def _volume_claim(claim: PersistentVolumeClaim) -> Usage:
    """Its storage, of all classes and of its own."""
    used: Usage = {}
    requests = claim.spec.resources.requests if claim.spec.resources is not None else {}
    if "storage" in requests:
        used["requests.storage"] = requests["storage"]
    of_class = claim.metadata.annotations.get(OLD_CLASS_ANNOTATION) or claim.spec.storage_class_name
    if of_class:
        used.update([(f"{of_class}{STORAGE_CLASS}{name}", amount) for name, amount in used.items()])
        used[f"{of_class}{STORAGE_CLASS}persistentvolumeclaims"] = ONE
    return used


def counted_kinds(name: str) -> tuple[Kind, ...]:
    """The kinds whose objects use up a resource of a quota; none if it is none that is known here."""
    kind = counted_kind(name)
    if kind is None:
        return ()
    claims = by_resource("resource.k8s.io", "resourceclaims") if may_count_claims(name) else None
    return (kind, claims) if claims is not None else (kind,)


def counted_kind(name: str) -> Kind | None:
    """The kind whose objects use up a resource of a quota first; None if it is none that is known here."""
    if name.startswith(COUNT):
        plural, _, group = name.removeprefix(COUNT).partition(".")
        return by_resource(group, plural)
    if name.endswith(f".{DEVICES}"):
        return by_resource("resource.k8s.io", "resourceclaims")
    if name in COUNTED:
        return by_resource("", name)
    if name in ("services.nodeports", "services.loadbalancers"):
        return by_resource("", "services")
    if name == "requests.storage" or STORAGE_CLASS in name:
        return by_resource("", "persistentvolumeclaims")
    if name == "pods" or name in COMPUTE or name.startswith(("requests.", "limits.", "hugepages-")):
        return by_resource("", "pods")
    return None
