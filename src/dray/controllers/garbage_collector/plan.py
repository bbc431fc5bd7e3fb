"""What to do about an object, given what became of its owners. Pure.

being deleted, `foregroundDeletion` ── dependents that block are gone? ─ no ─▶ look at the dependents
                                                                    └ yes ─▶ drop the finalizer
in a circle of owners that wait for each other ── stop blocking the owner, so that the circle opens
being deleted, `orphan` ── let go of the dependents ─▶ drop the finalizer
an owner is there ── forget owners that are gone or that wait for us
no owner is there ── delete: in the foreground if an owner waits and we have dependents of our own
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from dray.api.meta import ObjectMeta
from dray.api.well_known import FOREGROUND_DELETION

ORPHAN = "orphan"


class Owner(Enum):
    """What became of an owner."""

    PRESENT = auto()
    WAITING = auto()
    """It is being deleted in the foreground and waits for its dependents."""
    ABSENT = auto()


class Delete(NamedTuple):
    """Delete the object, with a propagation policy."""

    policy: str


class Disown(NamedTuple):
    """Drop references to these owners from the object."""

    uids: frozenset[str]


class DropFinalizer(NamedTuple):
    """Take a finalizer of the garbage collector off the object."""

    finalizer: str


class Unblock(NamedTuple):
    """Let the owners of the object go before it does."""


class ReleaseDependents(NamedTuple):
    """Drop the reference to the object from all its dependents."""


class VisitDependents(NamedTuple):
    """Look at the dependents that do not wait for dependents of their own: those come back by themselves."""


Instruction: TypeAlias = Delete | Disown | DropFinalizer | Unblock | ReleaseDependents | VisitDependents


def is_waiting(meta: ObjectMeta) -> bool:
    """Whether an object is being deleted in the foreground."""
    return meta.deletion_timestamp is not None and FOREGROUND_DELETION in meta.finalizers


def plan(
    meta: ObjectMeta,
    owners: Mapping[str, Owner],
    *,
    has_dependents: bool,
    is_blocked: bool,
    is_in_circle: bool = False,
) -> tuple[Instruction, ...]:
    """What to do about an object. `owners` tells of each uid in its owner references what became of it.

    `is_in_circle`: it is, over one or more dependents that wait, its own dependent.
    """
    if is_in_circle and any(reference.block_owner_deletion for reference in meta.owner_references):
        return (Unblock(),)
    if meta.deletion_timestamp is not None:
        return _plan_deleted(meta, is_blocked=is_blocked)
    states = set(owners.values())
    if not states or states == {Owner.PRESENT}:
        return ()
    if Owner.PRESENT in states:
        return (Disown(frozenset(uid for uid, state in owners.items() if state is not Owner.PRESENT)),)
    if Owner.WAITING in states and has_dependents:
        return (Delete("Foreground"),)
    return (Delete(_policy(meta)),)


def _plan_deleted(meta: ObjectMeta, *, is_blocked: bool) -> tuple[Instruction, ...]:
    if FOREGROUND_DELETION in meta.finalizers:
        return (VisitDependents(),) if is_blocked else (DropFinalizer(FOREGROUND_DELETION),)
    if ORPHAN in meta.finalizers:
        return ReleaseDependents(), DropFinalizer(ORPHAN)
    return ()


def _policy(meta: ObjectMeta) -> str:
    """What was asked for when the object was created or deleted; else its dependents follow on their own."""
    if ORPHAN in meta.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND_DELETION in meta.finalizers else "Background"
