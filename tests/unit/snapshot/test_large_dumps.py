"""Objects of a large dump are read one by one, and alike parts of them are there once."""

from __future__ import annotations

import io
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import dray
from dray.api import codec, manifest, shared_parts
from dray.api.generated.core import Node
from dray.snapshot import files
from dray.snapshot.files import InputError, read
from dray.snapshot.objects import current_time, load_objects

COUNT = 200


def node(number: int) -> dict[str, Any]:
    labels = {f"label-{each}": "x" * 60 for each in range(10)}
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return {"metadata": {"name": f"node-{number:03}", "labels": labels}, "status": {"allocatable": allocatable}}


@pytest.fixture(autouse=True)
def soon_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "LARGE", 10_000)


def dumped(path: Path, text: str) -> Path:
    (path / "dump.json").write_text(text)
    return path / "dump.json"


def nodes(**more: Any) -> dict[str, Any]:
    return {"kind": "NodeList", "apiVersion": "v1", "items": [node(number) for number in range(COUNT)], **more}


def test_no_step_reads_more_than_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    parse = codec.parse_json

    def noting(data: bytes) -> Any:
        sizes.append(len(data))
        return parse(data)

    monkeypatch.setattr(codec, "parse_json", noting)
    assert len(list(read([dumped(tmp_path, json.dumps(nodes()))]))) == COUNT
    assert max(sizes) < 2000


@pytest.mark.parametrize("indent", [None, 2])
def test_it_is_what_is_read_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, indent: int | None) -> None:
    path, now = dumped(tmp_path, json.dumps(nodes(), indent=indent)), current_time()
    one_by_one = load_objects([path], now).objects
    items = list(read([path]))
    assert [item.prefix for item in items] == [f"items[{number}]" for number in range(COUNT)]
    monkeypatch.setattr(manifest, "LARGE", 1 << 30)
    assert load_objects([path], now).objects == one_by_one
    whole = list(read([path]))
    assert [item.value for item in whole] == [item.value for item in items]
    assert [item.line_of("status") for item in whole[:3]] == [item.line_of("status") for item in items[:3]]


def test_alike_parts_are_there_once(tmp_path: Path) -> None:
    shared_parts._fields.cache_clear()  # whether a field is worth while is learned from all that is read
    found = list(dray.load(dumped(tmp_path, json.dumps(nodes()))).objects(Node))
    assert len(found) == COUNT
    assert len({id(one.status) for one in found[COUNT // 2 :]}) == 1
    assert len({id(one.metadata.labels) for one in found[COUNT // 2 :]}) == 1


def test_a_field_that_stands_twice_is_named_with_its_place(tmp_path: Path) -> None:
    text = json.dumps(nodes(), indent=1)
    twice = text.replace('"name": "node-007"', '"name": "a",\n"name": "node-007"')
    with pytest.raises(InputError, match=r'dump.json:\d+: key "items\[7\].metadata.name" already set in map'):
        list(read([dumped(tmp_path, twice)]))
    twice = text.replace('"apiVersion": "v1"', '"apiVersion": "v1", "apiVersion": "v1"', 1)
    with pytest.raises(InputError, match='key "apiVersion" already set in map'):
        list(read([dumped(tmp_path, twice)]))


def test_what_is_no_list_is_read_as_ever(tmp_path: Path) -> None:
    data = {"filling": "x" * 20_000}
    one = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": data, "items": [1, 2]}
    assert [item.value for item in read([dumped(tmp_path, json.dumps(one))])] == [one]
    with pytest.raises(InputError):
        list(read([dumped(tmp_path, json.dumps(nodes())[:-5])]))
    empty = {"kind": "List", "apiVersion": "v1", "items": None, "metadata": data}
    assert list(read([dumped(tmp_path, json.dumps(empty))])) == []


def test_what_is_no_list_in_json_is_taken_in_as_a_whole_and_may_not_be_as_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps(nodes())
    monkeypatch.setattr(files, "MAX_BYTES", len(text) // 2)
    assert len(list(read([dumped(tmp_path, text)]))) == COUNT
    with pytest.raises(InputError, match="larger than 0 MiB: give it as a list in JSON"):
        list(read([dumped(tmp_path, f"# as YAML\n{text}")]))
    monkeypatch.setattr(files, "MAX_LIST_BYTES", len(text) - 1)
    with pytest.raises(InputError, match="larger than 0 GiB: give it in several files"):
        list(read([dumped(tmp_path, text)]))
    with (tmp_path / "dump.json").open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stream.read())))
    with pytest.raises(InputError, match="<stdin>: larger than 0 GiB"):
        list(read(["-"]))


def test_nothing_as_long_as_the_text_is_made_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "LARGE", 10_000)
    data = json.dumps({**nodes(), "items": [node(number) for number in range(4000)]}).encode()
    tracemalloc.start()
    try:
        large = manifest.parse_large_list(data)
        assert large is not None
        assert large.entry(17)["metadata"]["name"] == "node-017"
        assert tracemalloc.get_traced_memory()[1] < len(data) / 2
    finally:
        tracemalloc.stop()


def test_letters_that_are_none_are_told_with_their_line(tmp_path: Path) -> None:
    path = dumped(tmp_path, "")
    path.write_bytes(json.dumps(nodes(), indent=1).encode().replace(b'"node-150"', b'"node-\xff"'))
    with pytest.raises(InputError, match=r"dump.json:\d+: invalid UTF-8: byte 0xff"):
        list(read([path]))
