"""Previews say what the eviction guard of the cluster says to so many pods."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

import dray
from dray.api.generated.core import Namespace, Node, Taint
from dray.api.meta import ObjectMeta
from dray.api.resource import DeviceTaintRule
from dray.eviction.drain import DrainTerms
from dray.eviction.settings import Limit
from dray.eviction.stop import STOP_ANNOTATION
from dray.eviction.told_limit import LIMIT_ANNOTATION, limit_text, told_limit
from dray.eviction.told_past import PAST_ANNOTATION
from dray.snapshot import Snapshot
from dray.what_if.difference import compare
from dray.what_if.drain_preview import paced
from dray.what_if.taint_preview import TaintPreview, preview_nodes, preview_rules
from dray.what_if.taint_preview_text import tell
from snapshot_objects import (
    DRIVER,
    Manifest,
    claim,
    device,
    device_class,
    held,
    node,
    pod,
    resource_slice,
    rule,
)

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
EVICT = (Taint(key="maintenance", effect="NoExecute"),)


def place(**annotations: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "annotations": annotations}}


def cluster(told: str | None, *, here: int, elsewhere: int) -> Snapshot:
    """So many running pods on node-1, and on node-2; the controllers have told their limit, or nothing."""
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}} for number in (1, 2)]
    pods: list[Any] = [pod(f"here-{number}", "node-1", phase="Running") for number in range(here)]
    pods += [pod(f"there-{number}", "node-2", phase="Running") for number in range(elsewhere)]
    pods.append(pod("done", "node-2", phase="Succeeded"))
    return dray.load(*nodes, *pods, place(**({LIMIT_ANNOTATION: told} if told is not None else {})))


def look(snapshot: Snapshot) -> TaintPreview:
    there = next(one for one in snapshot.objects(Node) if one.metadata.name == "node-1")
    return preview_nodes(snapshot, [there], EVICT, NOW)


@pytest.mark.parametrize(
    ("told", "allowed", "is_over"),
    [("2", 2, True), ("3", 3, False), ("50%", 5, False), ("20%", 2, True), ("1,node", 7, False)],
)
def test_a_preview_says_how_many_of_how_many_leave_and_what_the_limit_is(
    told: str, allowed: int, is_over: bool
) -> None:
    snapshot = cluster(told, here=3, elsewhere=7)
    found = look(snapshot)
    assert found.guard is not None
    assert (found.guard.pods, found.guard.of, found.guard.allowed, found.guard.is_over) == (3, 10, allowed, is_over)
    said = f"Guard: 3 of 10 pods (30.0%), limit {told}: {allowed} pods."
    assert said in tell(found)
    assert ("They stay until `dray confirm node/node-1`." in tell(found)) == is_over
    drain = paced(found, DrainTerms(), ("maintenance:NoSchedule",), snapshot)
    assert said in tell(drain)
    assert ("It asks first; --yes for scripts." in tell(drain)) == is_over


def test_who_left_in_the_hour_before_is_told_since_the_guard_counts_them() -> None:
    """Else what is within the limit by its preview would be held all the same."""
    then = [(NOW.timestamp() - ago, pods, used) for ago, pods, used in ((3700, 9, 9), (3500, 40, 1), (5, 8, 6))]
    told = {"a": {"left": then[:1]}, "b": {"left": then[1:]}}
    notes = {LIMIT_ANNOTATION: "50", PAST_ANNOTATION: json.dumps(told).replace(".0", "")}
    used = held(claim("train"), "node-1", "gpu-0", pods=("runs",))
    objects = (node("node-1"), device_class(), resource_slice("node-1", device("gpu-0")), used, pod("runs"))
    snapshot = dray.load(*objects, place(**notes))
    found = look(snapshot)
    assert "Guard: 1 of 1 pods (100.0%), limit 50: 50 pods. 48 left in the last hour, and count, too." in tell(found)
    assert "last hour" not in tell(paced(found, DrainTerms(), ("maintenance:NoSchedule",), snapshot)), "no guard counts"
    (made,) = snapshot.with_objects(rule("r", driver=DRIVER)).objects(DeviceTaintRule)
    assert "limit 50: 50 pods. 7 left in the last hour, and count, too." in tell(preview_rules(snapshot, [made], NOW))
    assert "last hour" not in tell(look(dray.load(*objects, place(**{LIMIT_ANNOTATION: "50"}))))


@pytest.mark.parametrize(("gone", "is_over"), [(49, False), (50, True)])
def test_what_is_too_much_with_those_who_left_is_said_to_be_held(gone: int, is_over: bool) -> None:
    told = json.dumps({"a": {"left": [(int(NOW.timestamp()) - 60, gone, gone)]}})
    used = held(claim("train"), "node-1", "gpu-0", pods=("runs",))
    kept = place(**{LIMIT_ANNOTATION: "50", PAST_ANNOTATION: told})
    objects = (node("node-1"), device_class(), resource_slice("node-1", device("gpu-0")), used, pod("runs"), kept)
    snapshot = dray.load(*objects)
    after = snapshot.with_objects(rule("r", driver=DRIVER))
    (made,) = after.objects(DeviceTaintRule)
    previews = [look(snapshot), preview_rules(snapshot, [made], NOW)]
    for found in previews:
        assert found.guard is not None
        assert found.guard.is_over == is_over
        assert ("They stay until `dray confirm" in tell(found)) == is_over
    notes = compare(snapshot, after, NOW).notes
    assert any("They stay until `dray confirm" in note for note in notes) == is_over


def test_what_may_take_longer_is_not_promised() -> None:
    snapshot = cluster(None, here=3, elsewhere=7)
    found = look(snapshot)
    rated = paced(found, DrainTerms(rate=1), ("maintenance:NoSchedule",), snapshot)
    assert "in 1 namespace within 2 s;" in tell(rated)
    careful = paced(found, DrainTerms(rate=1, wait_for_replacements=True), ("maintenance:NoSchedule",), snapshot)
    assert "in 1 namespace in 2 s or later;" in tell(careful)
    assert "leaves, earliest" in tell(careful)


@pytest.mark.parametrize("told", [None, "none", "", "many"])
def test_nothing_is_said_where_no_limit_is_told(told: str | None) -> None:
    found = look(cluster(told, here=3, elsewhere=7))
    assert found.guard is None
    assert "Guard" not in tell(found)


@pytest.mark.parametrize("limit", [None, Limit(5), Limit(50, 10.0, True, True), Limit(percent=2.5)])
def test_a_limit_comes_back_as_it_was_told(limit: Limit | None) -> None:
    annotations = {LIMIT_ANNOTATION: limit_text(limit)}
    assert told_limit(Namespace(metadata=ObjectMeta(name="kube-system", annotations=annotations))) == limit


def test_an_empty_selector_is_told_to_be_held_however_few_leave() -> None:
    used = held(claim("train"), "node-1", "gpu-0", pods=("runs",))
    limit = place(**{LIMIT_ANNOTATION: "50,10%,node,spare"})
    objects = (node("node-1"), device_class(), resource_slice("node-1", device("gpu-0")), used, pod("runs"), limit)
    base = dray.load(*objects)

    def look_at(**selector: Any) -> TaintPreview:
        (made,) = base.with_objects(rule("r", **selector)).objects(DeviceTaintRule)
        return preview_rules(base, [made], NOW)

    asked = "An empty selector is held however few leave, unless the number of devices, or --yes, confirms it."
    assert asked in tell(look_at())
    assert "held" not in tell(look_at(driver=DRIVER)).partition("Guard:")[2]
    drain = paced(look_at(), DrainTerms(), ("maintenance:NoSchedule",), base)
    assert "held" not in tell(drain).partition("Guard:")[2], "no controller evicts for it"


def test_a_drain_leaves_pods_alone_that_belong_to_their_node() -> None:
    daemon, static = pod("daemon", phase="Running"), pod("static", phase="Running")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "driver", "uid": "u", "controller": True}
    daemon["metadata"]["ownerReferences"] = [owner]
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "hash"}
    base = dray.load(node("node-1"), node("node-2"), daemon, static, pod("runs", phase="Running"))
    there = next(one for one in base.objects(Node) if one.metadata.name == "node-1")
    drained = preview_nodes(base, [there], EVICT, NOW, drains=True)
    assert [one.pod for one in drained.pods] == ["ml/runs"]
    assert drained.protected == ()
    assert "ml/daemon, ml/static stay: pods of DaemonSets and static pods belong to their node." in tell(drained)
    evicted = {one.pod: one.fits for one in preview_nodes(base, [there], EVICT, NOW).pods}
    assert evicted == {"ml/daemon": False, "ml/runs": True, "ml/static": False}


def test_a_preview_says_that_nobody_leaves_while_all_is_stopped_or_the_drain_is_paused() -> None:
    snapshot = cluster(None, here=1, elsewhere=0)
    assert not look(snapshot).notes
    said = "all evictions are stopped: nobody leaves until `dray stop-evictions --resume`"
    assert look(snapshot.with_objects(place(**{STOP_ANNOTATION: "true", LIMIT_ANNOTATION: "none"}))).notes == (said,)
    (other,) = look(snapshot.with_objects(place(**{STOP_ANNOTATION: "true"}))).notes
    assert "nobody leaves" not in other, "no controller of dray is known to evict there"
    assert other.startswith("evictions by dray are stopped")
    paused: Manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
    paused["metadata"]["annotations"] = {"dray.dev/drain-paused": "true"}
    still = snapshot.with_objects(paused)
    assert paced(look(still), DrainTerms(), (), still).notes[0] == (
        "the drain is paused: nobody leaves until `dray drain resume node/node-1`"
    )
    assert not look(still).notes  # a taint with NoExecute does not wait for it
