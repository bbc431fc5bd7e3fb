"""SPDY: frames in any pieces, streams both ways, and no patience with those who do not speak it."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.streams import spdy_frames as frames
from dray.streams.held import HELD_AT_MOST
from dray.streams.spdy import MOST_STREAMS, SpdyConnection
from dray.streams.spdy_frames import DICTIONARY, Decoder, Encoder, Frame, SpdyError
from duplex_pair import MemoryDuplex, turns_during

NAMES = st.text(st.characters(codec="latin-1", categories=("Ll", "Nd")), min_size=1, max_size=20).map(str.lower)
HEADERS = st.dictionaries(NAMES, st.text(st.characters(codec="latin-1"), max_size=40), max_size=6)
STREAMS = st.integers(1, 2**31 - 1)
FRAMES = st.one_of(
    st.builds(lambda s, f, h: Frame(frames.SYN_STREAM, s, f, headers=h), STREAMS, st.sampled_from([0, 1]), HEADERS),
    st.builds(lambda s, h: Frame(frames.SYN_REPLY, s, headers=h), STREAMS, HEADERS),
    st.builds(lambda s, f, d: Frame(frames.DATA, s, f, d), STREAMS, st.sampled_from([0, 1]), st.binary(max_size=40000)),
    st.builds(lambda s, n: Frame(frames.RST_STREAM, s, number=n), STREAMS, st.integers(0, 11)),
    st.builds(lambda n: Frame(frames.PING, number=n), st.integers(0, 2**32 - 1)),
)


def test_the_dictionary_is_the_one_of_the_specification() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@given(st.lists(FRAMES, max_size=6), st.data())
def test_frames_arrive_whole_however_they_are_cut(sent: list[Frame], data: st.DataObject) -> None:
    encoder, decoder = Encoder(), Decoder()
    stream = b"".join(encoder.encode(frame) for frame in sent)
    found: list[Frame] = []
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        found += decoder.feed(stream[:cut])
        stream = stream[cut:]
    assert found == sent


def bomb() -> bytes:
    """Headers that are small until they are looked at."""
    compressor = zlib.compressobj(zdict=DICTIONARY)
    block = compressor.compress(b"\0" * 50_000_000) + compressor.flush(zlib.Z_SYNC_FLUSH)
    payload = struct.pack(">IIBB", 1, 0, 0, 0) + block
    return struct.pack(">HHI", 0x8003, frames.SYN_STREAM, len(payload)) + payload


def lying(count: int, length: int) -> bytes:
    compressor = zlib.compressobj(zdict=DICTIONARY)
    plain = struct.pack(">II", count, length) + b"x"
    payload = struct.pack(">IIBB", 1, 0, 0, 0) + compressor.compress(plain) + compressor.flush(zlib.Z_SYNC_FLUSH)
    return struct.pack(">HHI", 0x8003, frames.SYN_STREAM, len(payload)) + payload


@pytest.mark.parametrize(
    "sent",
    [
        bomb(),
        lying(2**32 - 1, 1),
        lying(1, 2**32 - 1),
        struct.pack(">HHI", 0x8002, 1, 0),
        struct.pack(">HHI", 0x8003, 1, 4) + b"\0\0\0\1",
        struct.pack(">HHI", 0x8003, 3, 2) + b"\0\0",
        struct.pack(">II", 1, 0xFFFFFF),
        struct.pack(">HHI", 0x8003, 1, 20) + b"\xff" * 20,
    ],
)
def test_frames_that_are_none(sent: bytes) -> None:
    with pytest.raises(SpdyError):
        list(Decoder().feed(sent))


@given(st.binary(max_size=300))
def test_garbage_is_an_error_or_nothing(garbage: bytes) -> None:
    try:
        for frame in Decoder().feed(garbage):
            assert isinstance(frame, Frame)
    except SpdyError:
        return


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[SpdyConnection, SpdyConnection]]:
    near, far = MemoryDuplex.pair()
    client, server = SpdyConnection(near, client=True), SpdyConnection(far)
    reading = [asyncio.ensure_future(one.run()) for one in (client, server)]
    yield client, server
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)


async def test_streams_go_both_ways_and_end_apart() -> None:
    async with connected() as (client, server):
        opened = [await client.open({"streamtype": name}) for name in ("data", "error")]
        accepted = [await server.opened.get() for _ in opened]
        assert [one.headers["streamtype"] for one in accepted if one is not None] == ["data", "error"]
        first = accepted[0]
        assert first is not None
        await opened[0].write(b"question" * 10000)
        await opened[0].write_end()
        got = b""
        while data := await first.read():
            got += data
        assert got == b"question" * 10000
        await first.write(b"answer")
        await first.write_end()
        assert await opened[0].read() == b"answer"
        assert await opened[0].read() == b""
        assert accepted[1] is not None
        await accepted[1].reset()
        assert await opened[1].read() == b""
        with pytest.raises(OSError, match="ended"):
            await opened[1].write(b"x")


async def test_streams_that_nobody_reads_hold_little_together() -> None:
    """However many there are: what one client costs is bounded."""
    async with connected() as (client, server):
        streams = [await client.open({"streamtype": "data"}) for _ in range(100)]
        writing = [asyncio.ensure_future(stream.write(b"x" * (HELD_AT_MOST // 10))) for stream in streams]
        for _ in range(2000):
            await asyncio.sleep(0)
        assert server.held._size < 2 * HELD_AT_MOST
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)


async def test_streams_that_are_opened_and_reset_again_and_again_are_not_kept() -> None:
    async with connected() as (client, server):
        for _ in range(3 * MOST_STREAMS):
            await (await client.open({"streamtype": "data"})).reset()
        for _ in range(100):
            await asyncio.sleep(0)
        assert server.opened.qsize() <= MOST_STREAMS


async def test_who_sends_many_small_frames_lets_others_have_their_turn() -> None:
    near, far = MemoryDuplex.pair()
    await near.write(Encoder().encode(Frame(frames.DATA, 1)) * 8000)
    await near.write_end()
    assert await turns_during(SpdyConnection(far).run()) > 100


async def test_a_stream_that_nobody_reads_holds_no_more_than_its_share() -> None:
    async with connected() as (client, server):
        stream = await client.open({"streamtype": "data"})
        other = await server.opened.get()
        assert other is not None
        writing = asyncio.ensure_future(stream.write(b"x" * 64 * HELD_AT_MOST))
        for _ in range(200):
            await asyncio.sleep(0)
        assert not writing.done()
        got = 0
        while got < 64 * HELD_AT_MOST:
            got += len(await other.read())
        await writing


@pytest.mark.parametrize("number", [2, 4])
async def test_nobody_opens_the_other_ends_streams(number: int) -> None:
    near, far = MemoryDuplex.pair()
    await near.write(Encoder().encode(Frame(frames.SYN_STREAM, number)))
    with pytest.raises(SpdyError, match="not the other end's"):
        await SpdyConnection(far).run()
