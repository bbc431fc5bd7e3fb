"""Pods that go for others: an old one for a new one, and those of lower priority where there is no other place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dray.api.generated.core import Pod
from dray.api.meta import Object
from dray.api.references import is_owned_by
from dray.scheduling.pod_info import PodInfo, identified, read_pod
from dray.scheduling.refusal import Preempts, Refused
from dray.scheduling.rehearsal import Rehearsal
from dray.what_if.deletions import released

MAX_PREEMPTING = 20
"""Pods for which it is looked for who would have to go."""


class Preempted(NamedTuple):
    """Pods of lower priority that went for a pod, and all that is gone with them."""

    pods: tuple[str, ...]
    gone: tuple[Object, ...]


class Preemption:
    """Makes pods of lower priority go, as the scheduler does; for the first MAX_PREEMPTING pods that are asked for."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._left = MAX_PREEMPTING

    def make_room(self, pod: PodInfo, refused: Refused) -> Preempted | None:
        """The pod gets a node, because others leave it; None if that does not help, or was not looked for."""
        rehearsal = self._rehearsal
        if not self._left or pod.group is not None or not rehearsal.cluster.has_below(pod.pod.spec.priority or 0):
            return None
        self._left -= 1
        found = rehearsal.find_victims(pod, refused).preemption
        if not isinstance(found, Preempts):
            return None
        mark = rehearsal.mark
        gone = [one for victim in found.victims for one in let_go(rehearsal, victim.pod)]
        answer = rehearsal.find_places(pod)
        if isinstance(answer, Refused):
            rehearsal.go_back(mark)
            return None
        rehearsal.bind(pod, answer[0])
        return Preempted(tuple(str(victim.name) for victim in found.victims), tuple(gone))


def let_go(rehearsal: Rehearsal, pod: Pod) -> Iterator[Object]:
    """A pod goes, and what its claims hold for it alone; all that is gone then."""
    rehearsal.remove_pod(pod)
    yield pod
    known = identified(pod)
    for name in read_pod(known).claims:
        claim = rehearsal.cluster.claims.get(name)
        if claim is not None:
            left = released(claim, [known])
            is_gone = is_owned_by(claim, known) and not left.status.reserved_for
            rehearsal.set_claim(claim, None if is_gone else left)
            if is_gone:
                yield claim
