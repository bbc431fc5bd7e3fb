"""Clusters for decisions of the scheduler, built from plain manifests."""

from typing import Any

from dray.allocator import Options
from dray.api import codec
from dray.api.generated.core import Namespace, Node, Pod
from dray.api.meta import Object
from dray.api.registry import by_kind
from dray.api.resource import DeviceClass, ResourceClaim
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.pod_info import read_pod
from dray.scheduling.refusal import Refused
from dray.scheduling.text import tell
from dray.tracker import Upsert

DRIVER = "gpu.example.com"


def typed(value: dict[str, Any]) -> Any:
    kind = by_kind(value["apiVersion"], value["kind"])
    reading = codec.read(value, kind.hub)
    assert isinstance(reading.obj, Object), reading.errors
    return reading.obj


def node(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    cpu: str = "4",
    plugins: dict[str, str] | None = None,
) -> Node:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "3", **(plugins or {})}}
    meta = {"name": name, "labels": labels or {}}
    made: Node = typed({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec or {}, "status": status})
    return made


def resource_slice(node_name: str, *devices: dict[str, Any] | str) -> Any:
    entries = [{"name": device} if isinstance(device, str) else device for device in devices]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node_name, "pool": pool, "devices": entries}
    return typed(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node_name}-gpus"},
            "spec": spec,
        }
    )


def device_class(name: str = "gpu") -> DeviceClass:
    made: DeviceClass = typed({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}})
    return made


def claim(name: str = "c", *, status: dict[str, Any] | None = None, **exactly: Any) -> ResourceClaim:
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **exactly}
    made: ResourceClaim = typed(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": wanted}]}},
            "status": status or {},
        }
    )
    return made


def allocated(device: str, on: str, *, reserved: bool = False, **result: Any) -> dict[str, Any]:
    results = [{"request": "r", "driver": DRIVER, "pool": on, "device": device, **result}]
    selector = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}]}
    status: dict[str, Any] = {"allocation": {"devices": {"results": results}, "nodeSelector": selector}}
    if reserved:
        status["reservedFor"] = [{"resource": "pods", "name": "other", "uid": "other"}]
    return status


def pod(
    name: str = "p",
    *,
    claims: tuple[str, ...] = (),
    template: str = "",
    cpu: str = "1",
    labels: dict[str, str] | None = None,
    namespace: str = "ns",
    **spec: Any,
) -> Pod:
    references: list[dict[str, str]] = [{"name": each, "resourceClaimName": each} for each in claims]
    if template:
        references.append({"name": "t", "resourceClaimTemplateName": template})
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    made: Pod = typed(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": labels or {}},
            "spec": {"containers": [container], "resourceClaims": references, **spec},
        }
    )
    return made


def cluster(*objects: Any) -> Cluster:
    made = Cluster()
    for obj in objects:
        if isinstance(obj, Node):
            made.set_node(None, obj)
        elif isinstance(obj, ResourceClaim):
            made.set_claim(None, obj)
        elif isinstance(obj, Namespace):
            made.set_namespace(obj.metadata.name, obj.metadata.labels)
        elif isinstance(obj, Pod):
            made.set_pod(obj, obj.metadata.uid)
        else:
            if isinstance(obj, DeviceClass):
                made.set_class(obj.metadata.name, obj)
            made.track(Upsert(obj))
    return made


def choose(on: Cluster, wanted: Pod) -> Chosen | Refused:
    return decide(on, read_pod(wanted), Options())


def chosen_node(on: Cluster, wanted: Pod) -> str:
    answer = choose(on, wanted)
    assert isinstance(answer, Chosen), answer
    return answer.node


def refusal(on: Cluster, wanted: Pod) -> Refused:
    answer = choose(on, wanted)
    assert isinstance(answer, Refused), answer
    return answer


def told(on: Cluster, wanted: Pod) -> str:
    return tell(refusal(on, wanted))
