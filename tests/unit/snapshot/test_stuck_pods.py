"""`explain pod` of pods that no scheduler looks at any more, of pods for others, and of claims that are going."""

from __future__ import annotations

from typing import Any

import builders
import dray
from dray.snapshot.pod_explanation import PodExplanation, explain_pod
from snapshot_objects import Manifest, claim, device, device_class, held, node, pod, resource_slice

CLUSTER = [node("node-1"), node("node-2"), device_class(), resource_slice("node-1", device("gpu-0"))]


def told(made: Manifest, *objects: Manifest) -> PodExplanation:
    return explain_pod(dray.load(*CLUSTER, made, *objects), "ml/p")


def a_pod(node_name: str = "", claim_name: str = "", cpu: str = "", **spec: Any) -> Manifest:
    used = [builders.pod_claim("gpu", claim=claim_name)] if claim_name else []
    meta, status = {"uid": "uid-p"}, {"phase": "Pending"}
    return builders.pod("p", namespace="ml", node=node_name, cpu=cpu, claims=used, meta=meta, status=status, **spec)


def test_a_pod_with_a_node_and_a_claim_that_nobody_allocates() -> None:
    found = told(a_pod("node-1", "c"), claim("c"))
    assert found.status == "stuck"
    assert "Claim ml/c is not allocated, and nobody is going to" in found.text()
    elsewhere = held(claim("c"), "node-1", "gpu-0", pods=("p",))
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]
    elsewhere["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    assert told(a_pod("node-1", "c"), elsewhere).status == "scheduled"
    assert told(a_pod("node-2", "c"), elsewhere).notes == ("The devices of claim ml/c cannot be used on node-2.",)
    foreign = held(claim("c"), "node-1", "gpu-0", pods=("q",))
    assert told(a_pod("node-1", "c"), foreign).notes == ("Claim ml/c is not reserved for the pod.",)


def test_a_pod_on_a_node_that_is_full_gone_or_not_ready() -> None:
    full = told(a_pod("node-1", cpu="6"), {**pod("q"), "spec": {**a_pod("node-1", cpu="4")["spec"]}})
    assert full.notes == (
        "Node node-1 has no room for it besides what is there: Insufficient cpu (needs 6, 4 of 8 left).",
    )
    assert told(a_pod("node-9")).notes == ("Node node-9 is not there.",)
    assert told(a_pod("node-1"), node("node-1", ready="Unknown")).notes == ("Node node-1 is not ready.",)
    running = a_pod("node-1", "c")
    running["status"]["phase"] = "Running"
    assert told(running, claim("c")).status == "scheduled"


def test_a_claim_that_is_being_deleted_says_whom_it_waits_for() -> None:
    going = held(claim("c"), "node-1", "gpu-0", pods=("q",))
    going["metadata"] |= {"deletionTimestamp": "2026-06-01T12:00:00Z", "finalizers": ["x/y"]}
    found = told(a_pod("", "c"), going)
    assert found.status == "pending"
    assert "Claim ml/c is being deleted and goes once ml/q no longer uses it" in found.text()


def test_a_claim_that_ties_the_pod_to_a_full_node() -> None:
    has = held(claim("c"), "node-1", "gpu-0", pods=("q",))
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]
    has["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    busy = {**pod("q"), "spec": a_pod("node-1", cpu="6")["spec"]}
    found = told(a_pod("", "c", cpu="4"), has, busy)
    assert found.status == "pending"
    assert (
        "Claim ml/c has devices already, which can be used on node-1 (Insufficient cpu (needs 4, 2 of 8 left)) only."
        in found.text()
    )


def test_what_cannot_be_judged_is_said_not_to_be() -> None:
    other = told(a_pod(schedulerName="volcano"))
    assert other.status == "unjudged"
    assert other.text() == (
        "ml/p cannot be judged: it is for scheduler volcano, and what that one decides is not known here."
    )
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    assert (
        told(a_pod(volumes=[volume])).text().startswith('ml/p cannot be judged: persistentvolumeclaim "data" not found')
    )
    for ours in ("default-scheduler", "dray-scheduler"):  # the latter is what `dray install` runs
        assert told(a_pod(schedulerName=ours)).status == "fits"
