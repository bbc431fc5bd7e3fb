"""How objects are named: by namespace and name, by these and a uid, or by resource, namespace and name.

    ObjectName  namespace, name              whichever object has that name: keys of queues and caches of one kind
    ObjectRef   namespace, name, uid         one object, told apart from an earlier or later one of the same name
    ObjectKey   resource, namespace, name    a place among objects of all kinds: the store, a snapshot

All are tuples: cheap to make, to hash and to sort. `namespace` is empty for what is in none.
"""

from __future__ import annotations

from typing import NamedTuple

from dray.api.generated.core import ObjectReference
from dray.api.meta import Object, OwnerReference


def full_name(obj: Object) -> str:
    """`namespace/name`, or the name alone of what is in no namespace."""
    meta = obj.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class ObjectName(NamedTuple):
    """Whichever object of a kind has this name. Equal to the plain tuple, which hot loops use as it is."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Object) -> ObjectName:
        """The name of an object."""
        return cls(obj.metadata.namespace, obj.metadata.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ObjectRef(NamedTuple):
    """One object of a kind, told apart from an earlier or later one of the same name."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, obj: Object) -> ObjectRef:
        """The reference to an object."""
        return cls(obj.metadata.namespace, obj.metadata.name, obj.metadata.uid)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ObjectKey(NamedTuple):
    """The place of an object among those of all kinds. Sorts in listing order."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


def object_reference(obj: Object) -> ObjectReference:
    """How objects of the API name this one, as it is now."""
    meta = obj.metadata
    return ObjectReference(
        kind=obj.kind,
        api_version=obj.api_version,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )


def is_owned_by(obj: Object, owner: Object) -> bool:
    """Whether an object was made for just this one, not for an earlier one of its name (4381-135)."""
    return any(one.controller and one.uid == owner.metadata.uid for one in obj.metadata.owner_references)


def controller_of(obj: Object) -> OwnerReference | None:
    """The owner that manages an object."""
    for owner in obj.metadata.owner_references:
        if owner.controller:
            return owner
    return None
