"""The StatefulSet controller: watches StatefulSets, pods, volume claims and revisions, and carries out the plan."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import ClassVar, NamedTuple

from msgspec.structs import replace

from dray.api.generated.apps import ControllerRevision, StatefulSet, StatefulSetStatus
from dray.api.generated.core import PersistentVolumeClaim, Pod
from dray.api.kinds import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS, VOLUME_CLAIMS
from dray.api.labels import LabelSelector
from dray.api.pods import FAILED
from dray.api.references import ObjectName
from dray.api.registry import Kind
from dray.api.status import ApiError
from dray.api.times import Time
from dray.controllers.context import Context
from dray.controllers.expectations import LONGEST
from dray.controllers.failed_pods import FailedPods
from dray.controllers.revision_history import History, RevisionHistory, template_of
from dray.controllers.stateful_set.members import identity, member, ordinal_of, revision_of, set_name
from dray.controllers.stateful_set.plan import StatefulSetState, observe, plan, surplus
from dray.controllers.stateful_set.rollout import plan_rollout, uses_current
from dray.controllers.stateful_set.status import next_available, plan_status
from dray.controllers.stateful_set.volume_claims import claims_for, is_stale, with_owner
from dray.controllers.workload_controller import WorkloadController, usable_selector
from dray.controllers.workload_pods import Texts
from dray.process.clock import as_time
from dray.process.tasks import with_turns
from dray.reconcile.effort import beside_loop

EACH = 10
"""To plan for a pod with a number takes as long as other plans take for so many objects."""
AT_ONCE = 100
"""Pods whose volume claims are looked at before others get a turn of the loop."""


class StatefulSetController(WorkloadController):
    """Makes and deletes numbered pods, and makes their volume claims."""

    name: ClassVar[str] = "statefulset-controller"
    kind: ClassVar[Kind] = STATEFUL_SETS
    texts: ClassVar[Texts] = Texts(
        created="Create Pod {pod} in StatefulSet {owner} successful",
        not_created="Create Pod {pod} in StatefulSet {owner} failed error: {error}",
        deleted="Delete Pod {pod} in StatefulSet {owner} successful",
        not_deleted="Delete Pod {pod} in StatefulSet {owner} failed error: {error}",
    )

    def __init__(self, context: Context) -> None:
        self._claims = context.informers.of(VOLUME_CLAIMS, PersistentVolumeClaim)
        revisions = context.informers.of(CONTROLLER_REVISIONS, ControllerRevision)
        super().__init__(context, context.informers.of(STATEFUL_SETS, StatefulSet), self._claims, revisions)
        self._history = RevisionHistory(context, self._on_owned)
        self._failed = FailedPods(context.clock.monotonic)
        self._claims.on_change(self._on_claim)

    def _on_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        """A claim whose owners change goes with others than before: they are to be those that the policy asks for.

        One that had to go with its pod is gone: the next pod of its number may have a new one.
        """
        before, after = (one.metadata.owner_references if one is not None else () for one in (old, new))
        claim = new if new is not None else old
        if claim is None or before == after:
            return
        for name in filter(None, map(set_name, (*before, *after))):
            self.queue.add(ObjectName(claim.metadata.namespace, name))

    def selector_of(self, workload: StatefulSet) -> LabelSelector | None:
        """The selector of a StatefulSet."""
        return usable_selector(workload.spec.selector)

    def forget(self, workload: StatefulSet) -> None:
        """Drops expectations and failures."""
        super().forget(workload)
        self._failed.forget(workload)

    def adoptable(self, workload: StatefulSet, pods: list[Pod]) -> list[Pod]:
        """Pods that have one of the set's names."""
        return [pod for pod in pods if ordinal_of(workload, pod) is not None]

    async def reconcile(self, key: ObjectName) -> float | None:
        """Looks at one StatefulSet."""
        stateful_set: StatefulSet | None = self._workloads.get(*key)
        selector = self.selector_of(stateful_set) if stateful_set is not None else None
        if stateful_set is None or selector is None:
            return None
        settled = self._pods.expectations.are_met(stateful_set.metadata.uid)  # before we look which pods there are
        pods = await self.pods_of(stateful_set, selector)
        spec, status = stateful_set.spec, stateful_set.status
        history = await self._history.of(stateful_set, selector, spec.template, status.collision_count)
        now = as_time(self._clock.now())
        update = history.current.metadata.name
        count = EACH * len(pods)
        seen = await beside_loop(count, _look, stateful_set, pods, update, now, self._stale(stateful_set))
        patient = {number: self._failed.wait(stateful_set, number) for number in seen.failed}
        state = seen.state._replace(patient={number for number, seconds in patient.items() if seconds})
        waits = [seconds for seconds in patient.values() if seconds]
        current = _current(stateful_set, history).metadata.name
        failure: Exception | None = None
        if settled:
            try:
                await self._work(state, history, waits)
            except Exception as error:
                failure = error
        else:
            waits.append(LONGEST)
        planned = await beside_loop(count, plan_status, state, pods, current, history.collisions)
        await self._write_status(stateful_set, planned)
        if failure is not None:
            raise failure
        live = {current, *seen.revisions}
        unused = [one for one in history.old if one.metadata.name not in live]
        await self._history.prune(unused, spec.revision_history_limit)
        if seen.soon is not None:
            waits.append(now.seconds_until(seen.soon))
        return min(waits, default=None)

    def _stale(self, stateful_set: StatefulSet) -> Container[int]:
        """Numbers whose claims are about to go with an earlier pod. Each is looked at when it is asked for."""
        policy = stateful_set.spec.persistent_volume_claim_retention_policy
        if not stateful_set.spec.volume_claim_templates or policy is None or policy.when_scaled != "Delete":
            return ()
        return _Stale(stateful_set, self._stored)

    def _stored(self, stateful_set: StatefulSet, number: int) -> list[PersistentVolumeClaim]:
        """The volume claims of a number that there are."""
        wanted = claims_for(stateful_set, number)
        found = [self._claims.get(one.metadata.namespace, one.metadata.name) for one in wanted]
        return [one for one in found if one is not None]

    async def _work(self, state: StatefulSetState, history: History, waits: list[float]) -> None:
        """Carries out the next step; `waits` hears after how long to look again."""
        stateful_set, count = state.stateful_set, EACH * len(state.pods)
        todo = await beside_loop(count, plan, state)
        pause = self._pods.pause(stateful_set, state.pods.values()) if todo.create else 0.0
        if pause > 0:
            todo = todo._replace(create=())
            waits.append(pause)
        for pod in todo.mend:
            await self._mend(stateful_set, pod)
        await self._create_claims(stateful_set, (*todo.create, *todo.lacking))
        wanted = await beside_loop(EACH * len(todo.create), _members, stateful_set, todo.create, history)
        failure = await self._pods.create(stateful_set, wanted)
        if stateful_set.metadata.deletion_timestamp is None:
            await self._own_claims(state)
        rolled: tuple[Pod, ...] = ()
        if todo.is_complete and failure is None:
            rolled = await beside_loop(count, plan_rollout, state)
        doomed = {pod.metadata.uid: pod for pod in (*todo.delete, *rolled)}
        for pod in doomed.values():
            number = ordinal_of(stateful_set, pod)
            if pod.status.phase == FAILED and number is not None:
                self._failed.count(stateful_set, number)
        await self._pods.delete(stateful_set, doomed.values())
        if failure is not None:
            raise failure

    async def _create_claims(self, stateful_set: StatefulSet, numbers: Sequence[int]) -> None:
        """Makes the claims of numbers that are not there, where there are to be some."""
        if stateful_set.spec.volume_claim_templates:
            async for number in with_turns(numbers, AT_ONCE):
                await self._create_claims_of(stateful_set, number)

    async def _create_claims_of(self, stateful_set: StatefulSet, number: int) -> None:
        """Makes the claims of a number that are not there. Raises if one is still being deleted."""
        pod = f"{stateful_set.metadata.name}-{number}"
        for claim in claims_for(stateful_set, number):
            meta = claim.metadata
            known = self._claims.get(meta.namespace, meta.name)
            if known is not None and known.metadata.deletion_timestamp is None:
                continue
            about = f"Create Claim {meta.name} Pod {pod} in StatefulSet {stateful_set.metadata.name}"
            try:
                self._claims.put(await self._client.create(claim))
            except ApiError as error:
                if error.reason != "AlreadyExists" or known is not None:
                    await self._recorder.warning(stateful_set, "FailedCreate", f"{about} failed error: {error}")
                    raise
            else:
                await self._recorder.normal(stateful_set, "SuccessfulCreate", f"{about} success")

    async def _own_claims(self, state: StatefulSetState) -> None:
        """Gives claims the owners that the retention policy asks for."""
        stateful_set = state.stateful_set
        if not stateful_set.spec.volume_claim_templates:
            return
        gone = await beside_loop(EACH * len(state.pods), surplus, state)
        too_many = {pod.metadata.uid for pod in gone}
        async for number, pod in with_turns(state.pods.items(), AT_ONCE):
            for claim in self._stored(stateful_set, number):
                changed = with_owner(stateful_set, pod, claim, is_surplus=pod.metadata.uid in too_many)
                if changed is not claim:
                    self._claims.put(await self._client.update(changed))

    async def _mend(self, stateful_set: StatefulSet, pod: Pod) -> None:
        """Gives a pod back the labels that tell its name and number."""
        number = ordinal_of(stateful_set, pod)
        if number is None:
            return
        meta = pod.metadata
        change = {"uid": meta.uid, "labels": identity(meta.name, number)}
        await self._client.patch(PODS, meta.namespace, meta.name, {"metadata": change})

    async def _write_status(self, stateful_set: StatefulSet, status: StatefulSetStatus) -> None:
        if status != stateful_set.status:
            await self._client.update(replace(stateful_set, status=status), subresource="status")


class _Stale(Container[int]):
    """The numbers of which a stored claim is about to go with an earlier pod."""

    def __init__(
        self, stateful_set: StatefulSet, stored: Callable[[StatefulSet, int], Sequence[PersistentVolumeClaim]]
    ) -> None:
        self._stateful_set = stateful_set
        self._stored = stored

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        name = f"{self._stateful_set.metadata.name}-{number}"
        return any(is_stale(one, name) for one in self._stored(self._stateful_set, number))


class _Look(NamedTuple):
    """What was found when all pods were looked at."""

    state: StatefulSetState
    failed: tuple[int, ...]
    """The numbers of pods that failed."""
    revisions: frozenset[str]
    """The names of all revisions that pods are of."""
    soon: Time | None
    """When the next pod has been ready for long enough."""


def _look(stateful_set: StatefulSet, pods: Sequence[Pod], update: str, now: Time, stale: Container[int]) -> _Look:
    state = observe(stateful_set, pods, update, now, stale)
    failed = tuple(number for number, pod in state.pods.items() if pod.status.phase == FAILED)
    return _Look(state, failed, frozenset(map(revision_of, pods)), next_available(state))


def _current(stateful_set: StatefulSet, history: History) -> ControllerRevision:
    """The revision that all pods had before the update; the newest if that is not known."""
    named = stateful_set.status.current_revision
    return next((one for one in history.old if one.metadata.name == named), history.current)


def _members(stateful_set: StatefulSet, numbers: Sequence[int], history: History) -> list[Pod]:
    """Pods of numbers, each from the template that it is to have."""
    current = _current(stateful_set, history)
    before = template_of(current)
    new = (stateful_set.spec.template, history.current.metadata.name)
    old = new if before is None else (before, current.metadata.name)
    return [member(stateful_set, number, *(old if uses_current(stateful_set, number) else new)) for number in numbers]
