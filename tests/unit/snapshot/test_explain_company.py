"""`dray explain pod` names the constraint, the pods that are meant, and the victims that would help."""

from __future__ import annotations

from typing import Any

import pytest

import builders
import dray
from dray.snapshot.pod_explanation import explain_pod

TERM = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "web"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ALONE: dict[str, Any] = {"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}}


def node(name: str) -> dict[str, Any]:
    return builders.node(name, labels={"host": name}, resources={"cpu": "4", "pods": "10"})


def pod(name: str, on: str = "", cpu: str = "1", app: str = "web", **spec: Any) -> dict[str, Any]:
    meta = {"uid": name, "labels": {"app": app}}
    return builders.pod(name, namespace="ns", node=on, cpu=cpu, meta=meta, **spec)


SPREAD = {**TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}


@pytest.mark.parametrize(
    ("there", "wanted", "says"),
    [
        (pod("web-1", "a"), pod("new", **ALONE), "avoids app=web in host a: ns/web-1"),
        (pod("hermit", "a", app="db", **ALONE), pod("new"), "avoided in host a by ns/hermit"),
        (
            pod("web-1", "a"),
            pod("new", topologySpreadConstraints=[SPREAD]),
            "host a has 1 of app=web, the least is 0, maxSkew 1",
        ),
        (
            pod("web-1", "a", app="db"),
            pod("new", app="x", affinity={"podAffinity": {REQUIRED: [TERM]}}),
            "wants app=web in the same host",
        ),
    ],
)
def test_the_term_and_the_pods_are_named(there: dict[str, Any], wanted: dict[str, Any], says: str) -> None:
    explained = explain_pod(dray.load(node("a"), there, wanted), "ns/new")
    assert says in explained.unsuitable["a"]


def test_victims_that_would_help_are_named() -> None:
    objects = [node("a"), pod("low", "a", "4"), pod("high", cpu="2", priority=10)]
    explained = explain_pod(dray.load(*objects), "ns/high")
    assert "Preempting ns/low (priority 0) on node a would help." in explained.text()
    assert explained.to_dict()["preemption"] == {"node": "a", "victims": ["ns/low"]}


def test_who_is_leaving_for_a_pod_is_named() -> None:
    victim, waiting = pod("low", "a", "4"), pod("high", cpu="2", priority=10)
    victim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    waiting["status"] = {"nominatedNodeName": "a"}
    explained = explain_pod(dray.load(node("a"), pod("stays", "a", "0"), victim, waiting), "ns/high")
    assert explained.notes == ("It waits for node a, which ns/low must leave first.",)
