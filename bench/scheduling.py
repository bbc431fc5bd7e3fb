"""Decisions about pods that speak of other pods, pods that make others go and gangs, among 500 and 5,000 nodes.

`python -m bench scheduling` prints the figures, in CPU time: decided and assumed, without the writes. The limits that
they should reach are in `LIMITS`.
"""

from __future__ import annotations

import gc
import time
from typing import Any

from msgspec.structs import replace

from dray.allocator import Options
from dray.api.generated.core import (
    Affinity,
    Container,
    Node,
    NodeStatus,
    Pod,
    PodAffinityTerm,
    PodAntiAffinity,
    PodResourceClaim,
    PodSchedulingGroup,
    PodSpec,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from dray.api.generated.scheduling import GangSchedulingPolicy, PodGroup, PodGroupSchedulingPolicy, PodGroupSpec
from dray.api.meta import LabelSelector, ObjectMeta
from dray.api.quantity import Quantity
from dray.api.references import ObjectName
from dray.api.resource import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dray.scheduling import text
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.gangs import Together, decide_group
from dray.scheduling.pod_info import PodInfo, read_pod
from dray.scheduling.preemption import find_victims
from dray.scheduling.refusal import Preempts, Refused
from dray.tracker import Upsert

FEW, MANY, PODS = 500, 5000, 5000
GPU = "example.com/gpu"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ROUNDS = 20
FEW_PODS, MANY_PODS = 8, 64
"""On each of the nodes where pods are made to go."""

LIMITS = {
    "anti_affinity_pods_per_second": 800,
    "zone_spread_pods_per_second": 800,
    "anti_affinity_times_per_pod_with_5000_nodes": 1.5,
    "zone_spread_times_per_pod_with_5000_nodes": 1.5,
    "preemption_ms": 20,
    "preemption_among_many_ms": 20,
    "preemption_of_devices_ms": 20,
    "gang_fits_seconds": 1.0,
    "gang_refused_seconds": 1.0,
    "gang_longest_slice_ms": 20,
}
GANG = 512
DEVICES_PER_NODE = 8


def cluster(nodes: int) -> Cluster:
    """Nodes of 64 CPUs in three zones."""
    made = Cluster()
    allocatable = {"cpu": Quantity.parse("64"), "memory": Quantity.parse("256Gi"), "pods": Quantity.parse("110")}
    for number in range(nodes):
        labels = {HOST: f"node-{number}", ZONE: f"zone-{number * 3 // nodes}"}
        meta = ObjectMeta(name=f"node-{number}", labels=labels)
        made.set_node(None, Node(metadata=meta, status=NodeStatus(allocatable=allocatable)))
    return made


def spec(cpu: str, **fields: Any) -> PodSpec:
    """What a pod with one container asks for."""
    requests = ResourceRequirements(requests={"cpu": Quantity.parse(cpu)})
    return PodSpec(containers=(Container(name="main", image="pause", resources=requests),), **fields)


def pod(name: str, its_spec: PodSpec) -> Pod:
    """One of many with the same spec."""
    return Pod(metadata=ObjectMeta(name=name, namespace="bench", uid=name, labels={"app": "web"}), spec=its_spec)


def seconds_per_pod(nodes: int, its_spec: PodSpec) -> float:
    """How long a decision takes on average, from empty nodes on; as many pods as there are nodes, at most."""
    here = cluster(nodes)
    options = Options()
    number = min(nodes, PODS)
    pods = [pod(f"pod-{each}", its_spec) for each in range(number)]
    gc.collect()
    began = time.process_time()
    for one in pods:
        info = read_pod(one)
        answer = decide(here, info, options)
        assert isinstance(answer, Chosen), answer
        here.assume(info, answer.node, answer.allocations)
    return (time.process_time() - began) / number


def preemption_ms(pods: int) -> float:
    """Until it is known who goes, among 5,000 full nodes with so many pods each; the median of some rounds."""
    here = cluster(MANY)
    lower = [spec(str(64 // pods), priority=priority) for priority in range(3)]
    for node in range(MANY):
        on_node = [replace(low, node_name=f"node-{node}") for low in lower]
        for number in range(pods):
            name = f"low-{node}-{number}"
            here.set_pod(pod(name, on_node[number % 3]), name)
    return _victims_ms(here, spec("16", priority=1000))


def preemption_of_devices_ms() -> float:
    """The same where two devices are wanted, and all eight of every node are held by three pods."""
    here = cluster(MANY)
    here.set_class(
        "gpu", DeviceClass(metadata=ObjectMeta(name="gpu"), spec=DeviceClassSpec(extended_resource_name=GPU))
    )
    here.track(*(Upsert(_slice(f"node-{node}")) for node in range(MANY)))
    for node in range(MANY):
        for number, devices in enumerate(((0, 1), (2, 3), (4, 5, 6, 7))):
            name = f"low-{node}-{number}"
            here.set_claim(None, _held(name, f"node-{node}", devices))
            asked = (PodResourceClaim(name="gpu", resource_claim_name=name),)
            low = spec("1", priority=number, node_name=f"node-{node}", resource_claims=asked)
            here.set_pod(pod(name, low), name)
    amounts = {GPU: Quantity.parse("2")}
    container = Container(name="main", image="pause", resources=ResourceRequirements(requests=amounts, limits=amounts))
    return _victims_ms(here, PodSpec(containers=(container,), priority=1000))


def _held(name: str, node: str, devices: tuple[int, ...]) -> ResourceClaim:
    results = tuple(
        DeviceRequestAllocationResult(request="gpu", driver="gpu.example.com", pool=node, device=f"gpu-{number}")
        for number in devices
    )
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results))
    user = ResourceClaimConsumerReference(resource="pods", name=name, uid=name)
    status = ResourceClaimStatus(allocation=allocation, reserved_for=(user,))
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace="bench", uid=name), status=status)


def _victims_ms(here: Cluster, its_spec: PodSpec) -> float:
    wanted = read_pod(pod("high", its_spec))
    options = Options()
    took = []
    for _ in range(ROUNDS):
        refused = decide(here, wanted, options)
        assert isinstance(refused, Refused)
        began = time.process_time()
        assert isinstance(find_victims(here, wanted, options, refused).preemption, Preempts)
        took.append((time.process_time() - began) * 1000)
    return sorted(took)[ROUNDS // 2]


def gang_cluster(free: int) -> tuple[Cluster, list[PodInfo]]:
    """Nodes with GPUs, so many of them free, one on most nodes; and a gang whose pods need one each."""
    here = cluster(FEW)
    here.set_class("gpu", DeviceClass(metadata=ObjectMeta(name="gpu")))
    extra = max(free - FEW, 0)
    for number in range(min(free, FEW)):
        more = min(extra, DEVICES_PER_NODE - 1)
        extra -= more
        here.track(Upsert(_slice(f"node-{number}", 1 + more)))
    name = ObjectName("bench", "gang")
    policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count=GANG))
    meta = ObjectMeta(name=name.name, namespace=name.namespace, uid="gang")
    here.groups.set(None, PodGroup(metadata=meta, spec=PodGroupSpec(scheduling_policy=policy)))
    request = DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu"))
    claim_spec = ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
    pods = []
    for number in range(GANG):
        claim = ObjectMeta(name=f"claim-{number}", namespace="bench", uid=f"claim-{number}")
        here.set_claim(None, ResourceClaim(metadata=claim, spec=claim_spec))
        entry = PodResourceClaim(name="gpu", resource_claim_name=claim.name)
        group = PodSchedulingGroup(pod_group_name=name.name)
        one = pod(f"member-{number}", spec("1", resource_claims=(entry,), scheduling_group=group))
        here.set_pod(one, one.metadata.uid)
        pods.append(read_pod(one))
    return here, pods


def _slice(node: str, devices: int = DEVICES_PER_NODE) -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{node}-gpus"),
        spec=ResourceSliceSpec(
            driver="gpu.example.com",
            node_name=node,
            pool=ResourcePool(name=node, generation=1, resource_slice_count=1),
            devices=tuple(Device(name=f"gpu-{number}") for number in range(devices)),
        ),
    )


def gang(free: int) -> tuple[float, float, Together | Refused]:
    """How long a decision about a gang takes, how long its longest slice, in seconds, and what it is."""
    here, pods = gang_cluster(free)
    gc.collect()
    deciding = decide_group(here, ObjectName("bench", "gang"), pods, Options())
    began, last = time.perf_counter(), time.thread_time()
    longest = 0.0
    while True:
        try:
            next(deciding)
        except StopIteration as done:
            return time.perf_counter() - began, max(longest, time.thread_time() - last), done.value
        now = time.thread_time()  # other programs do not count
        longest, last = max(longest, now - last), now


def run() -> dict[str, Any]:
    """All measurements; the names carry the units."""
    web = LabelSelector(match_labels={"app": "web"})
    alone = PodAntiAffinity(
        required_during_scheduling_ignored_during_execution=(PodAffinityTerm(label_selector=web, topology_key=HOST),)
    )
    spread = TopologySpreadConstraint(
        max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=web
    )
    fits, slice_of_fitting, together = gang(FEW + GANG)
    refused, slice_of_refused, answer = gang(GANG - 1)
    assert isinstance(together, Together), together
    assert isinstance(answer, Refused), answer
    results: dict[str, Any] = {
        "gang_fits_seconds": round(fits, 3),
        "gang_refused_seconds": round(refused, 3),
        "gang_longest_slice_ms": round(1000 * max(slice_of_fitting, slice_of_refused), 2),
        "gang_refused_because": text.tell(answer),
        "preemption_ms": round(preemption_ms(FEW_PODS), 2),
        "preemption_among_many_ms": round(preemption_ms(MANY_PODS), 2),
        "preemption_of_devices_ms": round(preemption_of_devices_ms(), 2),
    }
    for name, its_spec in (
        ("anti_affinity", spec("100m", affinity=Affinity(pod_anti_affinity=alone))),
        ("zone_spread", spec("100m", topology_spread_constraints=(spread,))),
    ):
        few, many = seconds_per_pod(FEW, its_spec), seconds_per_pod(MANY, its_spec)
        results[f"{name}_pods_per_second"] = round(1 / many)
        results[f"{name}_times_per_pod_with_5000_nodes"] = round(many / few, 2)
    return results
