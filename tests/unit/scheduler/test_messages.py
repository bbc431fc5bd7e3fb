"""What a pod that waits for devices is told, and how little it costs to tell many."""

from __future__ import annotations

from typing import Any

import pytest

from dray.allocator import Options, explain
from dray.reconcile import VirtualClock
from dray.scheduler import messages
from dray.scheduler.messages import Messages
from dray.scheduling.decide import decide
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import Gated
from dray.scheduling.refusal import Refused
from dray.scheduling.rehearsal import Rehearsal
from dray.snapshot import load
from dray.snapshot.pending_pods import pending_pods
from dray.tracker import Remove
from scale_up_objects import node, template, waiting
from snapshot_objects import Manifest, device, device_class, resource_slice, rule


class World:
    """Pods that were scheduled as far as possible."""

    def __init__(self, *objects: Manifest) -> None:
        self.clock = VirtualClock()
        snapshot = load(*objects)
        snapshot.nodes()
        waiting = pending_pods(snapshot)
        self.cluster = snapshot._world.cluster
        self.rehearsal = Rehearsal(self.cluster)
        self.rehearsal.expect(waiting.pods, waiting.claims)
        self.rehearsal.schedule(self.rehearsal.pending)
        self.messages = Messages(self.cluster, self.clock)

    def refusal(self, name: str) -> tuple[PodInfo, Refused]:
        info = next(pod for pod in self.rehearsal.pending if pod.name.name == name)
        answer = decide(self.cluster, info, Options())
        assert isinstance(answer, Refused)
        return info, answer

    def tell(self, name: str) -> str:
        return self.messages.tell(*self.refusal(name))


def cluster(nodes: int, devices: int = 2) -> list[Manifest]:
    names = [f"node-{number}" for number in range(nodes)]
    slices = [resource_slice(name, *(device(f"gpu-{number}") for number in range(devices))) for name in names]
    return [device_class(), template("one"), template("nine", 9), *map(node, names), *slices]


@pytest.mark.req("4381-217")
def test_counts_and_reasons_are_those_of_explain() -> None:
    here = World(*cluster(2), rule("worn", "NoSchedule", pool="node-1"), waiting("big", claim_template="nine"))
    assert here.tell("big") == (
        "0/2 nodes are available: 2 cannot allocate all claims. "
        'Request "gpu": 4 of 4 devices match; 2 tainted by rule worn, 2 free; nearest node is node-0, '
        "short by 7 devices."
    )


def test_a_pod_that_lacks_other_things_is_told_those() -> None:
    here = World(*cluster(1), waiting("big", cpu=99, claim_template="one"))
    assert here.tell("big") == "0/1 nodes are available: 1 Insufficient cpu."


def test_of_many_nodes_some_are_looked_at_and_that_is_said() -> None:
    here = World(*cluster(25), waiting("big", claim_template="nine"))
    assert "25 cannot allocate all claims. On 20 nodes that were looked at: request" in here.tell("big")


def test_several_claims_are_named_as_the_pod_names_them() -> None:
    pod = waiting("big", claim_template="nine")
    pod["spec"]["resourceClaims"].append({"name": "other", "resourceClaimTemplateName": "nine"})
    told = World(*cluster(1), pod).tell("big")
    assert '. Claim gpu: request "gpu": 2 of 2 devices match' in told
    assert '; other: request "gpu": 2 of 2 devices match' in told


def test_claims_that_fit_only_each_by_itself() -> None:
    pod = waiting("big", claim_template="one")
    pod["spec"]["resourceClaims"].append({"name": "other", "resourceClaimTemplateName": "one"})
    told = World(*cluster(1, devices=1), pod).tell("big")
    assert told.endswith(". Each claim fits by itself, but no node has room for all of them together.")


def test_equal_claims_share_an_explanation_and_few_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def counted(*given: Any) -> Any:
        made.append(given)
        return explain(*given)

    monkeypatch.setattr(messages, "explain", counted)
    pods = [waiting(f"pod-{number}", claim_template="nine") for number in range(30)]
    different = [waiting(f"odd-{number}", claim_template=f"t-{number}") for number in range(20)]
    templates = [template(f"t-{number}", 10 + number) for number in range(20)]
    here = World(*cluster(1), *templates, *pods, *different)
    texts = {here.tell(f"pod-{number}") for number in range(30)}
    assert (len(made), len(texts)) == (1, 1)
    for number in range(20):
        assert here.tell(f"odd-{number}").startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    assert len(made) == messages.EXPLANATIONS_PER_PERIOD


def test_devices_that_went_are_not_counted() -> None:
    here = World(*cluster(1), waiting("big", claim_template="nine"))
    assert "2 of 2 devices match" in here.tell("big")
    for one in cluster(1):
        if one["kind"] == "ResourceSlice":
            here.cluster.track(Remove("ResourceSlice", one["metadata"]["name"]))
    here.messages.forget()
    assert "0 of 0 devices match" in here.tell("big")


async def test_other_counts_for_the_same_reason_can_wait() -> None:
    here = World(*cluster(1), waiting("big", claim_template="nine"))
    info, refused = here.refusal("big")
    first = here.messages.tell(info, refused)
    assert here.messages.is_news(info, refused, "", first)
    assert not here.messages.is_news(info, refused, first, first)
    changed = f"{first} Other counts."
    assert not here.messages.is_news(info, refused, first, changed), "so soon"
    assert here.messages.is_news(info, Refused(Gated()), first, "gated"), "another reason is told at once"
    assert here.messages.is_news(info, refused, "gated", changed), "and so is the first one, which is another again"
    await here.clock.advance(messages.RETELL_SECONDS)
    assert here.messages.is_news(info, refused, first, changed)
