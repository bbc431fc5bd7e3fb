"""The names of custom resources: who has which in a group, and who comes too late."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from dray.api.conditions import is_true, with_conditions
from dray.api.generated.apiextensions import (
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
    CustomResourceDefinitionNames,
)
from dray.api.times import Time

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its objects are gone."""

NAMES_ACCEPTED = "NamesAccepted"
ESTABLISHED = "Established"
TERMINATING = "Terminating"


def is_established(definition: CustomResourceDefinition) -> bool:
    """Whether the resource is served."""
    return is_true(definition.status.conditions, ESTABLISHED)


def has_all_names(definition: CustomResourceDefinition) -> bool:
    """Whether there is nothing left to settle about the names of a definition."""
    return definition.status.accepted_names == definition.spec.names and is_established(definition)


class _Taken:
    """The names that others in a group have."""

    def __init__(self, definition: CustomResourceDefinition, others: Iterable[CustomResourceDefinition]) -> None:
        self.resources: set[str] = set()
        self.kinds: set[str] = set()
        for other in others:
            if other.spec.group == definition.spec.group and other.metadata.name != definition.metadata.name:
                names = other.status.accepted_names
                self.resources |= {names.plural, names.singular, *names.short_names}
                self.kinds |= {names.kind, names.list_kind}


def _conflicts(
    wanted: CustomResourceDefinitionNames, accepted: CustomResourceDefinitionNames, taken: _Taken
) -> dict[str, tuple[str, str]]:
    """The fields of names that cannot be had: by attribute, the reason and the message."""

    def fresh(name: str, own: str, used: set[str]) -> bool:
        return name == own or name not in used

    found: dict[str, tuple[str, str]] = {}
    mine = set(accepted.short_names)
    late = [
        f'"{name}" is already in use' for name in wanted.short_names if name not in mine and name in taken.resources
    ]
    if late:
        said = late[0] if len(late) == 1 else f"[{', '.join(late)}]"
        found["short_names"] = ("ShortNamesConflict", said)
    for field, reason, used in (
        ("plural", "PluralConflict", taken.resources),
        ("singular", "SingularConflict", taken.resources),
        ("kind", "KindConflict", taken.kinds),
        ("list_kind", "ListKindConflict", taken.kinds),
    ):
        name = getattr(wanted, field)
        if not fresh(name, getattr(accepted, field), used):
            found[field] = (reason, f'"{name}" is already in use')
    return found


def with_accepted_names(
    definition: CustomResourceDefinition, others: Iterable[CustomResourceDefinition], now: Time
) -> CustomResourceDefinition:
    """The definition with the names that it gets, and the conditions that say so. Once established, it stays so."""
    wanted, status = definition.spec.names, definition.status
    conflicts = _conflicts(wanted, status.accepted_names, _Taken(definition, others))
    kept = {field: getattr(status.accepted_names, field) for field in conflicts}
    accepted = replace(wanted, **kept)
    reason, message = [("NoConflicts", "no conflicts found"), *conflicts.values()][-1]
    conditions = [_condition(NAMES_ACCEPTED, not conflicts, reason, message, now)]
    if not is_established(definition):
        conditions.append(
            _condition(ESTABLISHED, False, "NotAccepted", "not all names are accepted", now)
            if conflicts
            else _condition(ESTABLISHED, True, "InitialNamesAccepted", "the initial names have been accepted", now)
        )
    status = replace(status, accepted_names=accepted, conditions=with_conditions(status.conditions, conditions))
    return replace(definition, status=status)


def with_stored_version(definition: CustomResourceDefinition) -> CustomResourceDefinition:
    """The definition that knows in which versions objects of it may be stored."""
    stored = definition.status.stored_versions
    storage = [version.name for version in definition.spec.versions if version.storage]
    missing = tuple(name for name in storage if name not in stored)
    if not missing:
        return definition
    return replace(definition, status=replace(definition.status, stored_versions=(*stored, *missing)))


def terminating(reason: str, message: str, now: Time) -> CustomResourceDefinitionCondition:
    """The condition that tells how the deletion of the objects goes."""
    return _condition(TERMINATING, True, reason, message, now)


def _condition(type_: str, is_so: bool, reason: str, message: str, now: Time) -> CustomResourceDefinitionCondition:
    return CustomResourceDefinitionCondition(
        type=type_, status=str(is_so), reason=reason, message=message, last_transition_time=now
    )
