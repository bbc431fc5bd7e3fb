"""Refusals are values: each has words, a plugin where Kubernetes has one, and changes that may help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from dray.scheduling import reasons
from dray.scheduling.cause import Cause
from dray.scheduling.plugin import Plugin
from dray.scheduling.reasons import Insufficient, NodeReason, NotAffine, PodReason, Reason, Verdict
from dray.scheduling.refusal import NodesRefuse, Refused
from dray.scheduling.text import tell, tell_node, tell_pod
from scheduler_objects import allocated, claim, cluster, device_class, node, pod, refusal, resource_slice, told, typed


def concrete(kind: type[Any]) -> Iterator[type[Any]]:
    """All kinds of reasons that can be given."""
    below = kind.__subclasses__()
    if not below:
        yield kind
    for each in below:
        yield from concrete(each)


def sample(kind: type[Any]) -> Any:
    """A reason with data that can be found again in its words."""
    fields = msgspec.structs.fields(kind)
    return kind(**{field.name: ("one", "two") if "tuple" in str(field.type) else field.name for field in fields})


@pytest.mark.parametrize("kind", sorted(concrete(Reason), key=str), ids=lambda kind: kind.__name__)
def test_every_reason_has_words_and_data_that_can_be_counted(kind: type[Any]) -> None:
    reason = sample(kind)
    words = tell_node(reason) if isinstance(reason, NodeReason) else tell_pod(reason)
    assert words
    assert Counter([reason, sample(kind)]) == {reason: 2}


def test_what_keeps_pods_from_nodes_can_be_helped() -> None:
    """But for what only a change of the pod itself can help, which revives it anyway."""
    hopeless = {kind.__name__ for kind in concrete(Reason) if kind.causes == Cause.NOTHING}
    assert hopeless == {"OtherScheduler", "TermUnreadable", "TooManyTerms", "Gated"}


@pytest.mark.parametrize(
    ("wanted", "plugins", "causes", "verdict"),
    [
        (pod(nodeName="b"), ["NodeName"], Cause.NODE, "Unschedulable"),
        (pod(cpu="99"), ["NodeResourcesFit"], Cause.NODE | Cause.POD_GONE, "Unschedulable"),
        (pod(nodeSelector={"a": "b"}), ["NodeAffinity"], Cause.NODE, "Unschedulable"),
        (pod(schedulingGates=[{"name": "g"}]), ["SchedulingGates"], Cause.NOTHING, "SchedulingGated"),
        (pod(claims=("none",)), ["DynamicResources"], Cause.CLAIM, "Unschedulable"),
        (pod(template="t"), ["DynamicResources"], Cause.CLAIM, "Unschedulable"),
        (
            pod(claims=("c",)),
            ["DynamicResources"],
            Cause.DEVICES | Cause.CLAIM | Cause.CLASS | Cause.NODE | Cause.POD_GONE,
            "Unschedulable",
        ),
        (
            pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
            ["PodTopologySpread"],
            Cause.NODE,
            "Unschedulable",
        ),
    ],
)
def test_which_plugin_refuses_and_what_may_help(wanted: Any, plugins: list[str], causes: Cause, verdict: str) -> None:
    refused = refusal(cluster(node("a"), device_class(), claim()), wanted)
    assert list(refused.plugins) == plugins
    assert refused.causes == causes
    assert refused.verdict == verdict


def test_names_of_the_pod_are_not_taken_for_reasons() -> None:
    """What a user may call things does not decide what a refusal is about."""
    claims = pod(claims=("Insufficient cpu, scheduling gates",))
    assert refusal(cluster(node("a")), claims).plugins == (Plugin.DYNAMIC_RESOURCES,)
    resource = "example.com/resourceclaim"
    asked = pod(containers=[{"name": "c", "image": "i", "resources": {"requests": {resource: "1"}}}])
    assert refusal(cluster(node("a")), asked).plugins == (Plugin.NODE_RESOURCES_FIT,)


def test_nodes_are_counted_by_everything_they_have_against_a_pod() -> None:
    both = (Insufficient("cpu"), Insufficient("memory"))
    why = NodesRefuse(4, Counter({both: 2, (Insufficient("cpu"),): 1, (NotAffine(),): 1}))
    assert why.reasons() == {Insufficient("cpu"): 3, Insufficient("memory"): 2, NotAffine(): 1}
    assert tell(Refused(why)) == (
        "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 2 Insufficient memory, "
        "3 Insufficient cpu."
    )


def test_without_nodes_a_node_may_help() -> None:
    refused = refusal(cluster(), pod())
    assert tell(refused) == "no nodes available to schedule pods"
    assert refused.causes == Cause.NODE


def test_a_claim_that_cannot_be_read_is_refused_and_no_more() -> None:
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}], "constraints": [{"requests": ["r"]}]}
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c"},
        "spec": {"devices": devices},
    }
    here = cluster(node("a"), resource_slice("a", "gpu-0"), device_class(), typed(manifest))
    refused = refusal(here, pod(claims=("c",)))
    assert refused.verdict is Verdict.ERROR
    assert "unsupported constraint type" in tell(refused)


def test_only_reasons_of_the_way_things_are_pass_soon() -> None:
    soon = {kind.__name__ for kind in concrete(PodReason) if kind.passes_soon}
    assert soon == {
        "ClaimNotCreated",
        "ClaimInFlight",
        "ClaimBeingJudged",
        "ClaimBeingSearched",
        "GroupMissing",
        "StillDeciding",
        "GroupIncomplete",
    }
    assert not refusal(cluster(node("a")), pod(claims=("none",))).passes_soon
    held = claim(status=allocated("gpu-0", "b", reserved=True))
    out_of_reach = cluster(node("a"), device_class(), held)
    assert told(out_of_reach, pod(claims=("c",))) == (
        "0/1 nodes are available: 1 resourceclaim not available on the node."
    )
    why = refusal(out_of_reach, pod(claims=("c",))).why
    assert isinstance(why, NodesRefuse)
    assert why.reasons() == {reasons.ClaimOutOfReach(): 1}
