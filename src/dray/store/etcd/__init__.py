"""The engine for several servers: etcd numbers and keeps the writes, each server has everything in memory.

::

      event loop                                                            etcd
      ──────────                                                            ────
      await store.update(key, revision, finish)
        judged by what is seen here; refusals only after catching up
        finish(0): bytes with an empty revision
        end of loop turn: [ transactions ] ─────────────────────────▶  if key has that revision, and the session ours
                                                                         then put, at the next revision
      apply  ◀───────────────────────────────── watch ───────────────   every change of every server, in order
        tables and event logs, revision put into the bytes
        wake watchers, resolve the writers' futures

      await store.catch_up()                    one question for all who wait ──▶  revision now, linearizable
        visible once the watch has told as much

So tables have one source, etcd's order; a writer is answered once it can see its own write. What became of a write
whose answer got lost is found out behind a fence (`session`). Writes that are judged by more than their own keys name
guards: keys that are compared and written along with them (`transactions`).
"""

import os

from dray import extras

extras.need("etcd", "storage in etcd")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what fails is told once, in our own words

from dray.store.etcd.address import PREFIX, AddressError, EtcdAddress, read_address
from dray.store.etcd.layout import Layout
from dray.store.etcd.loading import CannotLoad, Loader
from dray.store.etcd.store import EtcdStore, open_store

__all__ = [
    "PREFIX",
    "AddressError",
    "CannotLoad",
    "EtcdAddress",
    "EtcdStore",
    "Layout",
    "Loader",
    "open_store",
    "read_address",
]
