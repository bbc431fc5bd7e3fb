"""One verdict: allocate, explain, what-if, previews and the scheduler agree on every random cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dray
from allocation_strategies import NODES, clusters
from dray.allocator import Options
from dray.api.references import ObjectRef
from dray.scheduling.cluster import Cluster
from dray.scheduling.decide import Chosen, decide
from dray.scheduling.pod_info import identified, read_pod
from dray.scheduling.reasons import Verdict
from dray.snapshot import Snapshot
from dray.snapshot.pod_explanation import explain_pod
from dray.snapshot.world import World
from dray.what_if.difference import compare
from dray.what_if.elsewhere import move_elsewhere
from dray.what_if.evictions import Eviction
from dray.what_if.pending_changes import assess_pending
from snapshot_objects import node

Json = dict[str, Any]
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
NOT_READY = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
STATES: dict[str, Json] = {
    "ready": {},
    "cordoned": {"spec": {"unschedulable": True}},
    "not ready": {"spec": NOT_READY, "ready": "False"},
}
FITS, DOES_NOT, ERROR = "fits", "does not", "cannot be judged"

node_states = st.fixed_dictionaries(
    {NODES[0]: st.sampled_from(["ready", "ready", *STATES]), NODES[1]: st.sampled_from(list(STATES))}
)


def cluster_of(manifests: list[Json], states: dict[str, str]) -> Snapshot:
    """The random cluster, with a pod that waits for each of its claims."""
    objects: list[Json] = []
    for manifest in manifests:
        name = manifest["metadata"]["name"]
        if manifest["kind"] == "Node":
            objects.append(node(name, labels=manifest["metadata"]["labels"], **STATES[states[name]]))
            continue
        objects.append({"apiVersion": "resource.k8s.io/v1", **manifest})
        if manifest["kind"] == "ResourceClaim" and not name.startswith("held"):
            objects.append(waiting(name))
    return dray.load(*objects)


def waiting(claim: str) -> Json:
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "r", "resourceClaimName": claim}],
    }
    metadata = {"name": f"pod-{claim}", "namespace": "default", "uid": f"uid-{claim}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def allocated(snapshot: Snapshot, claim: str) -> str:
    return {"allocated": FITS, "unsatisfiable": DOES_NOT, "error": ERROR}[snapshot.allocate(claim).status]


def explained(snapshot: Snapshot, claim: str) -> str:
    found = snapshot.explain(claim)
    told = str(found)
    report = found.report
    if report.error or any(one.error for one in report.claims):
        assert "cannot be judged" in told or "Nothing can be decided" in told
        return ERROR
    fits = any(verdict.status == "allocated" for verdict in report.nodes)
    assert fits == (f"{claim} fits on " in told), told
    return FITS if fits else DOES_NOT


def decided(snapshot: Snapshot, claim: str) -> str:
    """By the scheduler, on a cluster that events told it of."""
    world = World(dict(snapshot._world.root), has_all_nodes=True)
    world.move_to({})
    cluster: Cluster = world.cluster
    pod = snapshot.get("pods", "default", f"pod-{claim.partition('/')[2]}")
    assert pod is not None
    answer = decide(cluster, read_pod(identified(pod)), Options())  # type: ignore[arg-type]
    if isinstance(answer, Chosen):
        return FITS
    return ERROR if answer.verdict is Verdict.ERROR else DOES_NOT


def explained_pod(snapshot: Snapshot, claim: str) -> str:
    found = explain_pod(snapshot, f"default/pod-{claim.partition('/')[2]}")
    if found.status == "fits":
        return FITS
    return DOES_NOT


def moved(snapshot: Snapshot, claim: str) -> bool:
    """A preview: the pod was somewhere, and has to go."""
    short = claim.partition("/")[2]
    ref = ObjectRef("default", f"pod-{short}", f"uid-{short}")
    moment = "2026-06-01T12:00:00Z"
    leaving = Eviction(pod=str(ref), claims=(claim,), devices=(), causes=(), due=moment, expected=moment)
    (told,) = move_elsewhere(snapshot, {ref: leaving})
    return bool(told.fits)


def check(manifests: list[Json], states: dict[str, str]) -> None:
    snapshot = cluster_of(manifests, states)
    chances = assess_pending(snapshot)
    for claim in snapshot.pending():
        verdict = allocated(snapshot, claim)
        assert explained(snapshot, claim) == verdict, claim
        assert decided(snapshot, claim) == verdict, claim
        fits = verdict == FITS
        assert (explained_pod(snapshot, claim) == FITS) == fits, claim
        assert chances.claims[claim].fits == fits, claim
        assert chances.pods[f"default/pod-{claim.partition('/')[2]}"].fits == fits, claim
        assert moved(snapshot, claim) == fits, claim
    assert not compare(snapshot, snapshot, NOW).pending


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(clusters(), node_states)
def test_everybody_says_the_same_of_a_claim(manifests: list[Json], states: dict[str, str]) -> None:
    check(manifests, states)


@pytest.mark.soak
@settings(max_examples=10_000, suppress_health_check=list(HealthCheck), deadline=None)
@given(clusters(), node_states)
def test_everybody_says_the_same_of_a_claim_at_length(manifests: list[Json], states: dict[str, str]) -> None:
    check(manifests, states)
