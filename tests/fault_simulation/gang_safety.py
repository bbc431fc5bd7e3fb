"""Gangs are whole: none begins to run before all of it has devices, and none that cannot run holds any."""

from __future__ import annotations

from collections.abc import Iterator

from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.pod_groups import group_of, min_count
from dray.api.references import ObjectName
from dray.api.resource import ResourceClaim
from fault_simulation.fitting import Fitting
from fault_simulation.ledger import CLAIMS, GROUPS, PODS, Change, Ledger, claim_names, is_finished

ON_ITS_WAY_SECONDS = 30.0
"""How long a binding may be on its way: who went meanwhile cannot be known to whoever sent it."""


class GangSafety:
    """Looks at every pod of a gang that gets a node."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._begun: set[str] = set()
        """Uids of gangs of which pods have, or had, nodes."""
        self._went: dict[ObjectName, dict[str, tuple[float, Pod, bool]]] = {}
        """Pods of gangs that went without a node, by uid: when, and whether they had devices, then or later."""
        ledger.on_change.append(self._follow)

    def _follow(self, change: Change) -> None:
        if change.resource == CLAIMS:
            self._note_late(change)
        if change.resource != PODS:
            return
        self._note_gone(change)
        if change.new is None or not change.new.spec.node_name:
            return
        name = group_of(change.new)
        if name is None or (change.old is not None and change.old.spec.node_name):
            return
        group: PodGroup | None = self._ledger.find(GROUPS, *name)
        if group is None:
            self._ledger.blame(f"pod {change.new.metadata.name} got a node, but its group {name} is not there")
            return
        if group.metadata.uid in self._begun:
            return
        self._begun.add(group.metadata.uid)
        ready = sum(_has_devices(self._ledger, pod) for pod in members(self._ledger, name))
        earliest = self._ledger.clock.monotonic() - ON_ITS_WAY_SECONDS
        went = self._went.get(name, {}).values()
        ready += sum(at >= earliest and (had or _has_devices(self._ledger, pod)) for at, pod, had in went)
        if ready < min_count(group):
            self._ledger.blame(f"gang {name} began to run with devices for {ready} of {min_count(group)} pods")

    def _note_gone(self, change: Change) -> None:
        old: Pod | None = change.old
        if old is None or old.spec.node_name or (name := group_of(old)) is None:
            return
        if change.new is None or change.new.metadata.deletion_timestamp is not None:
            about = (self._ledger.clock.monotonic(), old, _has_devices(self._ledger, old))
            self._went.setdefault(name, {}).setdefault(old.metadata.uid, about)

    def _note_late(self, change: Change) -> None:
        """What was on its way when a pod went may still give it devices, which are free again at once."""
        claim: ResourceClaim | None = change.new
        if claim is None or claim.status.allocation is None:
            return
        users = {user.uid for user in claim.status.reserved_for}
        for went in self._went.values():
            for uid in went.keys() & users:
                at, pod, had = went[uid]
                went[uid] = (at, pod, had or _has_devices(self._ledger, pod))


def members(ledger: Ledger, name: ObjectName) -> list[Pod]:
    """The pods of a gang that run or wait."""
    return [
        pod
        for pod in ledger.pods
        if group_of(pod) == name and not is_finished(pod) and pod.metadata.deletion_timestamp is None
    ]


def _has_devices(ledger: Ledger, pod: Pod) -> bool:
    claims = [ledger.find(CLAIMS, pod.metadata.namespace, name) for name in claim_names(pod)]
    return len(claims) == len(pod.spec.resource_claims) and all(
        claim is not None
        and claim.status.allocation is not None
        # Another scheduler may let go of it just now: whoever has a node gets its reservation back, with the devices.
        and (not claim.status.reserved_for or any(user.uid == pod.metadata.uid for user in claim.status.reserved_for))
        for claim in claims
    )


def find_gang_leftovers(ledger: Ledger) -> Iterator[str]:
    """A gang that fits runs; one that waits holds nothing."""
    for group in ledger.all(GROUPS):
        name = ObjectName.of(group)
        if group.metadata.deletion_timestamp is not None:
            if not members(ledger, name):
                yield f"gang {name} was deleted and is still there"
            continue
        there = members(ledger, name)
        waiting = [pod for pod in there if not pod.spec.node_name]
        placed = len(there) - len(waiting)
        if (
            waiting
            and _agree(group, there)
            and len(there) >= min_count(group)
            and _fit(ledger, waiting, min_count(group) - placed)
        ):
            yield f"gang {name} waits with {placed} of {min_count(group)} pods on nodes, but could run"
        held = [claim for pod in waiting for claim in claim_names(pod) if _is_held(ledger, pod, claim)]
        if held and not placed:
            yield f"gang {name} waits and holds devices for {', '.join(held)}"


def _agree(group: PodGroup, there: list[Pod]) -> bool:
    """Whether all are as important as their group says; if not, nobody is placed."""
    wanted = (group.spec.priority, group.spec.preemption_policy)
    return all((pod.spec.priority, pod.spec.preemption_policy) == wanted for pod in there)


def _is_held(ledger: Ledger, pod: Pod, name: str) -> bool:
    claim = ledger.find(CLAIMS, pod.metadata.namespace, name)
    return claim is not None and claim.status.allocation is not None


def _fit(ledger: Ledger, waiting: list[Pod], needed: int) -> bool:
    """Whether so many of the pods, which all wish for a GPU each, fit at once."""
    fitting = Fitting(ledger)
    count = 0
    for pod in waiting:
        if not fitting.find_node(pod):
            continue
        fitting.take_one(pod)
        count += 1
    return count >= max(needed, 1)
