"""Lists: order, namespaces, pages, and the state at an earlier revision."""

from __future__ import annotations

import pytest

from dray.store import Expired, FutureRevision, Key, Listing, LocalStore, MemoryBackend, Retention, Store
from store_objects import made


def names(listing: Listing) -> list[str]:
    return [f"{record.key.namespace}/{record.key.name}" for record in listing.records]


async def fill(store: Store, *names: str) -> None:
    for name in names:
        namespace, _, rest = name.partition("/")
        await store.create(Key("pods", namespace, rest), made(name))


async def test_records_come_in_order_of_namespace_and_name(store: Store) -> None:
    await fill(store, "b/1", "a/2", "a/10", "/cluster", "a-b/1")
    await store.create(Key("nodes", "", "n"), made("n"))
    assert names(store.list("pods")) == ["/cluster", "a/10", "a/2", "a-b/1", "b/1"]
    assert names(store.list("pods", "a")) == ["a/10", "a/2"]
    assert names(store.list("pods", "")) == ["/cluster"]
    assert names(store.list("unknown")) == []
    assert store.list("pods").revision == store.revision == 7


async def test_pages_show_one_revision_while_writes_go_on(store: Store) -> None:
    await fill(store, "a/1", "a/2", "a/3", "b/1")
    first = store.list("pods", limit=2)
    assert (names(first), first.remaining) == (["a/1", "a/2"], 2)
    await store.delete(Key("pods", "a", "3"), None, made("gone"))
    await fill(store, "a/21", "a/9", "c/1")
    await store.update(Key("pods", "b", "1"), 5, made("changed"))
    second = store.list("pods", revision=first.revision, after=("a", "2"), limit=1)
    assert (names(second), second.remaining) == (["a/3"], 1)
    third = store.list("pods", revision=first.revision, after=("a", "3"), limit=5)
    assert (names(third), third.remaining) == (["b/1"], 0)
    assert third.records[0].data == b"b/1"


async def test_a_namespace_is_paged_within_its_bounds(store: Store) -> None:
    await fill(store, "a/1", "a/2", "b/1", "b/2")
    page = store.list("pods", "b", after=("a", "2"), limit=1)
    assert (names(page), page.remaining) == (["b/1"], 1)


async def test_the_state_at_every_kept_revision_can_be_listed(store: Store) -> None:
    states = {store.revision: names(store.list("pods"))}
    for step in ("a/1", "a/2", "-a/1", "a/3", "a/1", "-a/2"):
        key = Key("pods", "a", step[-1])
        await (store.delete(key, None, made("x")) if step[0] == "-" else store.create(key, made("x")))
        states[store.revision] = names(store.list("pods"))
    assert {revision: names(store.list("pods", revision=revision)) for revision in states} == states


async def test_a_revision_beyond_the_history_is_expired_and_one_to_come_is_refused() -> None:
    store = LocalStore(MemoryBackend(), decode=lambda _resource, data: data, retention=Retention(max_events=3))
    await fill(store, "a/1", "a/2", "a/3", "a/4", "a/5")
    assert names(store.list("pods", revision=3)) == ["a/1", "a/2"]
    with pytest.raises(Expired, match=r"2 \(3\) of pods"):
        store.list("pods", revision=2)
    with pytest.raises(FutureRevision):
        store.list("pods", revision=7)


async def test_a_listing_is_a_snapshot(store: Store) -> None:
    await fill(store, "a/1")
    listing = store.list("pods")
    await fill(store, "a/2")
    assert names(listing) == ["a/1"]


async def test_keys_that_came_later_do_not_thin_out_a_page_of_the_past(store: Store) -> None:
    await fill(store, "m/1", "m/2", "m/3")
    revision = store.revision
    await fill(store, "a/1", "a/2", "a/3", "a/4")
    page = store.list("pods", revision=revision, limit=2)
    assert (names(page), page.remaining) == (["m/1", "m/2"], 1)
