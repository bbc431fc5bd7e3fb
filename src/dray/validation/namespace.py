"""Namespace."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import invalid
from dray.api.generated.core import Namespace, NamespaceStatus
from dray.api.times import Time
from dray.api.well_known import NAMESPACE_NAME
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.metadata import DNS_LABEL, with_metadata
from dray.validation.rules import Rules

FINALIZER: Final = "kubernetes"


def _default(obj: Namespace, _now: Time) -> Namespace:
    """A namespace is labelled with its name, so that selectors can name it."""
    meta = obj.metadata
    if meta.name and meta.labels.get(NAMESPACE_NAME) != meta.name:
        obj = with_metadata(obj, labels={**meta.labels, NAMESPACE_NAME: meta.name})
    if not obj.status.phase:
        obj = replace(obj, status=replace(obj.status, phase="Active"))
    return obj


def _change(new: Namespace, old: Namespace | None, _ctx: Context) -> Namespace:
    """A new namespace is active and waits for its content when it is deleted; finalizers have their own subresource."""
    if old is not None:
        return replace(new, spec=replace(new.spec, finalizers=old.spec.finalizers))
    finalizers = new.spec.finalizers
    if FINALIZER not in finalizers:
        finalizers = (*finalizers, FINALIZER)
    return replace(new, spec=replace(new.spec, finalizers=finalizers), status=NamespaceStatus(phase="Active"))


def _check(errors: Errors, new: Namespace, old: Namespace | None, _ctx: Context) -> None:
    if old is None:
        for finalizer in new.spec.finalizers:
            check.name(errors, "spec.finalizers", finalizer, names.label_key)


def _check_status(errors: Errors, new: Namespace, _old: Namespace, _ctx: Context) -> None:
    wanted = "Active" if new.metadata.deletion_timestamp is None else "Terminating"
    if new.status.phase != wanted:
        errors.append(invalid("status.Phase", new.status.phase, f"must be {wanted}"))


RULES: Final = {
    "Namespace": Rules(
        namespaced=False,
        name=DNS_LABEL,
        has_status=True,
        status_guards_metadata=False,
        keeps_status_on_create=True,
        default=_default,
        change=_change,
        check=_check,
        check_status=_check_status,
    )
}
