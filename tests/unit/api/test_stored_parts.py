"""Stored objects are read part by part, and say the same as if they were read whole (issue 21)."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import codec, registry, schema, shared_parts, stored_parts
from dray.api.codec import DecodeError
from dray.api.generated.core import Event, Pod
from dray.api.meta import Object
from dray.api.resource import ResourceClaim, ResourceSlice
from filled_objects import GENERATED, Filler
from similar_objects import pod, slice_


@pytest.fixture(autouse=True)
def begun_anew() -> None:
    stored_parts._struct.cache_clear()


def stored(document: dict[str, Any], kind: type[Object]) -> bytes:
    return codec.encode(codec.decode(codec.encode(document), kind))


@pytest.mark.parametrize("kind", GENERATED, ids=lambda kind: kind.resource)
def test_every_field_of_every_kind_is_read(kind: registry.Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    data = stored(Filler().fill(schema.for_kind(kind.group, kind.versions[0], kind.kind)), kind.hub)
    with monkeypatch.context() as patched:
        patched.setattr(codec, "decode", None)  # nothing is read whole
        first, second = (stored_parts.decode(data, kind.hub) for _ in range(2))
    assert first == second == codec.decode(data, kind.hub)
    assert codec.encode(second) == data


@pytest.mark.parametrize(("make", "kind"), [(pod, Pod), (slice_, ResourceSlice)])
def test_objects_that_differ_say_what_they_said(make: Any, kind: type[Object]) -> None:
    for number in range(shared_parts.MOST_PARTS + 100):
        data = stored(make(number), kind)
        assert stored_parts.decode(data, kind) == codec.decode(data, kind)
        assert codec.encode(stored_parts.decode(data, kind)) == data


def test_what_objects_have_in_common_is_there_once() -> None:
    pods = [stored_parts.decode(stored(pod(number), Pod), Pod) for number in range(100)]
    first, last = pods[0], pods[-1]
    assert last.spec.tolerations is first.spec.tolerations
    assert last.spec.containers is first.spec.containers
    assert last.metadata.managed_fields is first.metadata.managed_fields
    assert last.spec.node_name == "node-99"
    slices = [stored_parts.decode(stored(slice_(number), ResourceSlice), ResourceSlice) for number in range(100)]
    devices = [device for one in slices for device in one.spec.devices]
    assert len({id(device.attributes["model"]) for device in devices}) == 1
    assert len({id(device.capacity) for device in devices}) == 1
    assert len({device.attributes["uuid"].string for device in devices}) == 400


def test_what_is_kept_is_bounded() -> None:
    for number in range(2000):
        stored_parts.decode(stored(pod(number), Pod), Pod)
    places = [*stored_parts._struct(Pod)._places.values()]
    assert all(len(place.known) <= shared_parts.MOST_PARTS for place in places)
    [spec] = [place for place in places if place.name == "spec"]
    assert not spec.known, "a pod's spec has its node: only its parts are kept"


def test_nothing_where_something_was_expected() -> None:
    data = b'{"kind":"Event","apiVersion":"v1","metadata":{"name":"e","creationTimestamp":null},"eventTime":null}'
    for _ in range(100):
        assert stored_parts.decode(data, Event) == codec.decode(data, Event)


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"kind":7}', b'{"metadata":{"names":"a"}}', b'{"new":1}', b"\xff"])
def test_what_is_no_such_object_is_refused_as_before(data: bytes) -> None:
    with pytest.raises(DecodeError):
        codec.decode(data, Pod)
    with pytest.raises(DecodeError):
        stored_parts.decode(data, Pod)


def test_free_form_values_may_be_deep() -> None:
    parameters: dict[str, Any] = {}
    for _ in range(300):
        parameters = {"a": parameters}
    config = [{"opaque": {"driver": "d", "parameters": parameters}}]
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    data = stored({"spec": {"devices": {"requests": [request], "config": config}}}, ResourceClaim)
    assert stored_parts.decode(data, ResourceClaim) == codec.decode(data, ResourceClaim)
