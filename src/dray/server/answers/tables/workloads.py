"""Columns for workloads: what makes pods, how many may leave, which come first."""

from __future__ import annotations

from typing import Any

from dray.api.conditions import DISRUPTION_TARGET, find_condition
from dray.api.pod_groups import INITIALLY_SCHEDULED, is_gang
from dray.api.references import controller_of
from dray.api.registry import split_api_version
from dray.api.times import Time
from dray.server.answers.tables.columns import AGE, NAME, NONE, Cell, Column, human_duration, pairs, since, text
from dray.server.answers.tables.networking import selector_text


def _completions(job: Any) -> str:
    wanted = job.spec.completions
    done = job.status.succeeded or 0
    return f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {job.spec.parallelism or 1}"


def _duration(job: Any, now: Time) -> Cell:
    start = job.status.start_time
    if start is None:
        return ""
    end = job.status.completion_time or now
    return human_duration(start.seconds_until(end))


def _job_status(job: Any) -> str:
    for condition in job.status.conditions:
        if condition.type in ("Complete", "Failed", "Suspended") and condition.status == "True":
            return str(condition.type)
    return "Running"


def _last_schedule(cron_job: Any, now: Time) -> Cell:
    last = cron_job.status.last_schedule_time
    return NONE if last is None else since(last, now)


def _ready(workload: Any) -> str:
    wanted = workload.spec.replicas
    return f"{workload.status.ready_replicas or 0}/{1 if wanted is None else wanted}"


def _managed_by(obj: Any) -> str:
    owner = controller_of(obj)
    if owner is None:
        return NONE
    group, _ = split_api_version(owner.api_version)
    return f"{owner.kind.lower()}.{group}/{owner.name}" if group else f"{owner.kind.lower()}/{owner.name}"


def _containers(workload: Any) -> Any:
    template = _spec(workload).template
    return () if template is None or template.spec is None else template.spec.containers


def _spec(workload: Any) -> Any:
    """That which has a template for pods: of cron jobs, the one of their jobs."""
    return workload.spec.job_template.spec if hasattr(workload.spec, "job_template") else workload.spec


def _names(workload: Any) -> str:
    return ",".join(container.name for container in _containers(workload))


def _images(workload: Any) -> str:
    return ",".join(container.image for container in _containers(workload))


def _selector(workload: Any) -> str:
    """Old kinds select by labels alone."""
    spec = _spec(workload)
    return pairs(spec.selector) if isinstance(spec.selector, dict) else selector_text(spec.selector)


_CONTAINERS = (
    text("Containers", _names, wide=True, description="Containers of its pods."),
    text("Images", _images, wide=True, description="Images of its pods."),
)
_SELECTOR = text("Selector", _selector, wide=True, description="The pods that are its own.")

_REPLICAS = (
    NAME,
    text("Desired", lambda r: r.spec.replicas if r.spec.replicas is not None else 1, description="Pods wanted."),
    text("Current", lambda r: r.status.replicas or 0, description="Pods that exist."),
    text("Ready", lambda r: r.status.ready_replicas or 0, description="Pods that are ready."),
    AGE,
    *_CONTAINERS,
    _SELECTOR,
)


def _workload_of(group: Any) -> str:
    reference = group.spec.workload_ref
    return NONE if reference is None else str(reference.workload_name)


def _group_status(group: Any) -> str:
    disruption = find_condition(group.status.conditions, DISRUPTION_TARGET)
    if disruption is not None:
        return str(disruption.reason)
    scheduled = find_condition(group.status.conditions, INITIALLY_SCHEDULED)
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.status == "True" else "Unschedulable"


COLUMNS: dict[str, tuple[Column, ...]] = {
    "ReplicaSet": _REPLICAS,
    "ControllerRevision": (
        NAME,
        text("Controller", _managed_by, description="Whose template it is."),
        text("Revision", lambda r: r.revision, description="Its number; the highest is the newest."),
        AGE,
    ),
    "Deployment": (
        NAME,
        text("Ready", _ready, description="Ready pods out of those wanted."),
        text("Up-to-date", lambda d: d.status.updated_replicas or 0, description="Pods of the newest template."),
        text("Available", lambda d: d.status.available_replicas or 0, description="Pods that serve."),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "StatefulSet": (NAME, text("Ready", _ready, description="Ready pods out of those wanted."), AGE, *_CONTAINERS),
    "DaemonSet": (
        NAME,
        text("Desired", lambda d: d.status.desired_number_scheduled, description="Nodes that should have a pod."),
        text("Current", lambda d: d.status.current_number_scheduled, description="Nodes that have one."),
        text("Ready", lambda d: d.status.number_ready, description="Nodes whose pod is ready."),
        text("Up-to-date", lambda d: d.status.updated_number_scheduled, description="Pods of the newest template."),
        text("Available", lambda d: d.status.number_available, description="Pods that serve."),
        text("Node Selector", lambda d: pairs(d.spec.template.spec.node_selector), description="Which nodes."),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "CronJob": (
        NAME,
        text("Schedule", lambda c: c.spec.schedule, description="When jobs are made."),
        text("Timezone", lambda c: c.spec.time_zone or NONE, description="Where that is the time."),
        text("Suspend", lambda c: str(bool(c.spec.suspend)), description="Whether none are made for now."),
        text("Active", lambda c: len(c.status.active), description="Jobs that run."),
        Column("Last Schedule", _last_schedule, description="The time since the last job was made."),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "Job": (
        NAME,
        text("Status", _job_status, description="How the job stands."),
        text("Completions", _completions, description="Pods that succeeded out of those wanted."),
        Column("Duration", _duration, description="How long the job ran."),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    "PodDisruptionBudget": (
        NAME,
        text("Min Available", lambda p: _or_na(p.spec.min_available), description="Pods that must stay."),
        text("Max Unavailable", lambda p: _or_na(p.spec.max_unavailable), description="Pods that may be away."),
        text("Allowed Disruptions", lambda p: p.status.disruptions_allowed or 0, description="Evictions allowed now."),
        AGE,
    ),
    "PodGroup": (
        NAME,
        text("Policy", lambda g: "Gang" if is_gang(g) else "Basic", description="All at once, or as many as fit."),
        text("Workload", _workload_of, description="Name of the referenced Workload object."),
        text("Status", _group_status, description="Whether its pods have nodes."),
        AGE,
    ),
    "Workload": (NAME, AGE),
    "HorizontalPodAutoscaler": (
        NAME,
        text(
            "Reference",
            lambda a: f"{a.spec.scale_target_ref.kind}/{a.spec.scale_target_ref.name}",
            description="What is scaled.",
        ),
        text("MinPods", lambda a: _or_unset(a.spec.min_replicas), description="Pods that there are at least."),
        text("MaxPods", lambda a: a.spec.max_replicas, description="Pods that there are at most."),
        text("Replicas", lambda a: a.status.current_replicas or 0, description="Pods that there are."),
        AGE,
    ),
    "PriorityClass": (
        NAME,
        text("Value", lambda p: p.value, description="Pods of a larger value come first."),
        text("Global-Default", lambda p: str(p.global_default).lower(), description="Whether pods get it unasked."),
        AGE,
        text("PreemptionPolicy", lambda p: p.preemption_policy, description="Whether others may have to leave."),
    ),
}


def _or_na(value: Cell | None) -> Cell:
    return "N/A" if value is None else value


def _or_unset(value: Cell | None) -> Cell:
    return "<unset>" if value is None else str(value)


CORE_COLUMNS: dict[str, tuple[Column, ...]] = {
    "ReplicationController": _REPLICAS,
    "PodTemplate": (
        NAME,
        text("Containers", lambda t: ",".join(c.name for c in t.template.spec.containers), description="Containers."),
        text("Images", lambda t: ",".join(c.image for c in t.template.spec.containers), description="Images."),
        text("Pod Labels", lambda t: pairs(t.template.metadata.labels), description="Labels of its pods."),
    ),
}
