"""Where records are in etcd: under the keys that Kubernetes gives them. Pure.

::

    /registry/pods/<namespace>/<name>                       built-in resources, by their plural
    /registry/services/specs/<namespace>/<name>             some have places of their own
    /registry/<group>/<plural>/[<namespace>/]<name>         custom resources
    /registry/.dray/servers/<id>                            a server that is at work, as long as its lease
    /registry/.dray/alone                                   the only server that is at work (`alone`)
    /registry/.dray/guards/<name>                           written along with all that is judged by the same facts
    /registry/.dray/keys/<file>                             what all servers share: the authority and keys
    /registry/.dray/compactor, /registry/.dray/compaction   who lets go of history, and how far
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Final

from dray.store.records import Key

OWN: Final = ".dray"


class Layout:
    """Keys of the store as keys of etcd, and back. `places` has the resources that are not at `<group>/<plural>`."""

    def __init__(self, prefix: str, places: Mapping[str, str]) -> None:
        self.prefix = "/" + prefix.strip("/") + "/"
        self._start = self.prefix.encode()
        self._places = {resource: f"{self.prefix}{place}/" for resource, place in places.items()}
        self._resources = {place: resource for resource, place in places.items()}

    @property
    def range(self) -> tuple[bytes, bytes]:
        """The first key, and the first one beyond the last."""
        return self._start, self._start[:-1] + b"0"

    def own(self, *parts: str) -> bytes:
        """A key of dray's own."""
        return "/".join((self.prefix + OWN, *parts)).encode()

    def path(self, key: Key) -> bytes:
        """Where a record is."""
        resource, namespace, name = key
        place = self._places.get(resource)
        if place is None:
            plural, _, group = resource.partition(".")
            place = self._places[resource] = f"{self.prefix}{group}/{plural}/"
        return f"{place}{namespace}/{name}".encode() if namespace else f"{place}{name}".encode()

    def namespace(self, resource: str, namespace: str) -> tuple[bytes, bytes]:
        """Where the records of a resource in a namespace begin, and end."""
        start = self.path(Key(resource, namespace, ""))
        return start, start[:-1] + b"0"

    def key(self, path: bytes) -> Key | None:
        """Which record is there; None if it is none."""
        words = path[len(self._start) :].decode().split("/")
        first = words[0]
        if first == OWN:
            return None
        resource = self._resources.get(first)
        rest = words[1:]
        if resource is None or (rest and f"{first}/{rest[0]}" in self._resources):
            if not rest:
                return None
            resource = self._resources.get(f"{first}/{rest[0]}") or f"{rest[0]}.{first}"
            rest = rest[1:]
        if len(rest) == 1:
            return Key(intern(resource), "", rest[0])
        return Key(intern(resource), intern(rest[0]), rest[1]) if len(rest) == 2 else None
