"""Warnings that follow from what is asked for alone: versions on their way out, and kinds that do nothing here."""

from __future__ import annotations

from dray.api.effects import Effect, effect_of
from dray.api.registry import RESOURCE_GROUP
from dray.custom.kinds import CustomKind
from dray.server.routes import Route

_SINCE = {"v1beta1": ("v1.35", "v1.38"), "v1beta2": ("v1.36", "v1.39")}
_KINDS = frozenset({"ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"})
_WRITES = frozenset({"create", "update", "patch"})


def warnings(route: Route) -> list[str]:
    """What a client should hear about the version that it uses, and about what it stores."""
    kind = route.kind
    if kind.is_custom:
        assert isinstance(kind, CustomKind)
        return [kind.version.warning] if kind.version.warning else []
    if kind.group == RESOURCE_GROUP and route.version in _SINCE and kind.kind in _KINDS:
        since, until = _SINCE[route.version]
        return [f"{route.api_version} {kind.kind} is deprecated in {since}+, unavailable in {until}+"]
    if route.verb in _WRITES and not route.subresource:
        effect, text = effect_of(kind)
        if effect is Effect.NOTHING:
            return [f"{kind.kind} is stored and does nothing here: {text}"]
    return []
