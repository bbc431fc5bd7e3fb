"""Clusters for decisions of the scheduler, built from plain manifests."""

from typing import Any

import builders
from builders import DRIVER, typed
from dray.allocator import Options
from dray.api.generated.core import Namespace, Node, Pod
from dray.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.pod_info import read_pod
from dray.scheduling.refusal import Refused
from dray.scheduling.text import tell
from dray.tracker import Upsert

__all__ = (
    "DRIVER",
    "allocated",
    "choose",
    "chosen_node",
    "claim",
    "cluster",
    "device_class",
    "node",
    "pod",
    "refusal",
    "resource_slice",
    "told",
    "typed",
)


def node(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
    cpu: str = "4",
    plugins: dict[str, str] | None = None,
) -> Node:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "3", **(plugins or {})}}
    return typed(builders.node(name, labels=labels, status=status, **(spec or {})), Node)


def resource_slice(node_name: str, *devices: dict[str, Any] | str) -> ResourceSlice:
    made = builders.resource_slice(f"{node_name}-gpus", *devices, pool=node_name, nodeName=node_name)
    return typed(made, ResourceSlice)


def device_class(name: str = "gpu") -> DeviceClass:
    return typed(builders.device_class(name), DeviceClass)


def claim(name: str = "c", *, status: dict[str, Any] | None = None, **exactly: Any) -> ResourceClaim:
    wanted = builders.request(**{"allocationMode": "ExactCount", "count": 1, **exactly})
    made = builders.claim(name, wanted, namespace="ns", meta={"uid": f"uid-{name}"}, status=status)
    return typed(made, ResourceClaim)


def allocated(device: str, on: str, *, reserved: bool = False, **result: Any) -> dict[str, Any]:
    users = {"other": "other"} if reserved else {}
    return builders.allocated(device, pool=on, on=on, users=users, **result)


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
    used = [builders.pod_claim(each, claim=each) for each in claims]
    if template:
        used.append(builders.pod_claim("t", template=template))
    meta = {"uid": f"uid-{name}", "labels": labels or {}}
    return typed(builders.pod(name, namespace=namespace, cpu=cpu, claims=used, meta=meta, **spec), Pod)


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
