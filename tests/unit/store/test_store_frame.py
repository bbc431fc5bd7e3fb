"""Frames: what was written comes back, and anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.store import Event, EventType, Key, Record
from dray.store.frame import FrameError, decode_entry, decode_revision, encode_event, encode_revision

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
REVISIONS = st.integers(2, 2**63)


@given(key=st.builds(Key, TEXT, TEXT, TEXT), revision=REVISIONS, created=REVISIONS, data=st.binary(max_size=100))
def test_a_frame_comes_back_as_it_was(key: Key, revision: int, created: int, data: bytes) -> None:
    previous = Record(key, created, created, b"")
    event = Event(EventType.MODIFIED, Record(key, revision, created, data), previous)
    entry = decode_entry(decode_revision(encode_revision(revision)), encode_event(event))
    assert entry == (EventType.MODIFIED, key, revision, created, created, data)


FRAME = encode_event(Event(EventType.ADDED, Record(Key("pods", "default", "a"), 7, 7, b"data"), None))


@pytest.mark.parametrize("position", range(len(FRAME)))
def test_every_flipped_bit_is_found(position: int) -> None:
    damaged = bytearray(FRAME)
    damaged[position] ^= 0x10
    with pytest.raises(FrameError, match="revision 7"):
        decode_entry(7, bytes(damaged))


@pytest.mark.parametrize("length", [0, 3, 20, len(FRAME) - 1])
def test_a_cut_frame_is_found(length: int) -> None:
    with pytest.raises(FrameError):
        decode_entry(7, FRAME[:length])


def test_a_frame_under_another_revision_is_damage() -> None:
    assert decode_entry(7, FRAME).revision == 7
    with pytest.raises(FrameError, match="wrong checksum"):
        decode_entry(8, FRAME)
    with pytest.raises(FrameError, match="3 bytes"):
        decode_revision(b"abc")
