"""Volumes of files that are made for a pod: from ConfigMaps, Secrets, what the pod knows of itself, and tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dray.api.field import forbidden, invalid, required
from dray.api.generated.core import (
    DownwardAPIVolumeFile,
    KeyToPath,
    ProjectedVolumeSource,
    ServiceAccountTokenProjection,
    VolumeProjection,
)
from dray.validation import pod_facts
from dray.validation.context import Errors

_LARGEST_MODE: Final = 0o777
_SHORTEST_TOKEN: Final = 600
_LONGEST_TOKEN: Final = 2**32


def validate_no_steps_back(errors: Errors, path: str, where: str) -> None:
    """A path that leads where it seems to lead."""
    if ".." in path.split("/"):
        errors.append(invalid(where, path, "must not contain '..'"))


def validate_descending_path(errors: Errors, path: str, where: str) -> None:
    """A path below where it starts."""
    if path.startswith("/"):
        errors.append(invalid(where, path, "must be a relative path"))
    validate_no_steps_back(errors, path, where)


def _validate_file(errors: Errors, path: str, where: str) -> None:
    if not path:
        errors.append(required(where))
    validate_descending_path(errors, path, where)
    if path.startswith("..") and not path.startswith("../"):
        errors.append(invalid(where, path, "must not start with '..'"))


def _validate_mode(errors: Errors, mode: int | None, where: str) -> None:
    if mode is not None and not 0 <= mode <= _LARGEST_MODE:
        errors.append(invalid(where, mode, "must be a number between 0 and 0777 (octal), both inclusive"))


def validate_items(errors: Errors, items: tuple[KeyToPath, ...], path: str) -> None:
    """Keys and the files that they go to."""
    for index, item in enumerate(items):
        inner = f"{path}[{index}]"
        if not item.key:
            errors.append(required(f"{inner}.key"))
        _validate_file(errors, item.path, f"{inner}.path")
        _validate_mode(errors, item.mode, f"{inner}.mode")


def validate_files(errors: Errors, source: Any, path: str) -> None:
    """A volume of one source, with its default mode and its items."""
    _validate_mode(errors, source.default_mode, f"{path}.defaultMode")
    validate_items(errors, source.items, f"{path}.items")


def validate_own_facts(errors: Errors, files: tuple[DownwardAPIVolumeFile, ...], path: str) -> None:
    """Files with what the pod may know of itself. Kubernetes does not say which one is wrong."""
    for file in files:
        _validate_file(errors, file.path, f"{path}.path")
        if file.field_ref is not None:
            pod_facts.validate_field(errors, file.field_ref, f"{path}.fieldRef", pod_facts.IN_FILES)
            if file.resource_field_ref is not None:
                told = "fieldRef and resourceFieldRef can not be specified simultaneously"
                errors.append(invalid(path, "resource", told))
        elif file.resource_field_ref is not None:
            pod_facts.validate_resource(errors, file.resource_field_ref, f"{path}.resourceFieldRef", in_file=True)
        else:
            errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
        _validate_mode(errors, file.mode, f"{path}.mode")


def validate_projected(errors: Errors, projected: ProjectedVolumeSource, path: str) -> None:
    """Several sources in one directory: no file twice."""
    _validate_mode(errors, projected.default_mode, f"{path}.defaultMode")
    seen: set[str] = set()
    for index, source in enumerate(projected.sources):
        inner = f"{path}.sources[{index}]"
        if sum(getattr(source, field) is not None for field in source.__struct_fields__) > 1:
            errors.append(forbidden(inner, "may not specify more than 1 volume type per source"))
        for field, named in (("secret", source.secret), ("configMap", source.config_map)):
            if named is not None:
                if not named.name:
                    errors.append(required(f"{inner}.{field}.name"))
                validate_items(errors, named.items, f"{inner}.{field}.items")
        if source.downward_api is not None:
            validate_own_facts(errors, source.downward_api.items, f"{inner}.downwardAPI")
        if source.service_account_token is not None:
            _validate_token(errors, source.service_account_token, inner, path)
        for file in _files(source):
            if file in seen:
                errors.append(invalid(path, file, "conflicting duplicate paths"))
            seen.add(file)


def _files(source: VolumeProjection) -> Iterator[str]:
    for some in (source.secret, source.config_map, source.downward_api):
        if some is not None:
            yield from (item.path for item in some.items if item.path)


def _validate_token(errors: Errors, token: ServiceAccountTokenProjection, inner: str, path: str) -> None:
    where, seconds = f"{inner}.serviceAccountToken.expirationSeconds", token.expiration_seconds
    if seconds is None:
        errors.append(required(where))
    elif seconds < _SHORTEST_TOKEN:
        errors.append(invalid(where, seconds, "may not specify a duration less than 10 minutes"))
    elif seconds > _LONGEST_TOKEN:
        errors.append(invalid(where, seconds, "may not specify a duration larger than 2^32 seconds"))
    _validate_file(errors, token.path, f"{path}.path")
