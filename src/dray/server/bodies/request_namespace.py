"""The namespace of an object and that of the request it came with."""

from __future__ import annotations

from typing import TypeVar

from dray.api.meta import Object
from dray.server import errors
from dray.server.objects import with_metadata

T = TypeVar("T", bound=Object)


def check_namespace(obj: Object, namespace: str) -> None:
    """An object may leave its namespace to the path; one of a kind without namespaces may name any. Raises ApiError."""
    given = obj.metadata.namespace
    if given and namespace and given != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def in_namespace(obj: T, namespace: str) -> T:
    """The object in the namespace of its path, empty for kinds without. Raises ApiError."""
    check_namespace(obj, namespace)
    return obj if obj.metadata.namespace == namespace else with_metadata(obj, namespace=namespace)
