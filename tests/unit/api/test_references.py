"""Objects are named in three ways, all written alike."""

from __future__ import annotations

import pytest

from dray.api.generated.core import Pod
from dray.api.meta import Object, ObjectMeta, OwnerReference
from dray.api.references import ObjectKey, ObjectName, ObjectRef, controller_of, full_name

POD = Pod(metadata=ObjectMeta(namespace="ml", name="train", uid="u-1"))
NODE = Object(metadata=ObjectMeta(name="node-1", uid="u-2"))


@pytest.mark.parametrize(("obj", "text"), [(POD, "ml/train"), (NODE, "node-1")])
def test_text(obj: Object, text: str) -> None:
    assert full_name(obj) == str(ObjectName.of(obj)) == str(ObjectRef.of(obj)) == text


def test_a_name_is_the_plain_tuple_that_hot_loops_use() -> None:
    assert {ObjectName.of(POD): 1}[("ml", "train")] == 1  # type: ignore[index]


def test_a_reference_tells_apart_who_has_the_same_name() -> None:
    later = Pod(metadata=ObjectMeta(namespace="ml", name="train", uid="u-3"))
    assert ObjectName.of(POD) == ObjectName.of(later)
    assert ObjectRef.of(POD) != ObjectRef.of(later)


def test_keys_say_what_they_are_about_and_sort_as_lists_do() -> None:
    assert str(ObjectKey("pods", "ml", "train")) == "pods ml/train"
    assert str(ObjectKey("nodes", "", "node-1")) == "nodes node-1"
    assert sorted([ObjectKey("pods", "b", "a"), ObjectKey("pods", "a", "b")])[0].namespace == "a"


def test_the_controller_among_owners() -> None:
    owner = OwnerReference(kind="Job", name="j", uid="u", controller=True)
    owned = Object(metadata=ObjectMeta(owner_references=(OwnerReference(kind="Node", name="n"), owner)))
    assert controller_of(owned) is owner
    assert controller_of(NODE) is None
