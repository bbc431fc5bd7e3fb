"""Bodies of pods whose specs are shared: read exactly as any other body, however they are written."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dray.api import codec
from dray.api.generated.core import Pod
from dray.server.bodies import pod_bodies

SPEC = {"containers": [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": "100m"}}}]}


def body(name: str, spec: Any = SPEC, **more: Any) -> bytes:
    return json.dumps({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec, **more}).encode()


def test_equal_specs_are_one_object() -> None:
    first, second, other = (
        pod_bodies.read(data, find_duplicates=True).obj
        for data in (body("a"), body("b"), body("c", {"containers": [{"name": "other"}]}))
    )
    assert first is not None
    assert second is not None
    assert other is not None
    assert first.spec is second.spec
    assert other.spec is not first.spec
    assert [first.metadata.name, second.metadata.name] == ["a", "b"]


def test_specs_are_shared_with_those_that_are_found_faultless_only() -> None:
    faulty = b'{"metadata":{"name":"%b"},"spec":{"hostname":"a","hostname":"b","containers":[]}}'
    for name in (b"a", b"b"):
        assert pod_bodies.read(faulty % name, find_duplicates=True).duplicates == ("spec.hostname",)
    for name in (b"a", b"b"):
        unknown = pod_bodies.read(b'{"metadata":{"name":"%b"},"spec":{"nonsense":1}}' % name, find_duplicates=True)
        assert unknown.unknown == ("spec.nonsense",)


WRITTEN = st.sampled_from(
    [
        b"{}",
        b"{ }",
        b"null",
        b"[]",
        b"7",
        b'"text"',
        b'{"containers":[{"name":"a"}]}',
        b'{"containers" : [{"name":"a"}]}',
        b'{"priority":99999999999999999999}',
        b'{"hostname":"a","hostname":"a"}',
        b'{"nonsense":{"deep":[1,2]}}',
        b'{"hostname":"\\u0061"}',
        b'{"activeDeadlineSeconds":"soon"}',
    ]
)
MEMBERS = st.lists(
    st.tuples(st.sampled_from(["metadata", "spec", "status", "kind", "other"]), WRITTEN)
    | st.tuples(
        st.just("metadata"),
        st.sampled_from(
            [
                b'{"name":"x"}',
                b'{"name":"x","annotations":{"a":"{ }","b":"{}"}}',
                b'{"generation":99999999999999999999}',
                b'{"name":"x","name":"y"}',
            ]
        ),
    ),
    max_size=5,
)


@given(MEMBERS, st.booleans())
@settings(max_examples=400)
def test_they_are_read_as_any_body_is(members: list[tuple[str, bytes]], find_duplicates: bool) -> None:
    data = b"{" + b",".join(b'"%b":%b' % (name.encode(), value) for name, value in members) + b"}"
    expected = codec.read_json(data, Pod, find_duplicates=find_duplicates)
    assert pod_bodies.read(data, find_duplicates=find_duplicates) == expected


@pytest.mark.parametrize("data", [b"", b"{", b"no", b'{"spec":{]}'])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(codec.DecodeError):
        pod_bodies.read(data, find_duplicates=True)


def test_many_specs_and_long_ones_are_not_all_kept() -> None:
    for number in range(2 * pod_bodies.LIMIT):
        assert pod_bodies.read(body("a", {"hostname": f"host-{number}"}), find_duplicates=True).obj is not None
    long = {"containers": [{"name": "main", "command": ["x" * pod_bodies.LONGEST]}]}
    first, second = (pod_bodies.read(body(name, long), find_duplicates=True).obj for name in ("a", "b"))
    assert first is not None
    assert second is not None
    assert first.spec == second.spec
    assert first.spec is not second.spec
