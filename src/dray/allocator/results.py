"""What an allocation comes to, and what may be set for it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from dray.api.resource import AllocationResult
from dray.tracker.view import EffectiveDevice

if TYPE_CHECKING:
    from dray.allocator.aside import Aside

TIMED_OUT: Final = "timed out trying to allocate devices"
STILL_JUDGING: Final = "selectors are still being evaluated"
SEARCHING: Final = "devices are still being looked for"
DOES_NOT_FIT: Final = "cannot allocate all claims"

_SHARES: Final = uuid.UUID("5f8c0c5e-6a0e-5d0f-9d8c-0b7d7c1f3a52")


class Allocated(msgspec.Struct, frozen=True):
    """All claims fit on `node`; `allocations` holds a result for each, by namespace/name, in the order given."""

    node: str
    allocations: dict[str, AllocationResult]
    steps: int = 0


class Unsatisfiable(msgspec.Struct, frozen=True):
    """The claims do not fit now; a change of devices, claims or nodes may help.

    `node` is None if all nodes were asked. `problems` are those of pools in sight whose devices do not count: they
    could have helped (SVS-50).
    """

    problems: tuple[str, ...] = ()
    node: str | None = None
    steps: int = 0

    @property
    def message(self) -> str:
        """The short reason."""
        return f"{DOES_NOT_FIT}: {'; '.join(self.problems)}" if self.problems else DOES_NOT_FIT


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


class Undecided(msgspec.Struct, frozen=True):
    """Selectors are still being evaluated on devices that the search has come to, or it goes on beside: ask again."""

    node: str | None = None
    is_searching: bool = False
    """Whether it is the search that goes on."""

    @property
    def message(self) -> str:
        """The short reason."""
        return SEARCHING if self.is_searching else STILL_JUDGING


Outcome: TypeAlias = Allocated | Unsatisfiable | Failed | BudgetExceeded | Undecided


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
    until: Callable[[], bool] | None = None
    """When it is true, searches are given up."""
    devices_judged: int | None = None
    """How many devices one question judges only to find selectors that fail somewhere (`faults`); None for all."""
    suspects_asked: int | None = None
    """How many nodes one question asks only because such a device is in their sight; None for all."""
    preference: Callable[[EffectiveDevice], Any] | None = None
    """A sort key: devices with smaller keys are tried first. Without it: driver, pool, slice, position."""
    aside: Aside | None = None
    """Where searches go on that take longer than a turn; without it, they take as long as they take."""


class Refusal(Exception):
    """Raised inside the allocator where the outcome is `Failed`; the message is the error."""

    def __init__(self, message: str, missing_class: tuple[str, str] | None = None) -> None:
        super().__init__(message)
        self.missing_class = missing_class
        """The request and the class that it names, if that is not there."""


class OutOfBudget(Exception):
    """Raised inside the search when a budget is used up."""


class StillJudging(Exception):
    """Raised inside the search where it comes to a device on which selectors are still being evaluated."""
