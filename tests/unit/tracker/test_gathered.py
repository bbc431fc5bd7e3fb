"""Slices that change one after the other are taken in together, by pool: a pool is made anew as a whole."""

from __future__ import annotations

from dray.tracker import Event, GatheredSlices, Remove, Tracker, Upsert
from dray.tracker.gathered import OF_SLICE
from tracker_objects import device, slice_

SLICES = 128


def published(version: int, *, slices: int = SLICES, pool: str = "big", devices: int = 128) -> list[Upsert]:
    """All slices of a pool, which say something else with every version."""
    return [
        Upsert(
            slice_(
                f"{pool}-{number:03}",
                *(device(f"d-{number}-{each}", {"version": version}) for each in range(devices)),
                pool=pool,
                count=slices,
            )
        )
        for number in range(slices)
    ]


def gathered(tracker: Tracker, *events: Upsert | Remove) -> GatheredSlices:
    found = GatheredSlices(tracker)
    for event in events:
        found.add(event)
    return found


def test_a_pool_that_is_published_anew_is_made_a_few_times() -> None:
    tracker = Tracker()
    tracker.apply_all(published(1))
    slices = gathered(tracker, *published(2))
    turns = 0
    while events := slices.take():
        turns += 1
        assert len(events) * 128 < 3000
        tracker.apply_all(events)
    assert turns < SLICES / 10
    view = tracker.pool("gpu.example.com", "big")
    assert view is not None
    assert all(found.device.attributes["version"].int_value == 2 for found in view.devices)


def test_of_large_pools_few_have_their_turn_together() -> None:
    tracker = Tracker()
    pools = [published(1, slices=4, pool=f"pool-{number}", devices=100) for number in range(8)]
    for pool in pools:
        tracker.apply_all(pool)
    slices = gathered(tracker, *(pool[0] for pool in pools))
    one, whole = 100 + OF_SLICE, 400 // 8
    assert len(slices.take(3 * (one + whole))) == 3
    assert len(slices.take(1)) == 1
    assert len(slices.take()) == 4
    assert not slices


def test_a_pool_that_changes_all_the_time_holds_up_no_other() -> None:
    tracker = Tracker()
    slices = gathered(tracker, *published(1, slices=50), *published(1, slices=1, pool="small"))
    seen: list[str] = []
    for version in range(2, 5):
        seen += names_of(slices.take(1000))
        for event in published(version, slices=50):
            slices.add(event)
    assert "small-000" in seen


def test_only_the_last_state_of_a_slice_counts() -> None:
    """Also if the slice goes, comes again, or is of another pool by then."""
    tracker = Tracker()
    tracker.apply(Upsert(slice_("known", "old", pool="a")))
    slices = gathered(
        tracker,
        Upsert(slice_("known", "new", pool="a")),
        Remove("ResourceSlice", "known"),
        Upsert(slice_("known", "newer", pool="b")),
        Upsert(slice_("short", "d", pool="a")),
        Remove("ResourceSlice", "short"),
        Remove("ResourceSlice", "never heard of"),
    )
    assert sorted(names_of(slices.take())) == ["known", "short"]
    assert not slices
    slices = gathered(tracker, Upsert(slice_("known", "newer", pool="b")), Remove("ResourceSlice", "known"))
    tracker.apply_all(slices.take())
    assert not tracker.pools


def names_of(events: list[Event]) -> list[str]:
    return [event.name if isinstance(event, Remove) else event.object.metadata.name for event in events]
