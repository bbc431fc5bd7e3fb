"""The status that a kubelet writes for a pod: starting, running, ended, waiting to be restarted. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from dray.api.conditions import POD_SCHEDULED, find_condition, with_conditions
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
    PodStatus,
)
from dray.api.pods import containers_of
from dray.api.times import Time


def starting(pod: Pod, host: str, now: Time) -> PodStatus:
    """The node has seen the pod and makes its containers."""
    waiting = ContainerState(waiting=ContainerStateWaiting(reason="ContainerCreating"))
    return replace(
        pod.status,
        phase="Pending",
        start_time=now,
        conditions=_conditions(pod, now, initialized=not pod.spec.init_containers, ready=False),
        container_statuses=tuple(_fresh(container, waiting) for container in pod.spec.containers),
        host_ip=host,
        host_ips=(HostIP(ip=host),),
    )


def without_ports(pod: Pod, message: str, now: Time) -> PodStatus:
    """The node does not take the pod, because ports are taken: none of its containers ever started."""
    return replace(pod.status, phase="Failed", reason="NodePorts", message=message, start_time=now)


def running(pod: Pod, host: str, address: str, now: Time) -> PodStatus:
    """All containers run; init containers have ended well before, sidecars keep running."""
    state = ContainerState(running=ContainerStateRunning(started_at=now))
    ended = _terminated(0, now, now, "Completed")
    init = tuple(
        _fresh(container, state, ready=True)
        if container.restart_policy == "Always"
        else replace(_fresh(container, ContainerState(terminated=ended)), ready=True)
        for container in pod.spec.init_containers
    )
    return replace(
        pod.status,
        phase="Running",
        start_time=pod.status.start_time or now,
        conditions=_conditions(pod, now, initialized=True, ready=True),
        init_container_statuses=init,
        container_statuses=tuple(_fresh(container, state, ready=True) for container in pod.spec.containers),
        host_ip=host,
        host_ips=(HostIP(ip=host),),
        pod_ip=address,
        pod_ips=(PodIP(ip=address),),
    )


def ready_again(pod: Pod, now: Time) -> PodStatus | None:
    """The status of a pod that was declared not ready, or without a node, while its containers are; None for any other.

    The node lifecycle controller does that to the pods of a node that it does not hear of; the node knows better.
    """
    status = {condition.type: condition.status for condition in pod.status.conditions}
    is_right = status.get("Ready") == "True" and status.get(POD_SCHEDULED) != "False"
    if status.get("ContainersReady") != "True" or is_right:
        return None
    return replace(pod.status, conditions=_conditions(pod, now, initialized=True, ready=True))


def resized(pod: Pod) -> PodStatus | None:
    """The status of a pod that asks for other resources than its running containers have; None for any other.

    Only where the status says what they have: without that, the server refuses to resize them.
    """
    wanted = {container.name: container for container in containers_of(pod.spec)}

    def follow(statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
        return tuple(
            _with_resources(status, wanted[status.name])
            if status.resources is not None and status.state.running is not None and status.name in wanted
            else status
            for status in statuses
        )

    inits, containers = follow(pod.status.init_container_statuses), follow(pod.status.container_statuses)
    if (inits, containers) == (pod.status.init_container_statuses, pod.status.container_statuses):
        return None
    return replace(pod.status, init_container_statuses=inits, container_statuses=containers)


def ended(pod: Pod, code: int, now: Time, *, reason: str = "", message: str = "") -> PodStatus:
    """All containers have ended with a code; the pod is finished."""
    return replace(
        pod.status,
        phase="Failed" if code or reason else "Succeeded",
        reason=reason,
        message=message,
        start_time=pod.status.start_time or now,
        conditions=_conditions(pod, now, initialized=True, ready=False, why="PodFailed" if code else "PodCompleted"),
        container_statuses=tuple(_end(status, code, now) for status in _known(pod)),
        init_container_statuses=tuple(
            _end(status, 0, now) if status.state.running is not None else status
            for status in pod.status.init_container_statuses
        ),
    )


def backing_off(pod: Pod, code: int, now: Time) -> PodStatus:
    """All containers have ended and will be restarted later."""
    waiting = ContainerState(waiting=ContainerStateWaiting(reason="CrashLoopBackOff"))
    statuses = tuple(
        replace(_end(status, code, now), state=waiting, last_state=_end(status, code, now).state)
        for status in _known(pod)
    )
    conditions = _conditions(pod, now, initialized=True, ready=False, why="ContainersNotReady")
    return replace(pod.status, conditions=conditions, container_statuses=statuses)


def restarted(pod: Pod, code: int, now: Time) -> PodStatus:
    """All containers run again."""
    state = ContainerState(running=ContainerStateRunning(started_at=now))
    statuses = tuple(
        replace(
            status,
            ready=True,
            started=True,
            restart_count=status.restart_count + 1,
            last_state=status.last_state if status.state.waiting is not None else _end(status, code, now).state,
            state=state,
        )
        for status in _known(pod)
    )
    return replace(
        pod.status, conditions=_conditions(pod, now, initialized=True, ready=True), container_statuses=statuses
    )


def _known(pod: Pod) -> Iterable[ContainerStatus]:
    """The containers' statuses; those of a pod that never started are made up."""
    return pod.status.container_statuses or [_fresh(container, ContainerState()) for container in pod.spec.containers]


def _fresh(container: Container, state: ContainerState, *, ready: bool = False) -> ContainerStatus:
    made = ContainerStatus(
        name=container.name,
        image=container.image,
        image_id="",
        state=state,
        ready=ready,
        started=ready,
        container_id=f"simulated://{container.name}" if ready else "",
    )
    return _with_resources(made, container) if ready else made


def _with_resources(status: ContainerStatus, container: Container) -> ContainerStatus:
    """The container has all that it asks for, which is how a node says that it can be resized."""
    asked = container.resources
    given = replace(asked, claims=()) if asked.claims else asked
    return replace(status, resources=given, allocated_resources=asked.requests)


def _end(status: ContainerStatus, code: int, now: Time) -> ContainerStatus:
    if status.state.terminated is not None:
        return status
    run = status.state.running
    done = _terminated(code, run.started_at if run is not None else now, now, "Error" if code else "Completed")
    return replace(status, ready=False, started=False, state=ContainerState(terminated=done))


def _terminated(code: int, start: Time | None, end: Time, reason: str) -> ContainerStateTerminated:
    return ContainerStateTerminated(exit_code=code, started_at=start, finished_at=end, reason=reason)


def _conditions(pod: Pod, now: Time, *, initialized: bool, ready: bool, why: str = "") -> tuple[PodCondition, ...]:
    """The kubelet's conditions; those of others stay. A time changes only with its status.

    That it is scheduled shows here: a scheduler may have said otherwise in a write that came after the binding.
    """
    wanted = {"PodReadyToStartContainers": ready, "Initialized": initialized, "Ready": ready, "ContainersReady": ready}
    if find_condition(pod.status.conditions, POD_SCHEDULED) is not None:
        wanted[POD_SCHEDULED] = True
    own = [
        PodCondition(
            type=name,
            status=str(value),
            last_transition_time=now,
            reason="" if value else why or "ContainersNotReady",
        )
        for name, value in wanted.items()
    ]
    return with_conditions(pod.status.conditions, own)
