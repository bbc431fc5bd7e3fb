"""The status that the agent writes for a pod, from how its containers stand. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from dray.api.conditions import POD_SCHEDULED, find_condition, is_true, with_conditions
from dray.api.generated.core import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    HostIP,
    Pod,
    PodCondition,
    PodIP,
    PodSpec,
    PodStatus,
    ResourceStatus,
)
from dray.api.pods import FINISHED, SUCCEEDED
from dray.api.times import Time
from dray.node import pod_plan
from dray.node.pod_plan import NEW, Ended, View
from dray.process.clock import as_time

LOST_CODE: Final = 137
LOST_REASON: Final = "ContainerStatusUnknown"

Resources = Mapping[str, tuple[ResourceStatus, ...]]
"""By container: the devices that it got and their health."""


class End(msgspec.Struct, frozen=True):
    """Why a pod is over: its phase, and a reason if it is not its containers' own doing."""

    phase: str
    reason: str = ""
    message: str = ""


def status(pod: Pod, views: Mapping[str, View], address: str, now: float, resources: Resources) -> PodStatus:
    """The status of a pod that goes on."""
    initialized = pod_plan.is_initialized(pod.spec, views)
    begun = any(_was_started(views.get(container.name, NEW)) for container in pod.spec.containers)
    ready = initialized and all(views.get(container.name, NEW).running for container in pod.spec.containers)
    return _status(
        pod,
        views,
        resources,
        address,
        now,
        phase="Running" if initialized and begun else "Pending",
        initialized=initialized,
        ready=ready,
    )


def final_status(
    pod: Pod, views: Mapping[str, View], address: str, now: float, resources: Resources, end: End
) -> PodStatus:
    """The status of a pod that is over."""
    made = _status(
        pod,
        views,
        resources,
        address,
        now,
        phase=end.phase,
        initialized=pod_plan.is_initialized(pod.spec, views),
        ready=False,
    )
    why = "PodCompleted" if end.phase == SUCCEEDED else "PodFailed"
    conditions = tuple(
        replace(one, reason=why) if one.type in ("Ready", "ContainersReady") else one for one in made.conditions
    )
    return replace(made, conditions=conditions, reason=end.reason, message=end.message)


def in_short(status: PodStatus) -> PodStatus:
    """A status that says nothing of each container: there are too many for that."""
    return replace(status, container_statuses=(), init_container_statuses=())


def _status(
    pod: Pod,
    views: Mapping[str, View],
    resources: Resources,
    address: str,
    now: float,
    *,
    phase: str,
    initialized: bool,
    ready: bool,
) -> PodStatus:
    written = as_time(now)

    def statuses(containers: tuple[Container, ...], waiting: str) -> tuple[ContainerStatus, ...]:
        made = []
        for one in containers:
            view = views.get(one.name, NEW)
            state, before = _states(pod.spec, one, view, waiting, over=phase in FINISHED)
            made.append(_container(one, view, state, before, resources.get(one.name, ())))
        return tuple(made)

    return replace(
        pod.status,
        phase=phase,
        start_time=pod.status.start_time or written,
        conditions=_conditions(pod, written, initialized=initialized, ready=ready),
        init_container_statuses=statuses(pod.spec.init_containers, "PodInitializing"),
        container_statuses=statuses(pod.spec.containers, "ContainerCreating" if initialized else "PodInitializing"),
        host_ip=address,
        host_ips=(HostIP(ip=address),),
        pod_ip=address,
        pod_ips=(PodIP(ip=address),),
        observed_generation=pod.metadata.generation or 0,
    )


def _container(
    container: Container, view: View, state: ContainerState, before: Ended | None, resources: tuple[ResourceStatus, ...]
) -> ContainerStatus:
    return ContainerStatus(
        name=container.name,
        image=container.image,
        image_id="",
        state=state,
        last_state=ContainerState(terminated=_terminated(before)) if before is not None else ContainerState(),
        ready=view.running,
        started=view.running,
        restart_count=view.restarts,
        container_id=view.identity,
        allocated_resources_status=resources,
    )


def _states(
    spec: PodSpec, container: Container, view: View, waiting: str, *, over: bool
) -> tuple[ContainerState, Ended | None]:
    """The state of a container and how its last run before that ended."""
    if view.running_since is not None:
        return ContainerState(running=ContainerStateRunning(started_at=as_time(view.running_since))), view.before
    ended = view.ended
    if not over and view.reason:
        return _waiting(view.reason, view.message), ended or view.before
    if not over and ended is not None and pod_plan.must_restart(spec, container, ended):
        pause = pod_plan.backoff(view)
        message = f"back-off {pause:g}s restarting failed container={container.name}"
        return (_waiting("CrashLoopBackOff", message), ended) if pause else (_waiting(waiting), ended)
    if ended is not None:
        return ContainerState(terminated=_terminated(ended)), view.before
    return _waiting(waiting), view.before


def _waiting(reason: str, message: str = "") -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))


def _terminated(ended: Ended) -> ContainerStateTerminated:
    return ContainerStateTerminated(
        exit_code=LOST_CODE if ended.code is None else ended.code,
        reason=LOST_REASON if ended.code is None else "Error" if ended.code else "Completed",
        started_at=as_time(ended.started_at),
        finished_at=as_time(ended.finished_at),
        container_id=ended.identity,
    )


def ended(written: ContainerStateTerminated | None) -> Ended | None:
    """The end of a run as `_terminated` has written it, if it has."""
    if written is None or written.started_at is None or written.finished_at is None:
        return None
    code = None if written.reason == LOST_REASON else written.exit_code
    began, end = (one.datetime().timestamp() for one in (written.started_at, written.finished_at))
    return Ended(code, began, end, written.container_id)


def _was_started(view: View) -> bool:
    return view.running or view.ended is not None


def _conditions(pod: Pod, now: Time, *, initialized: bool, ready: bool) -> tuple[PodCondition, ...]:
    """The kubelet's conditions; those of others stay. A time changes only with its status.

    That it is scheduled shows here: a scheduler may have said otherwise in a write that came after the binding.
    """
    gates = all(is_true(pod.status.conditions, gate.condition_type) for gate in pod.spec.readiness_gates)
    wanted = {
        "PodReadyToStartContainers": (True, ""),
        "Initialized": (initialized, "ContainersNotInitialized"),
        "Ready": (ready and gates, "ReadinessGatesNotReady" if ready else "ContainersNotReady"),
        "ContainersReady": (ready, "ContainersNotReady"),
    }
    if find_condition(pod.status.conditions, POD_SCHEDULED) is not None:
        wanted[POD_SCHEDULED] = (True, "")
    own = [
        PodCondition(type=name, status=str(value), last_transition_time=now, reason="" if value else why)
        for name, (value, why) in wanted.items()
    ]
    return with_conditions(pod.status.conditions, own)
