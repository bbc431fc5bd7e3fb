"""What the garbage collector does about an object, given its owners."""

import pytest

from dray.api.meta import ObjectMeta
from dray.api.times import Time
from dray.api.well_known import FOREGROUND_DELETION
from dray.controllers.garbage_collector.plan import (
    ORPHAN,
    Delete,
    Disown,
    DropFinalizer,
    Instruction,
    Owner,
    ReleaseDependents,
    VisitDependents,
    plan,
)

NOW = Time("2026-06-01T12:00:00Z")
PLAIN = ObjectMeta(name="x")


def deleted(*finalizers: str) -> ObjectMeta:
    return ObjectMeta(name="x", deletion_timestamp=NOW, finalizers=finalizers)


@pytest.mark.req("4381-133", "4381-181")
@pytest.mark.parametrize(
    ("meta", "owners", "has_dependents", "is_blocked", "expected"),
    [
        pytest.param(PLAIN, {}, True, True, [], id="nobody owns it"),
        pytest.param(PLAIN, {"a": Owner.PRESENT}, False, False, [], id="owned"),
        pytest.param(PLAIN, {"a": Owner.ABSENT}, False, False, [Delete("Background")], id="left behind"),
        pytest.param(
            PLAIN,
            {"a": Owner.PRESENT, "b": Owner.ABSENT, "c": Owner.WAITING},
            False,
            False,
            [Disown(frozenset("bc"))],
            id="one owner is left",
        ),
        pytest.param(PLAIN, {"a": Owner.WAITING}, False, False, [Delete("Background")], id="awaited"),
        pytest.param(PLAIN, {"a": Owner.WAITING}, True, False, [Delete("Foreground")], id="awaited, with dependents"),
        pytest.param(PLAIN, {"a": Owner.ABSENT}, True, False, [Delete("Background")], id="left behind with dependents"),
        pytest.param(
            ObjectMeta(name="x", finalizers=(ORPHAN,)),
            {"a": Owner.ABSENT},
            True,
            False,
            [Delete("Orphan")],
            id="its author wants orphans",
        ),
        pytest.param(
            ObjectMeta(name="x", finalizers=(FOREGROUND_DELETION,)),
            {"a": Owner.ABSENT},
            True,
            False,
            [Delete("Foreground")],
            id="its author wants the foreground",
        ),
        pytest.param(deleted("example.com/x"), {"a": Owner.ABSENT}, True, True, [], id="going already"),
        pytest.param(deleted(FOREGROUND_DELETION), {}, True, True, [VisitDependents()], id="foreground, blocked"),
        pytest.param(
            deleted(FOREGROUND_DELETION), {}, True, False, [DropFinalizer(FOREGROUND_DELETION)], id="foreground, free"
        ),
        pytest.param(deleted(ORPHAN), {}, True, True, [ReleaseDependents(), DropFinalizer(ORPHAN)], id="orphan"),
    ],
)
def test_plan(
    meta: ObjectMeta, owners: dict[str, Owner], has_dependents: bool, is_blocked: bool, expected: list[Instruction]
) -> None:
    assert list(plan(meta, owners, has_dependents=has_dependents, is_blocked=is_blocked)) == expected
