"""What the checkers of simulated days take to be wrong: not what nobody could have known, nor what is as it must be."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from builders import Manifest, typed
from dray.api.generated.core import Pod
from dray.api.kinds import PODS
from dray.api.pods import binding_of
from dray.api.resource import ResourceClaim
from dray.process.clock import VirtualClock
from dray.store import Event, EventType, Key, Record
from fault_simulation import objects, outcome
from fault_simulation.company import Company
from fault_simulation.device_evictions import LAG
from fault_simulation.gang_safety import GangSafety
from fault_simulation.ledger import CLAIMS, Ledger
from fault_simulation.network import CALM, Network, Request

RESOURCES = {"PodGroup": "podgroups.scheduling.k8s.io", "Node": "nodes", "Pod": "pods", "ResourceClaim": CLAIMS}


class Day:
    """Writes, one after the other."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.ledger = Ledger(self.clock)

    def write(self, obj: Any) -> None:
        self._tell(obj, EventType.MODIFIED)

    def remove(self, obj: Any) -> None:
        self._tell(obj, EventType.DELETED)

    def _tell(self, obj: Any, how: EventType) -> None:
        key = Key(RESOURCES[obj.kind], obj.metadata.namespace, obj.metadata.name)
        self.ledger.witness(Event(how, Record(key, 1, 1, b"", obj), None))


def made(document: Manifest, **fields: Any) -> Any:
    """An object that was stored: it has a uid."""
    document["metadata"]["uid"] = f"uid-{document['metadata']['name']}"
    return typed({**document, **fields})


def bound(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))


def test_pods_have_no_claims_of_their_own_as_long_as_their_group_is_not_there() -> None:
    day = Day()
    group, *pods = [made(one) for one in objects.gang("g", 2, None, "", whole=False)]
    for pod in pods:
        day.write(pod)
    assert [*outcome._pod_leftovers(day.ledger, pods[0])] == []
    day.write(group)
    assert [*outcome._pod_leftovers(day.ledger, pods[0])] == ["pod g-0 has 0 claims of its own"]


@pytest.mark.parametrize("comes_late", [True, False])
def test_a_pod_that_went_counts_if_devices_were_on_their_way_to_it(comes_late: bool) -> None:
    day = Day()
    GangSafety(day.ledger)
    group, *documents = objects.gang("g", 2, None, "", whole=False)
    day.write(made(group))
    pods = [
        made(one, status={"resourceClaimStatuses": [{"name": "c", "resourceClaimName": f"claim-{number}"}]})
        for number, one in enumerate(documents)
    ]
    for pod in pods:
        day.write(pod)
    day.remove(pods[1])
    claims = [held(f"claim-{number}", pod) for number, pod in enumerate(pods)]
    for claim in claims if comes_late else claims[:1]:
        day.write(claim)
    day.remove(claims[1])
    day.write(bound(pods[0], "node-0"))
    assert bool(day.ledger.problems) is not comes_late


def held(name: str, pod: Pod) -> ResourceClaim:
    allocation = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": name}]}}
    user = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
    claim: ResourceClaim = made(objects.claim(name, "gpu"), status={"allocation": allocation, "reservedFor": [user]})
    return claim


@pytest.mark.parametrize("is_asked", [True, False])
async def test_how_even_pods_are_is_judged_when_it_is_known_who_was_on_the_way(is_asked: bool) -> None:
    day = Day()
    company = Company(day.ledger)
    nodes = [made(objects.node(name)) for name in ("node-0", "node-1")]
    for node in nodes:
        day.write(node)
    old, new, other = (made(objects.pod(name, {}, None, objects.SPREAD)) for name in ("old", "new", "other"))
    day.write(bound(old, "node-0"))
    await day.clock.advance(2 * LAG)
    day.write(other)
    if is_asked:
        company.on_sent(Request("s", "s", "post", PODS, "default", "other", "binding", binding_of(other, "node-1")))
    day.write(bound(new, "node-0"))
    await day.clock.advance(2 * LAG)
    day.write(nodes[0])
    assert bool(day.ledger.problems) is not is_asked


async def test_who_calls_a_server_that_dies_is_not_told_to_end() -> None:
    class Dying:
        def connect(self, _account: str) -> Dying:
            return self

    async def die(_client: Any) -> None:
        raise asyncio.CancelledError("the server has died")

    network: Any = Network.__new__(Network)
    network.server, network.on_arrival, network.faults = Dying(), [], CALM
    with pytest.raises(ConnectionResetError):
        await asyncio.create_task(network._arrive("admin", die, None))
