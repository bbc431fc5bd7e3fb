"""What the tests of validation share: a verdict in short form, and editing manifests by path."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from dray import validation

Verdict: TypeAlias = Callable[..., set[tuple[str, str]]]
Edit: TypeAlias = Callable[..., dict[str, Any]]

_STEP = re.compile(r"[^.\[\]]+")


@pytest.fixture(scope="session")
def verdict() -> Verdict:
    """`verdict(obj, old=None)` → {("Invalid", "spec.driver"), …}: reasons without their prefix, and fields."""

    def judge(obj: Any, old: Any = None) -> set[tuple[str, str]]:
        return {(error.reason.removeprefix("FieldValue"), error.field) for error in validation.validate(obj, old)}

    return judge


@pytest.fixture(scope="session")
def edit() -> Edit:
    """`edit(obj, {"spec.devices[0].name": "x", "spec.taints": None})` → a changed copy; None removes."""

    def change(obj: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
        changed = copy.deepcopy(obj)
        for path, value in changes.items():
            *parents, last = [int(step) if step.isdigit() else step for step in _STEP.findall(path)]
            target: Any = changed
            for step in parents:
                target = target.setdefault(step, {}) if isinstance(target, dict) else target[int(step)]
            if value is None:
                target.pop(last, None)
            else:
                target[last] = value
        return changed

    return change
