"""Event, in the core group and in events.k8s.io."""

from __future__ import annotations

from typing import Any, Final

from dray.api.field import invalid, required
from dray.api.generated import core, events
from dray.validation import check
from dray.validation.context import Context, Errors
from dray.validation.metadata import PATH_SEGMENT
from dray.validation.rules import Rules

TYPES: Final = ("Normal", "Warning")
TEXT_LENGTH: Final = 128
NOTE_LENGTH: Final = 1024


def _check_core(errors: Errors, new: core.Event, _old: core.Event | None, _ctx: Context) -> None:
    """Old-style events have no `eventTime`; new-style ones must be complete."""
    _validate_place(errors, new.involved_object, new.metadata.namespace, "involvedObject")
    if new.event_time is not None:
        texts = {"reportingComponent": new.reporting_component, "reportingInstance": new.reporting_instance}
        _validate_texts(errors, {**texts, "action": new.action, "reason": new.reason}, new.type)
        check.length(errors, "message", new.message, NOTE_LENGTH)


def _check(errors: Errors, new: events.Event, _old: events.Event | None, _ctx: Context) -> None:
    _validate_place(errors, new.regarding, new.metadata.namespace, "regarding")
    if new.event_time is None:
        errors.append(required("eventTime"))
    texts = {"reportingController": new.reporting_controller, "reportingInstance": new.reporting_instance}
    _validate_texts(errors, {**texts, "action": new.action, "reason": new.reason}, new.type)
    check.length(errors, "note", new.note, NOTE_LENGTH)


def _validate_place(errors: Errors, about: core.ObjectReference, namespace: str, path: str) -> None:
    """An event is where its object is; events of cluster-scoped objects are in `default`."""
    if (about.namespace or "default") != namespace:
        errors.append(invalid(f"{path}.namespace", about.namespace, "must be the namespace of the event"))


def _validate_texts(errors: Errors, texts: dict[str, str], kind: str) -> None:
    for name, value in texts.items():
        if not value:
            errors.append(required(name))
        if name != "reportingController":
            check.length(errors, name, value, TEXT_LENGTH)
    if kind not in TYPES:
        errors.append(invalid("type", kind, "must be Normal or Warning"))


def _check_event(errors: Errors, new: Any, old: Any, ctx: Context) -> None:
    (_check_core if isinstance(new, core.Event) else _check)(errors, new, old, ctx)


RULES: Final = {"Event": Rules(name=PATH_SEGMENT, own_finalizers=True, check=_check_event)}
