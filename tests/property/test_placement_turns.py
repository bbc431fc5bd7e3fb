"""Whatever a pod says about nodes and other pods, its decision is cut into turns, and the same comes of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from dray import cel
from dray.allocator import Options
from dray.allocator.aside import Aside
from dray.api.generated.core import Pod
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.pod_info import read_pod
from dray.scheduling.text import tell
from scheduler_objects import cluster, node, pod

NODES, PODS_EACH, TURN = 120, 8, 0.01


def _terms(count: int, key: str) -> list[dict[str, Any]]:
    return [{"labelSelector": {"matchLabels": {"app": f"a{each}"}}, "topologyKey": key} for each in range(count)]


def _required(what: str, key: str) -> dict[str, Any]:
    return {"affinity": {what: {"requiredDuringSchedulingIgnoredDuringExecution": _terms(64, key)}}}


def _preferred() -> dict[str, Any]:
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in _terms(64, "zone")]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


def _spread() -> dict[str, Any]:
    constraints = [{"maxSkew": 9, "whenUnsatisfiable": "DoNotSchedule", **term} for term in _terms(64, "zone")]
    return {"topologySpreadConstraints": constraints}


def _nodes() -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"q{each}"]}]} for each in range(990)]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


SPECS: dict[str, Callable[[], dict[str, Any]]] = {
    "affinity": lambda: _required("podAffinity", "zone"),
    "anti-affinity": lambda: _required("podAntiAffinity", "kubernetes.io/hostname"),
    "preferred": _preferred,
    "spread": _spread,
    "nodes": _nodes,
}


def _placed(number: int) -> Pod:
    made = pod(f"b{number}", labels={"app": f"a{number % 100}"}, cpu="10m")
    return replace(made, spec=replace(made.spec, node_name=f"n{number % NODES:03}"))


def _build() -> Cluster:
    names = [f"n{number:03}" for number in range(NODES)]
    labels = [{"zone": f"z{number % 7}", "kubernetes.io/hostname": name} for number, name in enumerate(names)]
    here = cluster(*[node(name, labels=its) for name, its in zip(names, labels, strict=True)])
    for number in range(NODES * PODS_EACH):
        placed = _placed(number)
        here.set_pod(placed, placed.metadata.uid)
    return here


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_pods_come_and_go_while_others_are_counted_and_the_verdict_is_the_one_of_the_end(
    spec: Callable[[], dict[str, Any]],
) -> None:
    looks, chance = 0.0, random.Random(7)

    def clock() -> float:
        nonlocal looks
        looks += TURN / 2  # a turn has two looks at the clock
        return looks

    backlog = cel.Backlog(clock)
    options = Options(aside=Aside(backlog, None))
    here, wanted = _build(), read_pod(pod("p", **spec()))
    turns = 0
    while True:
        turns += 1
        backlog.begin_turn("ns", TURN)
        answer = decide(here, wanted, options)
        if isinstance(answer, Chosen) or not answer.needs_more_turns:
            break
        gone, came = chance.randrange(NODES * PODS_EACH), _placed(chance.randrange(NODES * PODS_EACH))
        here.set_pod(None, _placed(gone).metadata.uid)
        here.set_pod(came, came.metadata.uid)
        if turns % 5 == 0:
            at = here.nodes.get(f"n{chance.randrange(NODES):03}")
            assert at is not None
            changed = replace(
                at.node, metadata=replace(at.node.metadata, labels={**at.node.metadata.labels, "t": str(turns)})
            )
            here.set_node(at.node, changed)
    assert turns > 3
    fresh = Cluster()
    for one in here.nodes:
        fresh.set_node(None, one.node)
        for placed in one.pods.values():
            fresh.set_pod(placed.pod, placed.pod.metadata.uid)
    expected = decide(fresh, wanted, Options())
    assert type(answer) is type(expected)
    if not isinstance(answer, Chosen) and not isinstance(expected, Chosen):
        assert tell(answer) == tell(expected)
