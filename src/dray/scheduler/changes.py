"""What happens in the cluster: noted in `Cluster`, and told to the pods that wait for just that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from dray.api.conditions import POD_SCHEDULED, find_condition
from dray.api.generated.core import Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod
from dray.api.generated.policy import PodDisruptionBudget
from dray.api.generated.scheduling import PodGroup
from dray.api.generated.storage import StorageClass
from dray.api.kinds import (
    BUDGETS,
    CLASSES,
    NAMESPACES,
    NODES,
    PATCHES,
    POD_GROUPS,
    RULES,
    SLICES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from dray.api.meta import Object
from dray.api.pods import is_finished
from dray.api.references import ObjectName
from dray.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from dray.client import Informer
from dray.client.informer import LISTED_AT_ONCE, Handler
from dray.reconcile.later_turns import LaterTurns
from dray.reconcile.selector_work import SelectorWork
from dray.scheduler.search_work import SearchWork
from dray.scheduler.state import State
from dray.scheduling.cause import Cause
from dray.scheduling.gangs import find_problem
from dray.scheduling.pod_info import PodInfo, read_pod
from dray.scheduling.refusal import Refused
from dray.tracker import Event, GatheredSlices, Remove, Upsert

T = TypeVar("T", bound=Object)

TURN_SECONDS = 0.01
"""After which others get the loop."""
MOST_LOOKED_AT = 100
"""Pods of a group among which one that waits is looked for when another one comes."""
TAKEN_TOGETHER = LISTED_AT_ONCE
"""Rules and patches of a start that are taken in with one look at what they come to."""


class Changes:
    """Listens to all that decides about pods."""

    def __init__(
        self, state: State, on_missing: Callable[[PodInfo, Refused], None], *, seconds: float | None = None
    ) -> None:
        """`on_missing` hears of new pods that need not be tried yet. A selector may take so many `seconds`."""
        self._state = state
        self._cluster = state.cluster
        self._queue = state.queue
        self._on_missing = on_missing
        self._sources = list(self._all_sources())
        """Asked for at once, so that informers that others run are full when this scheduler is to begin."""
        self._watched: list[tuple[Informer[Any], Handler[Any]]] = []
        self._is_told = False
        self._events: list[Event] = []
        """What rules and patches say and is not taken in yet: only before it is told of everything."""
        self._slices = GatheredSlices(self._cluster.tracker)
        self._later = LaterTurns(lambda: bool(self._slices) or self._cluster.is_behind, self._go_on)
        self._may_jump = False
        """Whether pods may be tried before their time for what is left of a change."""
        self.selector_work = SelectorWork(state.backlog, state.clock, self._on_selectors, seconds=seconds)
        self.search_work = SearchWork(state.aside, state.clock, lambda: self._queue.happened(Cause.SELECTORS))

    @property
    def problem(self) -> str:
        """What it has not heard of yet; empty if it knows everything."""
        for informer, _ in self._sources:
            if not informer.has_synced:
                why = f": {informer.last_error}" if informer.last_error else ""
                return f"waiting for {informer.kind.resource}{why}"
        return "" if self._is_told else "hearing of what there is"

    async def watch(self) -> None:
        """Listens from now on. Returns when everything there is has been heard of.

        Who takes over from another finds the informers of its process full.
        """
        for informer, handler in self._sources:
            await informer.inform(handler)
            self._watched.append((informer, handler))
        for informer, _ in self._sources:
            await informer.synced()
        while events := self._slices.take():
            self._take_in(events, may_jump=False)
            await asyncio.sleep(0)
        self._is_told = True
        if self._events:
            self._take_rules_in(may_jump=False)

    def stop(self) -> None:
        """Listens no more; others may use the informers."""
        self._later.stop()
        for informer, handler in self._watched:
            informer.ignore(handler)

    def _all_sources(self) -> Iterator[tuple[Informer[Any], Handler[Any]]]:
        """In the order in which they are heard of: a pod comes when all that it may need is there."""
        of, volumes = self._state.informers.of, self._cluster.volumes
        yield of(NAMESPACES, Namespace), self._on_namespace
        yield of(STORAGE_CLASSES, StorageClass), self._waking(volumes.set_class)
        yield of(VOLUMES, PersistentVolume), self._waking(volumes.set_volume)
        yield of(VOLUME_CLAIMS, PersistentVolumeClaim), self._waking(volumes.set_claim)
        yield of(BUDGETS, PodDisruptionBudget), self._cluster.budgets.change
        if self._state.uses_groups:
            yield of(POD_GROUPS, PodGroup), self._on_group
        yield of(NODES, Node), self._on_node
        yield of(CLASSES, DeviceClass), self._on_class
        yield of(SLICES, ResourceSlice), self._on_slice
        for kind in (RULES, PATCHES):
            yield of(kind, Object), self._on_rule
        yield self._state.claims, self._on_claim
        yield self._state.pods, self._on_pod

    def begin_turn(self, namespace: str) -> None:
        """A slice of work for a namespace begins."""
        self._state.backlog.begin_turn(namespace, TURN_SECONDS)

    def end_turn(self) -> None:
        """What there was no time for in it is gone on with."""
        self.selector_work.look()
        self.search_work.look()

    def _on_node(self, old: Node | None, new: Node | None) -> None:
        self._cluster.set_node(old, new)
        if new is None:
            self._state.changes += 1
        elif old is None or _node_changed(old, new):
            self._state.changes += 1
            self._queue.happened(Cause.NODE)

    def _waking(self, handler: Handler[T]) -> Handler[T]:
        """A handler that wakes pods that wait for volumes."""

        def handle(old: T | None, new: T | None) -> None:
            handler(old, new)
            self._queue.happened(Cause.VOLUME)

        return handle

    def _on_namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        known = new if new is not None else old
        assert known is not None
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self._cluster.set_namespace(known.metadata.name, new.metadata.labels if new is not None else None)
            self._queue.happened(Cause.POD_GONE | Cause.POD_CAME, _has_terms)

    def _on_class(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        known = new if new is not None else old
        assert known is not None
        self._cluster.set_class(known.metadata.name, new)
        self.begin_turn("")
        self._cluster.track(Upsert(known) if new is not None else Remove.of(known))
        self._queue.happened(Cause.CLASS)
        self.selector_work.look()
        self._later.look()

    def _on_slice(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Slices that come in one turn of the loop are taken in together, in the next."""
        known = new if new is not None else old
        assert known is not None
        self._slices.add(Upsert(known) if new is not None else Remove.of(known))
        self._later.look()

    def _on_rule(self, old: Any, new: Any) -> None:
        self._events.append(Upsert(new) if new is not None else Remove.of(old))
        if self._is_told or len(self._events) >= TAKEN_TOGETHER:
            self._take_rules_in(may_jump=old is None or new is None)

    def _take_rules_in(self, *, may_jump: bool) -> None:
        events, self._events = self._events, []
        self._take_in(events, may_jump=may_jump)
        self._later.look()

    def _take_in(self, events: Sequence[Event], *, may_jump: bool) -> None:
        """Takes in what happened to devices; pods may be tried for it before their time if something came or went."""
        self.begin_turn("")
        if self._cluster.track(*events):
            self._state.changes += 1
            self._state.messages.forget()
            # A compromised node may flood us with slices: pods are tried again, but not before their time (4381-186).
            self._queue.happened(Cause.DEVICES, _has_claims, at_once=may_jump)
        self._may_jump = self._cluster.is_behind and (self._may_jump or may_jump)
        self.selector_work.look()

    def _go_on(self) -> None:
        """Slices came, or a rule, patch or class concerns more devices than one turn is long enough for."""
        self.begin_turn("")
        if self._cluster.go_on():
            self._state.changes += 1
            self._state.messages.forget()
            self._queue.happened(Cause.DEVICES, _has_claims, at_once=self._may_jump)
        self._may_jump &= self._cluster.is_behind
        self.selector_work.look()
        if events := self._slices.take():
            self._take_in(events, may_jump=any(map(self._comes_or_goes, events)))

    def _comes_or_goes(self, event: Event) -> bool:
        """Whether a slice is new, or gone."""
        return isinstance(event, Remove) or self._cluster.tracker.pool_of_slice(event.object.metadata.name) is None

    def _on_selectors(self) -> None:
        """Selectors that take long were evaluated, on some devices."""
        self.begin_turn("")
        if self._cluster.resume():
            self._state.messages.forget()
            self._queue.happened(Cause.DEVICES, _has_claims)
        self._queue.happened(Cause.SELECTORS)
        self.selector_work.look()
        self._later.look()

    def _on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        self._cluster.set_claim(old, new)
        known = new if new is not None else old
        assert known is not None
        released = (
            old is not None and old.status.allocation is not None and (new is None or new.status.allocation is None)
        )
        if released:
            self._queue.happened(Cause.DEVICES, _has_claims)
        if (old.status.allocation if old is not None else None) != (new.status.allocation if new is not None else None):
            self._state.changes += 1
        owners = [owner.name for owner in known.metadata.owner_references if owner.kind == "Pod"]
        self._queue.claim_changed(ObjectName.of(known), owners, self._has_its_claims)

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        pod = new if new is not None else old
        assert pod is not None
        key = ObjectName.of(pod)
        nominations = self._cluster.nominations
        was_nominated = bool(nominations) and pod.metadata.uid in nominations
        self._cluster.set_pod(new, pod.metadata.uid)
        if was_nominated and pod.metadata.uid not in nominations:
            self._queue.happened(Cause.POD_GONE | Cause.DEVICES)  # what was kept for it is anybody's
        if new is None or not self._state.is_ours(new):
            self._queue.remove(key)
            self._tell_others(old, new)
            return
        known = self._queue.get(key)
        info = read_pod(new, known)
        if old is not None and known is not None and self._is_untrue(info, old):
            self._state.changes += 1
        self._nominate(info, old.status.nominated_node_name if old is not None and known is not None else "")
        missing = self._state.not_yet(info) if known is None else None
        if missing is None:
            self._queue.put(info, changed=old is not None and _pod_changed(old, new))
            if known is None and info.group is not None:
                self._wake_group(info.group, MOST_LOOKED_AT)  # if none of those waits, this one does
        else:
            self._queue.put(info, changed=False, waits_for=missing.causes)
            self._state.metrics.refused(key, missing)
            self._on_missing(info, missing)

    def _is_untrue(self, info: PodInfo, old: Pod) -> bool:
        """Whether a pod says by now, of why or for what it waits, what it was not told last.

        A write that was not answered may come when there is no more to write.
        """
        before, now = old.status, info.pod.status
        if before.nominated_node_name != now.nominated_node_name:
            return self._cluster.nominations.node_of(info) != now.nominated_node_name
        said = find_condition(before.conditions, POD_SCHEDULED) != find_condition(now.conditions, POD_SCHEDULED)
        return said and not self._state.messages.agrees(info.pod)

    def _nominate(self, info: PodInfo, before: str) -> None:
        """Takes in for which node a pod waits; another scheduler may have said so."""
        nominations, now = self._cluster.nominations, info.pod.status.nominated_node_name
        if now == before:
            return
        if now:
            nominations.set(info, now)
        elif nominations.node_of(info) == before:
            nominations.drop(info.pod.metadata.uid)
            self._queue.happened(Cause.POD_GONE | Cause.DEVICES)

    def _tell_others(self, old: Pod | None, new: Pod | None) -> None:
        """Pods that wait are tried again if another one left its node, or came to one and they speak of it."""
        self._state.changes += 1
        if old is not None and old.spec.node_name and (new is None or is_finished(new)):
            self._queue.happened(Cause.POD_GONE)
        elif new is not None and new.spec.node_name and not is_finished(new):
            if old is None or not old.spec.node_name:
                self._queue.happened(Cause.POD_CAME, lambda info: self._cluster.speaks_of(info, new))
            elif old.metadata.labels != new.metadata.labels or _is_leaving(old) != _is_leaving(new):
                self._queue.happened(Cause.POD_GONE | Cause.POD_CAME, _has_terms)

    def _on_group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        self._cluster.groups.set(old, new)
        known = new if new is not None else old
        assert known is not None
        if old is None or new is None or old.spec != new.spec:
            self._state.changes += 1
            self._wake_group(ObjectName.of(known))
        elif old.status.conditions != new.status.conditions:
            self._state.changes += 1  # also what a write said that was not answered, and came late

    def _wake_group(self, name: ObjectName, most: int | None = None) -> None:
        """Pods of a group are tried again if there are enough of them now; `most` of them are looked at for one."""
        if find_problem(self._cluster, name) is None:
            members = self._cluster.groups.members(name).values()
            self._queue.wake_one(ObjectName.of(pod) for pod in islice(members, most))

    def _has_its_claims(self, info: PodInfo) -> bool:
        """Whether all claims of a pod have been made; otherwise it comes again when its status names them."""
        return self._cluster.claims_of(info.pod).are_made


def _has_claims(pod: PodInfo) -> bool:
    return pod.wants_devices


def _has_terms(pod: PodInfo) -> bool:
    return pod.terms is not None


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _node_changed(old: Node, new: Node) -> bool:
    """Whether a node changed in what decides about pods; heartbeats do not count."""
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status.allocatable != new.status.allocatable
    )


def _pod_changed(old: Pod, new: Pod) -> bool:
    """Whether a pod changed in what decides about it; our own condition in its status does not count."""
    return (
        (old.spec is not new.spec and old.spec != new.spec)
        or old.metadata.labels != new.metadata.labels
        or old.status.resource_claim_statuses != new.status.resource_claim_statuses
    )
