"""StorageClass: when volumes are bound, and where they may be."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.field import duplicate, invalid, required, too_long
from dray.api.generated.core import TopologySelectorTerm
from dray.api.generated.storage import StorageClass
from dray.api.registry import by_kind
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.schema_rules import rules_from_schema

RECLAIM_POLICIES: Final = ("Delete", "Retain")
MOST_PARAMETERS: Final = 512
PARAMETERS_LENGTH: Final = 256 * 1024


def _check_storage_class(errors: Errors, new: StorageClass, old: StorageClass | None, _ctx: Context) -> None:
    if old is not None:
        check.immutable(errors, "parameters", new.parameters, old.parameters)
        check.immutable(errors, "provisioner", new.provisioner, old.provisioner)
        check.immutable(errors, "reclaimPolicy", new.reclaim_policy, old.reclaim_policy)
        check.immutable(errors, "volumeBindingMode", new.volume_binding_mode, old.volume_binding_mode)
    check.one_of(errors, "reclaimPolicy", new.reclaim_policy or "", RECLAIM_POLICIES)
    if new.provisioner:
        check.name(errors, "provisioner", new.provisioner.lower(), names.label_key)
    _check_parameters(errors, new.parameters)
    _check_topologies(errors, new.allowed_topologies)


def _check_parameters(errors: Errors, parameters: dict[str, str]) -> None:
    if len(parameters) > MOST_PARAMETERS:
        errors.append(too_long("parameters", MOST_PARAMETERS))
        return
    if "" in parameters:
        errors.append(invalid("parameters", "", "field can not be empty."))
    if sum(len(name.encode()) + len(value.encode()) for name, value in parameters.items()) > PARAMETERS_LENGTH:
        errors.append(too_long("parameters", PARAMETERS_LENGTH))


def _check_topologies(errors: Errors, terms: tuple[TopologySelectorTerm, ...]) -> None:
    seen: set[frozenset[tuple[str, frozenset[str]]]] = set()
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        wanted: dict[str, frozenset[str]] = {}
        for at, each in enumerate(term.match_label_expressions):
            inner = f"{path}[{at}]"
            if not each.values:
                errors.append(required(f"{inner}.values"))
            check.unique(errors, f"{inner}.values", each.values)
            check.name(errors, f"{inner}.key", each.key, names.label_key)
            if each.key in wanted:
                errors.append(duplicate(f"{inner}.key", each.key))
            wanted[each.key] = frozenset(each.values)
        if not wanted or frozenset(wanted.items()) in seen:  # Kubernetes takes an empty one for one that is repeated
            errors.append(duplicate(path, ""))
        seen.add(frozenset(wanted.items()))


def _default_storage_class(given: StorageClass, _now: Time) -> StorageClass:
    return replace(
        given,
        reclaim_policy="Delete" if given.reclaim_policy is None else given.reclaim_policy,
        volume_binding_mode="Immediate" if given.volume_binding_mode is None else given.volume_binding_mode,
    )


RULES: Final = {
    "StorageClass": replace(
        rules_from_schema(by_kind("storage.k8s.io/v1", "StorageClass"), _check_storage_class),
        default=_default_storage_class,
    ),
}
