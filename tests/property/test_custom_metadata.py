"""Metadata of custom objects is read as metadata of all others is, whichever way is taken."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from dray.api import codec
from dray.api.custom import CustomObject
from dray.api.generated.apiextensions import CustomResourceDefinitionVersion
from dray.api.meta import ObjectMeta
from dray.custom import documents
from dray.custom.definition import compile_version

_texts: st.SearchStrategy[Any] = st.sampled_from(["", "x", "é", None, 1, True, 1.5, [], {}])
_maps = st.dictionaries(st.sampled_from(["k", "l/m", ""]), _texts, max_size=2) | _texts
_metadata = st.fixed_dictionaries(
    {},
    optional={
        "name": _texts,
        "generateName": _texts,
        "namespace": _texts,
        "labels": _maps,
        "annotations": _maps,
        "generation": st.sampled_from([1, 1.0, 2**70, "1"]),
        "creationTimestamp": st.sampled_from(["2024-01-01T00:00:00Z", "", None, 1]),
        "finalizers": st.sampled_from([[], ["f"], None, "f"]),
        "other": _texts,
    },
)
VERSION = compile_version(cast(Any, None), CustomResourceDefinitionVersion(name="v1", schema=None))
KIND = cast(Any, type("Kind", (), {"version": VERSION}))


@given(_metadata | _texts)
def test_metadata_is_read_as_that_of_all_others(metadata: Any) -> None:
    found = documents.read_value(KIND, {"kind": "K", "metadata": metadata, "spec": 1}, keep_nulls=True)
    wanted = codec.read(metadata or {}, ObjectMeta)
    assert [error.message for error in found.errors] == [error.message for error in wanted.errors]
    assert found.unknown == tuple(f"metadata.{path}" for path in wanted.unknown) or wanted.obj is None
    if wanted.obj is None:
        assert found.obj is None
    else:
        assert found.obj == CustomObject(kind="K", metadata=wanted.obj, content={"spec": 1})
