"""The dashboard for Grafana and the alert rules for Prometheus ask for metrics that there are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml
from tools import grafana_dashboard

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "examples" / "monitoring" / "alerts.yaml"
WORD = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
FUNCTIONS = {"histogram_quantile"}


def _documented() -> set[str]:
    """Every name of a metric in the tables of the pages; `…_x` stands for the prefixes that the page names."""
    pages = ("metrics", "server", "node", "eviction")
    rows = [line for page in pages for line in (ROOT / "docs" / f"{page}.md").read_text().splitlines()]
    cells = [line.split("|")[1] for line in rows if line.startswith("| `")]
    return {name for cell in cells for name in WORD.findall(cell)}


def _metrics(expression: str) -> set[str]:
    without_labels = re.sub(r"\{[^}]*\}|\bby \([^)]*\)|\"[^\"]*\"", "", expression)
    names = {name for name in WORD.findall(without_labels) if name not in FUNCTIONS}
    return {re.sub(r"_bucket$", "", name) for name in names}


def _alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def _expressions() -> list[str]:
    panels = grafana_dashboard.dashboard()["panels"]
    asked = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [*asked, *(rule["expr"] for rule in _alerts())]


def test_every_metric_that_is_asked_for_is_documented() -> None:
    asked = set().union(*map(_metrics, _expressions()))
    assert len(asked) > 20
    assert asked - _documented() == set()


def test_a_metric_that_is_not_there_is_noticed() -> None:
    assert _metrics('sum by (le) (rate(no_such_metric_bucket{a="b_c"}[5m]))') == {"no_such_metric"}


def test_the_dashboard_is_the_one_that_the_tool_makes() -> None:
    assert grafana_dashboard.FILE.read_text() == grafana_dashboard.text(), "run python -m tools.grafana_dashboard"


def test_every_alert_says_what_is_wrong_and_how_bad() -> None:
    for rule in _alerts():
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), rule["alert"]
        assert rule["annotations"]["summary"], rule["alert"]


def test_prometheus_takes_the_alerts() -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "make setup installs promtool, which Debian has in its package prometheus"
    done = subprocess.run([promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
