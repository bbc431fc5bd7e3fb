"""Every verb that admins use × what it is given × the state that this is in: it acts, or says what to do instead, with
the right exit code. Never is something accepted of which nothing comes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dray_process import DrayProcess
from patience import eventually
from taint_cluster import TaintCluster, taint_cluster

RULES = "resource.k8s.io/v1/devicetaintrules"
BUDGETS = "policy/v1/namespaces/default/poddisruptionbudgets"
PAUSED = "dray.dev/drain-paused"
DRAIN = "dray.dev/drain"
CONFIRM = "dray.dev/confirm-evictions"
KEPT = "example.com/kept"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaintCluster]:
    with taint_cluster(tmp_path_factory.mktemp("verbs")) as running:
        yield running


@pytest.fixture
def cluster(shared: TaintCluster) -> Iterator[TaintCluster]:
    yield shared
    shared.dray("stop-evictions", "--resume")
    for rule in shared.rules():
        if rule["metadata"].get("finalizers"):
            shared.patch(f"{RULES}/{rule['metadata']['name']}", {"metadata": {"finalizers": None}})
    shared.clean()
    told = dict.fromkeys((PAUSED, DRAIN, CONFIRM))
    shared.patch("v1/nodes/node-1", {"metadata": {"annotations": told}})


def _rule(cluster: TaintCluster, effect: str, **metadata: Any) -> str:
    """A rule as somebody writes it with kubectl."""
    spec = {"deviceSelector": {"pool": "node-1"}, "taint": {"key": "k", "effect": effect}}
    cluster.create(RULES, {"metadata": {"name": "theirs", **metadata}, "spec": spec})
    return "rule/theirs"


def nothing(_: TaintCluster) -> str:
    return "node/node-1"


def absent_node(_: TaintCluster) -> str:
    return "node/nowhere"


def absent_rule(_: TaintCluster) -> str:
    return "rule/nowhere"


def kept_away_node(cluster: TaintCluster) -> str:
    assert cluster.dray("taint", "node", "node-1", "k:NoSchedule").exit_code == 0
    return "node/node-1"


def evicting_node(cluster: TaintCluster) -> str:
    assert cluster.dray("taint", "node", "node-1", "k:NoExecute").exit_code == 0
    return "node/node-1"


def drained_node(cluster: TaintCluster) -> str:
    assert cluster.dray("drain", "node", "node-1").exit_code == 0
    return "node/node-1"


def paused_node(cluster: TaintCluster) -> str:
    target = drained_node(cluster)
    assert cluster.dray("drain", "pause", target).exit_code == 0
    return target


def once_drained_node(cluster: TaintCluster) -> str:
    """Somebody made a plain taint of that of the drain."""
    drained_node(cluster)
    done = cluster.dray("taint", "node", "node-1", "maintenance:NoSchedule")
    assert "Note: the drain of node/node-1 ends: this comes in the place of its taint." in done.stdout
    return "node/node-1"


def drained_node_that_ignores_budgets(cluster: TaintCluster) -> str:
    assert cluster.dray("drain", "node", "node-1", "--ignore-budgets").exit_code == 0
    return "node/node-1"


def their_informing_rule(cluster: TaintCluster) -> str:
    return _rule(cluster, "None")


def their_rule(cluster: TaintCluster) -> str:
    return _rule(cluster, "NoSchedule")


def their_evicting_rule(cluster: TaintCluster) -> str:
    return _rule(cluster, "NoExecute")


def their_dying_rule(cluster: TaintCluster) -> str:
    target = _rule(cluster, "NoSchedule", finalizers=[KEPT])
    cluster.delete(f"{RULES}/theirs")
    return target


def our_rule(cluster: TaintCluster) -> str:
    assert cluster.dray("taint", "device", "--node", "node-1", "maintenance:NoSchedule").exit_code == 0
    return f"rule/{cluster.rules()[0]['metadata']['name']}"


def drained_rule(cluster: TaintCluster) -> str:
    assert cluster.dray("drain", "device", "--node", "node-1").exit_code == 0
    return f"rule/{cluster.rules()[0]['metadata']['name']}"


def paused_rule(cluster: TaintCluster) -> str:
    target = drained_rule(cluster)
    assert cluster.dray("drain", "pause", target).exit_code == 0
    return target


def once_drained_rule(cluster: TaintCluster) -> str:
    """The same rule, for it is of the same selection and key."""
    target = paused_rule(cluster)
    done = cluster.dray("taint", "device", "--node", "node-1", "maintenance:NoSchedule")
    assert f"Note: the drain of {target} ends: this comes in the place of its taint." in done.stdout
    return target


def hardened_rule(cluster: TaintCluster) -> str:
    """Somebody made the rule of a drain evict."""
    target = drained_rule(cluster)
    cluster.patch(f"{RULES}/{target.partition('/')[2]}", {"spec": {"taint": {"effect": "NoExecute"}}})
    return target


def some_slice(cluster: TaintCluster) -> str:
    slices = cluster.get("resource.k8s.io/v1/resourceslices")["items"]
    return f"slice/{slices[0]['metadata']['name']}"


class Row(NamedTuple):
    """What a verb does with something in a state."""

    state: Callable[[TaintCluster], str]
    verb: str
    """With {} for the target, and {name} for its name."""
    code: int
    told: str
    after: dict[str, Any] | None = None
    """Annotations and effects of the target then, if that matters; None for what is not there."""


NOT_DRAINED = "is not drained, so nothing is paused"
IDLE = "evicts nobody, since it has no taint with NoExecute"
STANDS = "stand still; go on with: dray drain resume"
THERE = "there is node-1, node-2, node-3, node-4"

MATRIX = [
    Row(absent_node, "drain pause {}", 2, f"no node nowhere; {THERE}"),
    Row(nothing, "drain pause {}", 2, f"{NOT_DRAINED}. Begin with: dray drain node node-1", {PAUSED: None}),
    Row(kept_away_node, "drain pause {}", 2, f"{NOT_DRAINED}. Begin with: dray drain node node-1", {PAUSED: None}),
    Row(evicting_node, "drain pause {}", 2, "Stop them: dray cancel node/node-1", {PAUSED: None}),
    Row(drained_node_that_ignores_budgets, "drain pause {}", 2, "Stop them: dray cancel node/node-1", {PAUSED: None}),
    Row(drained_node, "drain pause {}", 0, STANDS, {PAUSED: "true"}),
    Row(drained_node, "drain pause node {name}", 0, STANDS, {PAUSED: "true"}),
    Row(drained_node, "drain pause {} node/node-2", 2, "node/node-2 is not drained", {PAUSED: None}),
    Row(paused_node, "drain pause {}", 0, STANDS, {PAUSED: "true"}),
    Row(once_drained_node, "drain pause {}", 2, NOT_DRAINED, {PAUSED: None}),
    Row(absent_rule, "drain pause {}", 2, "no rule nowhere; there is none at all"),
    Row(their_informing_rule, "drain pause {}", 2, NOT_DRAINED, {PAUSED: None}),
    Row(their_rule, "drain pause {}", 2, f"{NOT_DRAINED}. Begin with: dray drain device", {PAUSED: None}),
    Row(their_evicting_rule, "drain pause {}", 2, "Stop them: dray cancel rule/theirs", {PAUSED: None}),
    Row(their_dying_rule, "drain pause {}", 2, NOT_DRAINED, {PAUSED: None}),
    Row(our_rule, "drain pause {}", 2, NOT_DRAINED, {PAUSED: None}),
    Row(drained_rule, "drain pause {}", 0, STANDS, {PAUSED: "true"}),
    Row(drained_rule, "drain pause devicetaintrule.resource.k8s.io/{name}", 0, STANDS, {PAUSED: "true"}),
    Row(paused_rule, "drain pause {}", 0, STANDS, {PAUSED: "true"}),
    Row(once_drained_rule, "drain pause {}", 2, NOT_DRAINED, {PAUSED: None}),
    Row(hardened_rule, "drain pause {}", 2, "Stop them: dray cancel rule/", {PAUSED: None}),
    *(
        Row(nothing, f"drain pause {word}", 2, "is no drain. Write node/NODE")
        for word in ("pod/x", "node-1", "slice/x")
    ),
    *(
        Row(nothing, f"drain pause {word}", 2, "is no drain. Write node/NODE")
        for word in ("node", "rule/a/b", "claim/x")
    ),
    Row(absent_node, "drain resume {}", 2, f"no node nowhere; {THERE}"),
    Row(absent_rule, "drain resume {}", 2, "no rule nowhere"),
    Row(nothing, "drain resume {}", 0, "Drains of node/node-1 were not paused."),
    Row(drained_node, "drain resume {}", 0, "Drains of node/node-1 were not paused."),
    Row(paused_node, "drain resume {}", 0, "Drains of node/node-1 go on.", {PAUSED: None}),
    Row(paused_rule, "drain resume {}", 0, "go on.", {PAUSED: None}),
    Row(absent_node, "confirm {}", 2, f"no node nowhere; {THERE}"),
    Row(absent_rule, "confirm {}", 2, "no rule nowhere"),
    Row(nothing, "confirm {}", 1, f"Not confirmed: node/node-1 {IDLE}.", {CONFIRM: None}),
    Row(evicting_node, "confirm {}", 0, "Confirmed: node/node-1.", {CONFIRM: "k"}),
    Row(
        drained_node, "confirm {}", 1, "Not confirmed: node/node-1 is drained, and no guard holds that", {CONFIRM: None}
    ),
    Row(their_rule, "confirm {}", 1, f"Not confirmed: rule/theirs {IDLE}.", {CONFIRM: None}),
    Row(their_evicting_rule, "confirm {}", 0, "Confirmed: rule/theirs.", {CONFIRM: "1"}),
    Row(their_evicting_rule, "confirm {} rule/nowhere", 2, "no rule nowhere; there is theirs", {CONFIRM: None}),
    Row(drained_rule, "confirm {}", 1, "is drained, and no guard holds that", {CONFIRM: None}),
    Row(some_slice, "confirm {}", 1, IDLE, {CONFIRM: None}),
    *(Row(nothing, f"confirm {word}", 2, "is nothing that can be held") for word in ("pool/p", "node/a/b", "node-1")),
    Row(absent_node, "cancel {}", 2, f"no node nowhere; {THERE}"),
    Row(absent_rule, "cancel {}", 2, "no rule nowhere"),
    Row(nothing, "cancel {}", 1, f"Not cancelled: node/node-1 {IDLE}."),
    Row(kept_away_node, "cancel {}", 1, f"Not cancelled: node/node-1 {IDLE}."),
    Row(evicting_node, "cancel {}", 0, "Cancelled: node/node-1.", {"effects": ["NoSchedule"]}),
    Row(drained_node, "cancel {}", 0, "Cancelled: node/node-1.", {"effects": ["NoSchedule"], DRAIN: None}),
    Row(paused_node, "cancel {}", 0, "Cancelled: node/node-1.", {DRAIN: None, PAUSED: None}),
    Row(once_drained_node, "cancel {}", 1, IDLE),
    Row(their_informing_rule, "cancel {}", 1, IDLE, {"effects": ["None"]}),
    Row(their_rule, "cancel {}", 1, IDLE, {"effects": ["NoSchedule"]}),
    Row(their_evicting_rule, "cancel {}", 0, "Cancelled: rule/theirs.", {"effects": ["NoSchedule"]}),
    Row(drained_rule, "cancel {}", 0, "Cancelled: rule/", {"effects": ["NoSchedule"], DRAIN: None}),
    Row(paused_rule, "cancel {}", 0, "Cancelled: rule/", {DRAIN: None, PAUSED: None}),
    Row(hardened_rule, "cancel {}", 0, "Cancelled: rule/", {"effects": ["NoSchedule"], DRAIN: None}),
    Row(some_slice, "cancel {}", 1, IDLE),
    Row(nothing, "cancel cluster/c", 2, "is nothing that can be held"),
    Row(absent_rule, "untaint device --rule {name}", 2, "no rule nowhere; there is none at all"),
    Row(their_rule, "untaint device --rule {name}", 0, "Removed rule theirs: node-1/gpu-0 … gpu-7", {"there": False}),
    Row(evicting_node, "confirm {} -o json", 0, '"kind": "ConfirmationList"', {CONFIRM: "k"}),
    Row(evicting_node, "cancel {} -o json", 0, '"kind": "CancellationList"', {"effects": ["NoSchedule"]}),
    Row(kept_away_node, "cancel {} -o json", 1, '"cancelled": false'),
    Row(drained_node, "drain pause {} -o json", 0, '"kind": "DrainPauseList"', {PAUSED: "true"}),
    Row(nothing, "drain pause {} -o json", 2, NOT_DRAINED),
    Row(nothing, "drain resume {} -o json", 0, '"changed": false'),
    Row(nothing, "nodes start {name} -o json", 0, '"kind": "SwitchedNodeList"'),
    Row(nothing, "stop-evictions -o json", 0, '"stopped": true'),
    Row(nothing, "stop-evictions --resume -o json", 0, '"kind": "EvictionStop"'),
    Row(their_dying_rule, "untaint device --rule {name} -o json", 1, '"finalizers": {', {"there": True}),
    Row(their_dying_rule, "untaint device --rule {name}", 1, f"finalizers are taken away: {KEPT}.", {"there": True}),
    Row(paused_rule, "untaint device --node node-1", 0, "Removed rule maintenance-", {"there": False}),
    Row(nothing, "untaint device --node node-1", 1, "No rule taints these devices. Nothing was changed."),
    Row(paused_node, "untaint node {name}", 0, "Removed maintenance:NoSchedule", {DRAIN: None, PAUSED: None}),
    Row(nothing, "untaint node {name}", 1, "Node node-1 has no taint maintenance; it has none at all."),
    Row(absent_node, "untaint node {name}", 2, f"no node nowhere; {THERE}"),
    Row(absent_node, "taint node {name} k:NoSchedule", 2, f"no node nowhere; {THERE}"),
    Row(absent_node, "drain node {name}", 2, f"no node nowhere; {THERE}"),
    Row(absent_node, "drain device --node {name}", 2, f"no node nowhere; {THERE}"),
    Row(
        paused_node, "drain node {name} --timeout 1s", 0, "the drain is paused: nobody leaves until `dray drain resume"
    ),
    Row(absent_node, "nodes stop {name}", 2, f"no node nowhere; {THERE}"),
    Row(nothing, "nodes start {name}", 0, "node-1 was already running."),
    Row(nothing, "stop-evictions --resume", 0, "Evictions were not stopped."),
]


@pytest.mark.parametrize(
    "row", MATRIX, ids=lambda row: f"{row.verb.format('TARGET', name='NAME')} of {row.state.__name__}"
)
def test_a_verb_acts_or_says_what_to_do(cluster: TaintCluster, row: Row) -> None:
    target = row.state(cluster)
    word, _, name = target.partition("/")
    done = cluster.dray(*row.verb.format(target, name=name).split())
    assert (done.exit_code, row.told in done.stdout + done.stderr) == (row.code, True), done
    assert row.code != 2 or done.stdout == "", done
    if row.after is not None:
        assert {field: _seen(cluster, word, name, field) for field in row.after} == row.after


def _seen(cluster: TaintCluster, word: str, name: str, field: str) -> Any:
    path = {"node": "v1/nodes", "rule": RULES, "slice": "resource.k8s.io/v1/resourceslices"}[word]
    found = {one["metadata"]["name"]: one for one in cluster.get(path)["items"]}
    if field == "there":
        return name in found
    spec = found[name]["spec"]
    if field == "effects":
        return [one["effect"] for one in spec.get("taints", [spec.get("taint")])]
    return found[name]["metadata"].get("annotations", {}).get(field)


def test_a_rule_that_is_going_away_is_not_tainted_with_again(cluster: TaintCluster) -> None:
    """What is written into it would go with it."""
    target = our_rule(cluster)
    name = target.partition("/")[2]
    cluster.patch(f"{RULES}/{name}", {"metadata": {"finalizers": [KEPT]}})
    cluster.delete(f"{RULES}/{name}")
    done = cluster.dray("drain", "device", "--node", "node-1")
    assert done.exit_code == 2
    assert f"rule {name} is being deleted, and taints until finalizers are taken away: {KEPT}. Then give" in done.stderr


@pytest.mark.parametrize("taken_back", ["cancel", "taint"])
@pytest.mark.parametrize("kind", ["node", "rule"])
def test_a_drain_that_is_taken_back_has_nobody_else_leave(
    cluster: TaintCluster, tmp_path: Path, kind: str, taken_back: str
) -> None:
    """It went on, whatever anybody wrote into its rule or node, as long as the taint was there."""
    pods = cluster.run_pods("api", 2, "node-1")
    selector = {"matchLabels": {"app": "api"}}
    cluster.create(BUDGETS, {"metadata": {"name": "api"}, "spec": {"minAvailable": 2, "selector": selector}})
    eventually(lambda: cluster.get(f"{BUDGETS}/api")["status"].get("currentHealthy") == 2)
    where = ["node", "node-1"] if kind == "node" else ["device", "--node", "node-1"]
    environment, log = {**os.environ, "KUBECONFIG": str(cluster.server.kubeconfig)}, tmp_path / "said"
    try:
        with log.open("w") as said, DrayProcess("drain", *where, "--wait", stdout=said, env=environment) as drain:
            eventually(lambda: "0 of 2 pods evicted" in log.read_text())
            target = "node/node-1" if kind == "node" else f"rule/{cluster.rules()[0]['metadata']['name']}"
            words = ["cancel", target] if taken_back == "cancel" else ["taint", *where, "maintenance:NoSchedule"]
            assert cluster.dray(*words).exit_code == 0
            assert drain.wait() == 1
        assert "✘ called off: " in log.read_text()
        cluster.delete(BUDGETS)
        assert cluster.pods("api") == pods
    finally:
        cluster.delete(BUDGETS)
