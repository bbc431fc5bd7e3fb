"""Between the versions of the API and the hub version that everything inside works on.

resource.k8s.io/v1beta1 has other shapes (SVS-33, X-09): a device wraps its content in `basic`, and a request that
has only one alternative stands flat in the request. Events and autoscalers have modules of their own, which are loaded
where there are such objects. All other versions differ from the hub in `apiVersion` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from msgspec.structs import asdict, replace

from dray.api import resource
from dray.api.meta import Object
from dray.api.resource import v1beta1

_FLAT_FIELDS = tuple(
    name for name in v1beta1.DeviceRequest.__struct_fields__ if name not in ("name", "first_available")
)
_AUTOSCALING_V1 = "dray.api.autoscaling_v1"
_OF_OTHER_MODULES = frozenset({"Event", "HorizontalPodAutoscaler"})
"""Kinds whose conversions are loaded only where there are such objects."""
_BASIC_FIELDS = v1beta1.BasicDevice.__struct_fields__


def to_hub(obj: Object, api_version: str) -> Object:
    """The object in hub shape; `api_version` is that of the hub."""
    known = type(obj)
    if known.__name__ in _OF_OTHER_MODULES:
        if api_version == "v1" and _is_event(obj, "events"):
            from dray.validation.event_conversion import to_core

            return to_core(cast(Any, obj))
        if known.__module__ == _AUTOSCALING_V1:
            from dray.validation import autoscaler_conversion

            return autoscaler_conversion.to_hub(cast(Any, obj))
    convert = _TO_HUB.get(known)
    if convert is not None:
        obj = convert(obj)
    return obj if obj.api_version == api_version else replace(obj, api_version=api_version)


def from_hub(obj: Object, api_version: str) -> Object:
    """The object as a version shows it."""
    if api_version == "events.k8s.io/v1" and _is_event(obj, "core"):
        from dray.validation.event_conversion import from_core

        return from_core(cast(Any, obj))
    if api_version == "autoscaling/v1" and type(obj).__name__ == "HorizontalPodAutoscaler":
        from dray.validation import autoscaler_conversion

        return autoscaler_conversion.from_hub(cast(Any, obj))
    if api_version == "resource.k8s.io/v1beta1":
        convert = _FROM_HUB.get(type(obj))
        if convert is not None:
            obj = convert(obj)
    return obj if obj.api_version == api_version else replace(obj, api_version=api_version)


def _is_event(obj: Object, group: str) -> bool:
    """By name, so that the types of events are loaded only where there are events."""
    return type(obj).__name__ == "Event" and type(obj).__module__ == f"dray.api.generated.{group}"


def _object_fields(obj: Object) -> dict[str, Any]:
    return {"kind": obj.kind, "api_version": obj.api_version, "metadata": obj.metadata}


def _slice_to_hub(old: v1beta1.ResourceSlice) -> resource.ResourceSlice:
    fields = {name: getattr(old.spec, name) for name in old.spec.__struct_fields__}
    fields["node_name"] = old.spec.node_name or None
    fields["all_nodes"] = old.spec.all_nodes or None
    fields["devices"] = tuple(_device_to_hub(device) for device in old.spec.devices)
    return resource.ResourceSlice(**_object_fields(old), spec=resource.ResourceSliceSpec(**fields))


def _device_to_hub(old: v1beta1.Device) -> resource.Device:
    if old.basic is None:
        return resource.Device(name=old.name)
    return resource.Device(name=old.name, **{name: getattr(old.basic, name) for name in _BASIC_FIELDS})


def _slice_from_hub(hub: resource.ResourceSlice) -> v1beta1.ResourceSlice:
    fields = {name: getattr(hub.spec, name) for name in hub.spec.__struct_fields__}
    fields["node_name"] = hub.spec.node_name or ""
    fields["all_nodes"] = bool(hub.spec.all_nodes)
    fields["devices"] = tuple(_device_from_hub(device) for device in hub.spec.devices)
    return v1beta1.ResourceSlice(**_object_fields(hub), spec=v1beta1.ResourceSliceSpec(**fields))


def _device_from_hub(hub: resource.Device) -> v1beta1.Device:
    basic = v1beta1.BasicDevice(**{name: getattr(hub, name) for name in _BASIC_FIELDS})
    return v1beta1.Device(name=hub.name, basic=basic)


def _request_to_hub(old: v1beta1.DeviceRequest) -> resource.DeviceRequest:
    """Any flat field means that there is one alternative, even if validation will not like it."""
    fields = {name: getattr(old, name) for name in _FLAT_FIELDS}
    exactly = resource.ExactDeviceRequest(**fields) if any(value not in _UNSET for value in fields.values()) else None
    return resource.DeviceRequest(name=old.name, exactly=exactly, first_available=old.first_available)


_UNSET = ("", 0, None, ())


def _request_from_hub(hub: resource.DeviceRequest) -> v1beta1.DeviceRequest:
    fields = asdict(hub.exactly) if hub.exactly is not None else {}
    return v1beta1.DeviceRequest(name=hub.name, first_available=hub.first_available, **fields)


def _claim_spec_to_hub(old: v1beta1.ResourceClaimSpec) -> resource.ResourceClaimSpec:
    devices = old.devices
    return resource.ResourceClaimSpec(
        devices=resource.DeviceClaim(
            requests=tuple(_request_to_hub(request) for request in devices.requests),
            constraints=devices.constraints,
            config=devices.config,
        )
    )


def _claim_spec_from_hub(hub: resource.ResourceClaimSpec) -> v1beta1.ResourceClaimSpec:
    devices = hub.devices
    return v1beta1.ResourceClaimSpec(
        devices=v1beta1.DeviceClaim(
            requests=tuple(_request_from_hub(request) for request in devices.requests),
            constraints=devices.constraints,
            config=devices.config,
        )
    )


def _claim_to_hub(old: v1beta1.ResourceClaim) -> resource.ResourceClaim:
    return resource.ResourceClaim(**_object_fields(old), spec=_claim_spec_to_hub(old.spec), status=old.status)


def _claim_from_hub(hub: resource.ResourceClaim) -> v1beta1.ResourceClaim:
    return v1beta1.ResourceClaim(**_object_fields(hub), spec=_claim_spec_from_hub(hub.spec), status=hub.status)


def _template_to_hub(old: v1beta1.ResourceClaimTemplate) -> resource.ResourceClaimTemplate:
    spec = resource.ResourceClaimTemplateSpec(metadata=old.spec.metadata, spec=_claim_spec_to_hub(old.spec.spec))
    return resource.ResourceClaimTemplate(**_object_fields(old), spec=spec)


def _template_from_hub(hub: resource.ResourceClaimTemplate) -> v1beta1.ResourceClaimTemplate:
    spec = v1beta1.ResourceClaimTemplateSpec(metadata=hub.spec.metadata, spec=_claim_spec_from_hub(hub.spec.spec))
    return v1beta1.ResourceClaimTemplate(**_object_fields(hub), spec=spec)


_TO_HUB: dict[type[Object], Callable[[Any], Object]] = {
    v1beta1.ResourceSlice: _slice_to_hub,
    v1beta1.ResourceClaim: _claim_to_hub,
    v1beta1.ResourceClaimTemplate: _template_to_hub,
}
_FROM_HUB: dict[type[Object], Callable[[Any], Object]] = {
    resource.ResourceSlice: _slice_from_hub,
    resource.ResourceClaim: _claim_from_hub,
    resource.ResourceClaimTemplate: _template_from_hub,
}
