"""Following a cluster: nothing is lost without a mark, whatever becomes of watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from dray.api import kinds
from dray.api.status import ApiError
from dray.client import WatchExpired
from dray.client.interface import ObjectList, WatchEvent
from dray.process import virtual_loop
from dray.process.virtual_loop import LoopClock
from dray.recording import Gap, Gone, Header, Recorder, Recording, RecordingWriter, Seen, read_recording
from dray.recording.entries import FORMAT, VERSION
from local_server import typed

Act = WatchEvent | Exception | float


def node(name: str, revision: int, **labels: str) -> Any:
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(revision), "labels": labels}
    return typed({"apiVersion": "v1", "kind": "Node", "metadata": meta})


class ScriptedClient:
    """Lists and watches of nodes as a script has them; there is nothing else."""

    def __init__(self, lists: list[list[Any]], watches: list[list[Act]]) -> None:
        self.lists = lists
        self.watches = watches
        self.asked: list[str] = []

    async def list(self, kind: Any, _namespace: str = "", **_more: str) -> ObjectList:
        if kind is kinds.PATCHES:
            raise ApiError(404, "NotFound", "no such kind")
        if kind is kinds.RULES:
            raise ApiError(403, "Forbidden", "not you")
        return ObjectList(tuple(self.lists.pop(0) if kind is kinds.NODES and self.lists else ()), "10")

    async def watch(self, kind: Any, *, revision: str, **_more: str) -> AsyncIterator[WatchEvent]:
        if kind is kinds.NODES and self.watches:
            self.asked.append(revision)
            for act in self.watches.pop(0):
                if isinstance(act, Exception):
                    raise act
                if isinstance(act, float):
                    await asyncio.sleep(act)
                else:
                    yield act
            return
        await asyncio.sleep(10_000)


def record(client: ScriptedClient, path: Path, seconds: float = 100.0) -> tuple[Recording, list[str]]:
    said: list[str] = []

    async def main() -> None:
        clock = LoopClock()
        recorder = Recorder(client, clock, report=said.append)  # type: ignore[arg-type]  # the rest is not called
        there, forbidden = await recorder.readable()
        assert kinds.PATCHES not in there
        assert forbidden == [kinds.RULES]
        writer = RecordingWriter(path, Header(format=FORMAT, version=VERSION, started=clock.now()))
        await recorder.start(there, writer)
        task = asyncio.create_task(recorder.run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        writer.close(clock.now())

    virtual_loop.run(main())
    return read_recording(path), said


def told(recording: Recording) -> list[str]:
    """What is in a recording, in short."""
    found = []
    for entry in recording.entries:
        if isinstance(entry, Seen):
            found.append(f"{entry.object.metadata.name} {entry.object.metadata.labels}")
        elif isinstance(entry, Gone):
            found.append(f"-{entry.name}")
        elif isinstance(entry, Gap):
            found.append("lost" if entry.lost else "late")
        else:
            found.append("listed")
    return found


def event(kind: str, obj: Any) -> WatchEvent:
    return WatchEvent(kind, obj)


def test_changes_are_kept_and_what_changes_nothing_is_not(tmp_path: Path) -> None:
    watch: list[Act] = [
        event("MODIFIED", node("a", 11)),
        event("MODIFIED", node("a", 12, x="1")),
        event("BOOKMARK", node("", 15)),
        event("ADDED", node("b", 16)),
        event("DELETED", node("a", 17)),
        1000.0,
    ]
    recording, said = record(ScriptedClient([[node("a", 5)]], [watch]), tmp_path / "r")
    assert told(recording) == ["a {}", "listed", "a {'x': '1'}", "b {}", "-a"]
    assert said == []


def test_a_watch_that_breaks_is_resumed_and_what_came_late_is_marked(tmp_path: Path) -> None:
    client = ScriptedClient(
        [[node("a", 5)]],
        [
            [event("MODIFIED", node("a", 12, x="1")), ConnectionResetError("reset")],
            [TimeoutError("nothing heard")],
            [30.0, ConnectionResetError("again")],
            [event("MODIFIED", node("a", 13, x="2")), 1000.0],
        ],
    )
    recording, said = record(client, tmp_path / "r")
    assert client.asked == ["10", "12", "12", "12"]
    assert [one for one in told(recording) if one not in ("lost", "late")] == [
        "a {}",
        "listed",
        "a {'x': '1'}",
        "a {'x': '2'}",
    ]
    assert "lost" not in told(recording)
    assert len(said) == 3


def test_a_long_silence_is_marked_as_late(tmp_path: Path) -> None:
    client = ScriptedClient(
        [[node("a", 5)]],
        [
            [event("MODIFIED", node("a", 12, x="1")), 40.0, TimeoutError()],
            [event("MODIFIED", node("a", 13, x="2")), 1000.0],
        ],
    )
    recording, _ = record(client, tmp_path / "r")
    assert told(recording) == ["a {}", "listed", "a {'x': '1'}", "late", "a {'x': '2'}"]
    gap = next(entry for entry in recording.entries if isinstance(entry, Gap))
    assert 40 <= gap.at - gap.since <= 41


def test_a_watch_that_expired_is_a_gap_and_a_list_tells_what_is_different(tmp_path: Path) -> None:
    client = ScriptedClient(
        [[node("a", 5), node("b", 6), node("c", 7)], [node("a", 5), node("b", 20, x="9"), node("d", 21)]],
        [[20.0, WatchExpired("too old")], [event("ADDED", node("e", 22)), 1000.0]],
    )
    recording, _ = record(client, tmp_path / "r")
    assert told(recording) == ["a {}", "b {}", "c {}", "listed", "lost", "-c", "b {'x': '9'}", "d {}", "e {}"]
    assert client.asked == ["10", "10"]


def test_an_object_that_was_replaced_by_another_of_its_name_is_gone_first(tmp_path: Path) -> None:
    other = node("a", 20)
    other = typed(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "uid": "other", "resourceVersion": "20"}}
    )
    client = ScriptedClient([[node("a", 5)]], [[event("ADDED", other), 1000.0]])
    recording, _ = record(client, tmp_path / "r")
    assert told(recording) == ["a {}", "listed", "-a", "a {}"]
