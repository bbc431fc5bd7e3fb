"""A cluster as a value and the questions to it: load it from files, allocate, place, explain.

The public offline API. May import everything below `dray.store`; reads files, and nothing else from outside.

    files ─▶ objects (decoded, converted to the hub version, defaulted) ─▶ Snapshot
                                                                            │ asks
                                           World: tracker + inventory, moved from snapshot to snapshot by the difference

An answer is data first (`allocator.reasons`); `dray.prose` puts it into words. What a change would do is the difference
of two snapshots: `dray.what_if`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dray.snapshot.files import InputError
    from dray.snapshot.outcome import Outcome
    from dray.snapshot.snapshot import Snapshot, SnapshotError, from_objects, load

__all__ = ["InputError", "Outcome", "Snapshot", "SnapshotError", "from_objects", "load"]

_HOMES = {
    "InputError": "files",
    "Outcome": "outcome",
    "Snapshot": "snapshot",
    "SnapshotError": "snapshot",
    "from_objects": "snapshot",
    "load": "snapshot",
}


def __getattr__(name: str) -> Any:
    """Each is imported when first used: whoever only reads files needs none of what decides."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dray.snapshot' has no attribute {name!r}")
    return getattr(import_module(f"dray.snapshot.{home}"), name)
