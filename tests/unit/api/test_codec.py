"""Decoding what others send: every problem at once, with its path; nothing known is lost."""

import msgspec
import msgspec.inspect
import pytest

from dray.api import codec
from dray.api.quantity import Quantity
from dray.api.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice, v1beta1

SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s", "creationTimestamp": None},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1},
        "nodeName": "n",
        "devices": [{"name": "d", "attributes": {"a": {"int": 1}}, "capacity": {"m": {"value": "1024Mi"}}}],
    },
}


def read_slice(**spec: object) -> codec.Reading[ResourceSlice]:
    return codec.read({**SLICE, "spec": {**SLICE["spec"], **spec}}, ResourceSlice)  # type: ignore[dict-item]


def test_null_means_absent() -> None:
    reading = read_slice(allNodes=None)
    assert reading.obj is not None
    assert reading.obj.spec.all_nodes is None
    assert reading.obj.metadata.creation_timestamp is None


def test_values_are_normalised_on_the_way_in() -> None:
    reading = read_slice()
    assert reading.obj is not None
    assert reading.obj.spec.devices[0].capacity["m"].value == Quantity.parse("1Gi")
    assert b'"value":"1Gi"' in codec.encode(reading.obj)


def test_zero_of_a_required_field_is_written() -> None:
    """`generation: 0` is a valid generation and must be seen by clients; an optional zero is left out."""
    reading = read_slice()
    assert reading.obj is not None
    assert codec.to_builtins(reading.obj)["spec"]["pool"]["generation"] == 0
    assert "generation" not in codec.to_builtins(reading.obj)["metadata"]


@pytest.mark.req("4381-34", "4381-247")
def test_a_bare_quantity_is_a_capacity_in_v1beta1_only() -> None:
    old = {"spec": {"devices": [{"name": "d", "basic": {"capacity": {"memory": "16Gi"}}}]}}
    reading = codec.read(old, v1beta1.ResourceSlice)
    assert reading.obj is not None
    basic = reading.obj.spec.devices[0].basic
    assert basic is not None
    assert str(basic.capacity["memory"].value) == "16Gi"
    newer = read_slice(devices=[{"name": "d", "capacity": {"memory": "16Gi"}}])
    assert [error.field for error in newer.errors] == ["spec.devices[0].capacity[memory]"]


def test_all_problems_are_reported_at_once() -> None:
    reading = read_slice(
        driver=7,
        devices=[{"name": "d", "attributes": {"a.b/c": {"int": "x"}}, "capacity": {"m": {"value": "16X"}}}],
    )
    assert reading.obj is None
    assert [error.field for error in reading.errors] == [
        "spec.driver",
        "spec.devices[0].attributes[a.b/c].int",
        "spec.devices[0].capacity[m].value",
    ]
    assert {error.reason for error in reading.errors} == {"FieldValueTypeInvalid"}


@pytest.mark.req("4381-251")
def test_unknown_fields_are_dropped_and_named() -> None:
    reading = read_slice(driverName="x", devices=[{"name": "d", "nmae": "e"}])
    assert reading.obj is not None
    assert set(reading.unknown) == {"spec.driverName", "spec.devices[0].nmae"}


@pytest.mark.req("5027-13")
def test_a_slice_attribute_has_no_null() -> None:
    reading = read_slice(devices=[{"name": "d", "attributes": {"a": {"null": {}}}}])
    assert reading.unknown == ("spec.devices[0].attributes.a.null",)


def test_duplicate_fields_are_named() -> None:
    data = b'{"kind":"ResourceSlice","spec":{"driver":"a","devices":[{"name":"x","name":"y"}],"driver":"b"}}'
    assert codec.read_json(data, ResourceSlice).duplicates == ("spec.driver", "spec.devices[0].name")


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775809", "1" * 400])
def test_integers_beyond_64_bits_are_refused(number: str) -> None:
    data = f'{{"spec":{{"pool":{{"generation":{number}}}}}}}'.encode()
    reading = codec.read_json(data, ResourceSlice)
    assert [error.field for error in reading.errors] == ["spec.pool.generation"]


def test_the_largest_integer_is_kept() -> None:
    reading = codec.read_json(b'{"spec":{"pool":{"generation":9223372036854775807}}}', ResourceSlice)
    assert reading.obj is not None
    assert reading.obj.spec.pool.generation == 2**63 - 1


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"a":}', b"\xff", b'{"a":"\xff"}', b'{"a":NaN}', b"[" * 100_000, b'{"a":' * 100_000]
)
def test_what_is_not_json_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(codec.DecodeError):
        codec.read_json(data, ResourceSlice)


def test_free_form_json_round_trips_untouched() -> None:
    parameters: dict[str, object] = {"a": None, "b": [1, 2.5, {"c": "d"}], "e": {}}
    value = {"spec": {"config": [{"opaque": {"driver": "d", "parameters": parameters}}]}}
    reading = codec.read(value, DeviceClass)
    assert reading.obj is not None
    assert codec.to_builtins(reading.obj)["spec"]["config"][0]["opaque"]["parameters"] == parameters


@pytest.mark.parametrize("kind", [ResourceSlice, ResourceClaim, DeviceClass, DeviceTaintRule])
def test_decode_is_the_inverse_of_encode(kind: type[msgspec.Struct]) -> None:
    assert codec.decode(codec.encode(kind()), kind) == kind()
