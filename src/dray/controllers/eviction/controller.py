"""The shell that both eviction controllers share: pods whose time has come are evicted as their policy says.

    subclass: its planner hands out pods ─▶ hand_out ─▶ queue ─▶ Evictor: asks the policy, does what it says
                                                                  │ left: counted   put off: later   kept: exempt
                                                                  └─▶ the planner is told what became of the pod

Who must leave and when is the planner's business, and what the planner is fed with that of the subclass.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine, Iterable
from typing import Any, ClassVar, Final

from prometheus_client import Gauge

from dray.api.generated.core import Namespace, Pod
from dray.api.kinds import NAMESPACES, PODS
from dray.api.references import ObjectRef
from dray.api.status import ApiError
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.eviction.deletion_metrics import DeletionMetrics
from dray.controllers.eviction.evictor import Evictor, Later, Left, Outcome
from dray.controllers.eviction.identity import Identity
from dray.controllers.eviction.keys import Cancelled, Contradicted, FollowUp, Key
from dray.controllers.eviction.past import ToldPast
from dray.controllers.queue_controller import QueueController
from dray.eviction import Causes, Taken
from dray.eviction.departures import Departures
from dray.eviction.pods import is_on_its_way
from dray.eviction.policy import EvictionCause
from dray.eviction.stop import PLACE, is_stopped
from dray.eviction.told_limit import LIMIT_ANNOTATION, limit_text
from dray.reconcile import Wakeup

TELL_AGAIN_SECONDS: Final = 60.0


class EvictionController(QueueController[Key]):
    """Subclasses feed their planner, hand out what it takes, and say how its clock runs."""

    identity: ClassVar[Identity]

    def __init__(self, context: Context, departures: Departures, *informers: Informer[Any], workers: int) -> None:
        """Registers with the informer of pods, after the subclass has made its planner."""
        self._pods = context.informers.of(PODS, Pod)
        self._namespaces = context.informers.of(NAMESPACES, Namespace)
        super().__init__(context, *informers, self._pods, self._namespaces, workers=workers)
        self._departures = departures
        self._recorder = context.recorder(self.name)
        self._evictor = Evictor(context, self._recorder, self.identity)
        self._metrics = DeletionMetrics(self.identity.metrics, context.metrics)
        self._past = ToldPast(context, self._namespaces, self.name)
        self._wakeup = Wakeup(context.clock)
        held = Gauge(
            f"{self.identity.metrics}_held_pods",
            "Pods that must leave and stay: until a confirmation, or until their policy can be asked.",
            ["by"],
            registry=context.metrics,
        )
        held.labels("guard").set_function(lambda: departures.held_pods)
        held.labels("policy").set_function(lambda: departures.unasked_pods)
        self._taken: dict[ObjectRef, Taken[ObjectRef]] = {}
        self._pods.on_change(self._pod_changed)
        self._namespaces.on_change(self._namespace_changed)

    @property
    def is_stopped(self) -> bool:
        """Whether somebody said that nobody is to leave any more."""
        return is_stopped(self._namespaces.get("", PLACE))

    @abstractmethod
    def _tick(self) -> float:
        """What time it is by the clock of the planner's deadlines."""

    @abstractmethod
    def _must_leave(self, ref: ObjectRef) -> bool:
        """Whether a pod that was taken still has to go."""

    @abstractmethod
    def _why(self, taken: Taken[ObjectRef], due: float) -> EvictionCause:
        """What the policy is told about a pod that must leave since a time, in seconds since 1970."""

    @abstractmethod
    def _unknown_cause(self) -> EvictionCause:
        """What the policy is told about a pod that was deleted before a restart."""

    @abstractmethod
    def _pod_came(self, pod: Pod) -> bool:
        """A pod is there, or has changed: the planner is told. Whether it may have something to do for it."""

    @abstractmethod
    def _pod_went(self, pod: Pod) -> None:
        """A pod is gone: the planner is told."""

    @abstractmethod
    def _look(self) -> None:
        """Something has happened that the planner knows of: wakes up whoever has to do with it."""

    async def _run_with(self, *beside: Coroutine[Any, Any, None]) -> None:
        """Works until cancelled, with some other tasks beside the workers."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(super().run())
                group.create_task(self._tell_limit())
                group.create_task(self._past.keep_written())
                for one in beside:
                    group.create_task(one)
        finally:
            await self._evictor.close()

    async def _begin(self) -> None:
        """Waits until there is something to plan with, and the guard knows who left before this start."""
        for informer in self.informers:
            await informer.synced()
        self._past.restore()

    async def _tell_limit(self) -> None:
        """Writes down how much the guard lets go, for previews. Both controllers say the same; one writes it."""
        await self._namespaces.synced()
        told = limit_text(self._context.settings.eviction.max_evictions)
        patch = {"metadata": {"annotations": {LIMIT_ANNOTATION: told}}}
        while (place := self._namespaces.get("", PLACE)) and place.metadata.annotations.get(LIMIT_ANNOTATION) != told:
            try:
                await self._client.patch(NAMESPACES, "", PLACE, patch)
                return
            except (ApiError, OSError) as error:
                self._context.report(self.name, LIMIT_ANNOTATION, error)
            await self._clock.sleep(TELL_AGAIN_SECONDS)

    async def reconcile(self, key: Key) -> float | None:
        """Evicts one pod, tells that it may stay, or asks what to do about one that does not go."""
        if isinstance(key, FollowUp):
            pod = self._current(key.pod)
            return None if pod is None else await self._evictor.follow_up(pod, self._unknown_cause())
        if isinstance(key, Cancelled):
            await self._tell_cancelled(key.pod)
        elif isinstance(key, Contradicted):
            pod = self._current(key.pod)
            if pod is not None and not self._departures.must_leave(key.pod):
                await self._evictor.cancelled(pod)
        else:
            await self._evict(key)
        return None

    def _hand_out(self, taken: Iterable[Taken[ObjectRef]], cancelled: Iterable[ObjectRef] = ()) -> None:
        """Gives work to the workers."""
        for pod in cancelled:
            self.queue.add(Cancelled(pod))
        for each in taken:
            self._taken[each.pod] = each
            self.queue.add(each.pod)

    async def _evict(self, ref: ObjectRef) -> None:
        await self._past.written()
        pod, taken = self._current(ref), self._taken.get(ref)
        if pod is None or taken is None or not self._must_leave(ref):
            self._taken.pop(ref, None)
            self._departures.spare(ref)
            return
        guard = self._departures.guard
        if self.is_stopped or (guard is not None and guard.is_outdated):
            self._taken.pop(ref, None)
            self._departures.postpone(taken, self._tick())
            self._wakeup.set()
            return
        causes = self._departures.causes(ref)
        due = self._clock.now() + (taken.cause.due - self._tick())
        outcome = await self._evictor.settle(pod, self._why(taken, due), lambda: self._must_leave(ref))
        self._taken.pop(ref, None)
        self._settled(taken, causes, outcome)
        self._look()

    def _settled(self, taken: Taken[ObjectRef], causes: Causes, outcome: Outcome) -> None:
        """Tells the planner what became of a pod."""
        if isinstance(outcome, Later):
            until = self._tick() + (outcome.until - self._clock.now())
            self._departures.postpone(taken, until, outcome.problem)
            self._wakeup.set()
        elif isinstance(outcome, Left):
            if outcome.is_deleted:
                self._departures.evicted(taken.pod, causes)
                self._metrics.deleted(self._tick() - taken.cause.due)
        elif outcome.is_kept:
            self._departures.exempt(taken.pod)
        else:
            self._departures.spare(taken.pod)

    async def _tell_cancelled(self, ref: ObjectRef) -> None:
        pod = self._current(ref)
        if pod is not None and not self._departures.must_leave(ref):
            await self._recorder.normal(pod, self.identity.event, self.identity.cancelling(ref))
            await self._evictor.cancelled(pod)

    def _namespace_changed(self, _old: Namespace | None, new: Namespace | None) -> None:
        if new is not None and new.metadata.name == PLACE:
            self._past.hear(new)
            self._wakeup.set()

    def _current(self, ref: ObjectRef) -> Pod | None:
        pod = self._pods.get(ref.namespace, ref.name)
        return pod if pod is not None and pod.metadata.uid == ref.uid else None

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if is_on_its_way(old, new) and not self._evictor.counts_siblings:
            return
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._pod_went(old)
            self._evictor.forget(old)
            old = None
            self._look()
        if new is not None:
            is_news = self._pod_came(new)
            self._note_for_policy(old, new)
            if is_news:
                self._look()

    def _note_for_policy(self, old: Pod | None, new: Pod) -> None:
        self._evictor.put_pod(new)
        if (
            old is not None
            and old.status.conditions != new.status.conditions
            and self._evictor.says_that_it_waits(new)
            and not self._departures.must_leave(ObjectRef.of(new))
        ):
            self.queue.add(Contradicted(ObjectRef.of(new)))
        if new.metadata.deletion_timestamp is not None:
            if (old is None or old.metadata.deletion_timestamp is None) and self._evictor.follows_up(new):
                self.queue.add(FollowUp(ObjectRef.of(new)))
        elif old is not None and _is_marked_anew(old, new) and self._departures.is_put_off(ObjectRef.of(new)):
            self._departures.recall(ObjectRef.of(new))
            self._wakeup.set()


def _is_marked_anew(old: Pod, new: Pod) -> bool:
    """Whether people or programs have marked a pod otherwise than before, so that a policy may decide otherwise."""
    return old.metadata.annotations != new.metadata.annotations or old.metadata.labels != new.metadata.labels
