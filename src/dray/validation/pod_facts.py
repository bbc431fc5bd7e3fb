"""What a pod may learn of itself, in variables and in files: its own fields, and the resources of its containers."""

from __future__ import annotations

import re
from typing import Final

from dray.api.field import invalid, not_supported, required
from dray.api.generated.core import ObjectFieldSelector, ResourceFieldSelector
from dray.validation import check, names
from dray.validation.context import Errors

_KNOWN: Final = frozenset(
    [
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "spec.schedulerName",
        "status.phase",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
        "spec.host",
    ]
)
IN_VARIABLES: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
IN_FILES: Final = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_OLD_NAME: Final = {"spec.host": "spec.nodeName"}
_ONE_OF: Final = re.compile(r"(.*)\['(.*)'\]", re.DOTALL)
_WITH_KEYS: Final = ("metadata.annotations", "metadata.labels")

_RESOURCES: Final = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_OF_CPU: Final = frozenset(("1m", "1"))
_OF_BYTES: Final = frozenset(["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"])


def validate_field(errors: Errors, field: ObjectFieldSelector, path: str, allowed: tuple[str, ...]) -> None:
    """A field of the pod, by its path; labels and annotations also one by one."""
    where, wanted = f"{path}.fieldPath", field.field_path
    if not wanted:
        errors.append(required(where))
        return
    if field.api_version != "v1":
        errors.append(invalid(where, wanted, f"unsupported pod version: {field.api_version}"))
        return
    found = _ONE_OF.fullmatch(wanted)
    if found is not None:
        if found[1] not in _WITH_KEYS:
            errors.append(invalid(where, wanted, "the field has no keys"))
        else:
            key = found[2].lower() if found[1] == _WITH_KEYS[0] else found[2]
            check.name(errors, path, key, names.label_key)
    elif wanted not in _KNOWN:
        errors.append(invalid(where, wanted, "no such field can be asked for"))
    elif _OLD_NAME.get(wanted, wanted) not in allowed:
        errors.append(not_supported(where, wanted, allowed))


def validate_resource(errors: Errors, wanted: ResourceFieldSelector, path: str, *, in_file: bool) -> None:
    """A limit or request of a container; a file says of which one."""
    name = wanted.resource
    if in_file and not wanted.container_name:
        errors.append(required(f"{path}.containerName"))
    elif not name:
        errors.append(required(f"{path}.resource"))
    elif name not in _RESOURCES and not name.startswith(_PAGES):
        errors.append(not_supported(f"{path}.resource", name, _RESOURCES))
    if not wanted.divisor.nanos or (name not in _RESOURCES and not name.startswith(_PAGES)):
        return
    units = _OF_CPU if name.endswith(".cpu") else _OF_BYTES
    if str(wanted.divisor) not in units:
        told = f"only these units are supported: {', '.join(sorted(units))}"
        errors.append(invalid(f"{path}.divisor", str(wanted.divisor), told))
