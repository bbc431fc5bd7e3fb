"""Create and update: decide what is stored, under which name and generation, and store it.

decoded object → defaults → admission (may change it) → what the server decides → validation → admission (may
refuse) → store
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from msgspec.structs import replace

from dray import validation
from dray.api.generated.certificates import CertificateSigningRequest
from dray.api.generated.core import Namespace, Pod
from dray.api.meta import Object
from dray.api.resource import ResourceClaim
from dray.server import certificate_approval, dropped_fields, errors, quota
from dray.server.engine import Call, Engine
from dray.server.namespace_finalize import finalized
from dray.server.objects import finish, with_metadata
from dray.server.request_namespace import check_namespace
from dray.store import Conflict, Create, Exists, Key, NotFound, Record
from dray.validation.ephemeral_containers import validate_ephemeral_containers, with_ephemeral_containers

LONGEST_PREFIX = 58
GENERATE_ATTEMPTS = 8
UPDATE_ATTEMPTS = 64
SCHEDULER = "system:kube-scheduler"

Track = Callable[[Call, Object | None, Object], Object]
"""Records which fields a write sets, and for whom."""

Change = Callable[[Object], Object]
"""Makes the new object from the stored one; called again if somebody else was faster. May raise ApiError."""


def dry(obj: Object, revision: int) -> Record:
    """What a dry run answers with: the record as it would be, stored nowhere."""
    made, data = finish(obj)(revision)
    return Record(Key("", made.metadata.namespace, made.metadata.name), revision, revision, data, made)


async def create(engine: Engine, call: Call, obj: Object, track: Track | None = None) -> Record:
    """Stores a new object. Raises ApiError."""
    obj = _placed(engine, call, obj)
    for attempt in range(GENERATE_ATTEMPTS):
        named = _named(engine, obj)
        try:
            return await _create(engine, call, named, track)
        except errors.ApiError as error:
            generated = not obj.metadata.name
            if not generated or error.reason != "AlreadyExists" or attempt == GENERATE_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _placed(engine: Engine, call: Call, obj: Object) -> Object:
    """In the namespace of the request, with a uid and a birthday."""
    check_namespace(obj, call.route.namespace)
    return with_metadata(
        obj,
        namespace=call.route.namespace,
        uid=engine.new_uid(),
        creation_timestamp=call.now,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
        resource_version="",
        self_link="",
    )


def _named(engine: Engine, obj: Object) -> Object:
    meta = obj.metadata
    if meta.name or not meta.generate_name:
        return obj
    return with_metadata(obj, name=meta.generate_name[:LONGEST_PREFIX] + engine.new_suffix())


async def _create(engine: Engine, call: Call, obj: Object, track: Track | None) -> Record:
    kind = call.route.kind
    context = engine.context(call)
    rules = validation.rules_for(obj)
    obj = rules.default(obj, call.now)
    if track is not None:  # before admission: what admission adds is nobody's, and a later apply leaves it alone
        obj = track(call, None, obj)
    obj = engine.admission.mutate(engine, call, obj, None)
    written = obj
    obj = rules.prepare_create(written, context)
    if context.disabled_gates:
        call.warnings += dropped_fields.warnings(lambda given: rules.prepare_create(written, given), context)
    problems = rules.validate_create(obj, context)
    if problems:
        raise errors.invalid(kind, obj.metadata.name, problems)
    engine.admission.check(engine, call, obj, None)
    call.warnings.extend(rules.warnings(obj))
    key = Key(kind.storage.resource, obj.metadata.namespace, obj.metadata.name)
    if call.dry_run:
        if engine.store.get(key) is not None:
            raise errors.already_exists(kind, obj.metadata.name)
        return dry(obj, engine.store.revision)
    for _ in range(UPDATE_ATTEMPTS):
        charges = quota.charges(engine, call, obj)
        try:
            if not charges:
                return await engine.store.create(key, finish(obj))
            return (await engine.store.transact([Create(key, finish(obj)), *charges]))[0]
        except Exists:
            raise errors.already_exists(kind, obj.metadata.name) from None
        except (Conflict, NotFound):
            continue  # somebody else changed a quota: count again
    raise errors.conflict(kind, obj.metadata.name, "too many others are using up the quota")


async def update(
    engine: Engine,
    call: Call,
    change: Change,
    track: Track | None = None,
    *,
    expected: str = "",
    uid: str = "",
    then: Call | None = None,
) -> Record:
    """Replaces a stored object by what `change` makes of it.

    With `expected` (a resourceVersion) the stored object must be that version, else `change` is tried again on what
    somebody else stored meanwhile. `then` is an update of the status with the same object, judged next and stored in
    the same write. Raises ApiError.
    """
    for _ in range(UPDATE_ATTEMPTS):
        record = current(engine, call)
        if expected and expected != record.obj.metadata.resource_version:
            raise errors.conflict(call.route.kind, call.route.name)
        if uid and uid != record.obj.metadata.uid:
            raise errors.conflict(call.route.kind, call.route.name, _other_uid(uid, record.obj.metadata.uid))
        wanted = change(record.obj)
        if wanted.metadata.resource_version not in ("", record.obj.metadata.resource_version):
            raise errors.conflict(call.route.kind, call.route.name)  # a patch may name the revision it is for
        new = _changed(engine, call, wanted, record.obj)
        if then is not None:
            new = _changed(engine, then, replace(new, status=wanted.status), new)  # type: ignore[attr-defined]
        if new == record.obj:
            return record
        if track is not None:
            new = track(call, record.obj, new)
        if call.dry_run:
            return dry(new, record.revision)
        try:
            return await _store(engine, call, new, record)
        except Conflict:
            continue
        except NotFound:
            raise errors.not_found(call.route.kind, call.route.name) from None
    raise errors.conflict(call.route.kind, call.route.name, "too many others are writing the object")


def _other_uid(expected: str, actual: str) -> str:
    return f"Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}"


def current(engine: Engine, call: Call) -> Record:
    """The record that a call names. Raises ApiError if there is none."""
    record = engine.store.get(call.key)
    if record is None:
        raise errors.not_found(call.route.kind, call.route.name)
    return record


def _changed(engine: Engine, call: Call, new: Object, old: Object) -> Object:
    """The new object after everything that may change or refuse it."""
    kind = call.route.kind
    context = engine.context(call)
    if new.metadata is not old.metadata:
        new = with_metadata(new, resource_version=old.metadata.resource_version)
    is_status = call.route.subresource == "status"
    rules = validation.rules_for(new)
    default = rules.default_of_status if is_status else rules.default
    new = engine.admission.mutate(engine, call, default(new, call.now), old)
    if call.route.subresource == "finalize":
        return finalized(cast(Namespace, new), cast(Namespace, old))
    if call.route.subresource == "ephemeralcontainers":
        return _debugged(engine, call, cast(Pod, new), cast(Pod, old))
    if call.route.subresource == "approval":
        return _approved(engine, call, cast(CertificateSigningRequest, new), cast(CertificateSigningRequest, old))
    if is_status:
        prepare, validate = rules.prepare_status, rules.validate_status
    else:
        prepare, validate = rules.prepare_update, rules.validate_update
    written = new
    new = prepare(written, old, context)
    if context.disabled_gates:
        call.warnings += dropped_fields.warnings(lambda given: prepare(written, old, given), context)
    problems = validate(new, old, context)
    if problems:
        raise errors.invalid(kind, old.metadata.name, problems)
    engine.admission.check(engine, call, new, old)
    if not is_status:
        call.warnings.extend(rules.warnings(new))
    return new


def _debugged(engine: Engine, call: Call, wanted: Pod, old: Pod) -> Object:
    """The pod with more ephemeral containers, and as it was otherwise."""
    new = with_ephemeral_containers(old, wanted)
    problems = validate_ephemeral_containers(new, old)
    if problems:
        raise errors.invalid(call.route.kind, old.metadata.name, problems)
    engine.admission.check(engine, call, new, old)
    return new


def _approved(engine: Engine, call: Call, wanted: CertificateSigningRequest, old: CertificateSigningRequest) -> Object:
    """The request for a certificate with a decision, and as it was otherwise."""
    new = certificate_approval.decided(old, wanted, call.now)
    problems = certificate_approval.problems(new, old)
    if problems:
        raise errors.invalid(call.route.kind, old.metadata.name, problems)
    engine.admission.check(engine, call, new, old)
    return new


async def _store(engine: Engine, call: Call, new: Object, record: Record) -> Record:
    """Stores the new object, or removes it if it was only waiting for its last finalizer."""
    if is_done(new):
        return await engine.store.delete(call.key, record.revision, finish(new))
    complete = finish(new)
    if isinstance(new, ResourceClaim):
        guard = engine.held_devices.guarded
        complete = guard(call.key, new, record.obj, complete, is_judged=_is_by_scheduler(call))
    return await engine.store.update(call.key, record.revision, complete)


def _is_by_scheduler(call: Call) -> bool:
    """Whether a scheduler makes a call: by its user, or by the name that its client gives itself."""
    return call.caller.user == SCHEDULER or "scheduler" in call.field_manager


def is_done(obj: Object) -> bool:
    """Whether an object that is being deleted has nothing left to wait for."""
    meta = obj.metadata
    if meta.deletion_timestamp is None or meta.finalizers or meta.deletion_grace_period_seconds:
        return False
    return not getattr(getattr(obj, "spec", None), "finalizers", ()) or obj.kind != "Namespace"
