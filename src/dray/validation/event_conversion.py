"""Events have two faces, core/v1 and events.k8s.io/v1, of the same stored objects. They are stored as the first."""

from __future__ import annotations

from dray.api.generated import core, events

EVENTS_API = "events.k8s.io/v1"


def to_core(event: events.Event) -> core.Event:
    """An event as it is stored."""
    series = event.series
    return core.Event(
        kind=event.kind,
        api_version="v1",
        metadata=event.metadata,
        involved_object=event.regarding,
        related=event.related,
        reason=event.reason,
        message=event.note,
        type=event.type,
        action=event.action,
        event_time=event.event_time,
        series=core.EventSeries(count=series.count, last_observed_time=series.last_observed_time) if series else None,
        reporting_component=event.reporting_controller,
        reporting_instance=event.reporting_instance,
        source=event.deprecated_source,
        first_timestamp=event.deprecated_first_timestamp,
        last_timestamp=event.deprecated_last_timestamp,
        count=event.deprecated_count,
    )


def from_core(event: core.Event) -> events.Event:
    """A stored event as events.k8s.io shows it."""
    series = event.series
    return events.Event(
        kind=event.kind,
        api_version=EVENTS_API,
        metadata=event.metadata,
        regarding=event.involved_object,
        related=event.related,
        reason=event.reason,
        note=event.message,
        type=event.type,
        action=event.action,
        event_time=event.event_time,
        series=events.EventSeries(count=series.count, last_observed_time=series.last_observed_time) if series else None,
        reporting_controller=event.reporting_component,
        reporting_instance=event.reporting_instance,
        deprecated_source=event.source,
        deprecated_first_timestamp=event.first_timestamp,
        deprecated_last_timestamp=event.last_timestamp,
        deprecated_count=event.count,
    )
