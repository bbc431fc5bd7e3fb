"""Warnings that follow from what is asked for alone: versions on their way out, and kinds that do nothing here."""

from __future__ import annotations

from dray.api.effects import Effect, effect_of
from dray.api.registry import RESOURCE_GROUP
from dray.custom.kinds import CustomKind
from dray.server.routes import Route

_BETAS = {"v1beta1": "v1.35+, unavailable in v1.38+", "v1beta2": "v1.36+, unavailable in v1.39+"}
_DEPRECATED: dict[tuple[str, str], str] = {
    **{
        (f"{RESOURCE_GROUP}/{version}", kind): since
        for version, since in _BETAS.items()
        for kind in ("ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass")
    },
    (f"{RESOURCE_GROUP}/v1alpha3", "DeviceTaintRule"): "v1.36+, unavailable in v1.39+",
    ("v1", "ComponentStatus"): "v1.19+",
    ("v1", "Endpoints"): "v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
"""Since when a kind is on its way out in a version, as Kubernetes 1.37 says it."""
_WRITES = frozenset({"create", "update", "patch"})


def warnings(route: Route) -> list[str]:
    """What a client should hear about the version that it uses, and about what it stores."""
    kind = route.kind
    if kind.is_custom:
        assert isinstance(kind, CustomKind)
        return [kind.version.warning] if kind.version.warning else []
    since = _DEPRECATED.get((route.api_version, kind.kind))
    if since is not None:
        return [f"{route.api_version} {kind.kind} is deprecated in {since}"]
    if route.verb in _WRITES and not route.subresource:
        effect, text = effect_of(kind)
        if effect is Effect.NOTHING:
            return [f"{kind.kind} is stored and does nothing here: {text}"]
    return []
