"""Free means usable: on random clusters a device is free exactly if a pod that asks for it, and it alone, gets it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from allocation_cluster import typed
from allocation_strategies import NODES, clusters
from dray.allocator import Options
from dray.api.generated.core import Node, Pod
from dray.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from dray.hub_agent.device_counts import Count, DeviceCounts
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.device_states import DeviceState, DeviceStates
from dray.scheduling.pod_info import read_pod
from dray.tracker import Remove, Upsert

Json = dict[str, Any]

NODE_STATES: dict[str, Json] = {
    "ready": {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    "silent": {},
    "cordoned": {"spec": {"unschedulable": True}},
    "not ready": {
        "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    },
    "drained": {"spec": {"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}},
    "emptied": {"spec": {"taints": [{"key": "repair", "effect": "NoExecute"}]}},
    "set aside": {"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}},
    "gone": {"gone": True},
}
DRAIN = {"annotations": {"dray.dev/drain": "maintenance:NoSchedule"}}
AMOUNTS = (None, "1n", "1", "2", "3", "4", "5")
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe", "namespace": "default", "uid": "probe"},
    "spec": {
        "containers": [{"name": "c"}],
        "resourceClaims": [{"name": "r", "resourceClaimName": "probe"}],
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    },
}


def with_marks(manifests: list[Json]) -> list[Json]:
    """The same cluster, every device with an attribute that tells it from the others."""
    marked = []
    for manifest in manifests:
        devices = manifest.get("spec", {}).get("devices")
        if manifest["kind"] == "ResourceSlice" and devices:
            named = [{**one, "attributes": {**one["attributes"], "mark": {"string": one["name"]}}} for one in devices]
            manifest = {**manifest, "spec": {**manifest["spec"], "devices": named}}
        marked.append(manifest)
    return marked


def scheduler_of(manifests: list[Json], node_states: dict[str, str]) -> Cluster:
    cluster = Cluster()
    for manifest in manifests:
        match manifest["kind"]:
            case "Node":
                state = NODE_STATES[node_states[manifest["metadata"]["name"]]]
                if "gone" not in state:
                    meta = {**manifest["metadata"], **DRAIN}
                    cluster.set_node(None, typed({"apiVersion": "v1", **manifest, "metadata": meta, **state}, Node))
            case "DeviceClass":
                made = typed(manifest, DeviceClass)
                cluster.set_class(made.metadata.name, made)
            case "ResourceSlice":
                cluster.track(Upsert(typed(manifest, ResourceSlice)))
            case "ResourceClaim" if manifest["metadata"]["name"].startswith("held"):
                cluster.set_claim(None, typed(manifest, ResourceClaim))
    return cluster


def can_be_had(cluster: Cluster, state: DeviceState) -> bool:
    """By trying, with every amount that a request could name."""
    mark = f'device.attributes[device.driver].?mark.orValue("") == "{state.device.id.device}"'
    for amount in AMOUNTS if state.device.device.capacity else (None,):
        exactly: Json = {"deviceClassName": "any", "selectors": [{"cel": {"expression": mark}}]}
        if amount is not None:
            exactly["capacity"] = {"requests": {"m": amount}}
        claim = {
            "kind": "ResourceClaim",
            "metadata": {"name": "probe", "namespace": "default", "uid": "c"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        }
        asked = typed(claim, ResourceClaim)
        cluster.set_claim(None, asked)
        answer = decide(cluster, read_pod(typed(POD, Pod)), Options())
        cluster.set_claim(asked, None)
        if isinstance(answer, Chosen):
            return True
    return False


def check(manifests: list[Json], node_states: dict[str, str]) -> None:
    cluster = scheduler_of(with_marks(manifests), node_states)
    states = list(DeviceStates().devices(cluster))
    assert len(states) == sum(len(view.devices) for view in cluster.tracker.pools.values())
    for state in states:
        usable = can_be_had(cluster, state)
        assert state.is_free == usable, state
        assert state.is_blocked == (state.block is not None), state
        assert usable or state.holders or state.is_tainted or state.is_blocked, "it is said why not"
        assert not (state.is_free and state.is_blocked), state
    counted = DeviceCounts().count(cluster, cluster.classes.values())
    assert counted["any"] == Count(
        total=len(states),
        free=sum(state.is_free for state in states),
        tainted=sum(state.is_tainted for state in states),
        blocked=sum(state.is_blocked for state in states),
    )


node_states = st.fixed_dictionaries(
    {NODES[0]: st.sampled_from(["ready", "silent", *NODE_STATES]), NODES[1]: st.sampled_from(list(NODE_STATES))}
)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(clusters(), node_states)
def test_a_device_is_free_exactly_if_a_pod_can_have_it(manifests: list[Json], states: dict[str, str]) -> None:
    check(manifests, states)


@pytest.mark.soak
@settings(max_examples=10_000, suppress_health_check=list(HealthCheck), deadline=None)
@given(clusters(), node_states)
def test_a_device_is_free_exactly_if_a_pod_can_have_it_at_length(manifests: list[Json], states: dict[str, str]) -> None:
    check(manifests, states)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(clusters(), st.data())
def test_what_is_remembered_is_what_is_so(manifests: list[Json], data: st.DataObject) -> None:
    """One that looked all along sees what one sees that looks for the first time."""
    cluster = scheduler_of(with_marks(manifests), dict.fromkeys(NODES, "ready"))
    long_looking = DeviceStates()
    assert list(long_looking.devices(cluster)) == list(DeviceStates().devices(cluster))
    slices = [typed(manifest, ResourceSlice) for manifest in manifests if manifest["kind"] == "ResourceSlice"]
    for _ in range(4):
        step = data.draw(st.sampled_from(("node", "slice", "claim")))
        if step == "node":
            name, state = data.draw(st.sampled_from(NODES)), NODE_STATES[data.draw(st.sampled_from(list(NODE_STATES)))]
            node = typed(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": {"rack": "r1"}, **DRAIN},
                    **state,
                },
                Node,
            )
            cluster.set_node(None if cluster.nodes.get(name) is None else node, None if "gone" in state else node)
        elif step == "slice":
            one = data.draw(st.sampled_from(slices))
            cluster.track(Remove.of(one) if data.draw(st.booleans()) else Upsert(one))
        else:
            held = data.draw(st.sampled_from([None, *cluster.claims.values()]))
            if held is not None:
                cluster.set_claim(held, None)
        assert list(long_looking.devices(cluster)) == list(DeviceStates().devices(cluster))
