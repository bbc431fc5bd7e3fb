"""What a pod that waits for devices is told: the scheduler's counts, then the words of `dray explain`, shortened.

Only refusals cost anything, and not much however many there are: pods with equal claims share one explanation for a
second, few are made per second, and each looks at a limited number of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final, NamedTuple

from msgspec.structs import replace

from dray.allocator import Options, explain
from dray.allocator.results import OutOfBudget, StillJudging
from dray.api import codec
from dray.api.conditions import POD_SCHEDULED, find_condition
from dray.api.extended_resources import is_for_extended
from dray.api.generated.core import Pod
from dray.api.recent import Newest
from dray.process.clock import Clock
from dray.prose import explanations
from dray.prose.wording import shorten
from dray.scheduling import text
from dray.scheduling.cluster import Cluster
from dray.scheduling.extended_claim import name_resources
from dray.scheduling.pod_info import PodInfo
from dray.scheduling.reasons import PodReason
from dray.scheduling.refusal import NodesRefuse, Refused

FRESH_SECONDS: Final = 1.0
EXPLANATIONS_PER_PERIOD: Final = 10
NODES_LOOKED_AT: Final = 20
CHECKS: Final = 500
"""How many devices an explanation checks, counted for each request and alternative."""
CHECKS_AT_MOST: Final = 1_000
"""The same if there are as many on the first node."""
STEPS: Final = 300
"""How many steps all searches of one explanation take at most."""
RETELL_SECONDS: Final = 10.0
"""How long counts may be out of date before the same refusal is told again: each telling is two writes."""
MAX_TOLD: Final = 10_000
EXTENDED: Final = "extended-resources"
"""What the claim for extended resources is called before there is one."""


class _Told(NamedTuple):
    """When a pod was told what."""

    at: float
    why: PodReason | NodesRefuse
    message: str


class Messages:
    """Texts for the PodScheduled condition and its event."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._period = 0.0
        self._made = 0
        self._explained: dict[tuple[bytes, tuple[str, ...], tuple[bytes, ...]], str] = {}
        self._told: Newest[str, _Told] = Newest(MAX_TOLD)

    def tell(self, pod: PodInfo, refused: Refused) -> str:
        """Why the pod has no node, in at most as many characters as an event may have."""
        whose = pod if refused.group is None else refused.group.stopped
        why = self._explain(whose, refused) if refused.unallocated else ""
        message = text.tell(refused)
        return shorten(f"{message} {why}." if why else message, explanations.MAX_SUMMARY)

    def is_news(self, pod: PodInfo, refused: Refused, known: str, message: str) -> bool:
        """Whether to tell a pod that knows a message another one. Other counts for the same reason can wait.

        What it knows and was not told last came late, from a write that was not answered: that cannot wait.
        """
        now, uid = self._clock.monotonic(), pod.pod.metadata.uid
        told = self._told.get(uid)
        is_known = told is not None and told.message == known
        if told is not None and is_known and told.why == refused.why and now - told.at < RETELL_SECONDS:
            self._told.keep(uid, told)
            return False
        is_news = known != message
        before = told.at if told is not None else now - RETELL_SECONDS
        self._told.keep(uid, _Told(now if is_news else before, refused.why, message))
        return is_news

    def agrees(self, pod: Pod) -> bool:
        """Whether a pod knows what it was told last."""
        told, known = self._told.get(pod.metadata.uid), find_condition(pod.status.conditions, POD_SCHEDULED)
        return told is not None and known is not None and told.message == known.message

    def forget(self) -> None:
        """Devices were published, tainted or withdrawn: what was explained before is out of date."""
        self._explained.clear()

    def _explain(self, pod: PodInfo, refused: Refused) -> str:
        now = self._clock.monotonic()
        if now - self._period >= FRESH_SECONDS:
            self._period, self._made = now, 0
            self._explained.clear()
        names = self._claim_names(pod, refused)
        specs = tuple(codec.encode(claim.spec) for claim in refused.unallocated)
        key = (pod.placement_key, names, specs)
        told = self._explained.get(key)
        if told is None:
            if self._made >= EXPLANATIONS_PER_PERIOD:
                return ""
            self._made += 1
            told = self._explained[key] = self._explain_now(pod, refused, names)
        return told

    def _explain_now(self, pod: PodInfo, refused: Refused, names: tuple[str, ...]) -> str:
        nodes = list(self._suitable(pod, _weight(refused)))
        if not nodes:
            return ""  # it is not for want of devices, or would take long to tell
        steps = count()
        options = Options(max_steps=STEPS, until=lambda: next(steps) > STEPS)
        try:
            report = explain(self._cluster.inventory, self._cluster.classes, refused.unallocated, nodes, options)
        except (StillJudging, OutOfBudget):
            return ""  # selectors take long: the message says so, and there is no more to tell
        if next(steps) > STEPS:
            return ""  # not all was found out
        report = name_resources(report, pod.pod, refused.unallocated)
        claims = tuple(replace(claim, claim=name) for claim, name in zip(report.claims, names, strict=True))
        why = explanations.brief(replace(report, claims=claims))
        if not why:
            return ""
        if len(nodes) == NODES_LOOKED_AT and len(self._cluster.nodes) > NODES_LOOKED_AT:
            return f"On {NODES_LOOKED_AT} nodes that were looked at: {why}"
        return f"Claim {why}" if explanations.names_claims(report) else f"{why[0].upper()}{why[1:]}"

    def _suitable(self, pod: PodInfo, weight: int) -> Iterator[str]:
        """Nodes on which only devices are missing, as many as can be looked at while others wait."""
        found = checks = 0
        inventory = self._cluster.inventory
        refuses = self._cluster.nodes.filter(pod).refuses
        for info in self._cluster.nodes:
            node = inventory.nodes.get(info.name)
            if node is None or refuses(info):
                continue
            checks += weight * inventory.layout(node).size
            if checks > CHECKS and found:
                return
            if checks > CHECKS_AT_MOST:
                return
            yield info.name
            found += 1
            if found == NODES_LOOKED_AT:
                return

    @staticmethod
    def _claim_names(pod: PodInfo, refused: Refused) -> tuple[str, ...]:
        """What the pod calls its claims; the same for all pods of a template."""
        made = {status.resource_claim_name: status.name for status in pod.pod.status.resource_claim_statuses}
        return tuple(
            EXTENDED if is_for_extended(claim) else made.get(claim.metadata.name, claim.metadata.name)
            for claim in refused.unallocated
        )


def _weight(refused: Refused) -> int:
    """How often each device is looked at."""
    requests = [request for claim in refused.unallocated for request in claim.spec.devices.requests]
    return sum(len(request.first_available) or 1 for request in requests)
