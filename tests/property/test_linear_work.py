"""No check takes more than twice the time for twice the input, whatever list or map of whatever kind is the long one.

Every list and map of a document has as many entries as the others, so that a loop within a loop shows, over one field
or over two. What is counted is how often each line runs, and how often texts are compared: no stopwatch is involved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dray import validation
from dray.api import codec, registry, schema, sharing
from dray.api.registry import Kind
from dray.api.struct import encode_value
from dray.api.times import Time
from dray.server.patch import json_patch, managed, merge_patch, strategic
from dray.server.patch.apply import apply
from dray.validation.table import MODULES
from repeated_fields import Filling, document
from work import CountedText, comparisons_of, growing_faster, lines_run, with_counted_texts

SIZE = 10
NOW = Time.parse("2026-01-02T03:04:05Z")
FILLINGS = {
    "full": Filling(SIZE),
    "alike": Filling(SIZE, alike=True),
    "most": Filling(SIZE, sparse=3),
}
LONG_RUN = pytest.param(Filling(SIZE, sparse=2), marks=pytest.mark.soak, id="half")
VERSIONS = [(kind, version) for kind in registry.kinds() for version in kind.versions]
PATCHED_SIZE = 5
"""Smaller, for a patch goes over a document many times; a loop within a loop shows all the same."""
PATCHED = ("Pod", "Node", "Service", "ConfigMap", "ResourceClaim", "ResourceSlice", "ClusterRole", "Placement")

BOUNDED = ("resource_slice.py", "_validate_taints")
"""Where a list is searched that was found to have few entries before: 32 taints."""

fillings = pytest.mark.parametrize(
    "filling", [*(pytest.param(filling, id=name) for name, filling in FILLINGS.items()), LONG_RUN]
)
every_version = pytest.mark.parametrize(
    ("kind", "version"), VERSIONS, ids=[f"{kind.kind}-{version}" for kind, version in VERSIONS]
)


def _twice(filling: Filling) -> Filling:
    return msgspec.structs.replace(filling, size=2 * filling.size)


def _bodies(kind: Kind, version: str, filling: Filling) -> tuple[bytes, bytes]:
    """A body, and one in which the first entry of each list is another."""
    data = msgspec.json.encode(document(kind, version, filling))
    return data, data.replace(b'-0"', b'-x"')


def _read(kind: Kind, version: str, data: bytes) -> Any:
    reading = codec.read_json(data, kind.type_of(version))
    assert reading.obj is not None, reading.errors
    return validation.to_hub(reading.obj, kind.storage.api_version)


def _judge(version: str, new: Any, old: Any) -> None:
    """Everything that happens to an object between decoding and storing."""
    context = validation.Context(now=NOW, version=version)
    rules = validation.rules_for(new)
    new, old = rules.default(new, NOW), rules.default(old, NOW)
    created = rules.prepare_create(new, context)
    rules.validate_create(created, context)
    rules.warnings(created)
    rules.validate_update(rules.prepare_update(new, old, context), old, context)
    rules.validate_status(rules.prepare_status(new, old, context), old, context)


def _assert_linear(
    count: Callable[[Callable[[], Any]], Any], once: Callable[[], Any], twice: Callable[[], Any]
) -> None:
    twice()  # so that what is remembered of names is remembered in both measurements
    faster = growing_faster(count(once), count(twice), new=6 * SIZE)
    assert {line: counts for line, counts in faster.items() if not all(part in line for part in BOUNDED)} == {}


@every_version
@fillings
def test_reading_and_judging_an_object_is_linear(kind: Kind, version: str, filling: Filling) -> None:
    def work(data: bytes, other: bytes) -> Callable[[], None]:
        return lambda: _judge(version, _read(kind, version, other), _read(kind, version, data))

    _assert_linear(lines_run, work(*_bodies(kind, version, filling)), work(*_bodies(kind, version, _twice(filling))))


@pytest.mark.parametrize(("group", "name"), MODULES)
@fillings
def test_judging_an_object_searches_no_lists(group: str, name: str, filling: Filling) -> None:
    kind = next(one for one in registry.kinds() if (one.group, one.kind) == (group, name))
    version = kind.versions[0]

    def work(data: bytes, other: bytes) -> Callable[[], None]:
        new, old = (with_counted_texts(_read(kind, version, body)) for body in (other, data))
        return lambda: _judge(version, new, old)

    with pytest.MonkeyPatch.context() as patch:
        encoder = msgspec.json.Encoder(
            enc_hook=lambda value: str.__str__(value) if type(value) is CountedText else encode_value(value)
        )
        patch.setattr(codec, "_encoder", encoder)
        patch.setattr(sharing, "_encoder", encoder)
        _assert_linear(
            comparisons_of, work(*_bodies(kind, version, filling)), work(*_bodies(kind, version, _twice(filling)))
        )


def _patches(kind: Kind, filling: Filling, *, counted: bool = False) -> dict[str, Callable[[], Any]]:
    """The work of each kind of patch that makes one document out of another."""
    version = kind.versions[0]
    old, new = (msgspec.json.decode(body) for body in _bodies(kind, version, filling))
    for one in (old, new):
        del one["metadata"]["managedFields"]
    if counted:
        old, new = with_counted_texts(old), with_counted_texts(new)
    definition = schema.for_kind(kind.group, version, kind.kind)
    first, second = (managed.Write(definition, name, str(NOW)) for name in ("first", "second"))
    operations = [
        operation
        for field, value in new["metadata"].items()
        if isinstance(value, list)
        for position in range(len(value))
        for operation in (
            {"op": "replace", "path": f"/metadata/{field}/{position}", "value": value[position]},
            {"op": "add", "path": f"/metadata/{field}/{position}", "value": value[position]},
            {"op": "remove", "path": f"/metadata/{field}/0"},
        )
    ]

    def applied() -> None:
        live = None
        for write, wanted in ((first, old), (second, new), (first, old)):
            made, entries = apply(live, wanted, write, force=True)
            live = {**made, "metadata": {**made["metadata"], "managedFields": entries}}

    def tracked() -> None:
        entries = managed.track_update(None, old, first)
        managed.track_update({**old, "metadata": {**old["metadata"], "managedFields": entries}}, new, second)

    return {
        "json": lambda: json_patch.apply(old, operations),
        "merge": lambda: merge_patch.apply(old, new),
        "strategic": lambda: strategic.apply(old, new, definition),
        "apply": applied,
        "update": tracked,
    }


@pytest.mark.parametrize("name", PATCHED)
@pytest.mark.parametrize("way", ["json", "merge", "strategic", "apply", "update"])
def test_a_patch_is_carried_out_in_linear_time(name: str, way: str) -> None:
    kind = next(one for one in registry.kinds() if one.kind == name)
    small = Filling(PATCHED_SIZE)
    large = _twice(small)
    _assert_linear(lines_run, _patches(kind, small)[way], _patches(kind, large)[way])
    if way not in ("apply", "update"):  # these look at encoded values
        work = (_patches(kind, filling, counted=True)[way] for filling in (small, large))
        _assert_linear(comparisons_of, *work)
