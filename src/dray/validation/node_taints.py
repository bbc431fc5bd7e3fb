"""Taints of nodes and the tolerations of pods for them; those of devices are in `device_taints`."""

from __future__ import annotations

from dray.api.field import invalid, not_supported
from dray.api.generated.core import Taint, Toleration
from dray.api.toleration import EFFECTS, OPERATORS, read_number
from dray.validation import check, names
from dray.validation.context import Errors


def validate_tolerations(errors: Errors, tolerations: tuple[Toleration, ...], path: str) -> None:
    """The tolerations of a pod."""
    for index, toleration in enumerate(tolerations):
        _validate_toleration(errors, toleration, f"{path}[{index}]")


def _validate_toleration(errors: Errors, toleration: Toleration, path: str) -> None:
    if toleration.key:
        check.name(errors, f"{path}.key", toleration.key, names.label_key)
    elif toleration.operator != "Exists":
        errors.append(invalid(f"{path}.operator", toleration.operator, "must be Exists when `key` is empty"))
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        errors.append(invalid(f"{path}.effect", toleration.effect, "must be NoExecute when `tolerationSeconds` is set"))
    match toleration.operator:
        case "" | "Equal":
            # Kubernetes reports a bad value at the operator.
            check.name(errors, f"{path}.operator", toleration.value, names.label_value)
        case "Exists":
            if toleration.value:
                errors.append(invalid(f"{path}.operator", toleration.value, "value must be empty with Exists"))
        case "Gt" | "Lt":
            _validate_number(errors, toleration.value, f"{path}.value")
        case other:
            errors.append(not_supported(f"{path}.operator", other, OPERATORS))
    if toleration.effect:
        check.one_of(errors, f"{path}.effect", toleration.effect, EFFECTS)


def _validate_number(errors: Errors, value: str, path: str) -> None:
    if read_number(value) is None:
        errors.append(invalid(path, value, "must be an integer of 64 bits with the operators Gt and Lt"))


def validate_node_taints(errors: Errors, taints: tuple[Taint, ...]) -> None:
    """The taints of a node: each pair of key and effect once."""
    path = "metadata.taints"  # so Kubernetes says
    for index, taint in enumerate(taints):
        inner = f"{path}[{index}]"
        check.name(errors, f"{inner}.key", taint.key, names.label_key)
        check.name(errors, f"{inner}.value", taint.value, names.label_value)
        check.required_one_of(errors, f"{inner}.effect", taint.effect, EFFECTS)
    check.unique(errors, path, ((taint.key, taint.effect) for taint in taints))
