"""Owners that an object names twice are kept once."""

from __future__ import annotations

from typing import TypeVar

from dray.api.meta import Object, OwnerReference
from dray.server.objects import with_metadata

T = TypeVar("T", bound=Object)


def without_duplicates(obj: T, warnings: list[str], when: str = "") -> T:
    """The object with each owner once; a warning says so. `when` tells when they were found."""
    references = obj.metadata.owner_references
    if len(references) < 2:
        return obj
    kept: dict[OwnerReference, None] = {}
    twice: dict[str, None] = {}
    for reference in references:
        if reference in kept:
            twice[reference.uid] = None
        kept[reference] = None
    if not twice:
        return obj
    warnings.append(
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and "
        f"may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        f"{', '.join(twice)}"
    )
    return with_metadata(obj, owner_references=tuple(kept))
