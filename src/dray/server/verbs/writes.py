"""Create and update: decide what is stored, under which name and generation, and store it.

decoded object → defaults → admission (may change it) → what the server decides → validation → admission (may
refuse) → store

What the server decides and checks is the strategy of the kind and subresource (`engine.strategies`).
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from dray.api import codec
from dray.api.generated.core import Namespace, Pod, Service
from dray.api.generated.scheduling import PodGroup
from dray.api.idle_fields import idle_fields
from dray.api.kinds import CLAIMS
from dray.api.meta import Object
from dray.api.registry import Kind
from dray.api.resource import ResourceClaim
from dray.api.status import ApiError
from dray.cel import Postponed
from dray.server import errors, namespaces
from dray.server.beside import LARGE
from dray.server.bodies.request_namespace import check_namespace
from dray.server.custom import slow_rules
from dray.server.engine import Call, Engine, FirstClaims, PlacedPod
from dray.server.objects import finish, finish_ahead, is_done, with_metadata
from dray.server.strategies import UpdateStrategy
from dray.server.verbs import dropped_fields, field_owners, first_account, quota, reservations
from dray.store import ITSELF, Conflict, Create, Exists, Finish, Key, NotFound, Record, Uncertain, Update
from dray.validation import Context
from dray.validation.rules import Rules

LONGEST_PREFIX = 58
GENERATE_ATTEMPTS = 8
UPDATE_ATTEMPTS = 64

T = TypeVar("T", bound=Object)

Change = Callable[[Object], Object]
"""Makes the new object from the stored one; called again if somebody else was faster. May raise ApiError."""


async def finishing(engine: Engine, call: Call, obj: Object) -> Finish:
    """How the store completes an object; of a large one, most is done before."""
    return await engine.beside(call, finish_ahead, obj) if call.is_large else finish(obj)


def dry(complete: Finish, revision: int) -> Record:
    """What a dry run answers with: the record as it would be, stored nowhere."""
    made, data = complete(revision)
    return Record(Key("", made.metadata.namespace, made.metadata.name), revision, revision, data, made)


def _dry_new(complete: Finish) -> Record:
    """What a dry run answers with instead of a new object: it has no version, so it can be sent again to be created."""
    made, _ = complete(0)
    made = with_metadata(made, resource_version="")
    return Record(Key("", made.metadata.namespace, made.metadata.name), 0, 0, codec.encode(made), made)


def current(engine: Engine, call: Call) -> Record:
    """The record that a call names. Raises ApiError if there is none."""
    record = engine.store.get(call.key)
    if record is None:
        raise errors.not_found(call.route.kind, call.route.name)
    return record


async def create(engine: Engine, call: Call, obj: Object, *, track: bool = True) -> Record:
    """Stores a new object; `track` records who set which field. Raises ApiError."""
    obj = placed(engine, call, obj)
    generates = not obj.metadata.name and bool(obj.metadata.generate_name)
    for attempt in range(GENERATE_ATTEMPTS):
        named = obj
        if generates:
            call.is_unnamed = True
            named = with_metadata(obj, name=generated_name(engine, obj))
        new = await admitted(engine, call, named, track=track)
        try:
            if call.route.kind.converts:
                return shown(await _insert(engine, call, await stored_form(engine, call, new)), new)
            return await _insert(engine, call, new)
        except Exists:
            if not generates or attempt == GENERATE_ATTEMPTS - 1:
                raise errors.already_exists(call.route.kind, new.metadata.name) from None
    raise AssertionError("unreachable")


def generated_name(engine: Engine, obj: Object) -> str:
    """A name that begins as its generateName says."""
    return obj.metadata.generate_name[:LONGEST_PREFIX] + engine.new_suffix()


def placed(engine: Engine, call: Call, obj: T, *, name: str = "") -> T:
    """In the namespace of the request, with a uid and a birthday, and with its own name unless another is given."""
    check_namespace(obj, call.route.namespace)
    has_generation = engine.strategies.rules(call.route.kind).has_generation
    return with_metadata(
        obj,
        name=name or obj.metadata.name,
        namespace=call.route.namespace,
        uid=engine.new_uid(),
        creation_timestamp=call.now,
        generation=1 if has_generation else obj.metadata.generation,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
        resource_version="",
        self_link="",
    )


async def admitted(engine: Engine, call: Call, obj: Object, *, track: bool) -> Object:
    """The new object after everything that may change or refuse it."""
    rules, context = engine.strategies.rules(call.route.kind), engine.context(call)
    if call.is_large:
        obj = await engine.beside(call, _completed, call, rules, obj, track)
    else:
        obj = _completed(call, rules, obj, track)
    written = await engine.admission.mutate(engine, call, obj, None)
    if call.is_large or call.route.kind.is_custom:
        obj = await _in_time(engine, call, context, partial(_judged, call, rules, written))
    else:
        obj = _judged(call, rules, written, context)
    await engine.admission.check(engine, call, obj, None)
    return obj


async def _in_time(engine: Engine, call: Call, context: Context, judge: Callable[[Context], Object]) -> Object:
    """What becomes of an object: worked out at once, or beside the loop if it is large or has rules that take long."""
    if not call.is_large:
        try:
            return judge(context)
        except Postponed:
            pass
    return await engine.beside(call, lambda: judge(slow_rules.patient(context)))


def _completed(call: Call, rules: Rules, obj: Object, track: bool) -> Object:
    """The new object with defaults, and with who set its fields."""
    obj = rules.default(obj, call.now)
    # Before admission: what admission adds is nobody's, and a later apply leaves it alone.
    return field_owners.track(call, None, obj) if track else obj


def _judged(call: Call, rules: Rules, written: Object, context: Context) -> Object:
    """The new object with what the server decides. Raises ApiError if something is wrong with it."""
    obj: Object = rules.prepare_create(written, context)
    if context.disabled_gates:
        call.warnings += dropped_fields.warnings(lambda given: rules.prepare_create(written, given), context)
    problems = slow_rules.problems(rules.validate_create, obj, context)
    if problems:
        raise errors.invalid(call.route.kind, obj.metadata.name, problems)
    call.warnings.extend(rules.warnings(obj))
    call.warnings.extend(idle_fields(call.route.kind, obj))
    return obj


async def _insert(engine: Engine, call: Call, obj: Object) -> Record:
    """Stores a new object and what it uses up of quotas. Raises Exists or ApiError."""
    key = _key(call.route.kind, obj)
    if isinstance(obj, Pod) and not call.dry_run:
        together = await _insert_pod(engine, call, key, obj)
        if together is not None:
            return together
    complete = await finishing(engine, call, obj) if call.is_large else finish(obj)
    judged = ITSELF
    if isinstance(obj, Service):
        complete = engine.service_addresses.completing(key, obj, keep=not call.dry_run)
        judged = engine.service_addresses.basis
    complete = namespaces.staying(engine, call, obj.metadata.name, complete)
    basis = namespaces.basis(engine, call, also=judged)
    if call.dry_run:
        stored = engine.store.get(key)
        if stored is not None:
            raise Exists(stored)
        await quota.charges(engine, call, obj)
        return _dry_new(complete)
    for _ in range(UPDATE_ATTEMPTS):
        others: list[Create | Update] = [*await quota.charges(engine, call, obj)]
        if isinstance(obj, Namespace):
            others += first_account.beside(engine, call, obj)
        if not others:
            return await engine.store.create(key, complete, basis)
        try:
            return (await engine.store.transact([Create(key, complete), *others], basis))[0]
        except (Conflict, NotFound):
            continue  # somebody else changed a quota: count again
    raise errors.conflict(call.route.kind, obj.metadata.name, "too many others are using up the quota")


async def _insert_pod(engine: Engine, call: Call, key: Key, pod: Pod) -> Record | None:
    """Stores a pod together with its claims, and with its node and their devices if it can have them now. None, and
    nothing is stored, if all of that comes later; `_insert` says what is wrong, if anything is."""
    maker, claims = engine.first_claims, list[ResourceClaim]()
    if not pod.spec.resource_claims and engine.first_nodes is None:
        return None
    if engine.store.get(key) is not None:
        return None
    if pod.spec.resource_claims:
        made = None if maker is None else await maker.of(pod)
        if made is None:
            return None
        pod, claims = made
    if await quota.charges(engine, call, pod):
        return None
    placed = None if engine.first_nodes is None else await engine.first_nodes.of(pod, claims)
    if placed is not None:
        record = await _insert_placed(engine, call, key, placed, maker)
        if record is not None:
            return record
    if maker is None or not claims:
        return None
    operations = [Create(_key(CLAIMS, claim), finish(claim)) for claim in claims]
    operations.append(await _pod_create(engine, call, key, pod))
    try:
        records = await engine.store.transact(operations, namespaces.basis(engine, call))
    except Exists:
        return None
    maker.stored(records[-1].obj, [record.obj for record in records[:-1]])
    return records[-1]


async def _insert_placed(
    engine: Engine, call: Call, key: Key, placed: PlacedPod, maker: FirstClaims | None
) -> Record | None:
    """Stores a pod with its node, and its claims with their devices; None, and nothing is stored, if that cannot be."""
    pod, placement = placed.pod, placed.placement
    try:
        operations = [Create(claim, complete) for claim, complete in placed.claims]
        operations.append(await _pod_create(engine, call, key, pod))
        records = await engine.store.transact(operations, namespaces.basis(engine, call, also=placed.basis))
    except (Exists, ApiError):
        placement.failed()
        return None  # somebody else has the devices by now, or the name
    except (CancelledError, Uncertain):
        placement.lost()
        raise
    except BaseException:
        placement.failed()
        raise
    if maker is not None and placed.claims:
        maker.stored(records[-1].obj, [record.obj for record in records[:-1]])
    placement.stored(records[-1].obj)
    return records[-1]


async def _pod_create(engine: Engine, call: Call, key: Key, pod: Pod) -> Create:
    """How a pod is stored with what belongs to it, if its namespace stays."""
    complete = await finishing(engine, call, pod)
    return Create(key, namespaces.staying(engine, call, pod.metadata.name, complete))


def _key(kind: Kind, obj: Object) -> Key:
    return Key(kind.storage.resource, obj.metadata.namespace, obj.metadata.name)


async def update(
    engine: Engine,
    call: Call,
    change: Change,
    *,
    track: bool = True,
    expected: str = "",
    uid: str = "",
    then: Call | None = None,
) -> Record:
    """Replaces a stored object by what `change` makes of it; `track` records who set which field.

    With `expected` (a resourceVersion) the stored object must be that version, else `change` is tried again on what
    somebody else stored meanwhile. `then` is an update of the status with the same object, judged next and stored in
    the same write. Raises ApiError.
    """
    route = call.route
    if track:
        change = partial(_settled, call, change)
    for _ in range(UPDATE_ATTEMPTS):
        record = current(engine, call)
        meta = record.obj.metadata
        if expected and expected != meta.resource_version:
            raise errors.conflict(route.kind, route.name)
        if uid and uid != meta.uid:
            raise errors.conflict(route.kind, route.name, _other_uid(uid, meta.uid))
        call.is_large = call.is_large or record.size > LARGE
        old = record.obj if not route.kind.converts else await shown_form(engine, call, record.obj)
        new, asked = await _wanted(engine, call, change, old, then)
        if call.is_large:
            changed = await engine.beside(call, _if_changed, call, old, new, asked if track else None)
        else:
            changed = _if_changed(call, old, new, asked if track else None)
        if changed is None and await is_stale(engine, record):
            continue
        if changed is None and engine.store.is_outdated(record.key):
            changed = new  # to be encrypted by whatever encrypts now
        if changed is None:
            return shown(record, old) if route.kind.converts else record
        complete = await finishing(engine, call, changed)
        if isinstance(changed, Service):
            complete = engine.service_addresses.completing(call.key, changed, keep=not call.dry_run)
        if call.dry_run:
            return dry(complete, record.revision)
        try:
            if route.kind.converts:
                stored = await stored_form(engine, call, changed)
                complete = await finishing(engine, call, stored)
                return shown(await _store(engine, call, stored, record, complete), changed)
            return await _store(engine, call, changed, record, complete)
        except Conflict:
            continue
        except NotFound:
            raise errors.not_found(route.kind, route.name) from None
    raise errors.conflict(route.kind, route.name, "too many others are writing the object")


async def _wanted(engine: Engine, call: Call, change: Change, old: Object, then: Call | None) -> tuple[Object, Object]:
    """What `change` makes of an object, as everybody who has a say in it leaves it, and as it was asked for.

    Raises ApiError.
    """
    wanted = await engine.beside(call, change, old) if call.is_large else change(old)
    if wanted.metadata.resource_version not in ("", old.metadata.resource_version):
        raise errors.conflict(call.route.kind, call.route.name)  # a patch may name the revision it is for
    new, asked = await _changed(engine, call, wanted, old)
    if then is not None:
        new, _ = await _changed(engine, then, replace(new, status=wanted.status), new)  # type: ignore[attr-defined]  # a kind with a status
    return new, asked


def _settled(call: Call, change: Change, old: Object) -> Object:
    return field_owners.settled(call, old, change(old))


async def is_stale(engine: Engine, record: Record) -> bool:
    """Whether somebody else has replaced a record meanwhile, which nobody notices who writes nothing."""
    if not engine.store.is_shared:
        return False
    await engine.store.catch_up()
    return engine.store.get(record.key) is not record


def _if_changed(call: Call, old: Object, new: Object, asked: Object | None) -> Object | None:
    """The new object, with who set its fields if it is known what was asked for; None if it is as it was."""
    if new == old:
        return None
    if asked is None:
        return new
    # What admission and the server itself change is nobody's. Of what is sent to other subresources, they take a part.
    sent = asked if call.route.subresource in ("", "status") else new
    owned = field_owners.track(call, old, sent).metadata.managed_fields
    return new if new.metadata.managed_fields is owned else with_metadata(new, managed_fields=owned)


async def stored_form(engine: Engine, call: Call, obj: Object) -> Object:
    """A custom object in the version that it is stored in. Raises ApiError."""
    assert engine.conversions is not None
    made: Object = (await engine.conversions.convert(call.route.kind.storage, [obj]))[0]
    call.is_large = call.is_large or made is not obj  # nobody has seen how long a webhook has made it
    return made


async def shown_form(engine: Engine, call: Call, obj: Object) -> Object:
    """A stored custom object in the version of a call. Raises ApiError."""
    assert engine.conversions is not None
    made: Object = (await engine.conversions.convert(call.route.kind, [obj]))[0]
    call.is_large = call.is_large or made is not obj
    return made


def shown(record: Record, obj: Object) -> Record:
    """A record that shows an object in the version that it was written in, with the metadata that it got."""
    return dry(finish(replace(obj, metadata=record.obj.metadata)), record.revision)


def _other_uid(expected: str, actual: str) -> str:
    return f"Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}"


async def _changed(engine: Engine, call: Call, new: Object, old: Object) -> tuple[Object, Object]:
    """The new object after everything that may change or refuse it, and as it was before that."""
    context = engine.context(call)
    strategy = engine.strategies.update(call.route.kind, call.route.subresource)
    if new.metadata is not old.metadata:
        new = with_metadata(new, resource_version=old.metadata.resource_version)
    if call.is_large:
        new = await engine.beside(call, strategy.default, new, call.now)
    else:
        new = strategy.default(new, call.now)
    asked = new
    written = await engine.admission.mutate(engine, call, new, old)
    new = await _in_time(engine, call, context, partial(_judged_update, call, strategy, written, old))
    await engine.admission.check(engine, call, new, old)
    return new, asked


def _judged_update(call: Call, strategy: UpdateStrategy, written: Object, old: Object, context: Context) -> Object:
    """The new object with all that may change. Raises ApiError if something is wrong with it."""
    new: Object = strategy.prepare(written, old, context)
    if context.disabled_gates:
        call.warnings += dropped_fields.warnings(lambda given: strategy.prepare(written, old, given), context)
    problems = slow_rules.problems(strategy.validate, new, old, context)
    if problems:
        raise errors.invalid(call.route.kind, old.metadata.name, problems)
    call.warnings.extend(strategy.warnings(new))
    if not call.route.subresource:
        call.warnings.extend(idle_fields(call.route.kind, new))
    return new


async def _store(engine: Engine, call: Call, new: Object, record: Record, complete: Finish) -> Record:
    """Stores the new object, or removes it if it was only waiting for its last finalizer."""
    basis = ITSELF
    if isinstance(new, PodGroup) and reservations.is_judged(call):
        complete, basis = reservations.dissolution(engine, new, record.obj, complete)
    if is_done(new):
        return await engine.store.delete(call.key, record.revision, complete, basis)
    if isinstance(new, ResourceClaim):
        guard = engine.held_devices.guarded
        by_program = reservations.is_judged(call)
        is_judged = by_program or bool(new.status.reserved_for)  # schedulers allocate and reserve in one write
        complete = guard(call.key, new, record.obj, complete, is_judged=is_judged, by_program=by_program)
        basis = ITSELF if record.obj.status.allocation is not None else engine.held_devices.basis([new])
        if by_program:
            complete, others = reservations.release(engine, new, record.obj, complete)
            basis = others._replace(guards=basis.guards)
        return await engine.store.update(call.key, record.revision, complete, basis)
    charges = await quota.charges(engine, call, new, record.obj)
    if isinstance(new, Service):
        basis = engine.service_addresses.basis
    if charges:
        return (await engine.store.transact([Update(call.key, record.revision, complete), *charges], basis))[0]
    return await engine.store.update(call.key, record.revision, complete, basis)
