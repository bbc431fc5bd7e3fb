"""The most common problem: one claim that asks for some devices which have nothing to do with each other.

Nothing is searched for: the first devices that are free are those that a search would find.
"""

from __future__ import annotations

from dray.allocator.flow import lowest
from dray.allocator.layout import Layout
from dray.allocator.requests import Alternative, Claim
from dray.allocator.results import Options, OutOfBudget
from dray.api.resource.claim import ALLOCATION_RESULTS


def only_alternative(claims: tuple[Claim, ...]) -> Alternative | None:
    """What claims ask for, if that is a number of devices, and nothing else."""
    if len(claims) != 1 or len(claims[0].requests) != 1 or len(claims[0].requests[0].alternatives) != 1:
        return None
    only = claims[0].requests[0].alternatives[0]
    is_number = only.count is not None and only.count <= ALLOCATION_RESULTS
    return only if is_number and not only.admin and not only.constraints else None


def pick(layout: Layout, only: Alternative, options: Options) -> int | None:
    """The positions of the devices as a set, empty if there are too few; None if that takes a search.

    Raises StillJudging and OutOfBudget.
    """
    if options.max_steps < 1 or (options.until is not None and options.until()):
        raise OutOfBudget
    assert only.count is not None
    found = layout.candidates(only.criteria)
    free = ~layout.taken()
    usable = found.usable & free
    if (found.faulty | found.overflowing) & free or usable & (layout.metered | layout.shareable | layout.shared()):
        return None
    return lowest(usable, only.count) if usable.bit_count() >= only.count else 0
