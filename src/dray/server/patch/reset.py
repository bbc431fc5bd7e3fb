"""Fields that an endpoint does not write, whatever it is sent: nobody comes to own them through it."""

from __future__ import annotations

from functools import cache

from dray.api import schema
from dray.server.patch.fields import LEAF, FieldSet
from dray.server.patch.inline import InlineDefinition

_STATUS: FieldSet = {"f:status": LEAF}
_SPEC: FieldSet = {"f:spec": LEAF}
_ALL_BUT_STATUS: FieldSet = {"f:metadata": LEAF, **_SPEC}

# Built-in kinds whose status endpoint keeps labels and annotations, too, or parts of them. Kinds that are not built in
# keep all of them.
_STATUS_WRITES_METADATA = frozenset(
    {"", "apps", "autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy"}
)
_STATUS_KEEPS: dict[tuple[str, str], FieldSet] = {
    ("", "Pod"): {"f:metadata": {"f:deletionTimestamp": LEAF, "f:ownerReferences": LEAF}, **_SPEC},
    ("apps", "Deployment"): {"f:metadata": {"f:labels": LEAF}, **_SPEC},
    ("certificates.k8s.io", "CertificateSigningRequest"): {"f:status": {"f:conditions": LEAF}, **_SPEC},
    ("certificates.k8s.io", "PodCertificateRequest"): _ALL_BUT_STATUS,
}


def fields_of(definition: schema.Definition | InlineDefinition, subresource: str) -> FieldSet:
    """What the endpoint of a kind, or of its status, leaves as it is."""
    if isinstance(definition, InlineDefinition):
        return definition.resets.get(subresource, {})
    return _fields_of(definition.name, subresource)


@cache
def _fields_of(name: str, subresource: str) -> FieldSet:
    definition = schema.definition(name)
    if subresource == "status":
        gvk = definition.kinds[0]
        default = _SPEC if gvk.group in _STATUS_WRITES_METADATA else _ALL_BUT_STATUS
        return _STATUS_KEEPS.get((gvk.group, gvk.kind), default)
    return _STATUS if "status" in definition.properties else {}
