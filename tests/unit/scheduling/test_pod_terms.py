"""What pods say about other pods: affinity, anti-affinity, spreading; required and preferred."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dray.api.generated.core import Namespace, Node, Pod
from dray.api.meta import ObjectMeta
from dray.process.clock import as_time
from dray.scheduling import topology
from dray.scheduling.cause import Cause
from dray.scheduling.pod_info import read_pod
from scheduler_objects import chosen_node, cluster, node, pod, refusal, told

APP = {"matchLabels": {"app": "web"}}
WEB = {"app": "web"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(key: str = "host", **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": APP, **fields}


def avoids(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def wants(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def spread(key: str = "zone", action: str = "DoNotSchedule", **fields: Any) -> dict[str, Any]:
    one = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": APP, **fields}
    return {"topologySpreadConstraints": [one]}


def at(host: str, zone: str = "", **spec: Any) -> Node:
    return node(host, labels={"host": host, **({"zone": zone} if zone else {})}, spec=spec)


def web(name: str, on: str, **fields: Any) -> Pod:
    return pod(name, labels=fields.pop("labels", WEB), nodeName=on, cpu="100m", **fields)


NODES = (at("a", "x"), at("b", "x"), at("c", "y"))


@pytest.mark.parametrize(
    ("there", "spec", "expected"),
    [
        ([web("w", "a"), web("v", "b")], avoids(term()), "c"),
        ([web("w", "a")], avoids(term("zone")), "c"),
        ([web("w", "c")], wants(term()), "c"),
        ([web("w", "c"), web("v", "a")], wants(term("zone"), term()), "ac"),
        ([web("w", "c", namespace="other")], wants(term(namespaces=["other"])), "c"),
        ([web("w", "c", namespace="other")], wants(term(namespaceSelector={"matchLabels": {"team": "t"}})), "c"),
        ([web("w", "c", namespace="other")], wants(term(namespaceSelector={})), "c"),
        ([web("w", "a"), web("v", "b")], spread("host"), "c"),
        ([web("w", "a")], spread(), "c"),
        # A pod that is none of those that are spread does not count itself.
        ([web("w", "a")], spread(labelSelector={"matchLabels": {"app": "db"}}), "abc"),
        # Revisions are told apart.
        ([web("w", "a", labels={**WEB, "rev": "1"})], spread(matchLabelKeys=["rev"]), "abc"),
        ([web("w", "a", labels={**WEB, "rev": "2"})], spread(matchLabelKeys=["rev"]), "c"),
        ([web("w", "c", labels={**WEB, "rev": "1"})], avoids(term("zone", mismatchLabelKeys=["rev"])), "ab"),
        ([web("w", "c", labels={**WEB, "rev": "2"})], avoids(term("zone", matchLabelKeys=["rev"])), "ab"),
    ],
)
def test_where_a_pod_may_go(there: list[Pod], spec: dict[str, Any], expected: str) -> None:
    other = Namespace(metadata=ObjectMeta(name="other", labels={"team": "t"}))
    here = cluster(other, *NODES, *there)
    assert chosen_node(here, pod(labels={**WEB, "rev": "2"}, cpu="100m", **spec)) in expected


@pytest.mark.parametrize(
    ("there", "spec", "says", "causes"),
    [
        (
            [],
            wants(term(labelSelector={"matchLabels": {"app": "db"}})),
            "didn't match pod affinity rules",
            Cause.POD_CAME,
        ),
        (
            [web(f"w{each}", each) for each in "abc"],
            avoids(term()),
            "didn't match pod anti-affinity rules",
            Cause.POD_GONE,
        ),
        (
            [web(f"w{each}", each, **avoids(term())) for each in "abc"],
            {},
            "didn't satisfy existing pods anti-affinity rules",
            Cause.POD_GONE,
        ),
        (
            [web("w", "a"), web("v", "c")],
            spread(minDomains=3),
            "didn't match pod topology spread constraints",
            Cause.POD_CAME | Cause.POD_GONE,
        ),
        ([], spread("rack"), "didn't match pod topology spread constraints (missing required label)", Cause.NOTHING),
        ([], wants(term("rack")), "didn't match pod affinity rules", Cause.POD_CAME),
    ],
)
def test_why_a_pod_has_nowhere_to_go(there: list[Pod], spec: dict[str, Any], says: str, causes: Cause) -> None:
    refused = refusal(cluster(*NODES, *there), pod(labels=WEB, cpu="100m", **spec))
    assert told(cluster(*NODES, *there), pod(labels=WEB, cpu="100m", **spec)) == (
        f"0/3 nodes are available: 3 node(s) {says}."
    )
    assert refused.causes == causes | Cause.NODE


def test_the_first_of_a_group_that_wants_its_own_company_may_go_anywhere() -> None:
    here = cluster(node("bare"), *NODES)
    first = pod(labels=WEB, cpu="100m", **wants(term("zone")))
    on = chosen_node(here, first)
    assert on in "abc", "but not where the label is missing"
    here.set_pod(web("w", "c"), "uid-w")
    assert chosen_node(here, first) == "c"
    assert "4 node(s) didn't match pod affinity rules" in told(
        cluster(node("bare"), *NODES), pod(**wants(term("zone")))
    )


def test_who_must_be_spread_counts_only_where_it_could_be() -> None:
    nodes = [at("a", "x"), at("b", "y"), at("c", "z", taints=[{"key": "k", "effect": "NoSchedule"}])]
    there = [web("w", "a"), web("v", "b")]
    assert "topology spread" in told(cluster(*nodes, *there), pod(labels=WEB, **spread()))
    assert chosen_node(cluster(*nodes, *there), pod(labels=WEB, **spread(nodeTaintsPolicy="Honor"))) in "ab"
    only: dict[str, Any] = {"nodeSelector": {"zone": "x"}}
    assert chosen_node(cluster(*nodes, *there), pod(labels=WEB, **only, **spread())) == "a"
    assert "topology spread" in told(
        cluster(*nodes, *there), pod(labels=WEB, **only, **spread(nodeAffinityPolicy="Ignore"))
    )


def test_pods_that_leave_are_not_spread_but_keep_others_away() -> None:
    here = cluster(at("a", "x"), at("b", "y"), web("w", "a"), web("v", "b"), web("u", "b"))
    evenly, alone = pod(labels=WEB, **spread()), pod(labels=WEB, **avoids(term()))
    assert chosen_node(here, evenly) == "a"
    for name in ("v", "u"):
        going = web(name, "b")
        here.set_pod(replace(going, metadata=replace(going.metadata, deletion_timestamp=as_time(0))), f"uid-{name}")
    assert chosen_node(here, evenly) == "b"
    assert "2 node(s) didn't match pod anti-affinity rules" in told(here, alone)


def test_wishes_decide_among_nodes_that_fit() -> None:
    here = cluster(*NODES, web("w", "c"))

    def like(weight: int, **fields: Any) -> list[dict[str, Any]]:
        return [{"weight": weight, "podAffinityTerm": term(**fields)}]

    assert chosen_node(here, pod(affinity={"podAffinity": {PREFERRED: like(1)}})) == "c"
    assert chosen_node(here, pod(affinity={"podAntiAffinity": {PREFERRED: like(1, key="zone")}})) in "ab"
    assert chosen_node(here, pod(labels=WEB, **spread(action="ScheduleAnyway"))) in "ab"
    full = cluster(*NODES, *(web(each, each) for each in "abc"))
    assert chosen_node(full, pod(labels=WEB, **spread("host", action="ScheduleAnyway"))), "soft is never a refusal"


def test_placed_pods_wishes_count_for_those_that_come() -> None:
    wish: dict[str, Any] = {"affinity": {"podAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": term()}]}}}
    here = cluster(*NODES, pod("admirer", nodeName="b", **wish))
    assert chosen_node(here, pod(labels=WEB)) == "b"
    here.set_pod(None, "uid-admirer")
    assert not here.nodes.topology.attracting(read_pod(pod(labels=WEB)))


def test_a_node_that_gets_another_label_takes_its_pods_along() -> None:
    here = cluster(at("a", "x"), at("b", "y"), web("w", "a", **avoids(term("zone"))))
    wanted = pod(labels=WEB, **avoids(term("zone")))
    assert chosen_node(here, wanted) == "b"
    here.set_node(at("a", "x"), at("a", "y"))
    assert "2 node(s)" in told(here, wanted)
    here.set_node(at("b", "y"), at("b", "x"))
    assert chosen_node(here, wanted) == "b"
    here.set_namespace("ns", {"any": "label"})
    here.set_node(at("a", "y"), None)
    assert chosen_node(here, wanted) == "b"


def test_what_was_counted_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "MAX_COUNTED", 4)
    here = cluster(*NODES, web("w", "a"))
    for number in range(5):
        other = term(labelSelector={"matchLabels": {"app": f"{number}"}})
        assert chosen_node(here, pod(labels=WEB, **avoids(other, term()))) in "bc"


def test_a_selector_that_cannot_be_read_keeps_the_pod_pending() -> None:
    broken = term(labelSelector={"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]})
    assert "cannot be read: unknown operator 'Like'" in told(cluster(*NODES), pod(**avoids(broken)))
