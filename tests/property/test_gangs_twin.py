"""Decisions about gangs against a brute-force twin: how many pods that are all alike fit at once, and where."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dray.allocator import Options
from dray.api.references import ObjectName
from dray.scheduling.cluster import Cluster
from dray.scheduling.gang_preemption import find_gang_victims
from dray.scheduling.gangs import Together, decide_group, finish
from dray.scheduling.pod_info import PodInfo, read_pod
from dray.scheduling.refusal import GroupPreempts, Refused
from dray.tracker import Upsert
from scheduler_objects import device_class, node, resource_slice, typed

NAME = ObjectName("ns", "g")
RACK = "rack"

Node = tuple[int, int, int]
"""Free CPUs, devices, and the rack."""


def member(name: str, *, has_device: bool, node_name: str = "", group: str = NAME.name, priority: int = 0) -> Any:
    claims = [{"name": "c", "resourceClaimName": name}] if has_device else []
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"containers": containers, "resourceClaims": claims, "nodeName": node_name, "priority": priority}
    spec |= {"schedulingGroup": {"podGroupName": group}} if group else {}
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}"}
    return typed({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def claim(name: str) -> Any:
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    meta = {"name": name, "namespace": "ns", "uid": f"uid-claim-{name}"}
    return typed(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": {"devices": devices}}
    )


def gang(min_count: int, *, in_one_rack: bool, priority: int = 0) -> Any:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": min_count}}, "priority": priority}
    if in_one_rack:
        spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    meta = {"name": NAME.name, "namespace": NAME.namespace, "uid": "uid-g"}
    return typed({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec})


def cluster_of(nodes: list[Node]) -> Cluster:
    here = Cluster()
    here.set_class("gpu", device_class())
    for number, (cpus, devices, rack) in enumerate(nodes):
        made = node(f"n{number}", labels={RACK: str(rack)}, cpu=str(cpus))
        here.set_node(None, made)
        if devices:
            here.track(Upsert(resource_slice(f"n{number}", *(f"gpu-{each}" for each in range(devices)))))
    return here


def waiting(here: Cluster, size: int, *, has_device: bool, priority: int = 0) -> list[PodInfo]:
    pods = [member(f"p{number}", has_device=has_device, priority=priority) for number in range(size)]
    for pod in pods:
        here.set_pod(pod, pod.metadata.uid)
        if has_device:
            here.set_claim(None, claim(pod.metadata.name))
    return [read_pod(pod) for pod in pods]


def state(here: Cluster) -> Any:
    """What must be as before."""
    used = [(info.name, {key: amount for key, amount in info.used.items() if amount}) for info in here.nodes]
    return used, [sorted(info.pods) for info in here.nodes], dict(here._in_flight)


def room(one: Node, *, has_device: bool) -> int:
    """How many of the pods a node takes: it has three places at most."""
    cpus, devices, _ = one
    return min(cpus, 3, devices) if has_device else min(cpus, 3)


nodes_of_clusters = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=5)


@given(nodes_of_clusters, st.integers(1, 8), st.integers(1, 8), st.booleans(), st.booleans())
def test_a_gang_fits_exactly_if_enough_of_its_pods_do(
    nodes: list[Node], size: int, min_count: int, has_device: bool, in_one_rack: bool
) -> None:
    here = cluster_of(nodes)
    here.groups.set(None, gang(min_count, in_one_rack=in_one_rack))
    pods = waiting(here, size, has_device=has_device)
    before = state(here)
    answer = finish(decide_group(here, NAME, pods, Options()))
    assert state(here) == before
    rooms = [room(one, has_device=has_device) for one in nodes]
    racks = {rack: sum(free for one, free in zip(nodes, rooms, strict=True) if one[2] == rack) for _, _, rack in nodes}
    most = max(racks.values()) if in_one_rack else sum(rooms)
    assert isinstance(answer, Together) == (min(most, size) >= min_count)
    if isinstance(answer, Refused):
        return
    used: dict[str, int] = {}
    devices: set[tuple[str, str]] = set()
    for _, chosen in answer.chosen:
        used[chosen.node] = used.get(chosen.node, 0) + 1
        for _, allocation in chosen.allocations.values():
            for result in allocation.devices.results:
                assert (result.pool, result.device) not in devices
                devices.add((result.pool, result.device))
    assert all(count <= rooms[int(name[1:])] for name, count in used.items())
    assert len(devices) == (len(answer.chosen) if has_device else 0)
    assert not in_one_rack or len({nodes[int(name[1:])][2] for name in used}) == 1


@given(nodes_of_clusters, st.lists(st.integers(0, 4), max_size=6), st.integers(1, 4))
def test_who_goes_is_enough_and_nobody_goes_for_nothing(nodes: list[Node], low: list[int], size: int) -> None:
    here = cluster_of(nodes)
    here.groups.set(None, gang(size, in_one_rack=False, priority=10))
    rooms = [room(one, has_device=False) for one in nodes]
    there: dict[str, str] = {}
    for number, place in enumerate(low):
        name = f"n{place % len(nodes)}"
        if sum(on == name for on in there.values()) < rooms[place % len(nodes)]:
            pod = member(f"low{number}", has_device=False, node_name=name, group="")
            here.set_pod(pod, pod.metadata.uid)
            there[pod.metadata.uid] = name
    pods = waiting(here, size, has_device=False, priority=10)
    before = state(here)
    refused = finish(decide_group(here, NAME, pods, Options()))
    free = sum(rooms) - len(there)
    assert isinstance(refused, Together) == (free >= size)
    if isinstance(refused, Together):
        return
    search = find_gang_victims(here, NAME, pods, Options(), refused)
    while True:
        try:
            next(search)
        except StopIteration as done:
            plan = done.value.preemption
            break
    assert state(here) == before
    assert isinstance(plan, GroupPreempts) == (bool(there) and sum(rooms) >= size)
    if isinstance(plan, GroupPreempts):
        gone = {victim.pod.metadata.uid for victim in plan.victims}
        for number, name in enumerate(f"n{number}" for number in range(len(nodes))):
            stay = sum(on == name for uid, on in there.items() if uid not in gone)
            come = sum(on == name for _, on in plan.places)
            assert stay + come <= rooms[number]
        for uid in gone:  # without any one of them the rest would not fit where it is
            name = there[uid]
            stay = sum(on == name for other, on in there.items() if other not in gone or other == uid)
            assert stay + sum(on == name for _, on in plan.places) > rooms[int(name[1:])]
