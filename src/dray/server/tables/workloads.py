"""Columns for ReplicaSets, Deployments, Jobs and disruption budgets."""

from __future__ import annotations

from typing import Any

from dray.api.times import Time
from dray.server.tables.columns import AGE, NAME, Cell, Column, human_duration, text


def _completions(job: Any) -> str:
    wanted = job.spec.completions
    done = job.status.succeeded or 0
    return f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {job.spec.parallelism or 1}"


def _duration(job: Any, now: Time) -> Cell:
    start = job.status.start_time
    if start is None:
        return ""
    end = job.status.completion_time or now
    return human_duration((end.datetime() - start.datetime()).total_seconds())


def _job_status(job: Any) -> str:
    for condition in job.status.conditions:
        if condition.type in ("Complete", "Failed", "Suspended") and condition.status == "True":
            return str(condition.type)
    return "Running"


COLUMNS: dict[str, tuple[Column, ...]] = {
    "ReplicaSet": (
        NAME,
        text("Desired", lambda r: r.spec.replicas if r.spec.replicas is not None else 1, description="Pods wanted."),
        text("Current", lambda r: r.status.replicas or 0, description="Pods that exist."),
        text("Ready", lambda r: r.status.ready_replicas or 0, description="Pods that are ready."),
        AGE,
    ),
    "Deployment": (
        NAME,
        text(
            "Ready",
            lambda d: f"{d.status.ready_replicas or 0}/{d.spec.replicas if d.spec.replicas is not None else 1}",
            description="Ready pods out of those wanted.",
        ),
        text("Up-to-date", lambda d: d.status.updated_replicas or 0, description="Pods of the newest template."),
        text("Available", lambda d: d.status.available_replicas or 0, description="Pods that serve."),
        AGE,
    ),
    "Job": (
        NAME,
        text("Status", _job_status, description="How the job stands."),
        text("Completions", _completions, description="Pods that succeeded out of those wanted."),
        Column("Duration", _duration, description="How long the job ran."),
        AGE,
    ),
    "PodDisruptionBudget": (
        NAME,
        text("Min Available", lambda p: _or_na(p.spec.min_available), description="Pods that must stay."),
        text("Max Unavailable", lambda p: _or_na(p.spec.max_unavailable), description="Pods that may be away."),
        text("Allowed Disruptions", lambda p: p.status.disruptions_allowed or 0, description="Evictions allowed now."),
        AGE,
    ),
}


def _or_na(value: Cell | None) -> Cell:
    return "N/A" if value is None else value
