"""What every cluster has from the start: its namespaces, and the default roles and bindings, kept up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from dray.api.generated.core import Namespace
from dray.api.meta import Object, ObjectMeta
from dray.api.registry import by_kind
from dray.server import objects, writes
from dray.server.engine import NAMESPACES, Call, Engine
from dray.server.routes import Route
from dray.server.security.default_roles.reconcile import reconciled
from dray.server.security.identity import MASTERS, Identity
from dray.server.security.rbac import Stored
from dray.store import Key

SYSTEM = Identity("system:apiserver", (MASTERS,))
FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


async def ensure(engine: Engine, roles: Iterable[Stored]) -> None:
    """Stores what is missing, all at once; an admin's additions to the defaults stay."""
    for name in FIRST_NAMESPACES:
        if engine.namespace(name) is None:
            namespace = Namespace(kind="Namespace", api_version="v1", metadata=ObjectMeta(name=name))
            await _create(engine, namespace)
    await asyncio.gather(*(_reconcile(engine, wanted) for wanted in roles))


async def _create(engine: Engine, obj: Object) -> None:
    kind = by_kind(obj.api_version, obj.kind)
    route = Route("create", kind, kind.versions[0], obj.metadata.namespace)
    await writes.create(engine, Call(route, SYSTEM, engine.clock(), warnings=[]), obj)


async def _reconcile(engine: Engine, wanted: Stored) -> None:
    kind = by_kind(wanted.api_version, wanted.kind)
    meta = wanted.metadata
    record = engine.store.get(Key(kind.resource, meta.namespace, meta.name))
    change = reconciled(None if record is None else record.obj, wanted)
    if change is None:
        return
    if record is None:
        await _create(engine, change)
    else:
        await engine.store.update(record.key, record.revision, objects.finish(change))


__all__ = ["FIRST_NAMESPACES", "NAMESPACES", "SYSTEM", "ensure"]
