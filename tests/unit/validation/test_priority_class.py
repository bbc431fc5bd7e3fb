"""What an API server says of PriorityClasses."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api.registry import by_kind
from dray.process.clock import as_time
from dray.validation.context import Context
from dray.validation.table import rules_of
from scheduler_objects import typed

KIND = by_kind("scheduling.k8s.io/v1", "PriorityClass")


def made(name: str = "high", value: int = 10, **fields: Any) -> Any:
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return typed({**body, "value": value, **fields})


def found(new: Any, old: Any = None) -> list[str]:
    errors: list[Any] = []
    check = rules_of(KIND).check
    check(errors, new, old, Context(now=as_time(0)))
    return [str(error) for error in errors]


@pytest.mark.parametrize(
    ("new", "old", "says"),
    [
        (made(value=11), made(), "value: Forbidden: may not be changed in an update"),
        (made(preemptionPolicy="Never"), made(preemptionPolicy="PreemptLowerPriority"), "preemptionPolicy"),
        (made(preemptionPolicy="Maybe"), None, "preemptionPolicy: Unsupported value"),
        (made(value=1_000_000_001), None, "maximum allowed value"),
        (made("system-mine"), None, "prefix are reserved"),
    ],
)
def test_what_is_refused(new: Any, old: Any, says: str) -> None:
    [error] = found(new, old)
    assert says in error


def test_what_is_not_said_may_change() -> None:
    assert found(made(description="new"), made()) == []
    assert found(made("system-node-critical", 2_000_001_000)) == []
