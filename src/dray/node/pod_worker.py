"""One pod on this node, from when it is bound until it is gone.

    claims prepared? ──no──▶ prepare ──refused or failed: event, again later and later
        │ yes
    containers as the plan says ──▶ status
        │ ended, deleted or gone
    containers stop (SIGTERM, grace, SIGKILL) ─▶ unprepare ─▶ final status ─▶ the object is removed ─▶ nothing is left

Each step looks at how things stand and does what is missing, so that it does not matter where an agent before this one
stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api.backoff import Backoff
from dray.api.generated.core import Container, Pod, PodStatus
from dray.api.kinds import PODS
from dray.api.meta import DeleteOptions, Preconditions
from dray.api.pods import FAILED, SUCCEEDED, containers_of, is_finished
from dray.api.status import ApiError
from dray.client import Client
from dray.node import device_status, pod_claims, pod_plan, pod_status, unsupported
from dray.node.claim_work import ClaimsNotReady, ClaimWork
from dray.node.containers import PodContainers
from dray.node.environment import Environments
from dray.node.health import HealthTable
from dray.node.metrics import NodeMetrics
from dray.node.pod_claims import Refused
from dray.node.pod_status import End
from dray.node.room import Room
from dray.node.runtime import Runtime, StartFailed
from dray.reconcile import Clock, EventRecorder

log = logging.getLogger(__name__)

FIRST_RETRY: Final = 0.25
LONGEST_RETRY: Final = 60.0
LONGEST_END_RETRY: Final = 15.0
DEFAULT_GRACE: Final = 30.0
TOO_LARGE: Final = 413


class NodeServices(msgspec.Struct, frozen=True):
    """What all pods of the node share."""

    client: Client
    clock: Clock
    runtime: Runtime
    claims: ClaimWork
    environments: Environments
    health: HealthTable
    room: Room
    recorder: EventRecorder
    metrics: NodeMetrics
    address: str
    note: Callable[[Pod], None]
    """Told of the pod that a write answered with."""
    writes: asyncio.Semaphore
    """Whose turn it is to write: see `claim_work.READS_AT_ONCE`."""


class PodWorker:
    """Works on one pod (by uid). `update` and `wake` make it look again."""

    def __init__(self, uid: str, services: NodeServices) -> None:
        self.uid = uid
        self._services = services
        self._pod: Pod | None = None
        self._last: Pod | None = None
        self._is_found = False
        self._woken = asyncio.Event()
        self._containers = PodContainers(
            services.runtime, services.environments, services.metrics, services.clock, self.wake
        )
        self._sent: PodStatus | None = None
        self._end: End | None = None
        self._kill_at: float | None = None
        self._over = False
        self._said = ""
        self._removed = False
        self._failures = 0
        self.done = False

    def update(self, pod: Pod | None) -> None:
        """The pod is this now; None if it is gone."""
        own = pod is not None and self._pod is not None and self._is_own_write(self._pod, pod)
        self._pod = pod
        if pod is not None:
            self._last = pod
        else:
            self._services.room.leave(self.uid)
        if not own:
            self.wake()

    def wake(self) -> None:
        """Something has changed that may matter."""
        self._woken.set()

    async def run(self) -> None:
        """Works until the pod is gone and nothing is left of it.

        One that nobody has told anything of is known only by what an agent before this one has left: that is taken
        down.
        """
        while True:
            self._woken.clear()
            wait = await self._try()
            if self.done:
                return
            await self._wait(wait)

    async def _try(self) -> float | None:
        """One look; after how many seconds to look again."""
        try:
            return await self._sync()
        except (ApiError, OSError, TimeoutError) as error:
            if isinstance(error, ApiError) and error.code == 409:
                return await self._reread()
            log.info("pod %s: %s; trying again", self._name, error)
            return self._backoff(LONGEST_END_RETRY)
        except Exception:
            # Whatever it is, the pod must not be left alone with what it holds.
            log.exception("pod %s: unexpected failure; trying again", self._name)
            return self._backoff(LONGEST_RETRY)

    async def _wait(self, seconds: float | None) -> None:
        if seconds is None:
            await self._woken.wait()
            return
        loop = asyncio.get_running_loop()
        woken, timer = loop.create_task(self._woken.wait()), loop.create_task(_timer(self._services.clock, seconds))
        try:
            await asyncio.wait({woken, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
            timer.cancel()
            await asyncio.gather(woken, timer, return_exceptions=True)

    def _find(self) -> None:
        """Finds what an agent before this one has left. Raises OSError; before that is known, nothing is begun."""
        if self._last is not None:
            self._containers.recover(self._last)
        else:
            self._containers.recover_stray(self.uid)
        self._is_found = True

    async def _sync(self) -> float | None:
        if not self._is_found:
            self._find()
        pod = self._pod
        if pod is None or pod.metadata.deletion_timestamp is not None or self._end is not None:
            return await self._finish()
        if is_finished(pod):
            self._end = End(pod.status.phase, pod.status.reason, pod.status.message)
            return await self._finish()
        if (no_room := self._services.room.enter(pod)) is not None:
            self._end = no_room
            return await self._finish()
        if self._overdue(pod) == 0.0:
            message = "Pod was active on the node longer than the specified deadline"
            self._end = End(FAILED, "DeadlineExceeded", message)
            return await self._finish()
        refused = "" if self._containers.any_running else self._services.runtime.refusal(pod)
        if refused:
            await self._refuse(pod, refused)
            return None
        if not self._services.claims.is_ready(pod):
            try:
                await self._services.claims.prepare(pod)
            except (Refused, ClaimsNotReady) as error:
                return await self._not_ready(pod, str(error))
            self._failures = 0
            if self._pod is not pod:
                return 0.0  # it may have been deleted meanwhile
        return await self._run(pod)

    async def _refuse(self, pod: Pod, why: str) -> None:
        """The pod asks for what this node cannot enforce: nothing of it runs, and it stays so until it is deleted."""
        if self._containers.refuse(pod, StartFailed("CreateContainerConfigError", why)):
            await self._services.recorder.warning(pod, "Failed", f"Error: {why}")
        await self._write(pod, self._status(pod))

    async def _run(self, pod: Pod) -> float | None:
        """Starts what is to be started, and says how things stand."""
        while True:
            plan = pod_plan.plan(pod.spec, self._containers.views(), self._services.clock.now())
            for name in plan.start:
                await self._start(pod, name)
            if not plan.start:
                break
        if plan.outcome:
            self._end = End(plan.outcome)
            return await self._finish()
        await self._tell_of_debuggers(pod)
        await self._write(pod, self._status(pod))
        self._failures = 0
        return _earlier(plan.again_in, self._overdue(self._last or pod))

    async def _tell_of_debuggers(self, pod: Pod) -> None:
        """Whoever adds an ephemeral container waits for it: it is said that there will be none."""
        is_process = self._services.runtime.name == "process"
        said = unsupported.debuggers(pod) if pod.spec.ephemeral_containers and is_process else ""
        if said and said != self._said:
            await self._services.recorder.warning(pod, "NotApplied", said)
        self._said = said

    async def _start(self, pod: Pod, name: str) -> None:
        container = _container(pod, name)
        ids = pod_claims.cdi_ids(pod, container, self._services.claims.book)
        try:
            warnings = await self._containers.start(self._addressed(pod), container, ids)
        except StartFailed as error:
            await self._services.recorder.warning(pod, "Failed", f"Error: {error}")
            return
        if self._services.runtime.name == "process":
            warnings = (*warnings, *unsupported.features(pod, container))
        if warnings:
            await self._services.recorder.warning(pod, "NotApplied", f"container {name}: {'; '.join(warnings)}")

    async def _not_ready(self, pod: Pod, problem: str) -> float:
        message = f"Failed to prepare dynamic resources: prepare dynamic resources: {problem}"
        await self._services.recorder.warning(pod, "FailedPrepareDynamicResources", message)
        wait = self._backoff(LONGEST_RETRY)
        if pod.status.start_time is None:
            await self._write(pod, self._status(pod))
        return wait

    async def _finish(self) -> float | None:
        """The way out, from wherever the pod is."""
        if self._over and self._pod is not None and self._pod.metadata.deletion_timestamp is None:
            return None
        if self._containers.any_running:
            return self._stop()
        try:
            await self._services.claims.unprepare(self.uid)
        except ClaimsNotReady as error:
            if self._last is not None:
                message = f"Failed to unprepare dynamic resources: {error}"
                await self._services.recorder.warning(self._last, "FailedUnprepareDynamicResources", message)
            return self._backoff(LONGEST_END_RETRY)
        self._services.room.leave(self.uid)  # before anybody is told that there is room
        if self._pod is None:
            self._services.runtime.clean(self.uid)
            self.done = True
            return None
        await self._write_end(self._pod)
        self._over = True
        pod = self._pod  # which may be another one by now, or gone
        if pod is not None and pod.metadata.deletion_timestamp is not None:
            await self._remove(pod)
        return None

    def _stop(self) -> float | None:
        """Containers have their grace period to end; a shorter one that comes later counts from then."""
        self._containers.terminate()
        now = self._services.clock.monotonic()
        due = now + self._grace()
        self._kill_at = due if self._kill_at is None else min(self._kill_at, due)
        if self._kill_at <= now:
            self._containers.kill()
            return 1.0
        return self._kill_at - now

    def _grace(self) -> float:
        pod = self._last
        if pod is None:
            return DEFAULT_GRACE
        seconds = pod.metadata.deletion_grace_period_seconds
        if seconds is None:
            seconds = pod.spec.termination_grace_period_seconds
        return DEFAULT_GRACE if seconds is None else float(seconds)

    async def _write_end(self, pod: Pod) -> None:
        if is_finished(pod):
            return
        views = self._containers.views()
        ends = [views[one.name].ended if one.name in views else None for one in pod.spec.containers]
        well = all(end is not None and end.well for end in ends)
        end = self._end or End(SUCCEEDED if well else FAILED)
        now = self._services.clock.now()
        await self._write(pod, pod_status.final_status(pod, views, self._services.address, now, {}, end))

    async def _remove(self, pod: Pod) -> None:
        """The object goes, unless finalizers keep it; only now, when nothing of it is left here (4381-158)."""
        if self._removed:
            return
        meta = pod.metadata
        options = DeleteOptions(grace_period_seconds=0, preconditions=Preconditions(uid=meta.uid))
        try:
            await self._services.client.delete(PODS, meta.namespace, meta.name, options)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
        self._removed = True

    def _status(self, pod: Pod) -> PodStatus:
        resources = device_status.resource_statuses(pod, self._services.claims.book, self._services.health)
        now = self._services.clock.now()
        return pod_status.status(pod, self._containers.views(), self._services.address, now, resources)

    async def _write(self, pod: Pod, status: PodStatus) -> None:
        """Writes a status if it says something new. Raises ApiError or OSError."""
        if status == pod.status:
            self._sent = None  # what was sent before, without an answer, is not what is right now
            return
        try:
            written = await self._update(pod, status)
        except ApiError as error:
            if error.code != TOO_LARGE:
                raise
            # That of thousands of containers. How the pod is, and that it has ended, is told all the same.
            written = await self._update(pod, pod_status.in_short(status))
        if self._pod is not None and _version(self._pod) == _version(pod):
            self._pod = self._last = written
        self._services.note(written)

    async def _update(self, pod: Pod, status: PodStatus) -> Pod:
        self._sent = status
        async with self._services.writes:
            return await self._services.client.update(replace(pod, status=status), "status")

    def _is_own_write(self, old: Pod, new: Pod) -> bool:
        """Whether a change is only what this worker has written: that must not cut a pause short."""
        return new.status == self._sent and _wanted(old) == _wanted(new)

    async def _reread(self) -> float | None:
        """Somebody else has written the pod: goes on from what they wrote."""
        assert self._last is not None
        meta = self._last.metadata
        try:
            pod = await self._services.client.get(PODS, meta.namespace, meta.name)
        except (ApiError, OSError, TimeoutError):
            return self._backoff(LONGEST_END_RETRY)
        if isinstance(pod, Pod) and pod.metadata.uid == self.uid:
            self._pod = self._last = pod
            self._services.note(pod)
            return 0.0
        return self._backoff(LONGEST_END_RETRY)

    def _addressed(self, pod: Pod) -> Pod:
        """The pod with the address that it is going to have, for its environment."""
        if pod.status.host_ip:
            return pod
        return replace(pod, status=replace(pod.status, host_ip=self._services.address, pod_ip=self._services.address))

    def _overdue(self, pod: Pod) -> float | None:
        """After how many seconds the pod's deadline is reached, if it has one; 0 if it is."""
        seconds, start = pod.spec.active_deadline_seconds, pod.status.start_time
        if seconds is None or start is None:
            return None
        return max(0.0, start.datetime().timestamp() + seconds - self._services.clock.now())

    def _backoff(self, longest: float) -> float:
        self._failures += 1
        return Backoff(FIRST_RETRY, longest).after(self._failures)

    @property
    def _name(self) -> str:
        meta = self._last.metadata if self._last is not None else None
        return f"{meta.namespace}/{meta.name}" if meta is not None else self.uid


async def _timer(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)


def _wanted(pod: Pod) -> tuple[object, ...]:
    """What others decide about a pod."""
    meta = pod.metadata
    return meta.deletion_timestamp, meta.deletion_grace_period_seconds, pod.spec


def _version(pod: Pod) -> str:
    return pod.metadata.resource_version


def _container(pod: Pod, name: str) -> Container:
    return next(one for one in containers_of(pod.spec) if one.name == name)


def _earlier(one: float | None, other: float | None) -> float | None:
    return min((seconds for seconds in (one, other) if seconds is not None), default=None)
