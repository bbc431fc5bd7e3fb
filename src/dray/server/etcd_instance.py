"""How a server uses etcd: where Kubernetes' resources are in it, and what all servers keep there for each other."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dray.api import registry
from dray.server.objects import numbered
from dray.store import Decode, Key
from dray.store.encryption import NONE, Encryption
from dray.store.etcd import EtcdAddress, EtcdStore, Layout, Loader, open_store
from dray.store.lock import DirectoryLock

_PLACES = {
    "replicationcontrollers": "controllers",
    "endpoints": "services/endpoints",
    "services": "services/specs",
    "nodes": "minions",
    "ingresses.networking.k8s.io": "ingress",
}
_BY_GROUP = ("apiextensions.k8s.io", "apiregistration.k8s.io")
"""Groups of Kubernetes whose resources are kept as custom ones are."""


def layout(prefix: str) -> Layout:
    """Where each resource is, as with kube-apiserver."""
    places = {}
    for kind in registry.kinds():
        resource = kind.storage.resource
        plural, _, group = resource.partition(".")
        is_by_plural = ("." not in group or group.endswith(".k8s.io")) and group not in _BY_GROUP
        places[resource] = _PLACES.get(resource, plural if is_by_plural else f"{group}/{plural}")
    return Layout(prefix, places)


def open_etcd(address: EtcdAddress, directory: Path, decode: Decode, encryption: Encryption) -> EtcdStore:
    """The store of a server whose other files are in a directory, which it locks. Raises StoreError."""
    lock = DirectoryLock(directory)
    try:
        return open_store(
            address, layout(address.prefix), decode, numbered, encryption=encryption, released=lock.release
        )
    except BaseException:
        lock.release()
        raise


class SharedInEtcd:
    """The keys that all servers on one etcd have (a `Shared`), encrypted as Secrets are."""

    _AS: Final = Key("secrets", "", "the keys that servers share")

    def __init__(self, address: EtcdAddress, encryption: Encryption = NONE) -> None:
        self._address = address
        self._encryption = encryption
        self._key = layout(address.prefix).own("keys")

    def find(self) -> bytes | None:
        """What they are; None if there are none yet. Raises StoreError."""
        loader = Loader(self._address)
        try:
            found = loader.find(self._key)
            if found is None:
                return None
            opened = self._encryption.open(self._AS, found)
            if opened.is_outdated:
                loader.replace(self._key, found, self._encryption.seal(self._AS, opened.data))
            return opened.data
        finally:
            loader.close()

    def share(self, value: bytes) -> bytes:
        """Puts them there unless they are, and gives those that are there. Raises StoreError."""
        loader = Loader(self._address)
        try:
            there = loader.share(self._key, self._encryption.seal(self._AS, value))
            return self._encryption.open(self._AS, there).data
        finally:
            loader.close()
