"""What a custom object has where its definition says that its numbers of replicas are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dray.api.field import FieldError, invalid
from dray.api.generated.apiextensions import CustomResourceSubresourceScale
from dray.custom.paths import MISSING, look_up, steps_of

LARGEST = 2**31 - 1


def scale_errors(paths: CustomResourceSubresourceScale, content: dict[str, Any]) -> Iterator[FieldError]:
    """What is wrong there, told by the path as the definition has it, as kube-apiserver does."""
    for path in (paths.spec_replicas_path, paths.status_replicas_path):
        number = look_up(content, steps_of(path))
        if number is MISSING:
            continue
        if number.__class__ is not int:
            yield invalid(path, 0, f"{path} accessor error: must be a whole number")
        elif number < 0:
            yield invalid(path, number, "should be a non-negative integer")
        elif number > LARGEST:
            yield invalid(path, number, f"should be less than or equal to {LARGEST}")
    if paths.label_selector_path:
        text = look_up(content, steps_of(paths.label_selector_path))
        if text is not MISSING and text.__class__ is not str:
            yield invalid(
                paths.label_selector_path, "", f"{paths.label_selector_path} accessor error: must be a string"
            )
