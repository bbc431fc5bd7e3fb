"""New places for pods that have to leave are those that the scheduler would choose, and looking changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import builders
import dray
from dray.snapshot import Snapshot
from dray.what_if.difference import compare
from dray.what_if.evictions import Eviction
from scale_up_objects import node
from snapshot_objects import DRIVER, Manifest, claim, device, device_class, held, pod, resource_slice, rule

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def worker(name: str = "p", on: str = "node-1", cpu: int = 1, **spec: Any) -> Manifest:
    made = pod(name, on)
    container = {"name": "main", "image": "image", "resources": {"requests": {"cpu": str(cpu)}}}
    return {**made, "spec": {**made["spec"], "containers": [container], **spec}}


def cluster(*objects: Manifest, nodes: tuple[Manifest, ...] | None = None) -> Snapshot:
    """Two nodes with two devices each; the first device of the first is held for pod p."""
    slices = [resource_slice(name, device("gpu-0"), device("gpu-1")) for name in ("node-1", "node-2")]
    machines = (node("node-1"), node("node-2")) if nodes is None else nodes
    return dray.load(device_class(), *slices, *machines, held(claim("a"), "node-1", "gpu-0", pods=("p",)), *objects)


def evicted(base: Snapshot) -> Eviction:
    (eviction,) = compare(base, base.with_objects(rule("r", pool="node-1")), NOW).evictions
    return eviction


def tainted(name: str, key: str = "k", **more: Any) -> Manifest:
    made = node(name)
    return {**made, "spec": {"taints": [{"key": key, "effect": "NoSchedule", **more}]}}


@pytest.mark.parametrize(
    ("second", "mine", "why_not"),
    [
        (node("node-2"), worker(), None),
        (node("node-2", cpu=1), worker(cpu=2), "1 Insufficient cpu"),
        (tainted("node-2"), worker(), "untolerated taint(s) {k}"),
        (tainted("node-2"), worker(tolerations=[{"key": "k", "operator": "Exists"}]), None),
        (tainted("node-2", value="7"), worker(tolerations=[{"key": "k", "operator": "Gt", "value": "6"}]), None),
        (tainted("node-2", value="5"), worker(tolerations=[{"key": "k", "operator": "Gt", "value": "6"}]), "{k: 5}"),
        ({**node("node-2"), "spec": {"unschedulable": True}}, worker(), "1 node(s) were unschedulable"),
        (node("node-2"), worker(nodeSelector={"zone": "x"}), "2 node(s) didn't match Pod's node affinity/selector"),
    ],
)
def test_a_place_is_where_the_scheduler_would_put_the_pod(
    second: Manifest, mine: Manifest, why_not: str | None
) -> None:
    eviction = evicted(cluster(mine, nodes=(node("node-1"), second)))
    assert eviction.fits is (why_not is None)
    assert eviction.fits_on == ("node-2" if why_not is None else None)
    assert (why_not or "") in (eviction.why_not or "")


def test_a_node_that_the_pod_has_to_leave_again_is_no_place() -> None:
    seconds = [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
    leaving = tainted("node-2", effect="NoExecute")
    eviction = evicted(cluster(worker(tolerations=seconds), nodes=(node("node-1"), leaving)))
    assert eviction.why_not == (
        "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) had untolerated taint(s) {k}."
    )


def test_the_room_that_pods_leave_is_room_for_others() -> None:
    """Both pods are on full nodes, and each fits in the place of the other."""
    other = held(claim("b"), "node-2", "gpu-0", pods=("q",))
    base = cluster(worker(cpu=1), worker("q", "node-2"), other, nodes=(node("node-1", cpu=1), node("node-2", cpu=1)))
    difference = compare(base, base.with_objects(rule("r", device="gpu-0")), NOW)
    assert sorted(str(one.fits_on) for one in difference.evictions) == ["node-1", "node-2"]


@pytest.mark.parametrize("known", [True, False])
def test_nodes_and_pods_that_a_dump_lacks_are_no_obstacle(known: bool) -> None:
    pods = (worker(cpu=64),) if known else ()
    assert evicted(cluster(*pods, nodes=())).fits_on == "node-2"


def test_looking_for_places_changes_nothing() -> None:
    base = cluster(worker(), worker("q", "node-2", cpu=3), held(claim("b"), "node-2", "gpu-1", pods=("q",)))
    after = base.with_objects(rule("r", pool="node-1"))
    before = {device.id: after.holders(device) for device in after.devices()}
    first = compare(base, after, NOW)
    assert {device.id: after.holders(device) for device in after.devices()} == before
    assert compare(base, after, NOW) == first
    used = {info.name: (dict(info.used), sorted(info.pods)) for info in base._world.cluster.nodes}
    assert used == {"node-1": ({"cpu": 10**9}, ["uid-p"]), "node-2": ({"cpu": 3 * 10**9}, ["uid-q"])}


def test_a_rehearsal_has_the_machinery_for_itself() -> None:
    base = cluster(worker())
    other = base.with_objects(rule("r", pool="node-1"))
    with base.rehearsal():
        base.nodes()
        with pytest.raises(RuntimeError, match="during a rehearsal"):
            other.nodes()
        with pytest.raises(RuntimeError, match="two rehearsals"), base.rehearsal():
            pass
    assert other.nodes() == ["node-1", "node-2"]


def gang(min_count: int, *, shares: str = "") -> Manifest:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": min_count}}, "priority": 0}
    if shares:
        spec["resourceClaims"] = [{"name": "links", "resourceClaimName": shares}]
    return builders.manifest("scheduling.k8s.io/v1beta1", "PodGroup", "gang", "ml", spec=spec)


def member(name: str, **spec: Any) -> Manifest:
    return worker(name, schedulingGroup={"podGroupName": "gang"}, **spec)


@pytest.mark.parametrize(("room", "fits"), [(1, False), (2, True)])
def test_a_gang_finds_places_for_enough_of_its_pods_or_for_none(room: int, fits: bool) -> None:
    nodes = (node("node-1"), node("node-2", cpu=room))
    base = dray.load(*nodes, gang(2), member("p"), member("q"))
    evictions = compare(base, base.without("node/node-1"), NOW).evictions
    assert [one.fits for one in evictions] == [fits, fits]
    if not fits:
        assert all("needs nodes for 2 pods at once, and 1 fit" in (one.why_not or "") for one in evictions)


def test_pods_of_a_gang_that_stay_count_for_those_that_come_again() -> None:
    base = dray.load(node("node-1"), node("node-2"), gang(2), member("p"), {**member("q", on="node-2")})
    (eviction,) = compare(base, base.without("node/node-1"), NOW).evictions
    assert eviction.fits_on == "node-2"


def test_a_claim_that_a_group_shares_keeps_its_tainted_device() -> None:
    """It is the group's, not the pods', so that nobody lets go of it when they leave."""
    links = held(claim("links"), "node-1", "gpu-1")
    links["status"]["reservedFor"] = [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "gang"}]
    mine = member("q", resourceClaims=[{"name": "links", "resourceClaimName": "links"}])
    base = cluster(mine, gang(1, shares="links"), links)
    (eviction,) = compare(base, base.with_objects(rule("r", pool="node-1", device="gpu-1")), NOW).evictions
    assert (eviction.fits, eviction.why_not) == (False, f"its claim keeps {DRIVER}/node-1/gpu-1")


@pytest.mark.parametrize(("claims", "fits"), [((), None), ((claim("other"),), False)])
def test_a_claim_that_is_not_there_is_not_known_or_missing(claims: tuple[Manifest, ...], fits: bool | None) -> None:
    """Files have all claims or leave them out."""
    mine = worker(resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
    base = dray.load(node("node-1"), node("node-2"), mine, *claims)
    (eviction,) = compare(base, base.without("node/node-1"), NOW).evictions
    assert (eviction.fits, eviction.why_not) == (fits, 'resourceclaim "c" not found')
