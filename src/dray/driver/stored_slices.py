"""What became of a slice that was written: which fields the server did not keep (5055-120). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from dray.api import codec
from dray.api.resource import ResourceSliceSpec


def lost_fields(sent: ResourceSliceSpec, stored: ResourceSliceSpec) -> tuple[str, ...]:
    """The paths of what was sent and is not there, sorted."""
    return tuple(sorted(_missing(codec.to_builtins(sent), codec.to_builtins(stored), "spec")))


def is_optional(field: str) -> bool:
    """Whether a taint means the same without a field; releases of Kubernetes do not have it (5055-122, SVS-05..07)."""
    return "taints[" in field and field.rpartition(".")[2] in ("evictionsPerSecond", "data", "description")


def without_times(spec: ResourceSliceSpec) -> ResourceSliceSpec:
    """A spec without the times of its taints, which the server sets."""
    taints = tuple(replace(entry, taint=replace(entry.taint, time_added=None)) for entry in spec.taints)
    devices = spec.devices
    if any(device.taints for device in devices):
        devices = tuple(
            replace(device, taints=tuple(replace(taint, time_added=None) for taint in device.taints))
            for device in devices
        )
    return replace(spec, taints=taints, devices=devices)


def _missing(sent: Any, stored: Any, path: str) -> Iterator[str]:
    if isinstance(sent, dict) and isinstance(stored, dict):
        for name, value in sent.items():
            if name in stored:
                yield from _missing(value, stored[name], f"{path}.{name}")
            else:
                yield f"{path}.{name}"
    elif isinstance(sent, list) and isinstance(stored, list):
        if len(stored) < len(sent):
            yield path
            return
        for index, (one, other) in enumerate(zip(sent, stored, strict=False)):
            yield from _missing(one, other, f"{path}[{index}]")
