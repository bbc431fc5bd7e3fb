"""SPDY/3.1 as bytes: frames, and the name/value blocks in them, compressed over the whole connection. Pure."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

VERSION: Final = 3
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
DATA: Final = 0
FIN: Final = 1
LONGEST_FRAME: Final = 1024 * 1024
LONGEST_BLOCK: Final = 2 * 1024
MOST_HEADERS: Final = 16
"""Of a stream, which keeps them: there may be many streams, and a few bytes of a frame can become long headers."""

_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status"
)
_MORE: Final = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_PLAIN: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY: Final = (
    b"".join(struct.pack(">I", len(word)) + word.encode() for word in (*_WORDS.split(), *_MORE)) + _PLAIN.encode()
)
"""What both ends begin to compress with, as SPDY/3 has it: names after their lengths, then values."""


class SpdyError(OSError):
    """The other end does not speak the protocol."""


class Frame(msgspec.Struct, frozen=True):
    """A frame. `type` is DATA for data; `stream` is 0 for what concerns the connection."""

    type: int
    stream: int = 0
    flags: int = 0
    data: bytes = b""
    headers: dict[str, str] = {}
    number: int = 0
    """Status of a reset or goaway, id of a ping."""


class Encoder:
    """Frames in, bytes out, in the order in which they are sent."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(zdict=DICTIONARY)

    def encode(self, frame: Frame) -> bytes:
        """A frame as bytes. Each is to be sent, for the next one is compressed with what this one was."""
        if frame.type == DATA:
            return struct.pack(">II", frame.stream, frame.flags << 24 | len(frame.data)) + frame.data
        return _control(frame.type, frame.flags, self._payload(frame))

    def _payload(self, frame: Frame) -> bytes:
        if frame.type == SYN_STREAM:
            return struct.pack(">IIBB", frame.stream, 0, 0, 0) + self._block(frame.headers)
        if frame.type in (SYN_REPLY, HEADERS):
            return struct.pack(">I", frame.stream) + self._block(frame.headers)
        if frame.type in (RST_STREAM, GOAWAY, WINDOW_UPDATE):
            return struct.pack(">II", frame.stream, frame.number)
        if frame.type == PING:
            return struct.pack(">I", frame.number)
        return frame.data

    def _block(self, headers: Mapping[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for text in (name.lower().encode("latin-1"), value.encode("latin-1")):
                plain += struct.pack(">I", len(text)) + text
        return self._compressor.compress(plain) + self._compressor.flush(zlib.Z_SYNC_FLUSH)


class Decoder:
    """Bytes in, frames out."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._decompressor = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete now. Raises SpdyError."""
        self._held += data
        start = 0
        try:
            while len(self._held) >= start + 8:
                first, second = struct.unpack_from(">II", self._held, start)
                end = start + 8 + (second & 0xFFFFFF)
                if end - start - 8 > LONGEST_FRAME:
                    raise SpdyError(f"a frame of {end - start - 8} bytes is too long")
                if len(self._held) < end:
                    return
                payload, start = bytes(self._held[start + 8 : end]), end
                if not first >> 31:
                    yield Frame(DATA, first, second >> 24, payload)
                elif first >> 16 & 0x7FFF != VERSION:
                    raise SpdyError(f"version {first >> 16 & 0x7FFF} of SPDY is not {VERSION}")
                else:
                    yield self._frame(first & 0xFFFF, second >> 24, payload)
        finally:
            del self._held[:start]

    def _frame(self, type_: int, flags: int, payload: bytes) -> Frame:
        try:
            if type_ == SYN_STREAM:
                (stream,) = struct.unpack_from(">I", payload)
                return Frame(type_, stream & 0x7FFFFFFF, flags, headers=self._headers(payload[10:]))
            if type_ in (SYN_REPLY, HEADERS):
                (stream,) = struct.unpack_from(">I", payload)
                return Frame(type_, stream & 0x7FFFFFFF, flags, headers=self._headers(payload[4:]))
            if type_ in (RST_STREAM, GOAWAY, WINDOW_UPDATE):
                stream, number = struct.unpack_from(">II", payload)
                return Frame(type_, stream & 0x7FFFFFFF, flags, number=number)
            if type_ == PING:
                return Frame(type_, 0, flags, number=struct.unpack_from(">I", payload)[0])
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise SpdyError(f"a frame of type {type_} cannot be read: {error}") from None
        return Frame(type_, 0, flags, payload)

    def _headers(self, block: bytes) -> dict[str, str]:
        plain = self._decompressor.decompress(block, LONGEST_BLOCK)
        if self._decompressor.unconsumed_tail:
            raise SpdyError(f"headers have at most {LONGEST_BLOCK} bytes")
        (count,), at = struct.unpack_from(">I", plain), 4
        if count > MOST_HEADERS:
            raise SpdyError(f"a stream has at most {MOST_HEADERS} headers")
        texts = []
        for _ in range(2 * count):
            (length,) = struct.unpack_from(">I", plain, at)
            if length > len(plain) - at - 4:
                raise SpdyError("a header is longer than the frame that it is in")
            texts.append(plain[at + 4 : at + 4 + length].decode("latin-1"))
            at += 4 + length
        return dict(zip(texts[::2], texts[1::2], strict=True))


def _control(type_: int, flags: int, payload: bytes) -> bytes:
    return struct.pack(">HHI", 0x8000 | VERSION, type_, flags << 24 | len(payload)) + payload
