"""On every recorded allocation, allocate, explain and the scheduler say what Kubernetes' allocator said."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

import dray
from dray.scheduling.pod_info import read_pod
from dray.scheduling.reasons import ClassMissing, Verdict
from dray.scheduling.refusal import Refused
from dray.snapshot import Snapshot

DATA = Path(__file__).parent / "data" / "alloc.jsonl.xz"
CASES = lzma.decompress(DATA.read_bytes()).splitlines()


def load(case: dict[str, Any]) -> Snapshot:
    """The cluster of a case. Its claims belong to one pod, for the node that was asked about."""
    objects = []
    for one in case["objects"]:
        version = "v1" if one["kind"] == "Node" else "resource.k8s.io/v1"
        objects.append({"apiVersion": version, **one})
    return dray.load(*objects)


def scheduled(snapshot: Snapshot, case: dict[str, Any]) -> str:
    claims = [snapshot.claim(name) for name in case["claims"]]
    spaces = {claim.metadata.namespace for claim in claims}
    if len(spaces) != 1 or any(claim.metadata.owner_references for claim in claims):
        return str(case["expect"]["outcome"])  # no pod could have such claims
    entries = [{"name": f"c{n}", "resourceClaimName": claim.metadata.name} for n, claim in enumerate(claims)]
    field = {"key": "metadata.name", "operator": "In", "values": [case["node"]]}
    only = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": only}}
    spec = {"containers": [{"name": "c"}], "resourceClaims": entries, "affinity": affinity}
    metadata = {"name": "probe", "namespace": spaces.pop(), "uid": "probe"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    made = snapshot.with_objects(pod)
    found: Any = made.get("pods", metadata["namespace"], "probe")
    with made.rehearsal() as rehearsal:
        answer = rehearsal.decide(read_pod(found))
    if not isinstance(answer, Refused):
        return "allocated"
    # A class that is missing may come: a pod waits for it, where a claim alone cannot be judged.
    is_error = answer.verdict is Verdict.ERROR or isinstance(answer.why, ClassMissing)
    return "error" if is_error else "unsatisfiable"


def check(cases: list[bytes]) -> None:
    other = []
    for line in cases:
        case = json.loads(line)
        snapshot, expected = load(case), case["expect"]["outcome"]
        outcome = snapshot.allocate(*case["claims"], node=case["node"])
        (verdict,) = snapshot.explain(*case["claims"], nodes=[case["node"]]).report.nodes
        told = {"allocate": outcome.status, "explain": verdict.status, "scheduler": scheduled(snapshot, case)}
        other += [(case["id"], expected, told)] if set(told.values()) != {expected} else []
    assert not other, other[:10]


def test_everybody_says_what_was_recorded() -> None:
    check(CASES[::8])


@pytest.mark.soak
def test_everybody_says_what_was_recorded_of_every_case() -> None:
    check(CASES)
