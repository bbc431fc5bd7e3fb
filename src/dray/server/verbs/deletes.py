"""Delete: at once, or marked and left to whoever must clean up first (finalizers, kubelet, garbage collector)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.field import FieldError, invalid, not_supported
from dray.api.generated.batch import Job
from dray.api.generated.core import Namespace, Pod, ReplicationController
from dray.api.meta import DeleteOptions, Object, Preconditions, StatusDetails
from dray.api.pods import is_finished
from dray.api.registry import Kind
from dray.api.times import Time
from dray.api.well_known import FOREGROUND_DELETION
from dray.server import errors
from dray.server.beside import LARGE
from dray.server.bodies.options import PROPAGATION, dry_run_problem, dry_runs, invalid_options, is_true, number
from dray.server.engine import Call, Engine
from dray.server.objects import with_metadata
from dray.server.verbs.writes import UPDATE_ATTEMPTS, current, dry, finishing, is_stale
from dray.store import Conflict, NotFound, Record

ORPHAN = "orphan"
_IGNORE_READ_ERROR = "ignoreStoreReadErrorWithClusterBreakingPotential"
"""A wish to delete what cannot be read any more. Whatever is served here can be read."""
PODS_STAY = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class Deleted(msgspec.Struct, frozen=True):
    """What became of the object: gone, or only marked."""

    record: Record
    gone: bool


def options(given: DeleteOptions, query: dict[str, str], uri: str) -> DeleteOptions:
    """Delete options of a body, and what the query says. Raises ApiError."""
    changes: dict[str, Any] = {}
    if "gracePeriodSeconds" in query:
        changes["grace_period_seconds"] = number(query["gracePeriodSeconds"], "gracePeriodSeconds")
    if "propagationPolicy" in query:
        changes["propagation_policy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        changes["orphan_dependents"] = is_true(query["orphanDependents"])
    if "dryRun" in query:
        changes["dry_run"] = dry_runs(query, uri)
    if _IGNORE_READ_ERROR in query:
        changes["ignore_store_read_error_with_cluster_breaking_potential"] = is_true(query[_IGNORE_READ_ERROR])
    if given.preconditions is None and ("uid" in query or "resourceVersion" in query):
        changes["preconditions"] = Preconditions(uid=query.get("uid"), resource_version=query.get("resourceVersion"))
    return checked(replace(given, **changes) if changes else given)


def checked(given: DeleteOptions) -> DeleteOptions:
    """Options that can be meant. Raises ApiError."""
    problems = [problem for problem in _problems(given) if problem is not None]
    if problems:
        raise invalid_options("DeleteOptions", problems)
    return given


def check_collection(given: DeleteOptions) -> None:
    """That options can be meant for many objects at once. Raises ApiError."""
    if given.ignore_store_read_error_with_cluster_breaking_potential:
        raise invalid_options("DeleteOptions", [invalid(_IGNORE_READ_ERROR, True, "is not allowed for collections")])


def _problems(given: DeleteOptions) -> list[FieldError | None]:
    problems = [dry_run_problem(given.dry_run)]
    policy = given.propagation_policy
    if policy is not None and policy not in PROPAGATION:
        problems.append(not_supported("propagationPolicy", policy, (*PROPAGATION, "nil")))
    if policy is not None and given.orphan_dependents is not None:
        message = "Invalid value: orphanDependents and propagationPolicy cannot both be set"
        problems.append(FieldError("FieldValueInvalid", "propagationPolicy", message))
    if given.ignore_store_read_error_with_cluster_breaking_potential:
        others = {
            ".propagationPolicy": policy,
            ".orphanDependents": given.orphan_dependents,
            ".gracePeriodSeconds": given.grace_period_seconds,
            ".preconditions": given.preconditions,
        }
        problems += [
            invalid(_IGNORE_READ_ERROR, True, f"cannot be set together with {name}")
            for name, value in others.items()
            if value is not None
        ]
    return problems


async def delete(engine: Engine, call: Call, given: DeleteOptions, *, is_admitted: bool = False) -> Deleted:
    """Deletes the object that a call names; admission has its say unless it had it before. Raises ApiError."""
    if given.dry_run:
        call.dry_run = True  # whoever is asked about the delete sees it, too
    if not engine.admission.is_idle:
        call.options = codec.to_builtins(given)
    for _ in range(UPDATE_ATTEMPTS):
        record = current(engine, call)
        obj: Object = record.obj
        _check_preconditions(call, given, obj)
        if given.ignore_store_read_error_with_cluster_breaking_potential:
            why = "the object can be read: delete it without ignoreStoreReadErrorWithClusterBreakingPotential"
            raise errors.conflict(call.route.kind, call.route.name, why)
        if not is_admitted:
            await engine.admission.check(engine, call, None, obj)
        marked = _mark(obj, given, call.now)
        if isinstance(obj, Job) and _keeps_dependents(obj, given) and PODS_STAY not in call.warnings:
            call.warnings.append(PODS_STAY)
        call.is_large = call.is_large or record.size > LARGE
        complete = await finishing(engine, call, marked or _last(obj, call.now))
        if call.dry_run:
            return Deleted(dry(complete, record.revision), marked is None)
        try:
            if marked is None:
                return Deleted(await engine.store.delete(call.key, record.revision, complete), True)
            if marked == obj:
                if await is_stale(engine, record):
                    continue
                return Deleted(record, False)
            return Deleted(await engine.store.update(call.key, record.revision, complete), False)
        except Conflict:
            continue
        except NotFound:
            raise errors.not_found(call.route.kind, call.route.name) from None
    raise errors.conflict(call.route.kind, call.route.name, "too many others are writing the object")


def _check_preconditions(call: Call, given: DeleteOptions, obj: Object) -> None:
    wanted = given.preconditions
    if wanted is None:
        return
    meta = obj.metadata
    for name, expected, actual in (
        ("UID", wanted.uid, meta.uid),
        ("ResourceVersion", wanted.resource_version, meta.resource_version),
    ):
        if expected is not None and expected != actual:
            raise _other_object(call.route.kind, call.route.name, name, expected, actual)


def _other_object(kind: Kind, name: str, field: str, expected: str, actual: str) -> errors.ApiError:
    """The object is not the one that should go. The kind is named here, where other conflicts name the resource."""
    about = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    why = f"the {field} in the precondition ({expected}) does not match the {field} in record ({actual})"
    details = StatusDetails(name=name, group=kind.group, kind=kind.kind)
    return errors.ApiError(409, "Conflict", f'Operation cannot be fulfilled on {about} "{name}": {why}', details)


def _mark(obj: Object, given: DeleteOptions, now: Time) -> Object | None:
    """The object marked as being deleted; None if nothing keeps it and it can go at once."""
    finalizers = _finalizers(obj, given)
    grace = _grace_period(obj, given)
    if not finalizers and not grace and not _has_content(obj):
        return None
    meta = obj.metadata
    if meta.deletion_timestamp is None:
        deadline = now.after(grace)
        obj = with_metadata(obj, deletion_timestamp=deadline, deletion_grace_period_seconds=grace)
        obj = _next_generation(obj)
    elif grace < (meta.deletion_grace_period_seconds or 0):
        deadline = now.after(grace)
        obj = with_metadata(
            obj, deletion_timestamp=min(deadline, meta.deletion_timestamp), deletion_grace_period_seconds=grace
        )
    if isinstance(obj, Namespace):
        obj = replace(obj, status=replace(obj.status, phase="Terminating"))
    return obj if obj.metadata.finalizers == finalizers else with_metadata(obj, finalizers=finalizers)


def _last(obj: Object, now: Time) -> Object:
    """An object as it was when it went: of a pod, that includes when and that it had no time left."""
    if not isinstance(obj, Pod):
        return obj
    if obj.metadata.deletion_timestamp is None:
        obj = _next_generation(with_metadata(obj, deletion_timestamp=now))
    return with_metadata(obj, deletion_grace_period_seconds=0)


def _next_generation(obj: Object) -> Object:
    """Kinds that count generations count the wish to be deleted, too."""
    generation = obj.metadata.generation
    return with_metadata(obj, generation=generation + 1) if generation else obj


def _finalizers(obj: Object, given: DeleteOptions) -> tuple[str, ...]:
    """The finalizers with those that the propagation policy asks the garbage collector to honour."""
    kept = tuple(name for name in obj.metadata.finalizers if name not in (ORPHAN, FOREGROUND_DELETION))
    had = set(obj.metadata.finalizers)
    policy = given.propagation_policy
    if policy is None and given.orphan_dependents is not None:
        policy = "Orphan" if given.orphan_dependents else "Background"
    if policy == "Orphan" or (policy is None and ORPHAN in had):
        return (*kept, ORPHAN)
    if policy == "Foreground" or (policy is None and FOREGROUND_DELETION in had):
        return (*kept, FOREGROUND_DELETION)
    if policy is None and _keeps_dependents(obj, given):
        return (*kept, ORPHAN)
    return kept


def _keeps_dependents(obj: Object, given: DeleteOptions) -> bool:
    """Whether pods stay if nobody says what is to become of them: so it is with the oldest kinds, as in Kubernetes."""
    if given.propagation_policy is not None or given.orphan_dependents is not None:
        return False
    return isinstance(obj, ReplicationController | Job)


def _grace_period(obj: Object, given: DeleteOptions) -> int:
    """How long a pod's node may take to stop it; no other kind has time."""
    if not isinstance(obj, Pod) or not obj.spec.node_name or is_finished(obj):
        return 0
    asked = given.grace_period_seconds
    if asked is None:
        asked = obj.spec.termination_grace_period_seconds
    if asked is None:
        asked = 30
    if asked < 0:
        asked = 1
    already = obj.metadata.deletion_grace_period_seconds
    return asked if obj.metadata.deletion_timestamp is None or already is None else min(asked, already)


def _has_content(obj: Object) -> bool:
    """A namespace goes only when its controller has emptied it."""
    return isinstance(obj, Namespace) and bool(obj.spec.finalizers)
