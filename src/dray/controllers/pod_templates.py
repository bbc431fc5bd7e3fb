"""What workloads make of their pod templates: pods, and a short name for each template. Pure."""

from __future__ import annotations

import hashlib

from dray.api import codec
from dray.api.generated.core import Pod, PodTemplateSpec
from dray.api.meta import Object, ObjectMeta, OwnerReference
from dray.api.well_known import NAME_LETTERS

LETTERS = NAME_LETTERS
LONGEST_BASE = 57


def reference_to(owner: Object) -> OwnerReference:
    """How a pod names the object that manages it."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def pod_from(owner: Object, template: PodTemplateSpec, finalizers: tuple[str, ...] = ()) -> Pod:
    """A pod without a name, as an owner's template describes it."""
    meta = template.metadata
    return Pod(
        kind="Pod",
        api_version="v1",
        metadata=ObjectMeta(
            generate_name=f"{owner.metadata.name[:LONGEST_BASE].rstrip('.-')}-",
            namespace=owner.metadata.namespace,
            labels=meta.labels,
            annotations=meta.annotations,
            finalizers=(*meta.finalizers, *finalizers),
            owner_references=(reference_to(owner),),
        ),
        spec=template.spec,
    )


def template_hash(template: PodTemplateSpec, collisions: int) -> str:
    """A short name for a template; `collisions` makes another one, should it be taken."""
    digest = hashlib.sha256(codec.encode(template) + str(collisions).encode()).digest()
    return "".join(LETTERS[byte % len(LETTERS)] for byte in digest[:10])
