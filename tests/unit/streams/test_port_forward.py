"""Ports over WebSockets and SPDY: what a client costs is bounded, however many connections it opens and gives up."""

from __future__ import annotations

import asyncio
import struct

from dray.process.http import Duplex
from dray.streams import spdy_frames as frames
from dray.streams import websocket
from dray.streams.held import HELD_AT_MOST, PIECE_BYTES
from dray.streams.port_forward import MOST_AT_WORK, Channels, Pairs
from dray.streams.sessions import RESIZE, StreamSession, WantedStreams
from dray.streams.spdy import SpdyConnection
from dray.streams.spdy_frames import Encoder, Frame
from dray.streams.websocket import BINARY, WebSocket
from duplex_pair import MemoryDuplex, turns_during

MASK = b"\x01\x02\x03\x04"


def masked(data: bytes) -> bytes:
    """A message as a client sends it."""
    return bytes((0x80 | BINARY,)) + struct.pack(">BH", 0x80 | 126, len(data)) + MASK + websocket.unmask(data, MASK)


async def some_turns(count: int = 3000) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_ports_that_nobody_reads_from_hold_little_together() -> None:
    near, far = MemoryDuplex.pair()

    async def connect(_port: int) -> Duplex:
        await asyncio.Event().wait()  # a container that listens and accepts nobody
        raise AssertionError

    channels = Channels(WebSocket(near), list(range(1, 65)), connect)
    running = asyncio.ensure_future(channels.run())

    async def flood() -> None:
        while True:
            for port in range(64):
                await far.write(masked(bytes((2 * port,)) + b"x" * 60_000))

    flooding = asyncio.ensure_future(flood())
    await some_turns()
    held = [piece for pieces in channels._incoming for piece in pieces._pieces]
    assert sum(len(piece) + PIECE_BYTES for piece in held) < HELD_AT_MOST + 2 * 60_000
    flooding.cancel()
    running.cancel()
    await asyncio.gather(flooding, running, return_exceptions=True)


async def test_pairs_that_a_client_gives_up_at_once_are_few_at_a_time() -> None:
    """While a connection is being made, nobody is told that it is not wanted any more."""
    near, far = MemoryDuplex.pair()
    tried = 0

    async def connect(_port: int) -> Duplex:
        nonlocal tried
        tried += 1
        await asyncio.Event().wait()
        raise AssertionError

    pairs = Pairs(SpdyConnection(near), connect)
    running = asyncio.ensure_future(pairs.run())
    encoder = Encoder()

    async def flood() -> None:
        for number in range(1, 12_000, 4):
            for stream, kind in ((number, "error"), (number + 2, "data")):
                headers = {"streamtype": kind, "port": "80", "requestid": str(number)}
                await far.write(encoder.encode(Frame(frames.SYN_STREAM, stream, headers=headers)))
            for stream in (number, number + 2):
                await far.write(encoder.encode(Frame(frames.RST_STREAM, stream, number=5)))

    async def read() -> None:
        while await far.read():
            pass

    reading = asyncio.ensure_future(read())
    await flood()
    await some_turns()
    assert 0 < tried <= MOST_AT_WORK
    assert len(pairs._tasks) <= MOST_AT_WORK + 1
    for task in (reading, running):
        task.cancel()
    await asyncio.gather(reading, running, return_exceptions=True)


async def test_sizes_of_a_window_are_not_looked_at_one_by_one() -> None:
    """The newest counts. A client may send more of them at once than can be read in a turn."""
    near, _far = MemoryDuplex.pair()
    session = StreamSession(SpdyConnection(near), "v4.channel.k8s.io", WantedStreams(stdout=True, tty=True))
    taken = 0
    take = session._inputs.take

    async def counted(channel: int, data: bytes) -> None:
        nonlocal taken
        taken += 1
        await take(channel, data)

    session._inputs.take = counted  # type: ignore[method-assign]

    class Resizing:
        def __init__(self) -> None:
            self._left = [b'{"Width":1,"Height":1}\n' * 10_000 + b'{"Width":80,"Height":24}\n']

        async def read(self) -> bytes:
            return self._left.pop() if self._left else b""

    session._streams[RESIZE] = Resizing()  # type: ignore[assignment]
    await turns_during(session._follow(RESIZE))
    assert taken == 1
    size = await session.read_size()
    assert size is not None
    assert (size.width, size.height) == (80, 24)
