"""Recordings as files: a header and entries as lines of JSON, compressed as one gzip stream that is flushed often.

A file that was cut off, by a crash or a full disk, is good up to the last flush, and a damaged one up to there; the
last line of a whole one says that it is the end. Lines have one of `set` (an object), `gone`, `listed`, `gap` or `end`;
a line with anything else comes from a newer dray, and is counted and passed over.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from dray.api import codec
from dray.api.meta import Object
from dray.api.registry import Kind
from dray.api.struct import encode_value
from dray.recording.entries import FORMAT, VERSION, Entry, Gap, Gone, Header, Listed, Seen
from dray.recording.essence import RECORDED, essence
from dray.recording.hashed_names import HashedNames

_GZIP: Final = 31
_CHUNK: Final = 256
"""Bytes that are read at a time: so much at most is lost before a place that is damaged."""
LONGEST_LINE: Final = 64 * 1024 * 1024
MOST_LINES: Final = 50_000_000

CUT: Final = "was cut off"

KINDS: Final[dict[str, Kind]] = {kind.kind: kind for kind in RECORDED}


class RecordingError(ValueError):
    """A file that cannot be used; the message names it, says why, and what to do."""


class _Damaged(ValueError):
    """A line that says nothing sensible: what comes after it cannot be trusted."""


class RecordingWriter:
    """Writes a recording. `flush` makes what was written so far safe from a crash of the process.

    Everything raises RecordingError if the file cannot be written.
    """

    def __init__(self, path: Path, header: Header, names: HashedNames | None = None) -> None:
        """Makes the file, which must not exist: it is readable by its owner only. Raises RecordingError."""
        self._path = path
        try:
            self._file: BinaryIO = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        except FileExistsError:
            raise RecordingError(f"{path} exists already. Give another name, or remove it.") from None
        except OSError as error:
            raise self._failure(error) from None
        self._zlib = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
        self._started = header.started
        self._names = names
        self.entries = 0
        self._line(msgspec.to_builtins(header))

    def document(self, obj: Object) -> bytes:
        """What is kept of an object, as it is written."""
        kept = codec.to_builtins(essence(obj))
        return msgspec.json.encode(kept if self._names is None else self._names.document(kept), enc_hook=encode_value)

    def seen(self, document: bytes, now: float) -> None:
        """An object is as `document` says."""
        self._entry(now, {"set": msgspec.Raw(document)})

    def gone(self, kind: Kind, namespace: str, name: str, uid: str, now: float) -> None:
        """An object is gone."""
        hashed = self._names.name if self._names is not None else str
        self._entry(
            now, {"gone": {"kind": kind.kind, "namespace": hashed(namespace), "name": hashed(name), "uid": uid}}
        )

    def listed(self, now: float) -> None:
        """Everything that was there has been told."""
        self._entry(now, {"listed": True})

    def gap(self, kind: Kind, since: float, now: float, *, lost: bool) -> None:
        """A kind was not watched for a while."""
        self._entry(now, {"gap": {"kind": kind.kind, "since": _since(self._started, since), "lost": lost}})

    def flush(self) -> None:
        """Hands everything so far to the system."""
        self._write(self._zlib.flush(zlib.Z_SYNC_FLUSH))
        try:
            self._file.flush()
        except OSError as error:
            raise self._failure(error) from None

    def close(self, now: float) -> None:
        """Says that this is the end."""
        self._entry(now, {"end": True})
        self._write(self._zlib.flush(zlib.Z_FINISH))
        self._file.close()

    def _entry(self, now: float, content: dict[str, Any]) -> None:
        self.entries += 1
        self._line({"t": _since(self._started, now), **content})

    def _line(self, value: Any) -> None:
        self._write(self._zlib.compress(msgspec.json.encode(value) + b"\n"))

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> RecordingError:
        return RecordingError(f"{self._path} cannot be written: {(error.strerror or str(error)).lower()}.")


def _since(started: float, now: float) -> float:
    return round(max(now - started, 0.0), 3)


class Recording(msgspec.Struct):
    """What a file says. `problems` are sentences about what is missing in it."""

    header: Header
    entries: list[Entry]
    ended: float
    """Until when it goes, in seconds since 1970."""
    problems: list[str]


class _Gone(msgspec.Struct):
    kind: str
    namespace: str
    name: str
    uid: str


class _Gap(msgspec.Struct):
    kind: str
    since: float
    lost: bool


class _Line(msgspec.Struct):
    t: float
    set: msgspec.Raw = msgspec.Raw()
    gone: _Gone | None = None
    gap: _Gap | None = None
    listed: bool = False
    end: bool = False


class _Type(msgspec.Struct):
    kind: str = ""


_line_decoder: Final = msgspec.json.Decoder(_Line)
_type_decoder: Final = msgspec.json.Decoder(_Type)


def read_recording(path: Path) -> Recording:
    """Everything in a file; of one that was cut off or is damaged, what is there. Raises RecordingError."""
    try:
        with path.open("rb") as file:
            return _Reader(path, file).read()
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}.") from None


class _Reader:
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._broken = ""
        self._last = 0.0
        self._is_whole = False
        self._strange: Counter[str] = Counter()

    def read(self) -> Recording:
        lines = enumerate(self._lines(), 1)
        header = self._header(next(lines, (1, b""))[1])
        entries: list[Entry] = []
        for number, line in lines:
            if number > MOST_LINES:
                raise RecordingError(f"{self._path} has more than {MOST_LINES} lines.")
            try:
                entry = self._entry(line, header)
            except _Damaged as error:
                self._broken = f"is damaged in line {number} ({error})"
                break
            if entry is not None:
                entries.append(entry)
        if not any(isinstance(entry, Listed) for entry in entries):
            broken = self._broken or CUT
            raise RecordingError(f"{self._path} {broken} before the cluster had been read once. Record it again.")
        return Recording(header, entries, self._last, list(self._problems(entries, header)))

    def _header(self, line: bytes) -> Header:
        try:
            found = msgspec.json.decode(line, type=Header)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            found = None
        if found is None or found.format != FORMAT:
            raise RecordingError(f"{self._path} is not a recording. Make one with: dray record FILE")
        if found.version > VERSION:
            raise RecordingError(
                f"{self._path} is a recording of version {found.version}, and this dray knows {VERSION}. "
                "Replay it with the dray that made it, or a newer one."
            )
        return found

    def _entry(self, line: bytes, header: Header) -> Entry | None:
        try:
            found = _line_decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise _Damaged(error) from None
        at = header.started + found.t
        seen = self._seen(at, bytes(found.set)) if found.set else None
        self._last = max(self._last, at)
        if found.set:
            return seen
        if found.gone is not None:
            one = found.gone
            return Gone(at, one.kind, one.namespace, one.name, one.uid) if self._knows(one.kind) else None
        if found.gap is not None:
            gap = found.gap
            return Gap(at, gap.kind, header.started + gap.since, gap.lost) if self._knows(gap.kind) else None
        if found.end:
            self._is_whole = True
        elif not found.listed:
            self._strange["unknown"] += 1
        return Listed(at) if found.listed else None

    def _seen(self, at: float, data: bytes) -> Seen | None:
        try:
            kind = _type_decoder.decode(data).kind
            if not self._knows(kind):
                return None
            reading = codec.read_json(data, KINDS[kind].hub, find_duplicates=False)
        except (msgspec.DecodeError, codec.DecodeError, UnicodeError, RecursionError) as error:
            raise _Damaged(error) from None
        if reading.obj is None:
            raise _Damaged("; ".join(map(str, reading.errors)))
        return Seen(at, reading.obj)

    def _knows(self, kind: str) -> bool:
        if kind in KINDS:
            return True
        self._strange[kind or "unknown"] += 1
        return False

    def _problems(self, entries: list[Entry], header: Header) -> Iterator[str]:
        if self._broken or not self._is_whole:
            yield f"{self._path} {self._broken or CUT}: it is read up to second {self._last - header.started:.0f}"
        if self._strange:
            kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(self._strange.items()))
            yield f"passed over what this dray does not know: {kinds}"
        if header.left_out:
            yield f"could not be read when this was recorded, and is missing: {', '.join(header.left_out)}"
        lost = [entry for entry in entries if isinstance(entry, Gap) and entry.lost]
        if lost:
            seconds = sum(gap.at - gap.since for gap in lost)
            yield f"in {len(lost)} gaps of {seconds:.0f} s together changes may have been missed"

    def _lines(self) -> Iterator[bytes]:
        """The lines, as far as they can be read."""
        unzip = zlib.decompressobj(_GZIP)
        rest = b""
        while not unzip.eof and (chunk := self._file.read(_CHUNK)):
            while chunk:
                try:
                    text = unzip.decompress(chunk, LONGEST_LINE)
                except zlib.error:
                    self._broken = f"{CUT} or damaged"
                    return
                chunk = unzip.unconsumed_tail
                *lines, rest = (rest + text).split(b"\n")
                yield from lines
                if len(rest) > LONGEST_LINE:
                    raise RecordingError(f"{self._path} has a line of more than {LONGEST_LINE} bytes.")
