"""What is let into a namespace: pods that come are judged as a server would, by quotas and by Pod Security. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dray.api.generated.core import Namespace, Pod
from dray.api.meta import Object
from dray.pod_admission.security.policy import FREE, Standard, read
from dray.pod_admission.security.standards import in_words, violations
from dray.snapshot.quota_room import KeptOut, QuotaRoom
from dray.snapshot.snapshot import Snapshot


class Insecure(NamedTuple):
    """The level of Pod Security that a pod is not up to, and why."""

    standard: Standard
    why: str

    def __str__(self) -> str:
        return f'not let in: violates PodSecurity "{self.standard}": {self.why}'


class Newcomers:
    """What comes is counted next to what is there."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._room = QuotaRoom(snapshot)
        self._enforced = {one.metadata.name: enforced(one) for one in snapshot.objects(Namespace)}

    def let_in(self, objects: Sequence[Object]) -> KeptOut | Insecure | None:
        """Counts objects that come together; if one of them is kept out, says so, and counts none."""
        for pod in objects:
            if isinstance(pod, Pod):
                found = judge(pod, self._enforced.get(pod.metadata.namespace, FREE.enforce))
                if found is not None:
                    return found
        return self._room.let_in(objects)

    def give_back(self, objects: Iterable[Object]) -> None:
        """Objects are gone."""
        self._room.give_back(objects)


def enforced(namespace: Namespace) -> Standard:
    """What a namespace asks of its pods."""
    return read(namespace.metadata)[0].enforce


def judge(pod: Pod, standard: Standard) -> Insecure | None:
    """Why a pod is not let in. One that only reservations mention says nothing about itself, and may be."""
    found = violations(pod.spec, pod.metadata.annotations, standard) if pod.spec.containers else ()
    return Insecure(standard, in_words(found)) if found else None
