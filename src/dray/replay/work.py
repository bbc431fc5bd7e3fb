"""Pods as work that arrives and ends, taken from what a recording shows of them. Pure.

    recorded:  pod A ──bound──running──evicted by a taint          A and B are one piece of work: it arrived with A,
               pod B (A's replacement) ──bound──running──done      it was evicted once, and it ran as long as B did

Whether, when and where a pod runs, and whether it is evicted, is decided again in a replay. What stays is when the work
came, how long its containers need, and when somebody took it away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from dray.api.conditions import DISRUPTION_TARGET, find_condition
from dray.api.generated.core import Pod
from dray.api.pods import MIRROR_ANNOTATION, RUNNING, is_finished
from dray.api.references import controller_of

DECIDED: Final = frozenset(
    {"DeletionByTaintManager", "DeletionByDeviceTaintManager", "DeletionByPodGC", "PreemptionByScheduler"}
)
"""Reasons of disruptions that a scheduler or controller decided on; a replay decides on them itself. Others, such as
evictions through the API, somebody asked for, and they come again."""


class Story(msgspec.Struct):
    """What was seen of one pod, in seconds since 1970."""

    pod: Pod
    """As it was when it was first seen."""
    came: float
    is_first: bool
    """Whether it was there when the recording began."""
    changes: list[tuple[float, Pod]] = msgspec.field(default_factory=list)
    """Its gates or labels became others."""
    bound: float | None = None
    ran: float | None = None
    finished: float | None = None
    failed: bool = False
    disrupted: float | None = None
    reason: str = ""
    left: float | None = None
    """When somebody began to delete it."""
    gone: float | None = None


def disruption(pod: Pod) -> str:
    """Why a pod is being evicted; empty if it is not."""
    found = find_condition(pod.status.conditions, DISRUPTION_TARGET)
    return (found.reason or "unknown") if found is not None and found.status == "True" else ""


class Stories:
    """Collects the stories of all pods, change by change."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Story] = {}

    def __iter__(self) -> Iterator[Story]:
        return iter(self._by_uid.values())

    def see(self, pod: Pod, now: float, *, is_first: bool) -> None:
        """A pod is like this now."""
        story = self._by_uid.get(pod.metadata.uid)
        if story is None:
            story = self._by_uid[pod.metadata.uid] = Story(pod, now, is_first)
        elif _face(story.changes[-1][1] if story.changes else story.pod) != _face(pod):
            story.changes.append((now, pod))
        if pod.spec.node_name and story.bound is None:
            story.bound = now
        if pod.status.phase == RUNNING and story.ran is None:
            story.ran = now
        reason = disruption(pod)
        if reason and story.disrupted is None and story.finished is None:
            story.disrupted, story.reason = now, reason
        if pod.metadata.deletion_timestamp is not None and story.left is None:
            story.left = now
        if is_finished(pod) and story.finished is None and story.left is None:
            story.finished, story.failed = now, pod.status.phase == "Failed"

    def miss(self, uid: str, now: float) -> None:
        """A pod is gone."""
        story = self._by_uid.get(uid)
        if story is not None:
            story.gone = now
            if story.left is None:
                story.left = now


def _face(pod: Pod) -> tuple[object, ...]:
    return pod.spec.scheduling_gates, pod.metadata.labels


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """Something that wants to run. Moments in seconds since 1970, spans in seconds."""

    pod: Pod
    arrives: float
    is_first: bool
    node: str = ""
    """Where it is already, or must be; empty if that is to be decided."""
    changes: tuple[tuple[float, Pod], ...] = ()
    starts_in: float = 0.0
    runs_for: float | None = None
    """None if it runs until somebody takes it away."""
    fails: bool = False
    stops_in: float = 0.0
    evicted: tuple[float, ...] = ()
    """When somebody asked for it to be moved."""
    removed: float | None = None
    """When somebody took it away."""

    @property
    def is_replaced(self) -> bool:
        """Whether another pod takes the place of one that was evicted."""
        return controller_of(self.pod) is not None


def find_work(stories: Iterable[Story], start: float) -> list[Work]:
    """All work by arrival: pods that replace evicted ones belong to the work of those."""
    ordered = sorted(stories, key=lambda story: (story.came, story.pod.metadata.namespace, story.pod.metadata.name))
    families: dict[str, list[Story]] = defaultdict(list)
    for story in ordered:
        families[_family(story)].append(story)
    families.pop("", None)
    usual = {uid: _usual(family, start) for uid, family in families.items()}
    heirs = _heirs(families.values())
    replaced = {heir.pod.metadata.uid for heir in heirs.values()}
    return [
        work
        for story in ordered
        if story.pod.metadata.uid not in replaced
        and (work := _work(_chain(story, heirs), start, usual.get(_family(story)))) is not None
    ]


def _family(story: Story) -> str:
    """The uid of the controller of a pod; empty if it has none."""
    owner = controller_of(story.pod)
    return owner.uid if owner is not None else ""


def _usual(family: list[Story], start: float) -> float | None:
    """How long the pods of a controller run, those that ended by themselves; the one in the middle."""
    spans = sorted(span for story in family if (span := _runs_for(story, start)) is not None)
    return spans[len(spans) // 2] if spans else None


def _heirs(families: Iterable[list[Story]]) -> dict[str, Story]:
    """By the uid of an evicted pod, the first pod that its controller made afterwards and that replaces no other."""
    heirs: dict[str, Story] = {}
    for family in families:
        taken: set[str] = set()
        evicted = sorted((one for one in family if one.disrupted is not None), key=lambda one: one.disrupted or 0.0)
        for story in evicted:
            heir = next(
                (
                    one
                    for one in family
                    if one.came >= (story.disrupted or 0.0)
                    and one is not story
                    and not one.is_first
                    and one.pod.metadata.uid not in taken
                ),
                None,
            )
            if heir is not None:
                taken.add(heir.pod.metadata.uid)
                heirs[story.pod.metadata.uid] = heir
    return heirs


def _chain(story: Story, heirs: dict[str, Story]) -> list[Story]:
    chain = [story]
    while (heir := heirs.get(chain[-1].pod.metadata.uid)) is not None:
        chain.append(heir)
    return chain


def _work(chain: list[Story], start: float, usual: float | None) -> Work | None:
    """A chain of pods as one piece of work; None of a pod that was finished or on its way out when it all began.

    One that was evicted before it ended runs as long as is usual for its controller.
    """
    head, last = chain[0], chain[-1]
    if head.is_first and (is_finished(head.pod) or head.pod.metadata.deletion_timestamp is not None):
        return None
    is_placed = (head.is_first and bool(head.pod.spec.node_name)) or MIRROR_ANNOTATION in head.pod.metadata.annotations
    asked = [one.disrupted for one in chain if one.disrupted is not None and one.reason not in DECIDED]
    removed = last.left
    if last.finished is not None or (last.disrupted is not None and last.reason in DECIDED):
        removed = None
    elif last.disrupted is not None and controller_of(last.pod) is not None:
        asked, removed = asked[:-1], last.disrupted  # nobody replaced it: it was not wanted any more
    return Work(
        pod=head.pod,
        arrives=head.came,
        is_first=head.is_first,
        node=head.pod.spec.node_name if is_placed else "",
        changes=tuple(head.changes),
        starts_in=_starts_in(chain),
        runs_for=usual if last.disrupted is not None else _runs_for(last, start),
        fails=last.failed,
        stops_in=next((one.gone - one.left for one in chain if one.gone is not None and one.left is not None), 0.0),
        evicted=tuple(moment for moment in asked if moment is not None),
        removed=removed,
    )


def _starts_in(chain: list[Story]) -> float:
    """How long containers took to start; those that ran already take no time."""
    spans = (one.ran - one.bound for one in chain if one.ran is not None and one.bound is not None)
    return next((span for span in spans if span > 0), 0.0)


def _runs_for(story: Story, start: float) -> float | None:
    """How long containers ran until they ended by themselves; of those that ran already, from the start on."""
    if story.finished is None:
        return None
    began = story.ran if story.ran is not None else story.bound
    return story.finished - max(began if began is not None else story.came, start)
