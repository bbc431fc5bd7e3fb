"""What an allocation comes to, and what may be set for it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from dray.api.resource import AllocationResult
from dray.tracker.view import EffectiveDevice

TIMED_OUT: Final = "timed out trying to allocate devices"
DOES_NOT_FIT: Final = "cannot allocate all claims"

_SHARES: Final = uuid.UUID("5f8c0c5e-6a0e-5d0f-9d8c-0b7d7c1f3a52")


class Allocated(msgspec.Struct, frozen=True):
    """All claims fit on `node`; `allocations` holds a result for each, by namespace/name, in the order given."""

    node: str
    allocations: dict[str, AllocationResult]
    steps: int = 0


class Unsatisfiable(msgspec.Struct, frozen=True):
    """The claims do not fit now; a change of devices, claims or nodes may help.

    `node` is None if all nodes were asked.
    """

    message: str = DOES_NOT_FIT
    node: str | None = None
    steps: int = 0


class Failed(msgspec.Struct, frozen=True):
    """The claims cannot be judged, so nothing may be concluded from it: a selector that fails on a device, an
    unknown class, mode or constraint, an unreadable node selector, more devices than a claim may hold (SVS-51)."""

    error: str
    node: str | None = None


class BudgetExceeded(msgspec.Struct, frozen=True):
    """The search was given up before an answer was known (4381-106, SVS-53)."""

    message: str
    node: str | None = None
    steps: int = 0


Outcome: TypeAlias = Allocated | Unsatisfiable | Failed | BudgetExceeded


def derive_share_id(seed: str) -> str:
    """The default share id: the same for the same claim, request and device, so that runs can be repeated."""
    return str(uuid.uuid5(_SHARES, seed))


class Options(msgspec.Struct, frozen=True):
    """How to search. The budgets hold for one node, as a scheduler's filter timeout does."""

    share_id: Callable[[str], str] = derive_share_id
    """Makes the id of a new share from a text that is unique to claim, request and position."""
    max_steps: int = 50_000
    max_seconds: float | None = None
    clock: Callable[[], float] | None = None
    """Seconds from any start; needed for `max_seconds`."""
    preference: Callable[[EffectiveDevice], Any] | None = None
    """A sort key: devices with smaller keys are tried first. Without it: driver, pool, slice, position."""


class Refusal(Exception):
    """Raised inside the allocator where the outcome is `Failed`; the message is the error."""


class OutOfBudget(Exception):
    """Raised inside the search when a budget is used up."""
