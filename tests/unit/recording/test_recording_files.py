"""Recordings as files: whole ones, cut ones, damaged ones, those of others."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from dray.api import kinds
from dray.recording import Gap, Gone, Header, Listed, RecordingError, RecordingWriter, Seen, read_recording
from dray.recording.entries import FORMAT, VERSION
from local_server import typed

START = 1_750_000_000.0
HEADER = Header(format=FORMAT, version=VERSION, started=START)


def node(name: str, **labels: str) -> Any:
    return typed({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": name, "labels": labels}})


def write(path: Path, changes: int = 3) -> RecordingWriter:
    """Two nodes, then changes of one, each flushed."""
    writer = RecordingWriter(path, HEADER)
    for name in ("a", "b"):
        writer.seen(writer.document(node(name)), START + 1)
    writer.listed(START + 2)
    for number in range(changes):
        writer.seen(
            writer.document(node("a", n=str(number), salt=hashlib.md5(bytes([number])).hexdigest())), START + 3 + number
        )
        writer.flush()
    return writer


def lines(path: Path, *documents: Any) -> Path:
    path.write_bytes(gzip.compress(b"".join(json.dumps(one).encode() + b"\n" for one in documents)))
    return path


HEAD = {"format": FORMAT, "version": VERSION, "started": START}
LISTED = {"t": 1.0, "listed": True}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    writer = write(tmp_path / "r")
    writer.gap(kinds.PODS, START + 6, START + 8, lost=True)
    writer.gone(kinds.NODES, "", "b", "b", START + 9.5)
    writer.close(START + 20)
    found = read_recording(tmp_path / "r")
    assert found.header == HEADER
    assert [type(one) for one in found.entries] == [Seen, Seen, Listed, Seen, Seen, Seen, Gap, Gone]
    assert found.entries[-1] == Gone(START + 9.5, "Node", "", "b", "b")
    assert found.ended == START + 20
    assert found.problems == ["in 1 gaps of 2 s together changes may have been missed"]
    assert (tmp_path / "r").stat().st_mode & 0o77 == 0, "others have no business with it"


def test_a_file_that_was_cut_off_is_read_up_to_there_wherever_it_was_cut(tmp_path: Path) -> None:
    writer = write(tmp_path / "r", changes=8)
    writer.close(START + 20)
    data = (tmp_path / "r").read_bytes()
    cut, seen = tmp_path / "cut", set()
    for length in range(0, len(data) - 20, 7):
        cut.write_bytes(data[:length])
        try:
            found = read_recording(cut)
        except RecordingError as error:
            assert "not a recording" in str(error) or "cut off before" in str(error)
            continue
        assert len(found.problems) == 1
        assert "was cut off: it is read up to second" in found.problems[0]
        seen.add(len(found.entries))
    assert {4, 5, 6, 7, 8, 9, 10} <= seen, "every flush is a place up to which it can be read"


def test_a_crash_leaves_what_was_flushed(tmp_path: Path) -> None:
    writer = write(tmp_path / "r")
    writer.seen(writer.document(node("never-flushed")), START + 9)
    assert len(read_recording(tmp_path / "r").entries) == 6
    writer.close(START + 10)


def test_a_damaged_file_is_read_up_to_there(tmp_path: Path) -> None:
    write(tmp_path / "r", changes=50).close(START + 100)
    data = bytearray((tmp_path / "r").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = b"\xff" * 40
    (tmp_path / "r").write_bytes(data)
    found = read_recording(tmp_path / "r")
    assert "was cut off or damaged" in found.problems[0]
    assert 10 < len(found.entries) < 40


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is not a recording. Make one with: dray record FILE"),
        (b"apiVersion: v1\nkind: Pod\n", "is not a recording"),
        (gzip.compress(b"hello\n", mtime=0), "is not a recording"),
        (gzip.compress(b'{"format": "other", "version": 1, "started": 0}\n', mtime=0), "is not a recording"),
        (
            gzip.compress(b'{"format": "dray-recording", "version": 99, "started": 0}\n', mtime=0),
            "of version 99, and this dray knows 1",
        ),
        (
            gzip.compress(json.dumps(HEAD).encode() + b"\n", mtime=0),
            "was cut off before the cluster had been read once",
        ),
    ],
    ids=["empty", "manifest", "other text", "other format", "newer version", "cut off"],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(RecordingError, match=why):
        read_recording(tmp_path / "r")


def test_what_is_not_there_or_there_already_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot be read: no such file"):
        read_recording(tmp_path / "nothing")
    (tmp_path / "r").write_text("mine")
    with pytest.raises(RecordingError, match="exists already"):
        RecordingWriter(tmp_path / "r", HEADER)
    assert (tmp_path / "r").read_text() == "mine"
    with pytest.raises(RecordingError, match="cannot be written: no such file"):
        RecordingWriter(tmp_path / "missing" / "r", HEADER)


def test_what_a_newer_dray_has_written_is_passed_over_and_counted(tmp_path: Path) -> None:
    strange = [
        {"t": 0.5, "set": {"kind": "Gadget", "apiVersion": "v9"}},
        {"t": 2, "gone": {"kind": "Gadget", "namespace": "", "name": "a", "uid": "u"}},
        {"t": 2, "weather": "fine"},
    ]
    found = read_recording(lines(tmp_path / "r", HEAD, LISTED, *strange, {"t": 3, "end": True}))
    assert found.problems == ["passed over what this dray does not know: Gadget (2), unknown (1)"]
    assert len(found.entries) == 1


@pytest.mark.parametrize("line", [{"set": {}}, {"t": "soon"}, {"t": 1, "set": {"kind": "Node", "metadata": 7}}, [1]])
def test_a_line_that_says_nothing_sensible_is_named_and_the_end(tmp_path: Path, line: Any) -> None:
    after = {"t": 9, "set": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "after"}}}
    found = read_recording(lines(tmp_path / "r", HEAD, LISTED, line, after, {"t": 10, "end": True}))
    assert [type(entry).__name__ for entry in found.entries] == ["Listed"]
    assert "is damaged in line 3 (" in found.problems[0]
    assert found.ended < found.header.started + 9, "what comes after it is not trusted"
    with pytest.raises(RecordingError, match=r"is damaged in line 2 \(.*\) before the cluster had been read once"):
        read_recording(lines(tmp_path / "early", HEAD, line, LISTED))


def test_kinds_that_could_not_be_read_are_told(tmp_path: Path) -> None:
    found = read_recording(
        lines(tmp_path / "r", {**HEAD, "leftOut": ["devicetaintrules"]}, LISTED, {"t": 2, "end": True})
    )
    assert found.problems == ["could not be read when this was recorded, and is missing: devicetaintrules"]
