"""What types are made of is found struct by struct, when there is a value, for all at once takes an event loop long."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import inspect

from dray.api import codec
from dray.api.generated.apiextensions import CustomResourceDefinition
from dray.api.generated.apps import StatefulSet
from dray.api.generated.core import Pod
from dray.api.resource import ResourceClaim, ResourceSlice

WRONG = {"spec": {"containers": [{"resources": {"limits": {"cpu": []}}, "q": 1}]}, "q": 1}


@pytest.mark.parametrize("kind", [Pod, StatefulSet, ResourceClaim, ResourceSlice, CustomResourceDefinition])
def test_shapes_are_what_msgspec_says_of_the_types(kind: type[msgspec.Struct]) -> None:
    _check_same(codec._shape(kind), inspect.type_info(kind), set())


def _check_same(found: Any, whole: Any, seen: set[type]) -> None:
    assert type(found) is type(whole)
    match found:
        case inspect.StructType():
            assert found.cls is whole.cls
            if found.cls in seen:
                return
            seen.add(found.cls)
            fields = codec._fields(found.cls)
            assert list(fields) == [field.encode_name for field in whole.fields]
            for field in whole.fields:
                _check_same(fields[field.encode_name], field.type, seen)
        case inspect.UnionType():
            for one, other in zip(found.types, whole.types, strict=True):
                _check_same(one, other, seen)
        case inspect.VarTupleType():
            _check_same(found.item_type, whole.item_type, seen)
        case inspect.DictType():
            _check_same(found.key_type, whole.key_type, seen)
            _check_same(found.value_type, whole.value_type, seen)
        case _:
            assert found == whole


def test_a_wrong_document_asks_for_the_structs_that_it_has_alone_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def type_info(kind: Any) -> inspect.Type:
        asked.append(kind)
        return whole(kind)

    whole = inspect.type_info
    monkeypatch.setattr("dray.api.codec.inspect.type_info", type_info)
    codec._fields.cache_clear()
    reading = codec.read(WRONG, Pod)
    assert [error.field for error in reading.errors] == ["spec.containers[0].resources.limits[cpu]"]
    assert reading.unknown == ("spec.containers[0].q", "q")
    assert codec._fields.cache_info().currsize == 4  # pod, spec, container, resources
    assert not [kind for kind in asked if isinstance(kind, type) and issubclass(kind, msgspec.Struct)]
    asked.clear()
    codec.read(WRONG, Pod)
    assert not asked
