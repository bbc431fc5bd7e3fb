"""Where pods may stand, against a twin that asks every pod on every node: whatever came, went and changed before."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dray.api.generated.core import Node, Pod
from dray.scheduling.cluster import Cluster
from dray.scheduling.pod_info import read_pod
from scheduler_objects import chosen_node, node, pod, refusal

KEYS = ("host", "zone")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

labels = st.fixed_dictionaries({}, optional={"app": st.sampled_from("ab"), "rev": st.sampled_from("12")})
selectors = st.one_of(
    st.fixed_dictionaries({"matchLabels": labels}),
    st.fixed_dictionaries(
        {
            "matchExpressions": st.lists(
                st.fixed_dictionaries(
                    {"key": st.sampled_from(("app", "rev")), "operator": st.sampled_from(("Exists", "DoesNotExist"))}
                ),
                min_size=1,
                max_size=1,
            )
        }
    ),
)
terms = st.fixed_dictionaries({"labelSelector": selectors, "topologyKey": st.sampled_from(KEYS)})
spreads = st.fixed_dictionaries(
    {
        "labelSelector": selectors,
        "topologyKey": st.sampled_from(KEYS),
        "maxSkew": st.integers(1, 2),
        "whenUnsatisfiable": st.just("DoNotSchedule"),
    },
    optional={"minDomains": st.integers(1, 3)},
)
few = st.lists(terms, max_size=2)
specs = st.tuples(few, few, st.lists(spreads, max_size=1))
nodes = st.fixed_dictionaries({}, optional={"zone": st.sampled_from("xy"), "host": st.sampled_from("abcd")})
NAMES = "abcd"


def made(name: str, own: dict[str, str], spec: tuple[Any, Any, Any], on: str = "") -> Pod:
    wanted, unwanted, spread = spec
    affinity = {"podAffinity": {REQUIRED: wanted}, "podAntiAffinity": {REQUIRED: unwanted}}
    placed: dict[str, Any] = {"nodeName": on} if on else {}
    return pod(name, labels=own, cpu="1m", affinity=affinity, topologySpreadConstraints=spread, **placed)


class Twin:
    """Nodes, and pods on them, asked one by one."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}

    def may_stand(self, wanted: Pod, name: str) -> bool:
        here = self.nodes[name].metadata.labels
        affinity = wanted.spec.affinity
        assert affinity is not None
        assert affinity.pod_affinity is not None
        required = affinity.pod_affinity.required_during_scheduling_ignored_during_execution
        if not all(term.topology_key in here for term in required):
            return False
        company = [one for one in self._placed() if all(chosen(term.label_selector, one) for term in required)]
        anywhere = any(term.topology_key in self._labels(one) for one in company for term in required)
        is_first = not anywhere and all(chosen(term.label_selector, wanted) for term in required)
        together = [any(self._together(one, here, term.topology_key) for one in company) for term in required]
        if not all(together) and not is_first:
            return False
        for one in self._placed():
            terms = [(term, one) for term in avoided(wanted)] + [(term, wanted) for term in avoided(one)]
            if any(chosen(t.label_selector, who) and self._together(one, here, t.topology_key) for t, who in terms):
                return False
        return all(self._is_even(wanted, constraint, here) for constraint in wanted.spec.topology_spread_constraints)

    def _is_even(self, wanted: Pod, constraint: Any, here: Any) -> bool:
        key = constraint.topology_key
        if key not in here:
            return False
        counts = {one.metadata.labels[key]: 0 for one in self.nodes.values() if key in one.metadata.labels}
        for one in self._placed():
            if key in self._labels(one) and chosen(constraint.label_selector, one):
                counts[self._labels(one)[key]] += 1
        lowest = min(counts.values()) if len(counts) >= (constraint.min_domains or 1) else 0
        return bool(counts[here[key]] + chosen(constraint.label_selector, wanted) - lowest <= constraint.max_skew)

    def _placed(self) -> list[Pod]:
        return [one for one in self.pods.values() if one.spec.node_name in self.nodes]

    def _labels(self, one: Pod) -> Any:
        return self.nodes[one.spec.node_name or ""].metadata.labels

    def _together(self, one: Pod, here: Any, key: str) -> bool:
        return key in here and self._labels(one).get(key) == here[key]


def avoided(one: Pod) -> Any:
    assert one.spec.affinity is not None
    assert one.spec.affinity.pod_anti_affinity is not None
    return one.spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution


def chosen(selector: Any, one: Pod) -> bool:
    own = one.metadata.labels
    for key, value in selector.match_labels.items():
        if own.get(key) != value:
            return False
    return all((each.key in own) == (each.operator == "Exists") for each in selector.match_expressions)


steps = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(NAMES), nodes),
    st.tuples(st.just("no node"), st.sampled_from(NAMES)),
    st.tuples(st.just("pod"), st.sampled_from("1234"), labels, specs, st.sampled_from(NAMES)),
    st.tuples(st.just("no pod"), st.sampled_from("1234")),
    st.tuples(st.just("ask"), labels, specs),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, min_size=4, max_size=14))
def test_pods_may_stand_where_a_twin_says(history: list[Any]) -> None:
    here, twin = Cluster(), Twin()
    for step in history:
        match step:
            case "node", name, own:
                new = node(name, labels=own)
                here.set_node(twin.nodes.get(name), new)
                twin.nodes[name] = new
            case "no node", name if name in twin.nodes:
                here.set_node(twin.nodes.pop(name), None)
            case "pod", name, own, spec, on:
                placed = made(name, own, spec, on)
                here.set_pod(None, placed.metadata.uid)
                here.set_pod(placed, placed.metadata.uid)
                twin.pods[name] = placed
            case "no pod", name:
                twin.pods.pop(name, None)
                here.set_pod(None, f"uid-{name}")
            case "ask", own, spec:
                compare(here, twin, made("new", own, spec))
    compare(here, twin, made("last", {"app": "a"}, ([], [], [])))


def compare(here: Cluster, twin: Twin, wanted: Pod) -> None:
    refuses = here.nodes.filter(read_pod(wanted)).refuses
    may = {one.name for one in here.nodes if not refuses(one)}
    crowded = {one.name for one in here.nodes if len(one.pods) >= 3}
    right = {name for name in twin.nodes if twin.may_stand(wanted, name)} - crowded
    assert may == right
    if right:
        assert chosen_node(here, wanted) in right
    else:
        assert refusal(here, wanted)
