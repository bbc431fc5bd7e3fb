"""RuntimeClass: what pods of it cost besides their containers, and which nodes they may go to."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import duplicate
from dray.api.generated.core import ResourceRequirements
from dray.api.generated.node import RuntimeClass
from dray.api.registry import by_kind
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.metadata import validate_labels
from dray.validation.node_taints import validate_tolerations
from dray.validation.resource_amounts import validate_requirements
from dray.validation.schema_rules import rules_from_schema


def _check_runtime_class(errors: Errors, new: RuntimeClass, old: RuntimeClass | None, _ctx: Context) -> None:
    if old is not None:
        check.immutable(errors, "handler", new.handler, old.handler)
    if new.handler:
        check.name(errors, "handler", new.handler, names.dns_label)
    if new.overhead is not None:
        validate_requirements(errors, ResourceRequirements(limits=new.overhead.pod_fixed), "overhead")
    if new.scheduling is not None:
        validate_labels(errors, new.scheduling.node_selector, "scheduling.nodeSelector")
        tolerations, path = new.scheduling.tolerations, "scheduling.tolerations"
        validate_tolerations(errors, tolerations, path)
        seen: set[tuple[str, str, str, str]] = set()
        for index, each in enumerate(tolerations):
            key = (each.key, each.operator, each.value, each.effect)
            if key in seen:
                errors.append(duplicate(f"{path}[{index}]", each))
            seen.add(key)


RULES: Final = {
    "RuntimeClass": replace(
        rules_from_schema(by_kind("node.k8s.io/v1", "RuntimeClass"), _check_runtime_class), own_finalizers=True
    ),
}
