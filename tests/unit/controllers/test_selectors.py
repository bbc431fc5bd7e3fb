"""Who of many selects a pod: each selector is read once, and however many there are, others get their turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import pytest

from dray.api.generated.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from dray.api.labels import LabelSelector
from dray.api.meta import LabelSelector as Selector
from dray.api.meta import LabelSelectorRequirement, ObjectMeta
from dray.api.references import ObjectName
from dray.controllers.selectors import AT_ONCE, FEW, MOST_LABELS, Selectors
from dray.eviction.budget_status import selector_of
from dray.reconcile import VirtualClock

MANY = 2_000


class Followed:
    """Selectors of budgets, how often they were read, and who was to be looked at."""

    def __init__(self) -> None:
        self.read = 0
        self.added: list[ObjectName] = []
        self.selectors = Selectors(self._read, self.added.append, VirtualClock())

    def _read(self, budget: PodDisruptionBudget) -> LabelSelector:
        self.read += 1
        return selector_of(budget)

    def names(self) -> set[str]:
        """Who was added since the last time."""
        found = {name.name for name in self.added}
        self.added.clear()
        return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many selectors have been asked."""
    count, matches = [0], LabelSelector.matches

    def counted(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
        count[0] += 1
        return matches(selector, labels)

    monkeypatch.setattr(LabelSelector, "matches", counted)
    return count


def budget(number: int, value: str, namespace: str = "default") -> PodDisruptionBudget:
    values = (value, *(f"v{other}" for other in range(20)))
    wanted = Selector(match_expressions=(LabelSelectorRequirement(key="a", operator="In", values=values),))
    meta = ObjectMeta(name=f"b{number}", namespace=namespace)
    return PodDisruptionBudget(metadata=meta, spec=PodDisruptionBudgetSpec(selector=wanted))


def test_selectors_are_read_once_however_many_pods_change() -> None:
    followed = Followed()
    budgets = [budget(number, str(number % 2)) for number in range(FEW)]
    for one in budgets:
        followed.selectors.follow(None, one)
    for _ in range(10):
        followed.selectors.tell("default", {"a": "0"})
    assert followed.names() == {f"b{number}" for number in range(0, FEW, 2)}
    followed.selectors.tell("default", {"a": "0"}, {"a": "1"})
    assert len(followed.names()) == FEW
    followed.selectors.tell("other", {"a": "0"})
    followed.selectors.tell("default", {"b": "0"})
    assert followed.names() == set()
    for one in budgets:
        followed.selectors.follow(one, budget(int(one.metadata.name[1:]), str(int(one.metadata.name[1:]) % 2)))
    assert followed.read == FEW
    followed.selectors.follow(budgets[1], budget(1, "0"))
    followed.selectors.follow(budgets[0], None)
    followed.selectors.tell("default", {"a": "1"})
    assert "b1" not in followed.names()
    followed.selectors.tell("default", {"a": "0"})
    assert {"b0", "b1"} & followed.names() == {"b1"}


@pytest.mark.parametrize("pods", [1, MOST_LABELS, 10 * MOST_LABELS])
async def test_many_are_asked_a_part_at_a_time_and_all_that_are_meant_are_found(pods: int, asked: list[int]) -> None:
    followed = Followed()
    for number in range(MANY):
        followed.selectors.follow(None, budget(number, str(number % 2)))
    running = asyncio.get_running_loop().create_task(followed.selectors.run())
    for number in range(pods):
        followed.selectors.tell("default", {"a": "0", "pod": str(number)})
    assert asked == [0]
    most, before, idle = 0, 0, 0
    while idle < 10:
        await asyncio.sleep(0)
        most, idle, before = max(most, asked[0] - before), 0 if asked[0] > before else idle + 1, asked[0]
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert followed.names() >= {f"b{number}" for number in range(0, MANY, 2)}
    assert most <= AT_ONCE + MOST_LABELS + 1
    assert asked[0] <= MANY * (MOST_LABELS + 1)


def test_those_that_ask_for_a_label_that_a_pod_does_not_have_are_not_asked(asked: list[int]) -> None:
    """However many there are: a pod costs what it is about."""
    followed = Followed()
    tier = LabelSelectorRequirement(key="tier", operator="In", values=("back", "back"))
    for number in range(MANY):
        wanted = Selector(match_labels={"app": f"app-{number}"}, match_expressions=(tier,))
        meta = ObjectMeta(name=f"b{number}", namespace="default")
        followed.selectors.follow(
            None, PodDisruptionBudget(metadata=meta, spec=PodDisruptionBudgetSpec(selector=wanted))
        )
    followed.selectors.follow(None, budget(MANY, "0"))  # content with too many values to be found by them
    followed.selectors.tell("default", {"app": "app-7", "tier": "back"}, {"app": "app-8", "tier": "front"})
    assert followed.names() == {"b7"}
    assert asked[0] <= 8  # the first of all is found by its other label


def test_what_is_gone_is_forgotten() -> None:
    followed = Followed()
    one: Any = budget(1, "0")
    followed.selectors.follow(None, one)
    followed.selectors.follow(one, None)
    assert followed.selectors._by_namespace == {}
