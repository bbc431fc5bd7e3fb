"""What is different about quotas: which resources of a namespace are used up, so that nothing more of it is let in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dray.allocator.reasons import Report
from dray.api.generated.core import ResourceQuota
from dray.api.meta import Object
from dray.api.references import full_name
from dray.snapshot.quota_room import QuotaRoom
from dray.snapshot.snapshot import Snapshot
from dray.validation.quota_usage import counted_kinds


class QuotaChange(Report, frozen=True, kw_only=True):
    """A quota that is different, and what of it."""

    quota: str
    resource: str
    used: str
    before: str | None = None
    """The limit; absent if there is none."""
    after: str | None = None
    is_full: bool = False
    """Nothing more of it is let in. What is there stays."""
    unknown: bool = False
    """Objects of a kind that is not looked at use it up."""


def compare_quotas(differing: Iterable[tuple[Object | None, Object | None]], after: Snapshot) -> Iterator[QuotaChange]:
    """Every limit that is another one than before, or about other objects."""
    for here, there in differing:
        old = here if isinstance(here, ResourceQuota) else None
        new = there if isinstance(there, ResourceQuota) else None
        quota = new if new is not None else old
        if quota is None:
            continue
        was = old.spec.hard if old is not None else {}
        limits = new.spec.hard if new is not None else {}
        same_scope = old is not None and new is not None and _scope(old) == _scope(new)
        room = QuotaRoom(after.with_typed([quota]))
        for resource in sorted({*was, *limits}):
            if same_scope and was.get(resource) == limits.get(resource):
                continue
            used, limit = room.used(quota, resource), limits.get(resource)
            yield QuotaChange(
                quota=full_name(quota),
                resource=resource,
                used=str(used),
                before=str(was[resource]) if resource in was else None,
                after=str(limit) if limit is not None else None,
                is_full=limit is not None and used >= limit,
                unknown=not counted_kinds(resource),
            )


def _scope(quota: ResourceQuota) -> tuple[object, object]:
    return quota.spec.scopes, quota.spec.scope_selector
