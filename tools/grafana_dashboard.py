"""Writes `examples/monitoring/grafana.json`: a dashboard for Grafana over the metrics that dray has.

    python -m tools.grafana_dashboard

A test checks that the file is what this makes, and that every metric in it is one that is documented.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parent.parent / "examples" / "monitoring" / "grafana.json"
SOURCE = {"type": "prometheus", "uid": "${source}"}


class Panel(NamedTuple):
    """A picture: what it is called, what it asks, and how wide it is of 24."""

    title: str
    queries: tuple[tuple[str, str], ...]
    """Expression and legend."""
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8


def _quantile(share: float, histogram: str, by: str = "le") -> str:
    return f"histogram_quantile({share}, sum by ({by}) (rate({histogram}_bucket[5m])))"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Devices",
        (
            Panel("Devices", (('sum(dray_devices{state="all"})', "all"),), kind="stat", width=4),
            Panel("Free", (('sum(dray_devices{state="free"})', "free"),), kind="stat", width=4),
            Panel("Held", (('sum(dray_devices{state="held"})', "held"),), kind="stat", width=4),
            Panel("Tainted", (('sum(dray_devices{state="tainted"})', "tainted"),), kind="stat", width=4),
            Panel("Blocked", (('sum(dray_devices{state="blocked"})', "blocked"),), kind="stat", width=4),
            Panel("Pods that wait", (("sum(scheduler_pending_pods)", "waiting"),), kind="stat", width=4),
            Panel("By state", (('sum by (state) (dray_devices{state!="all"})', "{{state}}"),), width=12),
            Panel(
                "Utilisation by driver",
                (
                    (
                        'sum by (driver) (dray_devices{state="held"}) / sum by (driver) (dray_devices{state="all"})',
                        "{{driver}}",
                    ),
                ),
                "percentunit",
                width=12,
            ),
        ),
    ),
    (
        "Scheduling",
        (
            Panel("Pods without a node", (("sum by (queue) (scheduler_pending_pods)", "{{queue}}"),)),
            Panel("What they wait for", (("sum by (plugin) (scheduler_unschedulable_pods)", "{{plugin}}"),)),
            Panel(
                "Decisions",
                (("sum by (result) (rate(scheduler_schedule_attempts_total[5m]))", "{{result}}"),),
                "ops",
            ),
            Panel(
                "Time of a decision",
                (
                    (
                        _quantile(0.99, "scheduler_scheduling_attempt_duration_seconds"),
                        "99%",
                    ),
                    (
                        _quantile(0.5, "scheduler_scheduling_attempt_duration_seconds"),
                        "half",
                    ),
                ),
                "s",
            ),
            Panel(
                "Claims",
                (
                    ("resourceclaim_controller_resource_claims", "all"),
                    ("resourceclaim_controller_allocated_resource_claims", "allocated"),
                ),
            ),
            Panel("Queues of controllers", (("workqueue_depth > 0", "{{name}}"),)),
        ),
    ),
    (
        "Evictions",
        (
            Panel(
                "Pods evicted",
                (
                    ("rate(device_taint_eviction_controller_pod_deletions_total[5m])", "device taints"),
                    ("rate(taint_eviction_controller_pod_deletions_total[5m])", "node taints"),
                ),
                "ops",
            ),
            Panel("Pods that must leave", (("device_taint_eviction_controller_active_evictions", "active"),)),
            Panel(
                "Held",
                (
                    ("device_taint_eviction_controller_held_pods", "devices, by {{by}}"),
                    ("taint_eviction_controller_held_pods", "nodes, by {{by}}"),
                ),
            ),
        ),
    ),
    (
        "Server",
        (
            Panel("Requests", (("sum by (verb) (rate(apiserver_request_total[5m]))", "{{verb}}"),), "reqps"),
            Panel(
                "Time to answer, 99%",
                (
                    (
                        _quantile(0.99, "apiserver_request_duration_seconds", "le, verb"),
                        "{{verb}}",
                    ),
                ),
                "s",
            ),
            Panel("Watches", (("sum(apiserver_longrunning_requests)", "open"),)),
            Panel("Database", (("dray_store_used_bytes", "used"), ("dray_store_quota_bytes", "quota")), "bytes"),
            Panel("Writes that wait for the disk", (("dray_store_pending_writes", "writes"),)),
            Panel("The loop stood still", (("increase(dray_loop_stalled_seconds_total[5m])", "seconds"),), "s"),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """The document that Grafana imports."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "gridPos": _place(0, y, 24, 1)})
        x, y = 0, y + 1
        height = 0
        for panel in row:
            tall = 4 if panel.kind == "stat" else 8
            if x + panel.width > 24:
                x, y = 0, y + height
            panels.append(_panel(len(panels) + 1, panel, _place(x, y, panel.width, tall)))
            x, height = x + panel.width, tall
        y += height
    return {
        "title": "dray",
        "uid": "dray",
        "tags": ["dray", "devices"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"}]
        },
        "panels": panels,
    }


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(65 + index), "expr": expression, "legendFormat": legend, "datasource": SOURCE}
        for index, (expression, legend) in enumerate(panel.queries)
    ]
    defaults = {"unit": panel.unit, "min": 0}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": place,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {},
    }


def text() -> str:
    """What is in the file."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
