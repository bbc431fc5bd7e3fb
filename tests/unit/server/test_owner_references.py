"""Owners that an object names twice."""

from __future__ import annotations

from collections.abc import Callable

from dray.api.generated.core import ConfigMap
from dray.api.meta import ObjectMeta, OwnerReference
from dray.server.bodies.owner_references import without_duplicates
from work import comparisons_of, growing_faster, lines_run, with_counted_texts


def _owned(*names: str) -> ConfigMap:
    owners = tuple(OwnerReference(api_version="v1", kind="Pod", name=name, uid=f"u-{name}") for name in names)
    return ConfigMap(kind="ConfigMap", api_version="v1", metadata=ObjectMeta(name="c", owner_references=owners))


def test_each_owner_stays_once_and_a_warning_names_those_that_came_again() -> None:
    warnings: list[str] = []
    assert without_duplicates(_owned("a", "b", "a", "c", "b"), warnings) == _owned("a", "b", "c")
    assert len(warnings) == 1
    assert warnings[0].endswith("observed: u-a, u-b")


def test_thirty_thousand_owners_are_no_matter_of_minutes() -> None:
    def work(size: int) -> Callable[[], object]:
        owned = with_counted_texts(_owned(*(f"n{number}" for number in range(size))))
        return lambda: without_duplicates(owned, [])

    assert growing_faster(comparisons_of(work(200)), comparisons_of(work(400))) == {}
    assert growing_faster(lines_run(work(200)), lines_run(work(400))) == {}
