"""What the server itself does about definitions: settles names, and empties a resource whose definition is to go."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from dray.api.conditions import with_condition
from dray.api.generated.apiextensions import CustomResourceDefinition
from dray.api.meta import DeleteOptions, Object
from dray.api.registry import Kind
from dray.custom.kinds import DEFINITIONS
from dray.custom.names import CLEANUP, has_all_names, terminating, with_accepted_names
from dray.process.clock import Clock
from dray.process.tasks import cancel_all
from dray.server.custom.defined_kinds import DefinedKinds
from dray.server.engine import Call, Engine
from dray.server.errors import ApiError
from dray.server.objects import with_metadata
from dray.server.routes import Route
from dray.server.upkeep.first_objects import SYSTEM
from dray.server.upkeep.following import RETRY_SECONDS, follow_until_closed
from dray.server.verbs import deletes, writes
from dray.server.verbs.rewrites import rewrite
from dray.store import Closed, StorageError

LOOK_AGAIN_SECONDS = 1.0
AT_ONCE = 100


async def keep_definitions(engine: Engine, defined: DefinedKinds, clock: Clock) -> None:
    """Looks at all definitions whenever one changes, until the store is closed."""
    emptying: dict[str, asyncio.Task[None]] = {}

    async def follow() -> None:
        with engine.store.watch(DEFINITIONS.resource, engine.store.revision) as watcher:
            await _look(engine, defined, clock, emptying)
            while await watcher.next():
                await _look(engine, defined, clock, emptying)

    try:
        await follow_until_closed(follow, clock)
    finally:
        await cancel_all(emptying.values())


async def _look(engine: Engine, defined: DefinedKinds, clock: Clock, emptying: dict[str, asyncio.Task[None]]) -> None:
    for name in [name for name, task in emptying.items() if task.done()]:
        del emptying[name]
    definitions = defined.definitions
    for definition in definitions:
        name = definition.metadata.name
        if definition.metadata.deletion_timestamp is not None:
            if CLEANUP in definition.metadata.finalizers and name not in emptying:
                emptying[name] = asyncio.get_running_loop().create_task(_empty(engine, definition, clock))
        elif not has_all_names(definition):
            await _settle_names(engine, defined, name)


async def _settle_names(engine: Engine, defined: DefinedKinds, name: str) -> None:
    """Names may have become free, or two definitions may have come for the same ones at once."""

    def settled(found: CustomResourceDefinition) -> CustomResourceDefinition:
        return with_accepted_names(found, defined.definitions, engine.clock())

    stored = engine.get(DEFINITIONS.resource, "", name)
    if not isinstance(stored, CustomResourceDefinition) or settled(stored).status == stored.status:
        return
    try:
        await rewrite(engine, DEFINITIONS, "", name, settled)
    except ApiError:
        return  # gone meanwhile, or somebody else keeps writing it: its next change brings us back


async def _empty(engine: Engine, definition: CustomResourceDefinition, clock: Clock) -> None:
    """Deletes all objects of a resource, waits until they are gone, and then lets the definition go."""
    name = definition.metadata.name
    names = definition.status.accepted_names
    resource = f"{names.plural}.{definition.spec.group}"
    kind = _kind_of(definition)
    said = False
    while True:
        try:
            if await _delete_all(engine, kind, resource):
                break
            if not said:
                said = True
                await _tell(engine, name, "InstanceDeletionPending", "waiting for objects to be finalized")
            await clock.sleep(LOOK_AGAIN_SECONDS)
        except Closed:
            return
        except StorageError:
            await clock.sleep(RETRY_SECONDS)
    call = Call(Route("update", DEFINITIONS, DEFINITIONS.versions[0], "", name), SYSTEM, engine.clock(), warnings=[])
    try:
        await writes.update(engine, call, _released, track=False)
    except (ApiError, StorageError):
        return


async def _delete_all(engine: Engine, kind: Kind, resource: str) -> bool:
    """Deletes what is there; whether nothing is left."""
    records = engine.store.list(resource).records
    for count, record in enumerate(records):
        if record.obj.metadata.deletion_timestamp is None:
            route = Route("delete", kind, kind.versions[0], record.key.namespace, record.key.name)
            call = Call(route, SYSTEM, engine.clock(), warnings=[])
            try:
                await deletes.delete(engine, call, DeleteOptions())
            except ApiError:
                continue
        if count % AT_ONCE == 0:
            await asyncio.sleep(0)
    return not engine.store.count(resource)


def _kind_of(definition: CustomResourceDefinition) -> Kind:
    """A kind by its names alone: which is all that deleting takes."""
    spec, names = definition.spec, definition.status.accepted_names
    stored = next(version.name for version in spec.versions if version.storage)
    return Kind(spec.group, names.kind, names.plural, names.singular, spec.scope == "Namespaced", (stored,))


def _released(found: Object) -> Object:
    return with_metadata(found, finalizers=tuple(one for one in found.metadata.finalizers if one != CLEANUP))


async def _tell(engine: Engine, name: str, reason: str, message: str) -> None:
    def told(found: CustomResourceDefinition) -> CustomResourceDefinition:
        condition = terminating(reason, message, engine.clock())
        return replace(
            found, status=replace(found.status, conditions=with_condition(found.status.conditions, condition))
        )

    try:
        await rewrite(engine, DEFINITIONS, "", name, told)
    except ApiError:
        return
