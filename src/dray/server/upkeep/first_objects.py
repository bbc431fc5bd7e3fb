"""What every cluster has from the start: namespaces, a service of its own, default roles and bindings, kept current."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from dray.api.generated.core import Namespace, Service, ServiceAccount, ServicePort, ServiceSpec
from dray.api.kinds import NAMESPACES, SERVICE_ACCOUNTS, SERVICES
from dray.api.meta import Object, ObjectMeta
from dray.api.registry import by_kind
from dray.pod_admission.service_account import DEFAULT
from dray.server import objects
from dray.server.engine import Call, Engine
from dray.server.routes import Route
from dray.server.security.default_roles.reconcile import reconciled
from dray.server.security.identity import MASTERS, Identity
from dray.server.security.rbac import Stored
from dray.server.verbs import writes
from dray.store import Key

SYSTEM = Identity("system:apiserver", (MASTERS,))
OWN_ADDRESS = "10.96.0.1"
OWN_NAMESPACE, OWN_NAME = "default", "kubernetes"
FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


async def ensure(engine: Engine, roles: Iterable[Stored]) -> None:
    """Stores what is missing, all at once; an admin's additions to the defaults stay."""
    for name in FIRST_NAMESPACES:
        if engine.namespace(name) is None:
            namespace = Namespace(kind="Namespace", api_version="v1", metadata=ObjectMeta(name=name))
            await _create(engine, namespace)
    for record in engine.store.list(NAMESPACES.resource).records:
        if record.obj.metadata.deletion_timestamp is None:
            await _ensure_account(engine, record.key.name)
    await ensure_service(engine)
    await asyncio.gather(*(_reconcile(engine, wanted) for wanted in roles))


async def ensure_service(engine: Engine) -> None:
    """Makes the Service by which pods find the API server, unless it is there. Raises ApiError, StorageError."""
    if engine.get(SERVICES.resource, OWN_NAMESPACE, OWN_NAME) is None:
        await _create(engine, _own_service())


async def _ensure_account(engine: Engine, namespace: str) -> None:
    """For namespaces that were made before there were accounts."""
    if engine.get(SERVICE_ACCOUNTS.resource, namespace, DEFAULT) is None:
        meta = ObjectMeta(name=DEFAULT, namespace=namespace)
        await _create(engine, ServiceAccount(kind="ServiceAccount", api_version="v1", metadata=meta))


def _own_service() -> Service:
    """How pods find the API server by name; what looks for a cluster's own address finds it here, too."""
    labels = {"component": "apiserver", "provider": "kubernetes"}
    port = ServicePort(name="https", port=443, protocol="TCP", target_port=6443)
    spec = ServiceSpec(cluster_ip=OWN_ADDRESS, cluster_ips=(OWN_ADDRESS,), type="ClusterIP", ports=(port,))
    meta = ObjectMeta(name=OWN_NAME, namespace=OWN_NAMESPACE, labels=labels)
    return Service(kind="Service", api_version="v1", metadata=meta, spec=spec)


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


__all__ = ["FIRST_NAMESPACES", "NAMESPACES", "OWN_NAME", "OWN_NAMESPACE", "SYSTEM", "ensure", "ensure_service"]
