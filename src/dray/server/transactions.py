"""What belongs together in one write: a pod, the claims made for it and its note of them; its node and their devices.

Components in the same process ask for it (`server.local`). Over HTTP, and where people have configured admission, each
object is written by itself, as with Kubernetes (`are_possible`).

What is new in these objects was made from parts that were validated when they were stored, and is not validated again.
Who may write what, admission, quotas and the guard of held devices apply as to any other write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from dray.api.generated.core import Binding, Event, Pod
from dray.api.kinds import TEMPLATES
from dray.api.meta import Object
from dray.api.pod_claims import claim_for, with_statuses
from dray.api.pod_groups import group_of
from dray.api.pods import binding_of
from dray.api.resource import ResourceClaim, ResourceClaimTemplate
from dray.server import errors, namespaces
from dray.server.engine import Call, Engine, PlacedPod, Placement
from dray.server.objects import finish
from dray.server.subresources.pod_binding import assigned
from dray.server.verbs import quota, writes
from dray.store import Conflict, Create, Exists, Finish, Key, NotFound, Operation, Update
from dray.validation.context import Errors

T = TypeVar("T", bound=Object)


class Allocation(NamedTuple):
    """A claim with its first devices and their user, and the calls that update it and its status."""

    claim: ResourceClaim
    update: Call
    status: Call


def are_possible(engine: Engine) -> bool:
    """Whether several objects can be written at once, with nobody to be asked about each."""
    return not engine.disabled_gates and engine.admission.is_idle


async def bind(engine: Engine, call: Call, binding: Binding, claims: list[Allocation]) -> list[ResourceClaim]:
    """Gives a pod its node, and claims their devices; the claims as they are stored then.

    Raises ApiError, and then nothing is stored.
    """
    for _ in range(writes.UPDATE_ATTEMPTS):
        operations: list[Operation] = [await _allocate(engine, each) for each in claims]
        record = writes.current(engine, call)
        await engine.admission.check(engine, call, None, record.obj)
        operations.append(Update(call.key, record.revision, finish(assigned(record.obj, binding, call.now))))
        try:
            stored = await engine.store.transact(operations, engine.held_devices.basis(each.claim for each in claims))
        except (Conflict, NotFound):
            continue  # somebody was faster: what they wrote is judged now
        return [each.obj for each in stored[:-1]]
    raise errors.conflict(call.route.kind, call.route.name, "too many others are writing the object")


async def _allocate(engine: Engine, wanted: Allocation) -> Update:
    """A claim with its devices. Raises ApiError if it is not the one that was decided on any more."""
    call, claim = wanted.update, wanted.claim
    record = writes.current(engine, call)
    old: ResourceClaim = record.obj
    meta = claim.metadata
    if meta.resource_version != old.metadata.resource_version or meta.uid != old.metadata.uid:
        raise errors.conflict(call.route.kind, call.route.name)
    return Update(call.key, record.revision, await _with_devices(engine, wanted, old))


async def _with_devices(engine: Engine, wanted: Allocation, old: ResourceClaim) -> Finish:
    """How the store completes a claim that gets its devices. Raises ApiError if it may not have them."""
    call, claim = wanted.update, wanted.claim
    # Made from what is stored: whatever else the caller's copy says does not count.
    held = replace(old, metadata=replace(old.metadata, finalizers=claim.metadata.finalizers))
    await engine.admission.check(engine, call, held, old)
    new = replace(held, status=claim.status)
    await engine.admission.check(engine, wanted.status, new, held)
    return engine.held_devices.guarded(call.key, new, old, finish(new))


async def create_claims(
    engine: Engine, call: Call, note: Call, pod: Pod, claims: Mapping[str, ResourceClaim]
) -> list[ResourceClaim] | None:
    """Stores the claims that were made for entries of a pod, and notes them in its status; the claims as stored.

    `call` creates claims, `note` updates the pod's status. None, and nothing is stored, if that takes several writes:
    quotas are charged for one claim at a time. Raises ApiError, and then nothing is stored either.
    """
    for _ in range(writes.UPDATE_ATTEMPTS):
        record = writes.current(engine, note)
        old: Pod = record.obj
        known = pod.status.resource_claim_statuses
        if old.metadata.uid != pod.metadata.uid or old.status.resource_claim_statuses != known:
            raise errors.conflict(note.route.kind, note.route.name, "its claims have changed")
        made = {entry: await _made(engine, call, claim) for entry, claim in claims.items()}
        names = {entry: claim.metadata.name for entry, claim in made.items()}
        told = replace(old, status=replace(old.status, resource_claim_statuses=with_statuses(old, names)))
        await engine.admission.check(engine, note, told, old)
        operations: list[Operation] = [_create(engine, call, claim) for claim in made.values()]
        operations.append(Update(note.key, record.revision, finish(told)))
        for claim in made.values():
            operations += await quota.charges(engine, call, claim)
        if len(operations) > len(made) + 1 and len(made) > 1:
            return None
        try:
            stored = await engine.store.transact(operations, namespaces.basis(engine, call))
        except (Conflict, NotFound, Exists):
            continue
        return [each.obj for each in stored[: len(made)]]
    raise errors.conflict(note.route.kind, note.route.name, "too many others are writing the object")


async def create_events(engine: Engine, calls: Mapping[str, Call], events: Sequence[Event]) -> list[Event] | None:
    """Stores events; None, and nothing is stored, if some use up a quota, or are stored already. Raises ApiError.

    `calls` create events in a namespace each.
    """
    operations: list[Operation] = []
    for event in events:
        call = calls[event.metadata.namespace]
        new = await _admitted(engine, call, writes.placed(engine, call, event))
        if await quota.charges(engine, call, new):
            return None
        operations.append(_create(engine, call, new))
    try:
        stored = await engine.store.transact(operations, namespaces.basis(engine, *calls.values()))
        return [record.obj for record in stored]
    except Exists:
        return None


class ClaimsWithPods:
    """Makes the claims of new pods as they are stored, for whoever would make them a moment later.

    On Kubernetes a controller makes them, and names them in the pod's status. What takes more than their templates is
    left to it: groups of pods, quotas, anything that is refused.
    """

    def __init__(
        self, engine: Engine, call_in: Callable[[str], Call], told: Callable[[Pod, Sequence[ResourceClaim]], None]
    ) -> None:
        """`call_in` creates claims in a namespace, or raises ApiError; `told` hears of those that are stored."""
        self._engine = engine
        self._call_in = call_in
        self._told = told

    async def of(self, pod: Pod) -> tuple[Pod, list[ResourceClaim]] | None:
        """The pod, which names them in its status, and the claims; None if they are to be made later."""
        engine, meta = self._engine, pod.metadata
        if not are_possible(engine) or group_of(pod) is not None:
            return None
        claims = {}
        try:
            call = self._call_in(meta.namespace)
            for entry in pod.spec.resource_claims:
                if entry.resource_claim_template_name is not None:
                    template = engine.get(TEMPLATES.resource, meta.namespace, entry.resource_claim_template_name)
                    if not isinstance(template, ResourceClaimTemplate):
                        return None
                    claims[entry.name] = claim = await _made(engine, call, claim_for(pod, entry, template))
                    if await quota.charges(engine, call, claim):
                        return None
        except errors.ApiError:
            return None  # the controller tells why
        if not claims:
            return None
        names = {entry: claim.metadata.name for entry, claim in claims.items()}
        status = replace(pod.status, resource_claim_statuses=with_statuses(pod, names))
        return replace(pod, status=status), list(claims.values())

    def stored(self, pod: Pod, claims: Sequence[ResourceClaim]) -> None:
        """They are stored."""
        self._told(pod, claims)


class NodesWithPods:
    """Gives new pods their nodes, and their claims devices, for a scheduler that would do it a moment later."""

    def __init__(
        self,
        engine: Engine,
        calls: Callable[[Pod, Sequence[ResourceClaim]], tuple[Call, list[Allocation]]],
        place: Callable[[Pod, Sequence[ResourceClaim]], Placement | None],
    ) -> None:
        """`calls` bind a pod and allocate claims, or raises ApiError; `place` decides, if it is to be decided now."""
        self._engine = engine
        self._calls = calls
        self._place = place

    async def of(self, pod: Pod, claims: Sequence[ResourceClaim]) -> PlacedPod | None:
        """The pod with its node, and the claims made for it with their devices; None if it gets one later."""
        engine = self._engine
        placement = self._place(pod, claims) if are_possible(engine) else None
        if placement is None:
            return None
        try:
            call, allocations = self._calls(pod, placement.claims)
            given = [
                (each.update.key, await _with_devices(engine, each, claim))
                for each, claim in zip(allocations, claims, strict=True)
            ]
            await engine.admission.check(engine, call, None, pod)
            basis = engine.held_devices.basis(placement.claims)
            return PlacedPod(assigned(pod, binding_of(pod, placement.node), call.now), given, basis, placement)
        except errors.ApiError:
            placement.failed()
            return None  # the scheduler tells why
        except BaseException:
            placement.failed()
            raise


async def _made(engine: Engine, call: Call, claim: ResourceClaim) -> ResourceClaim:
    """A claim as it is going to be stored. Raises ApiError.

    Its spec and metadata are those of a stored template and pod; what else a namespace must allow is looked at.
    """
    name = writes.generated_name(engine, claim)
    return await _admitted(engine, call, writes.placed(engine, call, claim, name=name))


async def _admitted(engine: Engine, call: Call, obj: T) -> T:
    """A new object whose parts were validated before, after everything that may change or refuse it."""
    rules, context = engine.strategies.rules(call.route.kind), engine.context(call)
    written = await engine.admission.mutate(engine, call, rules.default(obj, call.now), None)
    new: T = rules.prepare_create(written, context)
    problems: Errors = []
    rules.check(problems, new, None, context)
    if problems:
        raise errors.invalid(call.route.kind, new.metadata.name, problems)
    await engine.admission.check(engine, call, new, None)
    return new


def _create(engine: Engine, call: Call, obj: Object) -> Create:
    """How something new is stored, if its namespace stays."""
    key = Key(call.route.kind.storage.resource, obj.metadata.namespace, obj.metadata.name)
    return Create(key, namespaces.staying(engine, call, obj.metadata.name, finish(obj)))
