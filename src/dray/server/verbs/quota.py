"""Quotas: what an object uses up, counted exactly however many clients create at once.

The object and the changed quotas are stored in one transaction. If anybody else changed a quota meanwhile, the store
refuses and everything is counted again. Releasing is the quota controller's: usage follows the objects that exist.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from dray.api.generated.core import PersistentVolumeClaim, Pod, ResourceQuota, Service
from dray.api.kinds import CLAIMS, CLASSES, PODS, QUOTAS
from dray.api.meta import Object
from dray.api.resource import DeviceClass, ResourceClaim
from dray.server import errors
from dray.server.engine import Call, Engine
from dray.server.objects import finish
from dray.store import Key, Update
from dray.validation.quota_scopes import is_in_scope
from dray.validation.quota_usage import Usage, missing_amounts, usage


async def charges(engine: Engine, call: Call, obj: Object, old: Object | None = None) -> list[Update]:
    """The changes to quotas that storing an object means, instead of `old` if that is stored.

    Raises ApiError if a quota would be exceeded, or if a pod does not say how much it needs of what one limits.
    """
    namespace = obj.metadata.namespace
    if not namespace or not engine.store.count(QUOTAS.resource):
        return []
    if old is not None and not _may_use_more(call, obj, old):
        return []
    records = engine.store.list(QUOTAS.resource, namespace).records
    if not records:
        return []
    resource = call.route.kind.resource
    is_on = "DRAExtendedResource" not in engine.disabled_gates
    stored = _Stored(engine) if is_on and isinstance(obj, ResourceClaim) else None
    if stored is None and call.is_large:
        requested = await engine.beside(call, usage, resource, obj)
    else:
        requested = usage(resource, obj, stored)
    before = usage(resource, old) if old is not None else {}
    changes = []
    for record in records:
        quota: ResourceQuota = record.obj
        if not is_in_scope(quota.spec, obj):
            continue
        missing = missing_amounts(quota.status.hard, obj)
        if missing:
            raise errors.forbidden(
                call.route.kind, obj.metadata.name, f"failed quota: {quota.metadata.name}: {missing}"
            )
        counted_before = before if old is not None and is_in_scope(quota.spec, old) else {}
        charged = _charge(call, quota, _more(requested, counted_before), obj.metadata.name)
        if charged is not None:
            changes.append(Update(record.key, record.revision, finish(charged)))
    return changes


def _may_use_more(call: Call, new: Object, old: Object) -> bool:
    """Whether an update is of a kind that quotas look at; most are not."""
    if isinstance(new, Pod) and isinstance(old, Pod):
        is_other_scope = new.spec.active_deadline_seconds != old.spec.active_deadline_seconds
        return call.route.subresource == "resize" or (is_other_scope and not call.route.subresource)
    return isinstance(new, PersistentVolumeClaim | Service) and not call.route.subresource


def _more(requested: Usage, before: Usage) -> Usage:
    """What is used in addition; what is used less is the controller's."""
    if not before:
        return requested
    more = {name: amount - before[name] if name in before else amount for name, amount in requested.items()}
    return {name: amount for name, amount in more.items() if amount.sign() > 0}


class _Stored:
    """What quotas have to know of the objects that are there."""

    def __init__(self, engine: Engine) -> None:
        self._store = engine.store

    def find_class(self, name: str) -> DeviceClass | None:
        record = self._store.get(Key(CLASSES.resource, "", name))
        return record.obj if record is not None else None

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        record = self._store.get(Key(PODS.resource, namespace, name))
        return record.obj if record is not None else None

    def claims(self, namespace: str) -> Iterator[ResourceClaim]:
        return (record.obj for record in self._store.list(CLAIMS.resource, namespace).records)


def _charge(call: Call, quota: ResourceQuota, requested: Usage, name: str) -> ResourceQuota | None:
    """The quota with the usage added; None if it does not limit what is requested."""
    hard, used = quota.status.hard, quota.status.used
    limited = {resource: amount for resource, amount in requested.items() if resource in hard and amount.sign()}
    if not limited:
        return None
    unknown = [resource for resource in limited if resource not in used]
    if unknown:
        why = f"status unknown for quota: {quota.metadata.name}, resources: {','.join(sorted(unknown))}"
        raise errors.forbidden(call.route.kind, name, why)
    after = {resource: used[resource] + amount for resource, amount in limited.items()}
    exceeded = sorted(resource for resource in limited if after[resource] > hard[resource])
    if exceeded:
        raise errors.forbidden(call.route.kind, name, _exceeded(quota, limited, exceeded))
    return replace(quota, status=replace(quota.status, used={**used, **after}))


def _exceeded(quota: ResourceQuota, limited: Usage, exceeded: list[str]) -> str:
    requested = ",".join(f"{resource}={limited[resource]}" for resource in exceeded)
    used = ",".join(f"{resource}={quota.status.used[resource]}" for resource in exceeded)
    hard = ",".join(f"{resource}={quota.status.hard[resource]}" for resource in exceeded)
    return f"exceeded quota: {quota.metadata.name}, requested: {requested}, used: {used}, limited: {hard}"
