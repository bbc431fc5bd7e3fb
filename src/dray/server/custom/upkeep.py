"""What the server itself does about definitions: settles names, and empties a resource whose definition is to go."""

from __future__ import annotations

import asyncio
import contextlib

from msgspec.structs import replace

from dray.api.conditions import with_condition
from dray.api.generated.apiextensions import CustomResourceDefinition
from dray.api.meta import DeleteOptions, Object
from dray.api.registry import Kind
from dray.custom.kinds import DEFINITIONS, is_built_in
from dray.custom.names import CLEANUP, has_all_names, terminating, with_accepted_names
from dray.process.clock import Clock
from dray.process.tasks import cancel_all, with_turns
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
    for uid in [uid for uid, task in emptying.items() if task.done()]:
        del emptying[uid]
    definitions = defined.definitions
    for definition in definitions:
        meta = definition.metadata
        if meta.deletion_timestamp is not None:
            if CLEANUP in meta.finalizers and meta.uid not in emptying:
                emptying[meta.uid] = asyncio.get_running_loop().create_task(_empty(engine, definition, clock))
        elif not has_all_names(definition):
            await _settle_names(engine, defined, meta.name)


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
    """Deletes all objects of a resource, waits until they are gone, and then lets the definition go.

    Ends when somebody else has let it go: what is there then belongs to the next definition of that name. Objects of a
    built-in kind never belonged to a definition.
    """
    said = False
    while _is_going(engine, definition):
        try:
            if is_built_in(definition) or await _delete_all(engine, definition):
                break
            if not said:
                said = True
                await _tell(engine, definition, "InstanceDeletionPending", "waiting for objects to be finalized")
            await clock.sleep(LOOK_AGAIN_SECONDS)
        except Closed:
            return
        except StorageError:
            await clock.sleep(RETRY_SECONDS)
    route = Route("update", DEFINITIONS, DEFINITIONS.versions[0], "", definition.metadata.name)
    call = Call(route, SYSTEM, engine.clock(), warnings=[])

    def released(found: Object) -> Object:
        kept = tuple(one for one in found.metadata.finalizers if one != CLEANUP)
        return with_metadata(found, finalizers=kept) if _is_same(found, definition) else found

    try:
        await writes.update(engine, call, released, track=False)
    except (ApiError, StorageError):
        return


def _is_going(engine: Engine, definition: CustomResourceDefinition) -> bool:
    stored = engine.get(DEFINITIONS.resource, "", definition.metadata.name)
    return stored is not None and _is_same(stored, definition) and CLEANUP in stored.metadata.finalizers


def _is_same(found: Object, definition: CustomResourceDefinition) -> bool:
    return found.metadata.uid == definition.metadata.uid


async def _delete_all(engine: Engine, definition: CustomResourceDefinition) -> bool:
    """Deletes what is there; whether nothing is left."""
    resource = f"{definition.status.accepted_names.plural}.{definition.spec.group}"
    kind = _kind_of(definition)
    records = engine.store.list(resource).records
    async for record in with_turns(records, AT_ONCE):
        if not _is_going(engine, definition):
            return False
        if record.obj.metadata.deletion_timestamp is None:
            route = Route("delete", kind, kind.versions[0], record.key.namespace, record.key.name)
            call = Call(route, SYSTEM, engine.clock(), warnings=[])
            with contextlib.suppress(ApiError):
                await deletes.delete(engine, call, DeleteOptions())
    return not engine.store.count(resource)


def _kind_of(definition: CustomResourceDefinition) -> Kind:
    """A kind by its names alone: which is all that deleting takes."""
    spec, names = definition.spec, definition.status.accepted_names
    stored = next(version.name for version in spec.versions if version.storage)
    return Kind(spec.group, names.kind, names.plural, names.singular, spec.scope == "Namespaced", (stored,))


async def _tell(engine: Engine, definition: CustomResourceDefinition, reason: str, message: str) -> None:
    def told(found: CustomResourceDefinition) -> CustomResourceDefinition:
        if not _is_same(found, definition):
            return found
        condition = terminating(reason, message, engine.clock())
        return replace(
            found, status=replace(found.status, conditions=with_condition(found.status.conditions, condition))
        )

    try:
        await rewrite(engine, DEFINITIONS, "", definition.metadata.name, told)
    except ApiError:
        return
