"""DeviceClass: selectors and configuration that requests refer to by name."""

from __future__ import annotations

from typing import Final

from dray.api.resource import DeviceClass
from dray.api.resource.device_class import CONFIGS
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.device_claim import validate_opaque
from dray.validation.gates_claim import drop_class_fields
from dray.validation.metadata import NameRule
from dray.validation.rules import Rules
from dray.validation.selectors import validate_selectors

# The prefix is judged only as what it is in a URL: classes get whatever name the server makes of it.
_NAME: Final = NameRule(names.dns_subdomain, names.path_segment_prefix)


def _check(errors: Errors, new: DeviceClass, old: DeviceClass | None, _ctx: Context) -> None:
    """Selectors and configuration that did not change are not judged again (4381-52, 4381-63)."""
    spec = new.spec
    stored = old is not None and spec.selectors == old.spec.selectors
    validate_selectors(errors, spec.selectors, "spec.selectors", stored=stored)
    stored = old is not None and spec.config == old.spec.config
    if check.fits(errors, "spec.config", spec.config, CONFIGS):
        for index, config in enumerate(spec.config):
            validate_opaque(errors, config.opaque, f"spec.config[{index}]", stored=stored)
    if spec.extended_resource_name is not None:
        check.name(errors, "spec.extendedResourceName", spec.extended_resource_name, names.extended_resource)


RULES: Final = {
    "DeviceClass": Rules(
        namespaced=False,
        name=_NAME,
        has_generation=True,
        change=drop_class_fields,
        check=_check,
    )
}
