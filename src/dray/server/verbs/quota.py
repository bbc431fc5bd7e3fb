"""Quotas: what a new object uses up, counted exactly however many clients create at once.

The object and the changed quotas are stored in one transaction. If anybody else changed a quota meanwhile, the store
refuses and everything is counted again. Releasing is the quota controller's: usage follows the objects that exist.
"""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.core import ResourceQuota
from dray.api.kinds import QUOTAS
from dray.api.meta import Object
from dray.server import errors
from dray.server.engine import Call, Engine
from dray.server.objects import finish
from dray.store import Update
from dray.validation.quota_usage import Usage, is_in_scope, usage


async def charges(engine: Engine, call: Call, obj: Object) -> list[Update]:
    """The changes to quotas that storing a new object means. Raises ApiError if one would be exceeded."""
    namespace = obj.metadata.namespace
    if not namespace or not engine.store.count(QUOTAS.resource):
        return []
    records = engine.store.list(QUOTAS.resource, namespace).records
    if not records:
        return []
    resource = call.route.kind.resource
    requested = await engine.beside(call, usage, resource, obj) if call.is_large else usage(resource, obj)
    changes = []
    for record in records:
        if not is_in_scope(record.obj.spec, obj):
            continue
        charged = _charge(call, record.obj, requested, obj.metadata.name)
        if charged is not None:
            changes.append(Update(record.key, record.revision, finish(charged)))
    return changes


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
