"""The garbage collector: follows every kind and deletes objects whose owners are all gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import replace

from dray.api import codec
from dray.api.meta import DeleteOptions, Object, ObjectMeta, OwnerReference, Preconditions
from dray.api.recent import Newest
from dray.api.registry import Kind, UnknownKind, by_kind, kinds
from dray.api.status import ApiError
from dray.api.text_memory import LONGEST, text_length
from dray.api.well_known import FOREGROUND_DELETION
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.custom_kinds import CustomKinds
from dray.controllers.garbage_collector.graph import Graph, Item
from dray.controllers.garbage_collector.plan import (
    ORPHAN,
    Delete,
    Disown,
    DropFinalizer,
    Instruction,
    Owner,
    ReleaseDependents,
    Unblock,
    VisitDependents,
    is_waiting,
    plan,
)
from dray.controllers.queue_controller import QueueController

WORKERS = 20
MAX_ABSENT = 10_000
LOOK_AGAIN = 30.0
NEEDED_VERBS = {"delete", "list", "watch", "patch"}
IGNORED = {"events", "events.events.k8s.io"}
"""They come by the thousand, go by age and own nothing."""


class _Place(NamedTuple):
    """An owner, and where objects look for it: what is not in one namespace may well be in another."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, reference: OwnerReference, namespace: str) -> _Place:
        """Where a reference leads, from a namespace, or (empty) if its owner is in none."""
        group = reference.api_version.rpartition("/")[0]
        return cls(group, reference.kind, namespace, reference.name, reference.uid)


class GarbageCollector(QueueController[Item]):
    """Watches all kinds that the server serves."""

    name: ClassVar[str] = "garbage-collector-controller"

    def __init__(self, context: Context) -> None:
        super().__init__(context, workers=WORKERS)
        self._graph = Graph()
        self._known: dict[Kind, Informer[Object]] = {}
        self._absent: Newest[_Place, None] = Newest(MAX_ABSENT)
        self._custom = CustomKinds(context.informers, added=self._follow_custom, removed=self._forget)
        self._recorder = context.recorder(self.name)
        self._started = False

    @property
    def problem(self) -> str:
        """Why it cannot work now."""
        return super().problem if self._started else "waiting for the server to say which kinds it serves"

    async def run(self) -> None:
        """Finds out what there is, and works until cancelled."""
        if not self._started:
            self._follow([kind for kind in collectable_kinds() if await self._is_served(kind)])
            self._started = True
        await super().run()

    async def _is_served(self, kind: Kind) -> bool:
        """Asks for an object that cannot exist: the answer names it, unless the server does not know its kind."""
        try:
            await self._client.get(kind, "default" if kind.namespaced else "", "-")
        except ApiError as error:
            details = error.status.details
            return error.code != 404 or (details is not None and details.name == "-")
        except (OSError, TimeoutError):
            pass  # nobody said no; the informer is going to ask again
        return True

    def _follow(self, served: Sequence[Kind]) -> None:
        for kind in served:
            self._known[kind] = self._context.informers.of(kind, Object)
        self.informers = tuple(self._known[kind] for kind in served)
        for kind in served:
            self._known[kind].on_change(self._handler(kind))

    def _follow_custom(self, kind: Kind) -> None:
        informer = self._known[kind] = self._context.informers.of(kind, Object)
        informer.on_change(self._handler(kind))

    def _forget(self, kind: Kind) -> None:
        """Its objects went before their definition did, and said so; whatever else was owned by them is looked at."""
        informer = self._known.pop(kind, None)
        if informer is not None:
            for obj in list(informer):
                self._on_change(kind, obj, None)
            self._context.informers.forget(kind)

    def _seen(self, item: Item) -> Object | None:
        """An object as its informer shows it; None if it is gone, or its kind is."""
        informer = self._known.get(item.kind)
        return None if informer is None else informer.get(item.namespace, item.name)

    def _kind_of(self, reference: OwnerReference) -> Kind:
        """The kind of an owner. Raises UnknownKind."""
        custom = self._custom.by_kind(reference.api_version, reference.kind)
        return custom if custom is not None else by_kind(reference.api_version, reference.kind)

    # Events

    def _handler(self, kind: Kind) -> Any:
        return partial(self._on_change, kind)

    def _on_change(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            self._on_change(kind, old, None)
            old = None
        before = old.metadata.owner_references if old is not None else ()
        after = new.metadata.owner_references if new is not None else ()
        if before or after:
            changed = before != after
            obj = new if new is not None else old
            assert obj is not None
            if changed:
                self._graph.change(Item.of(kind, obj), before, after)
                self._visit_waiting(obj, before)
            if new is not None and changed and not self._has_all_owners(new):
                self.queue.add(Item.of(kind, new))
        if new is None:
            assert old is not None
            self._note_absent(
                _Place(kind.group, kind.kind, old.metadata.namespace, old.metadata.name, old.metadata.uid)
            )
            for dependent in self._graph.dependents(old.metadata):
                self.queue.add(dependent)
        elif new.metadata.deletion_timestamp is not None and _is_ours(new.metadata.finalizers):
            self.queue.add(Item.of(kind, new))

    def _visit_waiting(self, obj: Object, references: Iterable[OwnerReference]) -> None:
        """An object that left may have been the last that its owner waited for."""
        for reference in references:
            owner = self._known_owner(obj, reference)
            if owner is not None and is_waiting(owner.metadata):
                self.queue.add(Item.of(self._kind_of(reference), owner))

    def _has_all_owners(self, obj: Object) -> bool:
        for reference in obj.metadata.owner_references:
            owner = self._known_owner(obj, reference)
            if owner is None or is_waiting(owner.metadata):
                return False
        return True

    def _known_owner(self, obj: Object, reference: OwnerReference) -> Object | None:
        """The owner, if its informer shows it with the right uid."""
        try:
            kind = self._kind_of(reference)
        except UnknownKind:
            return None
        informer = self._known.get(kind)
        if informer is None:
            return None
        owner = informer.get(obj.metadata.namespace if kind.namespaced else "", reference.name)
        return owner if owner is not None and owner.metadata.uid == reference.uid else None

    def _note_absent(self, place: _Place) -> None:
        if text_length(place) <= LONGEST:
            self._absent.keep(place, None)

    def _is_absent(self, obj: Object, reference: OwnerReference) -> bool:
        """Whether an owner is known to be gone from where the object would have it."""
        return any(_Place.of(reference, namespace) in self._absent for namespace in ("", obj.metadata.namespace))

    # Plans

    async def reconcile(self, key: Item) -> float | None:
        """Looks at an object and its owners."""
        obj = self._seen(key)
        if obj is None:
            return None
        meta = obj.metadata
        owners = {one.uid: await self._state(key, obj, one) for one in meta.owner_references}
        instructions = plan(
            meta,
            owners,
            has_dependents=bool(self._graph.dependents(meta)),
            is_blocked=self._graph.blocks(meta),
            is_in_circle=Owner.WAITING in owners.values() and self._graph.is_in_circle(key, meta, self._waiting),
        )
        for instruction in instructions:
            await self._carry_out(instruction, key, obj)
        return LOOK_AGAIN if any(self._is_only_heard_of(obj, one) for one in meta.owner_references) else None

    def _waiting(self, item: Item) -> ObjectMeta | None:
        """What is known of an object that waits for its dependents; None if it does not wait, or is gone."""
        obj = self._seen(item)
        return obj.metadata if obj is not None and is_waiting(obj.metadata) else None

    def _is_only_heard_of(self, obj: Object, reference: OwnerReference) -> bool:
        """Whether the server has an owner that was not seen here yet: if it goes before it is, nobody says so."""
        if self._is_absent(obj, reference) or self._known_owner(obj, reference) is not None:
            return False
        try:
            return self._kind_of(reference) in self._known
        except UnknownKind:
            return False

    async def _state(self, item: Item, obj: Object, reference: OwnerReference) -> Owner:
        """What became of an owner. That it is gone must be certain, and of a kind that we do not know it never is."""
        known = self._known_owner(obj, reference)
        if known is not None:
            return Owner.WAITING if is_waiting(known.metadata) else Owner.PRESENT
        if self._is_absent(obj, reference):
            return Owner.ABSENT
        try:
            kind = self._kind_of(reference)
        except UnknownKind:
            return Owner.PRESENT
        if kind.namespaced and not obj.metadata.namespace:
            why = f"ownerRef [{reference.api_version}/{reference.kind}, name: {reference.name}, uid: {reference.uid}]"
            message = f"{why} does not exist in namespace {obj.metadata.namespace!r}: {item} belongs to no namespace"
            await self._recorder.warning(obj, "OwnerRefInvalidNamespace", message)
            return Owner.PRESENT
        namespace = obj.metadata.namespace if kind.namespaced else ""
        try:
            found = await self._client.get(kind, namespace, reference.name)
        except ApiError as error:
            if error.code != 404:
                raise
        else:
            if found.metadata.uid == reference.uid:
                return Owner.WAITING if is_waiting(found.metadata) else Owner.PRESENT
        self._note_absent(_Place.of(reference, namespace))
        return Owner.ABSENT

    async def _carry_out(self, instruction: Instruction, item: Item, obj: Object) -> None:
        match instruction:
            case Delete(policy):
                await self._delete(item, obj, policy)
            case Disown(uids):
                await self._disown(item, obj, uids)
            case DropFinalizer(finalizer):
                left = [name for name in obj.metadata.finalizers if name != finalizer]
                await self._patch_metadata(item, obj, {"finalizers": left or None})
            case ReleaseDependents():
                await self._release_dependents(obj)
            case Unblock():
                references = [replace(one, block_owner_deletion=False) for one in obj.metadata.owner_references]
                await self._patch_metadata(item, obj, {"ownerReferences": codec.to_builtins(references)})
            case VisitDependents():
                for dependent in self._graph.dependents(obj.metadata):
                    if self._waiting(dependent) is None:
                        self.queue.add(dependent)

    async def _release_dependents(self, owner: Object) -> None:
        for item in self._graph.dependents(owner.metadata):
            dependent = self._seen(item)
            if dependent is not None:
                await self._disown(item, dependent, frozenset((owner.metadata.uid,)))

    async def _disown(self, item: Item, obj: Object, uids: frozenset[str]) -> None:
        left = [codec.to_builtins(one) for one in obj.metadata.owner_references if one.uid not in uids]
        await self._patch_metadata(item, obj, {"ownerReferences": left or None})

    async def _patch_metadata(self, item: Item, obj: Object, change: dict[str, Any]) -> None:
        """Changes the version that was decided on. A merge patch works for every kind, custom ones, too."""
        meta = {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version, **change}
        try:
            await self._client.patch(item.kind, item.namespace, item.name, {"metadata": meta})
        except ApiError as error:
            if error.code != 404:
                raise

    async def _delete(self, item: Item, obj: Object, policy: str) -> None:
        """Deletes the version that was decided on: somebody may have given it a new owner since."""
        exactly = Preconditions(uid=obj.metadata.uid, resource_version=obj.metadata.resource_version)
        options = DeleteOptions(preconditions=exactly, propagation_policy=policy)
        try:
            await self._client.delete(item.kind, item.namespace, item.name, options)
        except ApiError as error:
            if error.code != 404:
                raise


def collectable_kinds() -> list[Kind]:
    """The kinds whose objects can own, be owned and be deleted."""
    named = [kind for kind in kinds() if kind.storage is kind and kind.resource not in IGNORED]
    return [kind for kind in named if set(kind.verbs) >= NEEDED_VERBS]


def _is_ours(finalizers: tuple[str, ...]) -> bool:
    return FOREGROUND_DELETION in finalizers or ORPHAN in finalizers
