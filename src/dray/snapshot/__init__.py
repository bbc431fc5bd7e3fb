"""A cluster as a value: load it from files, allocate, place, explain, and ask what a change would do.

The public offline API. May import everything below `dray.store`; reads files, and nothing else from outside.

    files ─▶ objects (decoded, converted to the hub version, defaulted) ─▶ Snapshot
                                                                            │ asks
                                           World: tracker + inventory, moved from snapshot to snapshot by the difference

An answer is data first (`allocator.reasons`, `what_if.Difference`); `prose` and `what_if_text` put it into words.
"""

from dray.snapshot.files import InputError
from dray.snapshot.outcome import Outcome
from dray.snapshot.snapshot import Snapshot, SnapshotError, from_objects, load
from dray.snapshot.what_if import Difference, compare

__all__ = ["Difference", "InputError", "Outcome", "Snapshot", "SnapshotError", "compare", "from_objects", "load"]
