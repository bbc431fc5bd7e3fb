"""The metadata that every object carries, and the small types shared by many kinds (meta/v1)."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from dray.api.struct import Struct
from dray.api.times import Time


class OwnerReference(Struct):
    """An object that this one depends on, in the same namespace or cluster-scoped."""

    api_version: str = field(default_factory=str)
    kind: str = field(default_factory=str)
    name: str = field(default_factory=str)
    uid: str = field(default_factory=str)
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Struct):
    """The fields that one manager owns through server-side apply or updates."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    fields_v1: Any = field(default=None, name="fieldsV1")
    subresource: str = ""


class ObjectMeta(Struct):
    """Identity, versioning and ownership of an object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()


class ListMeta(Struct):
    """Where a list stands in history, and how to ask for the rest of it."""

    self_link: str = ""
    resource_version: str = ""
    continue_: str = field(default="", name="continue")
    remaining_item_count: int | None = None


class Object(Struct):
    """What every stored object has; kinds add `spec`, `status` and the like."""

    null_when_empty: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Paths of lists that Kubernetes always writes, as null when they are empty."""

    kind: str = ""
    api_version: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class Condition(Struct):
    """One observed aspect of an object's state. Consumers look conditions up by type."""

    type: str = field(default_factory=str)
    status: str = field(default_factory=str)
    observed_generation: int = 0
    last_transition_time: Time | None = field(default_factory=lambda: None)
    reason: str = field(default_factory=str)
    message: str = field(default_factory=str)


class LabelSelectorRequirement(Struct):
    """One key, an operator (In, NotIn, Exists, DoesNotExist) and its values."""

    key: str = field(default_factory=str)
    operator: str = field(default_factory=str)
    values: tuple[str, ...] = ()


class LabelSelector(Struct):
    """All of `match_labels` and `match_expressions` must hold; an empty selector matches everything."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Preconditions(Struct):
    """What must hold of the stored object for a write to go ahead."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Struct):
    """The body of a delete request."""

    kind: str = ""
    api_version: str = ""
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] = ()
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None


class StatusCause(Struct):
    """One reason for a failure; for an invalid object, one field error."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Struct):
    """The object that a Status is about, and the causes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Struct):
    """The answer to a request that failed, or that returns no object."""

    kind: str = field(default_factory=lambda: "Status")
    api_version: str = field(default_factory=lambda: "v1")
    metadata: ListMeta = field(default_factory=ListMeta)
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0
