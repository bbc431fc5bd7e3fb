"""Bytes that are seldom looked at are kept small, and come out as they went in."""

from __future__ import annotations

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from dray.store.packing import FAILURES, LARGEST, SMALLEST, WORTH, Packer


def pod(number: int) -> bytes:
    spec = {"containers": [{"name": f"c{each}", "image": "train", "command": ["run"] * 20} for each in range(9)]}
    return json.dumps({"metadata": {"name": f"pod-{number}", "uid": f"{number * 7919:032x}"}, "spec": spec}).encode()


def test_objects_that_are_alike_take_a_fraction() -> None:
    packer = Packer()
    pods = [pod(number) for number in range(100)]
    packed = [packer.pack(data) for data in pods]
    assert [each.unpack() for each in packed if each is not None] == pods
    assert sum(len(each.data) for each in packed if each is not None) * 10 < sum(map(len, pods))
    assert [each.size for each in packed if each is not None] == [len(data) for data in pods]


@given(st.lists(st.binary(min_size=SMALLEST, max_size=4 * SMALLEST) | st.integers(0, 5).map(pod), max_size=60))
def test_what_comes_out_is_what_went_in(datas: list[bytes]) -> None:
    packer = Packer()
    for data in datas:
        packed = packer.pack(data)
        assert packed is None or (packed.unpack() == data and len(packed.data) * WORTH <= packed.size == len(data))


def test_what_is_small_large_or_like_nothing_else_stays_as_it_is() -> None:
    packer = Packer()
    assert packer.pack(b"a" * (SMALLEST - 1)) is None
    assert packer.pack(b"a" * (LARGEST + 1)) is None
    assert packer.pack(pod(1)) is not None
    assert packer.pack(bytes(range(256)) * 2) is None


def noise(kind: str) -> bytes:
    """What is only like itself."""
    return b"".join(hashlib.sha256(f"{kind}-{number}".encode()).digest() for number in range(20))


def test_when_objects_have_changed_there_is_another_example() -> None:
    packer = Packer()
    packer.pack(noise("old"))
    packed = packer.pack(noise("old"))
    for _ in range(FAILURES):
        assert packer.pack(noise("new")) is None
    assert packer.pack(noise("new")) is not None
    assert packed is not None
    assert packed.unpack() == noise("old")
