"""Workload: templates from which controllers make PodGroups."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import forbidden, invalid, required
from dray.api.generated.scheduling import Workload, WorkloadSpec
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.pod_group import NO_COMPOSITES, drop_gated, validate_grouping, validate_grouping_update
from dray.validation.rules import Rules

MAX_TEMPLATES: Final = 8


def _change(new: Workload, old: Workload | None, ctx: Context) -> Workload:
    known = {template.name: template for template in old.spec.pod_group_templates} if old is not None else {}
    templates = tuple(drop_gated(template, known.get(template.name), ctx) for template in new.spec.pod_group_templates)
    return replace(new, spec=replace(new.spec, pod_group_templates=templates))


def _check(errors: Errors, new: Workload, old: Workload | None, _ctx: Context) -> None:
    spec = new.spec
    if spec.composite_pod_group_templates:
        errors.append(forbidden("spec.compositePodGroupTemplates", NO_COMPOSITES))
    elif not spec.pod_group_templates:
        errors.append(required("spec.podGroupTemplates"))
    _check_controller(errors, spec)
    path = "spec.podGroupTemplates"
    if check.fits(errors, path, spec.pod_group_templates, MAX_TEMPLATES):
        check.unique(errors, path, (template.name for template in spec.pod_group_templates))
        for index, template in enumerate(spec.pod_group_templates):
            check.required_name(errors, f"{path}[{index}].name", template.name, names.dns_label)
            validate_grouping(errors, template, f"{path}[{index}]")
    if len({(template.priority_class_name, template.priority) for template in spec.pod_group_templates}) > 1:
        errors.append(invalid("spec", None, "detected multiple priority configurations"))
    if old is not None:
        _check_update(errors, spec, old.spec)


def _check_controller(errors: Errors, spec: WorkloadSpec) -> None:
    reference = spec.controller_ref
    if reference is None:
        return
    if reference.api_group:
        check.name(errors, "spec.controllerRef.apiGroup", reference.api_group, names.dns_subdomain)
    check.required_name(errors, "spec.controllerRef.kind", reference.kind, names.path_segment)
    check.required_name(errors, "spec.controllerRef.name", reference.name, names.path_segment)


def _check_update(errors: Errors, new: WorkloadSpec, old: WorkloadSpec) -> None:
    check.immutable(errors, "spec.controllerRef", new.controller_ref, old.controller_ref)
    known = {template.name: template for template in old.pod_group_templates}
    for index, template in enumerate(new.pod_group_templates):
        before = known.pop(template.name, None)
        path = f"spec.podGroupTemplates[{index}]"
        if before is None:
            errors.append(forbidden(path, "templates may not be added"))
        else:
            validate_grouping_update(errors, template, before, path)
    for name in known:
        errors.append(forbidden("spec.podGroupTemplates", f"templates may not be removed: {name}"))


RULES: Final = {"Workload": Rules(change=_change, check=_check)}
