"""Whether several demands can be met from one set of devices at once (bipartite matching with bitsets)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Need: TypeAlias = tuple[int, int]
"""A set of devices (or values) and how many of them are needed."""


def lowest(mask: int, count: int) -> int:
    """The `count` lowest members of a set, or all if there are fewer."""
    if mask.bit_count() <= count:
        return mask
    found = 0
    for _ in range(count):
        low = mask & -mask
        found |= low
        mask ^= low
    return found


def can_meet_all(needs: Sequence[Need]) -> bool:
    """Whether each need can get its number of devices, no device serving two.

    Greedy first, the scarcest need first; what is lacking then is found along augmenting paths.
    """
    if len(needs) == 1:
        return needs[0][0].bit_count() >= needs[0][1]
    union = 0
    for mask, _ in needs:
        union |= mask
    if union.bit_count() < sum(need for _, need in needs):
        return False
    return _Matching([mask for mask, _ in needs]).meet(needs)


class _Matching:
    """A partial assignment of devices to needs."""

    def __init__(self, masks: list[int]) -> None:
        self.masks = masks
        self.given = [0] * len(masks)
        self.used = 0

    def meet(self, needs: Sequence[Need]) -> bool:
        for number in sorted(range(len(needs)), key=lambda n: needs[n][0].bit_count() - needs[n][1]):
            mask, need = needs[number]
            taken = lowest(mask & ~self.used, need)
            self.given[number] = taken
            self.used |= taken
            if not all(self._augment(number) for _ in range(need - taken.bit_count())):
                return False
        return True

    def _augment(self, number: int) -> bool:
        """Give one more device to a need, moving devices between the others (breadth first)."""
        came_from: dict[int, tuple[int, int]] = {}
        queue = [number]
        for current in queue:
            free = self.masks[current] & ~self.used
            if free:
                self._shift(number, current, free & -free, came_from)
                return True
            for other, given in enumerate(self.given):
                movable = given & self.masks[current]
                if movable and other != number and other not in came_from:
                    came_from[other] = (current, movable & -movable)
                    queue.append(other)
        return False

    def _shift(self, number: int, current: int, device: int, came_from: dict[int, tuple[int, int]]) -> None:
        self.used |= device
        while current != number:
            previous, moved = came_from[current]
            self.given[current] ^= moved | device
            current, device = previous, moved
        self.given[number] |= device
