"""Nobody makes the scheduler look at more than it can while others wait."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dray
from builders import manifest
from dray.api import codec
from dray.api.generated.apps import DaemonSet
from dray.api.generated.core import Pod
from dray.scheduling import pod_info, pod_terms, topology
from dray.scheduling.daemon_nodes import DaemonNodes
from dray.scheduling.reasons import TooManyTerms, Verdict
from scheduler_objects import chosen_node, cluster, node, pod, refusal, told, typed
from work import growing_faster, lines_run


def terms(count: int) -> list[dict[str, Any]]:
    return [{"topologyKey": f"k{number % 16}", "labelSelector": {"matchLabels": {"a": "b"}}} for number in range(count)]


def all_over(count: int) -> dict[str, Any]:
    wishes = [{"weight": 1, "podAffinityTerm": {**term, "topologyKey": f"k{n}"}} for n, term in enumerate(terms(count))]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}


def anti_affine(count: int) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms(count)}}}


def spread(count: int) -> dict[str, Any]:
    more = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**term, **more} for term in terms(count)]}


def choosy(count: int) -> dict[str, Any]:
    required = [{"matchExpressions": [{"key": f"k{number}", "operator": "Exists"}]} for number in range(count)]
    of_nodes = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": required}}
    return {"affinity": {"nodeAffinity": of_nodes}}


def tolerant(count: int) -> dict[str, Any]:
    return {"tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in range(count)]}


def particular(count: int) -> dict[str, Any]:
    values = [f"v{number}" for number in range(count)]
    one = {"matchExpressions": [{"key": "k", "operator": "In", "values": values}]}
    of_nodes = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [one]}}
    return {"affinity": {"nodeAffinity": of_nodes}}


def shy(count: int) -> dict[str, Any]:
    values = [f"v{number}" for number in range(count - 1)]
    selector = {"matchExpressions": [{"key": "k", "operator": "In", "values": values}]}
    terms = [{"topologyKey": "k", "labelSelector": selector}]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize("spec", [choosy, particular])
def test_a_daemon_that_says_too_much_of_nodes_is_for_none(spec: Any) -> None:
    def judged(count: int) -> bool:
        named = {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec(pod(**spec(count)))}
        made = manifest("apps/v1", "DaemonSet", "d", spec={"selector": {"matchLabels": {"a": "b"}}, "template": named})
        there = node("n1", labels={"k": "v1", "k1": "v1"})
        return DaemonNodes(typed(made, DaemonSet)).judge(there).should_run

    assert judged(10)
    assert not judged(pod_terms.MOST_VALUES + 1)


def pod_spec(made: Pod) -> Any:
    return json.loads(codec.encode(made))["spec"]


@pytest.mark.parametrize(
    ("spec", "most"),
    [
        (particular, pod_terms.MOST_VALUES),
        (shy, pod_terms.MOST_VALUES),
        (anti_affine, pod_terms.MOST_TERMS),
        (spread, pod_terms.MOST_TERMS),
        (all_over, pod_terms.MOST_TOPOLOGIES),
        (choosy, pod_info.MOST_SAID),
        (tolerant, pod_info.MOST_SAID),
    ],
)
def test_a_pod_that_says_too_much_is_told_so(spec: Any, most: int) -> None:
    on = cluster(node("n1"))
    refused = refusal(on, pod(**spec(most + 1)))
    assert isinstance(refused.why, TooManyTerms)
    assert refused.verdict is Verdict.UNSUPPORTED
    assert f"the pod has {most + 1} " in told(on, pod(**spec(most + 1)))
    assert not isinstance(pod_info.read_pod(pod(**spec(most))).fault, TooManyTerms)
    assert chosen_node(on, pod()) == "n1"


def test_terms_about_domains_that_are_not_there_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "MAX_COUNTS", 10)
    on = cluster(node("n1"))
    for number in range(30):
        wanted = [{"topologyKey": "none", "labelSelector": {"matchLabels": {"a": str(number)}}}]
        rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}}
        assert chosen_node(on, pod(affinity=rules)) == "n1"
    assert len(on.nodes.topology._counts) <= 10


def test_scopes_of_a_quota_are_not_looked_at_with_every_resource() -> None:
    def check(size: int) -> None:
        hard = {f"count/x{number}.example.com": "1" for number in range(size)}
        wanted = {"scopeName": "PriorityClass", "operator": "Exists"}
        spec = {"hard": hard, "scopeSelector": {"matchExpressions": [wanted] * size}}
        dray.validate(manifest("v1", "ResourceQuota", "q", spec=spec))

    assert not growing_faster(lines_run(lambda: check(20)), lines_run(lambda: check(40)))
