"""Whatever comes in: the decoders answer with an object or a typed error, in bounded time, and lose no known field."""

import contextlib
import functools
import json
import math
import time
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dray.api import codec, manifest, registry
from dray.api.generated.core import Pod
from dray.api.resource import ResourceClaim, ResourceSlice
from dray.validation import validate

MOST_CPU_SECONDS = 2.0

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
)

FIELDS = [
    *(
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "namespace",
        "labels",
        "spec",
        "status",
        "driver",
        "pool",
        "generation",
    ),
    *(
        "resourceSliceCount",
        "nodeName",
        "devices",
        "attributes",
        "capacity",
        "value",
        "int",
        "bool",
        "string",
        "version",
    ),
    *("taints", "taint", "key", "effect", "timeAdded", "data", "requests", "exactly", "deviceClassName", "selectors"),
    *("cel", "expression", "allocationMode", "count", "tolerations", "containers", "image", "resources", "claims"),
]
shaped_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6)
)


def in_bounded_time(test: Callable[..., None]) -> Callable[..., None]:
    """Of every example: counted is what this thread does, so that others may be busy as well."""

    @functools.wraps(test)
    def timed(*arguments: Any, **named: Any) -> None:
        began = time.thread_time()
        test(*arguments, **named)
        assert time.thread_time() - began < MOST_CPU_SECONDS

    return timed


@settings(max_examples=300)
@given(st.binary(max_size=300))
@in_bounded_time
def test_bytes_are_manifests_or_manifest_errors(data: bytes) -> None:
    try:
        documents = manifest.parse(data)
    except manifest.ManifestError as error:
        assert error.message
        assert error.line is None or error.line >= 1
    else:
        for document in documents:
            assert document.line_of("spec.devices[0].name") >= 1


@settings(max_examples=300)
@given(st.text(alphabet="ab: -[]{}&*!|>'\"\n#,?%~0x.", max_size=120))
@in_bounded_time
def test_yaml_like_text_is_parsed_or_refused(text: str) -> None:
    try:
        manifest.parse(text.encode())
    except manifest.ManifestError as error:
        assert error.message


@settings(max_examples=300)
@given(st.binary(max_size=300))
@in_bounded_time
def test_bytes_are_json_or_decode_errors(data: bytes) -> None:
    with contextlib.suppress(codec.DecodeError):
        codec.read_json(data, ResourceSlice)


@settings(max_examples=300)
@given(shaped_values, st.sampled_from([ResourceSlice, ResourceClaim, Pod]))
@in_bounded_time
def test_any_value_is_an_object_or_field_errors(value: Any, kind: type[Any]) -> None:
    reading = codec.read(value, kind)
    assert (reading.obj is None) == bool(reading.errors)
    if reading.obj is not None:
        again = codec.decode(codec.encode(reading.obj), kind)
        assert again == reading.obj


@settings(max_examples=200)
@given(shaped_values)
@in_bounded_time
def test_any_value_can_be_validated(value: Any) -> None:
    """Never an exception, whatever the manifest says it is."""
    for kind, api_version in (
        ("ResourceSlice", "resource.k8s.io/v1"),
        ("ResourceClaim", "resource.k8s.io/v1beta1"),
        ("Pod", "v1"),
    ):
        document = {**value, "kind": kind, "apiVersion": api_version} if isinstance(value, dict) else value
        for error in validate(document):
            assert error.reason
            assert error.message


@settings(max_examples=200)
@given(json_values)
@in_bounded_time
def test_yaml_reads_json_as_json_does(value: Any) -> None:
    """JSON is YAML: both roads lead to the same values, but for numbers that JSON has no common meaning for."""
    text = json.dumps({"a": value}, allow_nan=False) if _finite(value) else None
    if text is None:
        return
    [document] = manifest.parse(text.encode())
    assert document.value == json.loads(text)


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(_finite(item) for item in value)
    if isinstance(value, dict):
        return all(_finite(item) for item in value.values())
    return not (isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63)


@given(st.sampled_from(registry.kinds()))
@settings(max_examples=100)
@in_bounded_time
def test_an_empty_object_of_every_kind_round_trips(kind: registry.Kind) -> None:
    reading = codec.read({"kind": kind.kind, "apiVersion": kind.api_version}, kind.hub)
    assert reading.obj is not None
    assert codec.decode(codec.encode(reading.obj), kind.hub) == reading.obj
