"""The storage engine under the API server: revisions, durability, consistent lists, gapless watches.

It knows neither HTTP nor Kubernetes types: a record is a key `(resource, namespace, name)`, an immutable object and
its bytes. It may import `dray.api` and below-lying layers only; it does disk I/O, on one thread of its own.
`dray.server` uses it, and the commands for backup and restore; what comes next for an event is `dray.server`'s watch
response.

How a write travels::

      event loop                                                     writer thread
      ──────────                                                     ─────────────
      await store.create(key, finish)
        check against what is stored     Exists, NotFound, Conflict
        one write per key in flight      others of that key wait and are then judged anew
        number it, finish(revision)      object and bytes now carry the revision, encoded once
        submit ─────────────┐
                            ▼
      end of loop turn:  [ batch ] ────────────────────────────────▶ one LMDB transaction, synced
      more submissions gather for the next batch meanwhile              │
                                                                        │ durable, or failed as a whole
      settle  ◀─────────────────────────────────────────────────────────┘
        apply in revision order to tables and event logs   (failed: drop it, StorageError to its writers)
        resolve the writers' futures, wake watchers

So whatever anybody can see is on disk: a reader, a watcher or the loser of a conflict never learns of a write that
could still be lost, and what is acknowledged survives a power cut. After a failed batch the store goes on: reads are
not affected, later writes are tried on their own, the revisions of the failed ones are left out.

Each resource has a `Table` (records by key and in order) and an `EventLog` (the recent past) that all its watchers
share, each with a position of its own. History is bounded by `Retention`, of each resource and of all together; what
leaves it leaves the disk, too, and asking for it raises `Expired`. A watcher that stands still until events it has
not read leave the history is cut off with `Slow`.

When the disk is full, or the database has reached its quota, creates and updates that make an object larger are refused
(`OutOfSpace`); deletes, and updates that do not, go on: the file always has room ahead of it (`reserve`).
No namespace has more than its share of the room, nor have its events, nor a resource outside of namespaces
(`ShareExceeded`, `shares`).
"""

from dray.store.backend import Backend
from dray.store.backup import backup, restore
from dray.store.errors import (
    BackupError,
    Closed,
    Conflict,
    Corrupt,
    Exists,
    Expired,
    FutureRevision,
    Locked,
    NotFound,
    OutOfSpace,
    ShareExceeded,
    Slow,
    StorageError,
    StoreError,
    TooLarge,
    Uncertain,
    Unreachable,
    Unusable,
)
from dray.store.lmdb_backend import LmdbBackend, open_store
from dray.store.local_store import LocalStore
from dray.store.log import Retention
from dray.store.memory_backend import MemoryBackend
from dray.store.parts import in_parts
from dray.store.records import (
    GROWTH,
    ITSELF,
    Basis,
    Create,
    Decode,
    Delete,
    Event,
    EventType,
    Finish,
    Key,
    Listing,
    Operation,
    Record,
    Update,
    folded,
)
from dray.store.shares import OBJECT_BYTES, growth_beyond
from dray.store.store import SharedStats, Stats, Store
from dray.store.watch import Watcher

__all__ = [
    "GROWTH",
    "ITSELF",
    "OBJECT_BYTES",
    "Backend",
    "BackupError",
    "Basis",
    "Closed",
    "Conflict",
    "Corrupt",
    "Create",
    "Decode",
    "Delete",
    "Event",
    "EventType",
    "Exists",
    "Expired",
    "Finish",
    "FutureRevision",
    "Key",
    "Listing",
    "LmdbBackend",
    "LocalStore",
    "Locked",
    "MemoryBackend",
    "NotFound",
    "Operation",
    "OutOfSpace",
    "Record",
    "Retention",
    "ShareExceeded",
    "SharedStats",
    "Slow",
    "Stats",
    "StorageError",
    "Store",
    "StoreError",
    "TooLarge",
    "Uncertain",
    "Unreachable",
    "Unusable",
    "Update",
    "Watcher",
    "backup",
    "folded",
    "growth_beyond",
    "in_parts",
    "open_store",
    "restore",
]
