"""ResourceClaimTemplate: a claim's spec with labels and annotations; immutable."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.resource import ResourceClaimTemplate
from dray.api.times import Time
from dray.validation import check
from dray.validation.context import Context, Errors
from dray.validation.device_claim import (
    claim_warnings,
    default_claim,
    validate_admin_access,
    validate_device_claim,
)
from dray.validation.gates_claim import drop_spec_fields
from dray.validation.metadata import validate_template_metadata
from dray.validation.rules import Rules


def _default(obj: ResourceClaimTemplate, _now: Time) -> ResourceClaimTemplate:
    spec = default_claim(obj.spec.spec)
    return obj if spec is obj.spec.spec else replace(obj, spec=replace(obj.spec, spec=spec))


def _check(errors: Errors, new: ResourceClaimTemplate, old: ResourceClaimTemplate | None, ctx: Context) -> None:
    """As for a claim (4381-71), with metadata that can be copied to one (4381-70); the spec never changes (4381-69)."""
    if old is None:
        validate_admin_access(errors, new.spec.spec.devices, ctx)
    else:
        check.immutable(errors, "spec", new.spec, old.spec)
    validate_template_metadata(errors, new.spec.metadata)
    validate_device_claim(errors, new.spec.spec.devices, "spec.spec.devices", is_v1beta1=ctx.is_v1beta1)


def _change(new: ResourceClaimTemplate, old: ResourceClaimTemplate | None, ctx: Context) -> ResourceClaimTemplate:
    spec = drop_spec_fields(new.spec.spec, old.spec.spec if old is not None else None, ctx)
    return new if spec is new.spec.spec else replace(new, spec=replace(new.spec, spec=spec))


RULES: Final = {
    "ResourceClaimTemplate": Rules(
        default=_default,
        change=_change,
        check=_check,
        warnings=lambda obj: claim_warnings(obj.spec.spec.devices, "spec.spec.devices"),
    )
}
