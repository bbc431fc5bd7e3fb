"""HorizontalPodAutoscaler between autoscaling/v1 and the hub, v2.

v1 knows one metric, the use of processors in percent. Whatever else the hub has travels in an annotation, so that a
client of v1 that reads, changes and writes an autoscaler takes nothing away from it.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from dray.api import codec
from dray.api.autoscaling_v1 import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
)
from dray.api.generated import autoscaling as hub
from dray.api.meta import ObjectMeta
from dray.api.struct import Struct

API_VERSION = "autoscaling/v1"
HUB_VERSION = "autoscaling/v2"
ANNOTATION = "dray.dev/autoscaling-v2"


class _Rest(Struct):
    """What v1 has no fields for."""

    metrics: tuple[hub.MetricSpec, ...] = ()
    behavior: hub.HorizontalPodAutoscalerBehavior | None = None
    current_metrics: tuple[hub.MetricStatus, ...] = ()
    conditions: tuple[hub.HorizontalPodAutoscalerCondition, ...] = ()


def to_hub(old: HorizontalPodAutoscaler) -> hub.HorizontalPodAutoscaler:
    """An autoscaler of v1 as it is stored."""
    rest = _read_rest(old.metadata.annotations.get(ANNOTATION, ""))
    spec, status = old.spec, old.status
    used, wanted = status.current_cpu_utilization_percentage, spec.target_cpu_utilization_percentage
    first = () if wanted is None else (_of_processors(wanted),)
    now = () if used is None else (_use_of_processors(used),)
    return hub.HorizontalPodAutoscaler(
        kind=old.kind,
        api_version=HUB_VERSION,
        metadata=_without_rest(old.metadata),
        spec=hub.HorizontalPodAutoscalerSpec(
            scale_target_ref=spec.scale_target_ref,
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            metrics=first + rest.metrics,
            behavior=rest.behavior,
        ),
        status=hub.HorizontalPodAutoscalerStatus(
            observed_generation=status.observed_generation,
            last_scale_time=status.last_scale_time,
            current_replicas=status.current_replicas,
            desired_replicas=status.desired_replicas,
            current_metrics=now + rest.current_metrics,
            conditions=rest.conditions,
        ),
    )


def from_hub(new: hub.HorizontalPodAutoscaler) -> HorizontalPodAutoscaler:
    """A stored autoscaler as v1 shows it."""
    spec, status = new.spec, new.status
    metrics, current = spec.metrics, status.current_metrics
    target = _percentage(metrics[0]) if metrics else None
    used = _current_percentage(current[0]) if current else None
    rest = _Rest(
        metrics=metrics if target is None else metrics[1:],
        behavior=spec.behavior,
        current_metrics=current if used is None else current[1:],
        conditions=status.conditions,
    )
    return HorizontalPodAutoscaler(
        kind=new.kind,
        api_version=API_VERSION,
        metadata=_with_rest(new.metadata, rest),
        spec=HorizontalPodAutoscalerSpec(
            scale_target_ref=spec.scale_target_ref,
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            target_cpu_utilization_percentage=target,
        ),
        status=HorizontalPodAutoscalerStatus(
            observed_generation=status.observed_generation,
            last_scale_time=status.last_scale_time,
            current_replicas=status.current_replicas,
            desired_replicas=status.desired_replicas,
            current_cpu_utilization_percentage=used,
        ),
    )


def _of_processors(percentage: int) -> hub.MetricSpec:
    target = hub.MetricTarget(type="Utilization", average_utilization=percentage)
    return hub.MetricSpec(type="Resource", resource=hub.ResourceMetricSource(name="cpu", target=target))


def _use_of_processors(percentage: int) -> hub.MetricStatus:
    current = hub.MetricValueStatus(average_utilization=percentage)
    return hub.MetricStatus(type="Resource", resource=hub.ResourceMetricStatus(name="cpu", current=current))


def _percentage(metric: hub.MetricSpec) -> int | None:
    """The target, if the metric is exactly what v1 can say."""
    source = metric.resource
    found = None if source is None else source.target.average_utilization
    return found if found is not None and metric == _of_processors(found) else None


def _current_percentage(metric: hub.MetricStatus) -> int | None:
    source = metric.resource
    found = None if source is None else source.current.average_utilization
    return found if found is not None and metric == _use_of_processors(found) else None


def _read_rest(text: str) -> _Rest:
    """What the annotation holds; one that somebody spoilt holds nothing."""
    if not text:
        return _Rest()
    try:
        reading = codec.read_json(text.encode(), _Rest)
    except codec.DecodeError:
        return _Rest()
    return reading.obj or _Rest()


def _with_rest(meta: ObjectMeta, rest: _Rest) -> ObjectMeta:
    if rest == _Rest():
        return meta
    written = msgspec.json.encode(codec.to_builtins(rest)).decode()
    return replace(meta, annotations={**meta.annotations, ANNOTATION: written})


def _without_rest(meta: ObjectMeta) -> ObjectMeta:
    if ANNOTATION not in meta.annotations:
        return meta
    return replace(meta, annotations={name: it for name, it in meta.annotations.items() if name != ANNOTATION})
