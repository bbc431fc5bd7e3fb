"""`/scale`: how many replicas a workload has and should have, in one form for all kinds (autoscaling/v1 Scale)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dray.api import codec, registry, schema
from dray.api.field import invalid
from dray.api.generated.autoscaling import Scale, ScaleSpec, ScaleStatus
from dray.api.labels import LabelSelector
from dray.api.meta import Object, ObjectMeta, StatusCause, StatusDetails
from dray.api.status import ApiError
from dray.server import body, errors, field_owners, number_ranges, patches, writes
from dray.server.engine import Call, Engine
from dray.server.http import Answer, Request, Response

API_VERSION = "autoscaling/v1"


def scale_of(obj: Any) -> Scale:
    """The scale of a workload."""
    meta, selector = obj.metadata, obj.spec.selector
    if isinstance(selector, dict):  # a ReplicationController has the labels themselves
        text = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    else:
        text = "" if selector is None else str(LabelSelector.of(selector))
    return Scale(
        kind="Scale",
        api_version=API_VERSION,
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=ScaleSpec(replicas=obj.spec.replicas or 0),
        status=ScaleStatus(replicas=obj.status.replicas, selector=text),
    )


async def read(engine: Engine, call: Call, _request: Request) -> Answer:
    """Answers with the scale. Raises ApiError."""
    return _answer(writes.current(engine, call).obj)


async def update(engine: Engine, call: Call, request: Request) -> Answer:
    """Sets the number of replicas from a whole Scale. Raises ApiError."""
    given = _scale(body.parse(request.body, request.header("content-type")), call)
    record = await writes.update(
        engine,
        call,
        lambda old: _scaled(old, given),
        field_owners.track,
        expected=given.metadata.resource_version,
        uid=given.metadata.uid,
    )
    return _answer(record.obj)


async def patch(engine: Engine, call: Call, request: Request) -> Answer:
    """Sets the number of replicas from a patch of the Scale. Raises ApiError."""
    format_ = body.media_type(request.header("content-type"))
    definition = schema.for_kind(*registry.split_api_version(API_VERSION), "Scale")
    change = patches.change_of(format_, body.parse(request.body, "application/json"), definition)
    record = await writes.update(
        engine,
        call,
        lambda old: _scaled(old, _scale(change(codec.to_builtins(scale_of(old))), call)),
        field_owners.track,
    )
    return _answer(record.obj)


def _scale(value: Any, call: Call) -> Scale:
    reading = codec.read(value, Scale)
    if reading.obj is None:
        raise errors.bad_request("; ".join(map(str, reading.errors)))
    given = reading.obj
    name = given.metadata.name
    if name != call.route.name:
        raise errors.bad_request(
            f"the name of the scale ({name}) does not match the name on the URL ({call.route.name})"
        )
    if given.spec.replicas > number_ranges.LARGEST:
        raise errors.bad_request(f"spec.replicas: the number {given.spec.replicas} does not fit into 32 bits")
    if given.spec.replicas < 0:
        problem = invalid("spec.replicas", given.spec.replicas, "must be greater than or equal to 0")
        cause = StatusCause(reason=problem.reason, message=problem.message, field=problem.field)
        details = StatusDetails(name=name, group="autoscaling", kind="Scale", causes=(cause,))
        raise ApiError(422, "Invalid", f'Scale.autoscaling "{name}" is invalid: {problem}', details)
    return given


def _scaled(old: Any, given: Scale) -> Object:
    scaled: Object = replace(old, spec=replace(old.spec, replicas=given.spec.replicas))
    return scaled


def _answer(obj: Object) -> Response:
    return Response(200, codec.encode(scale_of(obj)))
