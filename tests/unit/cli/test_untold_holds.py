"""`dray confirm` lists what says that it is held; rules that have no status to say so in are named as well."""

from __future__ import annotations

from typing import Any

from builders import typed
from dray.api.meta import Object
from dray.maintenance.confirmation import untold
from eviction_objects import rule

CONFIRM = "dray.dev/confirm-evictions"
CONDITION = {
    "type": "EvictionInProgress",
    "status": "True",
    "reason": "r",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def made(manifest: dict[str, Any], confirmed: str = "", *conditions: dict[str, str]) -> Object:
    """An object of generation 3, with an annotation and conditions."""
    about = {**manifest["metadata"], "generation": 3, "annotations": {CONFIRM: confirmed}}
    status = {"status": {"conditions": list(conditions)}} if conditions else {}
    found: Object = typed({**manifest, "metadata": about, **status})
    return found


def test_rules_of_which_no_status_tells_are_named_until_they_are_confirmed() -> None:
    rules = [
        made(rule("silent")),
        made(rule("changed since"), "2"),
        made(rule("confirmed"), "3"),
        made(rule("mild", "NoSchedule")),
        made(rule("told"), "", CONDITION),
    ]
    assert list(untold(rules)) == ["rule/silent", "rule/changed since"]
