"""The certificate of the authority, in every namespace: pods trust the API server by ConfigMap `kube-root-ca.crt`."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from msgspec.structs import replace

from dray.api.generated.core import ConfigMap
from dray.api.kinds import CONFIG_MAPS, NAMESPACES
from dray.api.meta import ObjectMeta
from dray.process.tasks import cancel_all
from dray.server.engine import Call, Engine
from dray.server.errors import ApiError
from dray.server.routes import Route
from dray.server.upkeep.first_objects import SYSTEM
from dray.server.verbs import writes
from dray.store import Closed, Slow, StorageError

NAME = "kube-root-ca.crt"
KEY = "ca.crt"
RETRY_SECONDS = 5.0
_ABOUT = {"kubernetes.io/description": "The authority that signed the certificate of the API server."}


async def publish(engine: Engine, certificate: bytes) -> None:
    """Publishes it in the namespaces that there are."""
    data = {KEY: certificate.decode("ascii")}
    for record in engine.store.list(NAMESPACES.resource).records:
        await _publish(engine, record.key.name, data)


async def keep_published(engine: Engine, certificate: bytes) -> None:
    """Publishes it in every namespace, and again when somebody changes or deletes it, until the store is closed."""
    data = {KEY: certificate.decode("ascii")}
    while True:
        try:
            await _follow(engine, data)
        except Closed:
            return
        except Slow:
            continue
        except StorageError:  # a full disk, say
            await asyncio.sleep(RETRY_SECONDS)


async def _follow(engine: Engine, data: dict[str, str]) -> None:
    revision = engine.store.revision
    with ExitStack() as watches:
        namespaces = watches.enter_context(engine.store.watch(NAMESPACES.resource, revision))
        maps = watches.enter_context(engine.store.watch(CONFIG_MAPS.resource, revision))
        for record in engine.store.list(NAMESPACES.resource).records:
            await _publish(engine, record.key.name, data)
        changes = [asyncio.ensure_future(watch.next()) for watch in (namespaces, maps)]
        try:
            while True:
                await asyncio.wait(changes, return_when=asyncio.FIRST_COMPLETED)
                for number, watch in enumerate((namespaces, maps)):
                    if changes[number].done():
                        keys = [event.record.key for event in changes[number].result()]
                        changes[number] = asyncio.ensure_future(watch.next())
                        for key in keys:
                            if watch is namespaces or key.name == NAME:
                                await _publish(engine, key.name if watch is namespaces else key.namespace, data)
        finally:
            await cancel_all(changes)


async def _publish(engine: Engine, namespace: str, data: dict[str, str]) -> None:
    """Makes the map in a namespace right, unless that is being deleted."""
    place = engine.namespace(namespace)
    if place is None or place.metadata.deletion_timestamp is not None:
        return
    found = engine.get(CONFIG_MAPS.resource, namespace, NAME)
    try:
        if found is None:
            meta = ObjectMeta(name=NAME, annotations=_ABOUT)
            made = ConfigMap(kind="ConfigMap", api_version="v1", metadata=meta, data=data)
            route = Route("create", CONFIG_MAPS, "v1", namespace)
            await writes.create(engine, Call(route, SYSTEM, engine.clock(), warnings=[]), made)
        elif isinstance(found, ConfigMap) and found.data != data:
            changed = replace(found, data=data)
            route = Route("update", CONFIG_MAPS, "v1", namespace, NAME)
            await writes.update(engine, Call(route, SYSTEM, engine.clock(), warnings=[]), lambda _: changed)
    except ApiError:
        return  # the namespace is going, or somebody else was faster: the next change brings us back
