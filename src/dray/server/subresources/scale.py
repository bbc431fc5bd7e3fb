"""`/scale`: how many replicas a workload has and should have, in one form for all kinds (autoscaling/v1 Scale)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dray.api import codec
from dray.api.field import invalid
from dray.api.generated.autoscaling import Scale, ScaleSpec, ScaleStatus
from dray.api.labels import LabelSelector
from dray.api.meta import Object, ObjectMeta, StatusCause, StatusDetails
from dray.api.status import ApiError
from dray.server import errors
from dray.server.bodies import number_ranges
from dray.server.bodies.body import check_part
from dray.server.strategies import View

API_VERSION = "autoscaling/v1"


def metadata_of(obj: Object) -> ObjectMeta:
    """What a scale says of the object whose scale it is."""
    meta = obj.metadata
    return ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
    )


def scale_of(obj: Any) -> Scale:
    """The scale of a workload."""
    selector = obj.spec.selector
    if isinstance(selector, dict):  # a ReplicationController has the labels themselves
        text = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    else:
        text = "" if selector is None else str(LabelSelector.of(selector))
    return Scale(
        kind="Scale",
        api_version=API_VERSION,
        metadata=metadata_of(obj),
        spec=ScaleSpec(replicas=obj.spec.replicas or 0),
        status=ScaleStatus(replicas=obj.status.replicas, selector=text),
    )


def read_any(value: Any, name: str) -> Scale:
    """A scale that is about the workload of a name. Raises ApiError."""
    check_part(value, "Scale", "autoscaling")
    reading = codec.read(value, Scale)
    if reading.obj is None:
        raise errors.bad_request("; ".join(map(str, reading.errors)))
    given = reading.obj
    if given.metadata.name != name:
        message = f"the name of the scale ({given.metadata.name}) does not match the name on the URL ({name})"
        raise errors.bad_request(message)
    if given.spec.replicas > number_ranges.LARGEST:
        raise errors.bad_request(f"spec.replicas: the number {given.spec.replicas} does not fit into 32 bits")
    return given


def read(value: Any, name: str) -> Scale:
    """The same, of a workload that is built in: how many it can have is known. Raises ApiError."""
    given = read_any(value, name)
    if given.spec.replicas < 0:
        problem = invalid("spec.replicas", given.spec.replicas, "must be greater than or equal to 0")
        cause = StatusCause(reason=problem.reason, message=problem.message, field=problem.field)
        details = StatusDetails(name=name, group="autoscaling", kind="Scale", causes=(cause,))
        raise ApiError(422, "Invalid", f'Scale.autoscaling "{name}" is invalid: {problem}', details)
    return given


def _scaled(old: Any, given: Scale) -> Object:
    scaled: Object = replace(old, spec=replace(old.spec, replicas=given.spec.replicas))
    return scaled


VIEW = View(API_VERSION, "Scale", scale_of, read, _scaled)
