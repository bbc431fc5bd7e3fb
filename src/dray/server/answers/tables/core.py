"""Columns for pods, nodes, namespaces, events and their like."""

from __future__ import annotations

from typing import Any

from dray.api.conditions import POD_SCHEDULED
from dray.api.pods import is_terminating
from dray.api.times import Time
from dray.server.answers.tables.columns import AGE, NAME, NONE, UNKNOWN, Cell, Column, since, text

ROLE_PREFIX = "node-role.kubernetes.io/"


def _pod_ready(pod: Any) -> str:
    ready = sum(bool(status.ready) for status in pod.status.container_statuses)
    return f"{ready}/{len(pod.spec.containers)}"


def _pod_status(pod: Any) -> str:
    """The phase, or what says more: the reason of a waiting or ended container, or that the pod is being deleted."""
    shown = pod.status.reason or pod.status.phase or UNKNOWN
    for condition in pod.status.conditions:
        if condition.type == POD_SCHEDULED and condition.reason == "SchedulingGated":
            shown = "SchedulingGated"
    for status in reversed(pod.status.container_statuses):
        state = status.state
        if state is None:
            continue
        if state.waiting is not None and state.waiting.reason:
            shown = state.waiting.reason
        elif state.terminated is not None:
            ended = state.terminated
            shown = ended.reason or (f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exit_code}")
    if is_terminating(pod):
        return UNKNOWN if pod.status.reason == "NodeLost" else "Terminating"
    return str(shown)


def _pod_restarts(pod: Any, now: Time) -> Cell:
    count = sum(status.restart_count or 0 for status in pod.status.container_statuses)
    ended = [
        status.last_state.terminated.finished_at
        for status in pod.status.container_statuses
        if status.last_state is not None and status.last_state.terminated is not None
    ]
    last = max((moment for moment in ended if moment is not None), default=None)
    return f"{count} ({since(last, now)} ago)" if count and last else str(count)


def _readiness_gates(pod: Any) -> str:
    gates = pod.spec.readiness_gates
    if not gates:
        return NONE
    true = {condition.type for condition in pod.status.conditions if condition.status == "True"}
    return f"{sum(gate.condition_type in true for gate in gates)}/{len(gates)}"


def _node_status(node: Any) -> str:
    ready = [condition.status == "True" for condition in node.status.conditions if condition.type == "Ready"]
    states = ["Ready" if found else "NotReady" for found in ready] or ["Unknown"]
    if node.spec.unschedulable:
        states.append("SchedulingDisabled")
    return ",".join(states)


def _node_roles(node: Any) -> str:
    labels = node.metadata.labels
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    roles |= {labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set()
    return ",".join(sorted(roles - {""})) or NONE


def _node_address(kind: str) -> Any:
    def read(node: Any) -> str:
        return next((address.address for address in node.status.addresses if address.type == kind), NONE)

    return read


def _kernel(node: Any) -> str:
    info = node.status.node_info
    version = info.kernel_version or UNKNOWN
    return f"{version} ({info.architecture})" if info.architecture else str(version)


def _event_seen(event: Any, now: Time) -> Cell:
    series = event.series
    moment = (series.last_observed_time if series else None) or event.last_timestamp or event.event_time
    return since(moment, now)


def _event_first(event: Any, now: Time) -> Cell:
    return since(event.first_timestamp or event.event_time, now)


def _event_object(event: Any) -> str:
    return f"{event.involved_object.kind.lower()}/{event.involved_object.name}"


def _event_source(event: Any) -> str:
    component = event.source.component or event.reporting_component
    host = event.source.host
    return f"{component}, {host}" if host else str(component)


def _event_count(event: Any) -> int:
    return int((event.series.count if event.series else 0) or event.count or 1)


def _quota(prefix: str) -> Any:
    def read(quota: Any) -> str:
        hard, used = quota.status.hard, quota.status.used
        wanted = [name for name in sorted(hard) if name.startswith("limits.") == (prefix == "limits.")]
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in wanted)

    return read


COLUMNS: dict[str, tuple[Column, ...]] = {
    "Pod": (
        NAME,
        text("Ready", _pod_ready, description="Ready containers out of all."),
        text("Status", _pod_status, description="The pod's phase, or what says more."),
        Column("Restarts", _pod_restarts, description="How often containers were restarted."),
        AGE,
        text("IP", lambda p: p.status.pod_ip or NONE, wide=True, description="The pod's address."),
        text("Node", lambda p: p.spec.node_name or NONE, wide=True, description="The node that the pod is bound to."),
        text(
            "Nominated Node",
            lambda p: p.status.nominated_node_name or NONE,
            wide=True,
            description="The node where room is being made for the pod.",
        ),
        text("Readiness Gates", _readiness_gates, wide=True, description="Readiness gates that are open, out of all."),
    ),
    "Node": (
        NAME,
        text("Status", _node_status, description="Whether the node is ready and takes pods."),
        text("Roles", _node_roles, description="The node's roles."),
        AGE,
        text("Version", lambda n: n.status.node_info.kubelet_version, description="The version of the node agent."),
        text("Internal-IP", _node_address("InternalIP"), wide=True, description="Address inside the cluster."),
        text("External-IP", _node_address("ExternalIP"), wide=True, description="Address outside the cluster."),
        text("OS-Image", lambda n: n.status.node_info.os_image or UNKNOWN, wide=True, description="Operating system."),
        text("Kernel-Version", _kernel, wide=True, description="Kernel and architecture."),
        text(
            "Container-Runtime",
            lambda n: n.status.node_info.container_runtime_version or UNKNOWN,
            wide=True,
            description="Container runtime.",
        ),
    ),
    "Namespace": (NAME, text("Status", lambda n: n.status.phase, description="Active or Terminating."), AGE),
    "Event": (
        Column("Last Seen", _event_seen, description="When the event was last seen."),
        text("Type", lambda e: e.type, description="Normal or Warning."),
        text("Reason", lambda e: e.reason, description="Why, in one word."),
        text("Object", _event_object, description="What the event is about."),
        text("Subobject", lambda e: e.involved_object.field_path, wide=True, description="Which part of it."),
        text("Source", _event_source, wide=True, description="Who says so."),
        text("Message", lambda e: (e.message or "").strip(), description="What happened."),
        Column("First Seen", _event_first, wide=True, description="When the event was first seen."),
        text("Count", _event_count, wide=True, description="How often it was seen."),
        Column("Name", NAME.read, wide=True, format="name", description="The event's name."),
    ),
    "Lease": (NAME, text("Holder", lambda x: x.spec.holder_identity, description="Who holds the lease."), AGE),
    "ResourceQuota": (
        NAME,
        text("Request", _quota(""), description="What is used of what is allowed to be requested."),
        text("Limit", _quota("limits."), description="What is used of what limits may sum up to."),
        AGE,
    ),
    "ConfigMap": (NAME, text("Data", lambda c: len(c.data) + len(c.binary_data), description="Entries."), AGE),
    "Secret": (
        NAME,
        text("Type", lambda s: s.type or "Opaque", description="The secret's type."),
        text("Data", lambda s: len(s.data), description="Entries."),
        AGE,
    ),
    "ServiceAccount": (NAME, text("Secrets", lambda s: len(s.secrets), description="Referenced secrets."), AGE),
}
