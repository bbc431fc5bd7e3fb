"""Objects of an informer by their namespace, for controllers that look at all of one."""

from __future__ import annotations

from typing import Final

from dray.api.meta import Object

BY_NAMESPACE: Final = "namespace"
"""The name of the index; controllers that share an informer share it."""


def in_namespace(obj: Object) -> tuple[str]:
    """Where an object is found in it."""
    return (obj.metadata.namespace,)
