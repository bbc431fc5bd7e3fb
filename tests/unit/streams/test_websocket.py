"""WebSockets: frames in any pieces, messages in order, and no patience with those who do not speak it."""

from __future__ import annotations

import asyncio
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dray.process.http import Peer, Request
from dray.streams import websocket
from dray.streams.held import HELD_AT_MOST, PIECE_BYTES
from dray.streams.sessions import ChannelSession, Session, WantedStreams
from dray.streams.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Frames, ProtocolError, WebSocket
from duplex_pair import MemoryDuplex, turns_during
from loop_turns import LoopTurns

MASK = b"\x01\x02\x03\x04"
LONGEST_TURN = 0.02
"""Seconds of processor time."""


def masked(opcode: int, data: bytes, *, final: bool = True) -> bytes:
    """A frame as a client sends it."""
    head = (0x80 if final else 0) | opcode
    length = len(data)
    if length < 126:
        size = bytes((0x80 | length,))
    elif length < 65536:
        size = struct.pack(">BH", 0x80 | 126, length)
    else:
        size = struct.pack(">BQ", 0x80 | 127, length)
    return bytes((head,)) + size + MASK + websocket.unmask(data, MASK)


FRAMES = st.one_of(
    st.tuples(st.sampled_from([TEXT, BINARY]), st.binary(max_size=70000)),
    st.tuples(st.just(PING), st.binary(max_size=125)),
)


@given(st.lists(FRAMES, max_size=4), st.data())
def test_frames_arrive_whole_however_they_are_cut(sent: list[tuple[int, bytes]], data: st.DataObject) -> None:
    stream = b"".join(masked(opcode, body) for opcode, body in sent)
    frames, found = Frames(), list[websocket.Frame]()
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        found += frames.feed(stream[:cut])
        stream = stream[cut:]
    whole: list[tuple[int, bytes]] = []
    for frame in found:
        if frame.opcode == CONTINUATION:
            opcode, before = whole.pop()
            whole.append((opcode, before + frame.data))
        else:
            whole.append((frame.opcode, frame.data))
    assert whole == sent
    assert sum(frame.final for frame in found) == len(sent)


@pytest.mark.parametrize(
    "bytes_",
    [
        b"\x82\x01x",  # not masked
        b"\xc2\x80\0\0\0\0",  # with an extension
        struct.pack(">BBQ", 0x82, 0xFF, 1 << 40),  # as long as a disk
    ],
)
def test_frames_that_are_none(bytes_: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(Frames().feed(bytes_ + b"\0" * 16))


async def test_who_sends_many_small_frames_lets_others_have_their_turn() -> None:
    near, far = MemoryDuplex.pair()
    small = masked(TEXT, b"", final=False) + masked(CONTINUATION, b"", final=False) * 10000
    await far.write(small + masked(CONTINUATION, b"end"))
    assert await turns_during(WebSocket(near).receive()) > 30


@pytest.mark.parametrize("small", [masked(BINARY, b"x"), masked(PING, b"")], ids=["messages", "pings"])
async def test_frames_of_one_read_are_looked_for_as_they_are_taken(small: bytes) -> None:
    """Also if a read holds very many of the smallest."""
    near, far = MemoryDuplex.pair()
    socket = WebSocket(near)
    sent = 50_000

    async def send() -> None:
        await far.write(small * sent)
        await far.write_end()

    async def receive() -> None:
        while await socket.receive() is not None:
            pass

    async def read() -> None:
        while await far.read():
            pass

    reading, sending = asyncio.create_task(read()), asyncio.create_task(send())
    turns = LoopTurns(asyncio.get_running_loop())
    await asyncio.sleep(0)
    turns.reset()
    await receive()
    await sending
    reading.cancel()
    assert turns.longest < LONGEST_TURN


async def test_of_the_sizes_of_a_window_the_newest_is_kept() -> None:
    """Also of one who sends sizes to a command without a terminal, where nobody asks for them."""
    near, far = MemoryDuplex.pair()
    session = ChannelSession(WebSocket(near), "v4.channel.k8s.io", WantedStreams(stdout=True))

    async def serve(served: Session) -> None:
        for number in range(1000):
            await far.write(masked(BINARY, b'\x04{"Width":%d,"Height":1}' % number))
        await far.write_end()
        await served.gone()
        assert session._inputs.sizes.qsize() == 1

    await session.run(serve)


async def test_messages_in_pieces_pings_in_between_and_a_goodbye() -> None:
    near, far = MemoryDuplex.pair()
    socket = WebSocket(near)
    await far.write(masked(TEXT, b"one ", final=False) + masked(PING, b"there?") + masked(CONTINUATION, b"message"))
    assert await socket.receive() == b"one message"
    assert await far.read() == bytes((0x80 | PONG, 6)) + b"there?"
    await socket.send(b"answer")
    assert await far.read() == bytes((0x80 | BINARY, 6)) + b"answer"
    closing = asyncio.ensure_future(socket.close())
    assert (await far.read())[0] == 0x80 | CLOSE
    await far.write(masked(CLOSE, b""))
    await closing
    with pytest.raises(OSError, match="closed"):
        await socket.send(b"more")


@pytest.mark.parametrize("sent", [masked(CONTINUATION, b"x"), masked(TEXT, b"x", final=False) + masked(TEXT, b"y")])
async def test_messages_that_are_none(sent: bytes) -> None:
    near, far = MemoryDuplex.pair()
    await far.write(sent)
    with pytest.raises(ProtocolError):
        await WebSocket(near).receive()


async def test_a_message_without_end_is_not_held() -> None:
    near, far = MemoryDuplex.pair()
    socket = WebSocket(near)
    piece = masked(CONTINUATION, b"x" * 65536, final=False)

    async def send() -> None:
        await far.write(masked(BINARY, b"", final=False))
        for _ in range(1000):
            await far.write(piece)

    sending = asyncio.ensure_future(send())
    with pytest.raises(ProtocolError, match="too long"):
        await socket.receive()
    sending.cancel()


def request(**headers: str) -> Request:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request("GET", "/", {}, sent, b"", Peer(""))


def test_the_handshake() -> None:
    good = request(
        upgrade="websocket",
        sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==",
        sec_websocket_version="13",
        sec_websocket_protocol="v9.x, v5.channel.k8s.io",
    )
    assert websocket.is_asked_for(good)
    assert websocket.choose(good, ("v4.channel.k8s.io", "v5.channel.k8s.io")) == "v5.channel.k8s.io"
    assert websocket.choose(good, ("v4.channel.k8s.io",)) is None
    assert websocket.accept_headers(good, "v5.channel.k8s.io") == (
        ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ("Sec-WebSocket-Protocol", "v5.channel.k8s.io"),
    )
    assert websocket.choose(request(upgrade="websocket"), ("x",)) == ""
    assert websocket.accept_headers(request(upgrade="websocket"), "") is None
    assert not websocket.is_asked_for(request(upgrade="h2c"))


@pytest.mark.parametrize(
    "bytes_",
    [
        masked(PING, b"x" * 126),
        masked(CLOSE, b"x" * 70_000),
        masked(PONG, b"", final=False),
        masked(3, b"x"),
        masked(0xB, b"x"),
    ],
    ids=["long ping", "long close", "pong in pieces", "no known message", "no known control"],
)
def test_control_frames_are_short_and_whole(bytes_: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(Frames().feed(bytes_))


@pytest.mark.parametrize("size", [1, 1000, websocket.LONGEST_MESSAGE - 1])
async def test_what_is_typed_and_nobody_reads_is_bounded_in_bytes(size: int) -> None:
    """However it is cut into messages."""
    near, far = MemoryDuplex.pair()
    session = ChannelSession(WebSocket(near), "v4.channel.k8s.io", WantedStreams(stdin=True))
    message = masked(BINARY, b"\0" + b"x" * size)
    together = message * max(1, 65536 // len(message))

    async def flood() -> None:
        while True:
            await far.write(together)

    async def serve(_session: Session) -> None:
        for _ in range(3000):
            await asyncio.sleep(0)

    flooding = asyncio.ensure_future(flood())
    await session.run(serve)
    flooding.cancel()
    pieces = session._inputs.typed._pieces
    assert sum(len(one) + PIECE_BYTES for one in pieces) < HELD_AT_MOST + size + 2 * PIECE_BYTES
