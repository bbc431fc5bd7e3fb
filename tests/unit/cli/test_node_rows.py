"""What `dray get nodes` says of who leaves a node, and what keeps them."""

from __future__ import annotations

from typing import Any

import pytest

import builders
import dray
from dray.cli import items
from dray.cli.file_view import FileView
from dray.cli.get import Wanted, What, _notes, table_of
from snapshot_objects import Manifest, node, pod

LEAVE = [{"key": "repair", "effect": "NoExecute", "timeAdded": "2026-06-01T12:00:00Z"}]
HELD = {"type": "EvictionHeld", "status": "True", "reason": "Guard", "message": "too many"}
STOP = {"dray.dev/stop-evictions": "true"}
BY_DRAY = {"dray.dev/max-evictions": "none"}
DRAINED = {"dray.dev/drain": "repair:NoSchedule"}
ALL_STOPPED = "All evictions are stopped: nobody leaves until `dray stop-evictions --resume`."
OURS_STOPPED = "Evictions by dray are stopped until `dray stop-evictions --resume`;"


def leaving(*more: Manifest, taints: Any = LEAVE, annotations: Manifest | None = None) -> FileView:
    here = node("node-1", spec={"taints": taints})
    here["metadata"]["annotations"] = annotations or {}
    return FileView(dray.load(here, pod("runs", phase="Running"), *more))


def place(**annotations: str) -> Manifest:
    return builders.manifest("v1", "Namespace", "kube-system", "", meta={"annotations": annotations})


def told(view: FileView) -> str:
    table = table_of(view, Wanted(What.NODES))
    return dict(zip(table.header, table.rows[0], strict=True)).get("LEAVING", "")


def test_pods_that_leave_are_counted() -> None:
    assert told(leaving()) == "1 pod leaves"
    assert told(leaving(taints=[])) == ""


@pytest.mark.parametrize(
    ("paused", "words"), [({}, "1 pod leaves"), ({"dray.dev/drain-paused": "true"}, "1 pod leaves, paused")]
)
def test_a_drain_that_is_paused_says_so(paused: Manifest, words: str) -> None:
    taints = [{**LEAVE[0], "effect": "NoSchedule"}]
    view = leaving(taints=taints, annotations={**DRAINED, **paused})
    assert told(view) == words


@pytest.mark.parametrize(("effect", "annotations"), [("NoSchedule", DRAINED), ("NoExecute", {})])
@pytest.mark.parametrize(("phase", "words", "state"), [("Running", "1 pod stops", "draining"), ("Failed", "", "")])
def test_a_node_is_not_drained_before_its_pods_have_stopped(
    effect: str, annotations: Manifest, phase: str, words: str, state: str
) -> None:
    """Who switches it off when `drained` is there would cut them off in the middle of what they save."""
    here = node("node-1", spec={"taints": [{**LEAVE[0], "effect": effect}]})
    here["metadata"]["annotations"] = annotations
    stops = pod("runs", phase=phase)
    stops["metadata"]["deletionTimestamp"] = "2026-06-01T12:00:00Z"
    view = FileView(dray.load(here, stops))
    assert told(view) == words
    after = "drained" if annotations else "tainted"
    (item,) = items.nodes(view)
    assert (item.state[1], item.leaving, item.stopping) == (state or after, bool(words), bool(words))


WAITS = [{"type": "dray.dev/EvictionWaiting", "status": "True", "message": "pdb: a budget forbids it"}]


@pytest.mark.parametrize(
    ("effect", "annotations", "conditions", "words"),
    [
        ("NoSchedule", DRAINED, [], "1 pod leaves, 1 waits for budget ml/api"),
        ("NoExecute", {}, [], "1 pod leaves"),
        ("NoExecute", {"dray.dev/drain": "repair:NoExecute"}, [], "1 pod leaves"),
        ("NoExecute", {}, WAITS, "1 pod leaves, 1 waits for budget ml/api"),
    ],
    ids=["drained", "tainted", "drained without budgets", "under a policy that asks"],
)
def test_only_who_is_asked_for_waits_for_a_budget(
    effect: str, annotations: Manifest, conditions: list[Manifest], words: str
) -> None:
    """A taint with NoExecute has pods deleted, whatever budgets allow: who reads that they wait would lose them."""
    budget = builders.manifest("policy/v1", "PodDisruptionBudget", "api", "ml")
    budget["spec"] = {"minAvailable": 1, "selector": {}}
    budget["status"] = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    here = node("node-1", spec={"taints": [{**LEAVE[0], "effect": effect}]})
    here["metadata"]["annotations"] = annotations
    runs = pod("runs", phase="Running")
    runs["status"]["conditions"] = [{"type": "Ready", "status": "True"}, *conditions]
    assert told(FileView(dray.load(here, runs, budget))) == words


def test_what_the_guard_holds_says_how_to_go_on() -> None:
    here = node("node-1", spec={"taints": LEAVE})
    here["status"]["conditions"].append(HELD)
    assert told(FileView(dray.load(here, pod("runs", phase="Running")))) == "1 pod leaves, held until `dray confirm`"


def test_that_all_is_stopped_is_said_of_the_node_and_of_all() -> None:
    stopped = leaving(place(**STOP, **BY_DRAY))
    assert told(stopped) == "1 pod leaves, but evictions are stopped"
    for what, notes in ((What.NODES, [ALL_STOPPED]), (What.DEVICES, [ALL_STOPPED]), (What.CLAIMS, [])):
        assert list(_notes(stopped, Wanted(what))) == notes
        assert list(_notes(leaving(), Wanted(what))) == []


def test_where_kubernetes_evicts_only_drains_are_stopped() -> None:
    """No controller of dray has told its limit: who evicts for taints does not know that it should stop."""
    taints = [{**LEAVE[0], "effect": "NoSchedule"}]
    evicted, drained = leaving(place(**STOP)), leaving(place(**STOP), taints=taints, annotations=DRAINED)
    assert told(evicted) == "1 pod leaves"
    assert told(drained) == "1 pod leaves, but evictions are stopped"
    for view in (evicted, drained):
        (note,) = _notes(view, Wanted(What.NODES))
        assert note.startswith(OURS_STOPPED)
        assert note.endswith("NoExecute taints go on evicting.")


@pytest.mark.parametrize(
    ("effect", "state"), [("NoSchedule", "ready, tainted gpu=yes:NoSchedule"), ("PreferNoSchedule", "ready")]
)
def test_what_a_node_is_set_aside_for_is_named(effect: str, state: str) -> None:
    taints = [{"key": "gpu", "value": "yes", "effect": effect}]
    assert table_of(leaving(taints=taints), Wanted(What.NODES)).rows[0][1] == state


@pytest.mark.parametrize(
    ("key", "state"),
    [
        ("not-ready", "not ready"),
        ("unreachable", "not ready"),
        ("disk-pressure", "ready, tainted node.kubernetes.io/disk-pressure:NoSchedule"),
    ],
)
def test_what_watches_over_nodes_says_of_one_is_its_state(key: str, state: str) -> None:
    """Its devices are blocked by the same taint, whatever the node itself says."""
    here = node("node-1", spec={"taints": [{"key": f"node.kubernetes.io/{key}", "effect": "NoSchedule"}]})
    table = table_of(FileView(dray.load(here)), Wanted(What.NODES))
    assert dict(zip(table.header, table.rows[0], strict=True))["STATE"] == state
