"""A typed client of the Kubernetes API, and informers on top of it. The transport is injected.

    Client (protocol) ─┬─ HttpClient          any Kubernetes API server, by kubeconfig or in a cluster
                       └─ LocalClient         a dray server in the same process: no HTTP, no encoding
    Informer: list + watch ─▶ a store of objects, kept current, with handlers and indexes

Objects are typed, in the hub version of their kind, immutable and shared. May import `dray.files`, `dray.validation`
and `dray.api`.
"""

from dray.client.informer import Informer
from dray.client.interface import Client, ObjectList, PatchFormat, WatchEvent, WatchExpired

__all__ = ["Client", "Informer", "ObjectList", "PatchFormat", "WatchEvent", "WatchExpired"]
