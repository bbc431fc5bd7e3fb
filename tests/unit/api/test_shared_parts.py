"""Equal parts of stored objects become one, and nothing of what they say is lost (issue 21)."""

from __future__ import annotations

from typing import Any

import pytest

from dray.api import codec, shared_parts
from dray.api.generated.core import Pod, PodSpec
from dray.api.meta import Object
from dray.api.resource import Device, ResourceClaim, ResourceSlice
from dray.api.shared_parts import share
from similar_objects import pod, slice_


@pytest.fixture(autouse=True)
def begun_anew() -> None:
    shared_parts._fields.cache_clear()


def decoded(document: dict[str, Any], kind: type[Object]) -> Any:
    return codec.decode(codec.encode(document), kind)


@pytest.mark.parametrize(("make", "kind"), [(pod, Pod), (slice_, ResourceSlice)])
def test_an_object_says_the_same_as_before(make: Any, kind: type[Object]) -> None:
    for number in range(shared_parts.MOST_PARTS + 100):
        one = decoded(make(number), kind)
        share(one)
        assert one == decoded(make(number), kind)
        assert codec.encode(one) == codec.encode(decoded(make(number), kind))


def test_what_pods_have_in_common_is_there_once() -> None:
    pods = [decoded(pod(number), Pod) for number in range(100)]
    for one in pods:
        share(one)
    first, last = pods[0], pods[-1]
    assert last.spec.tolerations is first.spec.tolerations
    assert last.spec.containers is first.spec.containers
    assert last.metadata.managed_fields[0].fields_v1 is first.metadata.managed_fields[0].fields_v1
    assert last.metadata.labels is first.metadata.labels
    assert last.spec is not first.spec
    assert last.spec.node_name == "node-99"


def test_devices_of_one_model_share_what_does_not_tell_them_apart() -> None:
    slices = [decoded(slice_(number), ResourceSlice) for number in range(100)]
    for one in slices:
        share(one)
    devices = [device for one in slices for device in one.spec.devices]
    assert len({id(device.attributes["model"]) for device in devices}) == 1
    assert len({id(device.capacity) for device in devices}) == 1
    assert len({device.attributes["uuid"].string for device in devices}) == 400


def test_what_is_kept_is_bounded() -> None:
    for number in range(2000):
        share(decoded(pod(number), Pod))
    kept = [*shared_parts._fields(Pod), *shared_parts._fields(PodSpec)]
    assert all(len(field.known) <= shared_parts.MOST_PARTS for field in kept)
    assert len(shared_parts._texts) <= shared_parts.MOST_TEXTS
    assert next(field for field in kept if field.name == "spec").is_varied, "a pod's spec has its node"


def test_free_form_values_may_be_deep() -> None:
    parameters: dict[str, Any] = {}
    for _ in range(300):
        parameters = {"a": parameters}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    config = [{"opaque": {"driver": "d", "parameters": parameters}}]
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request], "config": config}}}
    one = decoded(claim, ResourceClaim)
    share(one)
    assert one == decoded(claim, ResourceClaim)


def test_a_part_of_texts_and_numbers_is_found_by_its_value_and_an_amount_by_its_spelling() -> None:
    def sharing(amount: str, model: str) -> Any:
        document = slice_(1)
        for device in document["spec"]["devices"]:
            device["capacity"]["memory"]["value"] = amount
            device["attributes"]["model"] = {"string": model}
        one = decoded(document, ResourceSlice)
        share(one)
        assert codec.encode(one) == codec.encode(decoded(document, ResourceSlice))
        return one.spec.devices[0]

    first, other, same = sharing("1Ki", "A100"), sharing("1024", "A100"), sharing("1Ki", "A100")
    assert first.attributes["model"] is other.attributes["model"]
    assert first.capacity is same.capacity
    assert first.capacity is not other.capacity
    assert first.capacity == other.capacity, "equal amounts, written otherwise"


def test_a_flag_is_not_the_number_one() -> None:
    for value in ({"int": 1}, {"bool": True}, {"string": "1"}, {"ints": [1]}, {"bools": [True]}):
        document = slice_(1)
        for device in document["spec"]["devices"]:
            device["attributes"]["model"] = value
        one = decoded(document, ResourceSlice)
        share(one)
        assert codec.encode(one) == codec.encode(decoded(document, ResourceSlice))


def test_a_long_text_is_not_kept() -> None:
    document = slice_(1)
    document["spec"]["devices"][0]["attributes"]["model"] = {"string": "x" * (shared_parts.LONGEST + 1)}
    share(decoded(document, ResourceSlice))

    def kept(field: Any) -> list[Any]:
        return [*field.known.values(), *(each for part in field.parts.values() for each in kept(part))]

    found = [each for field in shared_parts._fields(Device) for each in kept(field)]
    assert found
    assert all(len(codec.encode(each)) <= shared_parts.LONGEST for each in found)
