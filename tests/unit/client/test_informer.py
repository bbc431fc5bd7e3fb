"""Informers over a scripted client: every change once, in order, through broken and expired watches."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dray.api.generated.core import Pod
from dray.api.meta import ObjectMeta
from dray.api.registry import by_kind
from dray.api.status import ApiError
from dray.client import Informer, ObjectList, WatchEvent, WatchExpired
from dray.client.informer import LISTED_AT_ONCE, put_together
from dray.reconcile import VirtualClock

PODS = by_kind("v1", "Pod")


def pod(name: str, revision: int, uid: str = "", **labels: str) -> Pod:
    meta = ObjectMeta(name=name, namespace="ns", uid=uid or name, resource_version=str(revision), labels=labels)
    return Pod(kind="Pod", api_version="v1", metadata=meta)


class Script:
    """Answers lists and watches from prepared steps; a watch step is events, ended by an exception or by nothing."""

    def __init__(self, lists: list[tuple[list[Pod], str]], watches: list[list[Any]]) -> None:
        self.lists = lists
        self.watches = watches
        self.watched_from: list[str] = []

    async def list(self, *_: Any, **__: Any) -> ObjectList:
        items, revision = self.lists.pop(0)
        return ObjectList(tuple(items), revision)

    async def watch(self, *_: Any, revision: str, **__: Any) -> AsyncIterator[WatchEvent]:
        self.watched_from.append(revision)
        if not self.watches:
            await asyncio.Event().wait()
        for step in self.watches.pop(0):
            if isinstance(step, Exception):
                raise step
            yield WatchEvent(*step)


async def follow(script: Script, seconds: float = 30) -> tuple[Informer[Pod], list[tuple[str | None, str | None]]]:
    seen: list[tuple[str | None, str | None]] = []

    def note(old: Pod | None, new: Pod | None) -> None:
        seen.append(tuple(obj and f"{obj.metadata.name}@{obj.metadata.resource_version}" for obj in (old, new)))  # type: ignore[arg-type]

    clock = VirtualClock()
    informer: Informer[Pod] = Informer(script, PODS, sleep=clock.sleep)  # type: ignore[arg-type]
    informer.add_index("app", lambda found: [found.metadata.labels.get("app", "")])
    informer.on_change(note)
    task = asyncio.get_running_loop().create_task(informer.run())
    await clock.advance(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return informer, seen


async def test_list_then_watch() -> None:
    script = Script(
        [([pod("a", 1)], "5")], [[("ADDED", pod("b", 6)), ("MODIFIED", pod("a", 7)), ("DELETED", pod("b", 8))]]
    )
    informer, seen = await follow(script)
    assert seen == [(None, "a@1"), (None, "b@6"), ("a@1", "a@7"), ("b@8", None)]
    assert [found.metadata.name for found in informer] == ["a"]
    assert informer.has_synced


async def test_a_broken_watch_goes_on_where_it_was() -> None:
    script = Script([([], "5")], [[("ADDED", pod("a", 6)), OSError("reset")], [("MODIFIED", pod("a", 9))]])
    _, seen = await follow(script)
    assert script.watched_from[:3] == ["5", "6", "9"]
    assert seen == [(None, "a@6"), ("a@6", "a@9")]


async def test_an_expired_watch_lists_again_and_tells_only_what_differs() -> None:
    script = Script(
        [([pod("a", 1), pod("b", 2), pod("c", 3)], "5"), ([pod("a", 1), pod("b", 7)], "9")], [[WatchExpired("too old")]]
    )
    _, seen = await follow(script)
    assert seen == [(None, "a@1"), (None, "b@2"), (None, "c@3"), ("c@3", None), ("b@2", "b@7")]


async def test_old_news_are_ignored() -> None:
    """An event that was delivered before, or that a write's answer has overtaken, changes nothing."""
    script = Script([([pod("a", 8)], "8")], [[("MODIFIED", pod("a", 7)), ("MODIFIED", pod("a", 8))]])
    _, seen = await follow(script)
    assert seen == [(None, "a@8")]


async def test_the_delete_of_an_earlier_object_of_that_name_is_ignored() -> None:
    script = Script([([pod("a", 8, uid="second")], "8")], [[("DELETED", pod("a", 9, uid="first"))]])
    informer, _ = await follow(script)
    assert informer.get("ns", "a") is not None


async def test_an_object_that_took_the_place_of_another_unseen_is_a_new_one() -> None:
    first, second = pod("a", 1, uid="first"), pod("a", 8, uid="second")
    script = Script([([first], "5"), ([second], "9")], [[WatchExpired("too old")]])
    _, seen = await follow(script)
    assert seen == [(None, "a@1"), ("a@1", None), (None, "a@8")]


async def test_indexes_follow() -> None:
    script = Script([([pod("a", 1, app="x"), pod("b", 2, app="x")], "5")], [[("MODIFIED", pod("a", 6, app="y"))]])
    informer, _ = await follow(script)
    assert [found.metadata.name for found in informer.by_index("app", "x")] == ["b"]
    assert [found.metadata.name for found in informer.by_index("app", "y")] == ["a"]
    assert informer.by_index("app", "z") == []


async def put_after(script: Script, answer: Pod) -> Informer[Pod]:
    """An informer that was told of an answer to a write when list and watch had told all that they are going to."""
    clock = VirtualClock()
    informer: Informer[Pod] = Informer(script, PODS, sleep=clock.sleep)  # type: ignore[arg-type]
    task = asyncio.get_running_loop().create_task(informer.run())
    await clock.advance(30)
    informer.put(answer)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return informer


async def test_an_answer_that_comes_after_the_news_of_the_deletion_does_not_bring_the_object_back() -> None:
    script = Script([([pod("a", 1)], "5")], [[("MODIFIED", pod("a", 6)), ("DELETED", pod("a", 7))]])
    assert list(await put_after(script, pod("a", 6))) == []


async def test_an_answer_that_is_ahead_of_the_news_is_seen_at_once() -> None:
    informer = await put_after(Script([([pod("a", 1)], "5")], []), pod("b", 6))
    assert [found.metadata.name for found in informer] == ["a", "b"]


async def relist_after_put(list_revision: str, *listed: Pod) -> tuple[list[str], list[str]]:
    """Who is there after a write was answered with b@8 and a list came in; and who was told to be gone on the way."""
    gone: list[str] = []
    clock = VirtualClock()
    script = Script([([pod("a", 1)], "6"), (list(listed), list_revision)], [[WatchExpired()]])
    informer: Informer[Pod] = Informer(script, PODS, sleep=clock.sleep)  # type: ignore[arg-type]
    informer.on_change(lambda old, new: gone.append(old.metadata.name) if old is not None and new is None else None)
    informer.on_change(lambda _, new: informer.put(pod("b", 8)) if new is not None else None)
    task = asyncio.get_running_loop().create_task(informer.run())
    await clock.advance(30)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return [found.metadata.name for found in informer], gone


async def test_a_list_that_is_older_than_an_answer_does_not_take_the_object_away() -> None:
    assert await relist_after_put("7", pod("a", 1)) == (["a", "b"], [])


async def test_a_list_from_a_restored_server_counts_alone() -> None:
    assert await relist_after_put("3", pod("a", 1)) == (["a"], ["b"])


def test_what_one_write_answered_with_is_there_before_anybody_is_told() -> None:
    clock = VirtualClock()
    one, other = (Informer[Pod](Script([], []), PODS, sleep=clock.sleep) for _ in range(2))  # type: ignore[arg-type]
    seen = []
    one.on_change(lambda _, new: seen.append((new and new.metadata.name, other.get("ns", "b") is not None)))
    other.on_change(lambda _, new: seen.append((new and new.metadata.name, one.get("ns", "a") is not None)))
    put_together((one, pod("a", 5)), (other, pod("b", 6)))
    put_together((one, pod("a", 5)), (other, pod("b", 7)))
    assert seen == [("a", True), ("b", True), ("b", True)]


async def test_who_comes_late_hears_of_each_object_once_a_few_at_a_time() -> None:
    informer: Informer[Pod] = Informer(Script([], []), PODS, sleep=VirtualClock().sleep)  # type: ignore[arg-type]
    names = [f"p{number:02}" for number in range(3 * LISTED_AT_ONCE)]
    for name in names:
        informer.put(pod(name, 1))
    seen: list[tuple[str, str]] = []

    def hear(old: Pod | None, new: Pod | None) -> None:
        seen.append((str(old and old.metadata.uid), str(new and f"{new.metadata.uid}@{new.metadata.resource_version}")))

    task = asyncio.get_running_loop().create_task(informer.inform(hear))
    await asyncio.sleep(0)
    assert seen == [("None", f"{name}@1") for name in names[:LISTED_AT_ONCE]]
    del seen[:]
    told, changed, gone, replaced = names[0], *names[-3:]
    informer.put(pod(told, 2))
    informer.put(pod(changed, 2))
    informer._remove(("ns", gone))
    informer.put(pod(replaced, 3, uid="another"))
    informer.put(pod("new", 3))
    assert seen == [(told, f"{told}@2"), ("None", "another@3"), ("None", "new@3")]
    del seen[:]
    await task
    assert seen == [("None", f"{name}@1") for name in names[LISTED_AT_ONCE:-3]] + [("None", f"{changed}@2")]
    informer.put(pod(changed, 4))
    assert seen[-1] == (changed, f"{changed}@4")
    informer.ignore(hear)
    informer.put(pod(changed, 5))
    assert seen[-1] == (changed, f"{changed}@4")


async def test_who_stops_listening_while_it_is_told_hears_nothing_more() -> None:
    informer: Informer[Pod] = Informer(Script([], []), PODS, sleep=VirtualClock().sleep)  # type: ignore[arg-type]
    for number in range(2 * LISTED_AT_ONCE):
        informer.put(pod(f"p{number:02}", 1))
    seen: list[str] = []
    task = asyncio.get_running_loop().create_task(informer.inform(lambda _old, new: seen.append(str(new))))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    informer.put(pod("p00", 2))
    assert len(seen) == LISTED_AT_ONCE


@pytest.mark.parametrize(
    "end",
    [[ApiError(403, "Forbidden", "pods is forbidden")], [OSError("refused")], [WatchExpired("too old")], []],
    ids=["forbidden", "refused", "expired", "cut off"],
)
async def test_a_watch_that_tells_nothing_is_asked_for_less_and_less_often(end: list[Exception]) -> None:
    """An account may list and not watch; a server may be away; somebody in between may cut watches off."""
    script = Script([([], "5")] * 10_000, [end] * 10_000)
    await follow(script, seconds=100)
    assert 5 < len(script.watched_from) < 25


async def test_a_watch_that_told_something_is_taken_up_at_once() -> None:
    script = Script([([], "5")], [[("ADDED", pod(f"p{n}", n)), OSError("reset")] for n in range(6, 1006)])
    informer, _ = await follow(script, seconds=100)
    assert len(informer) == 1000


async def test_that_a_watch_is_refused_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    refused = ApiError(403, "Forbidden", "you may not watch")
    await follow(Script([([], "5")], [[refused], [refused], [OSError("reset")]]))
    assert [record.getMessage() for record in caplog.records] == [
        "cannot watch pods: you may not watch; it is tried again"
    ]
