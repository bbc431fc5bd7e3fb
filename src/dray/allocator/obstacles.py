"""Why a device that nobody holds cannot be given away, whatever is asked for: what it draws from is used up by others.

Positions are those of the pool, or of the part of it, that an occupancy is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dray.allocator.capacity import least_share
from dray.allocator.counters import CounterBudget, CounterTable, Draw, join_groups
from dray.allocator.holdings import Occupancy
from dray.allocator.reasons import CapacityShort, CounterShort, GroupsIncompatible
from dray.api.quantity import Quantity
from dray.tracker.columns import positions


def counter_obstacle(occupancy: Occupancy, position: int) -> CounterShort | GroupsIncompatible | None:
    """The counter that is short for a device, or the set whose devices it does not go with, and who has them."""
    budget, table = occupancy.budget(), occupancy.pool.counters
    draw = table.draws[position] if table is not None else None
    if budget is None or table is None or draw is None:
        return None
    return _incompatible(occupancy, budget, draw) or _counter_short(occupancy, budget, draw, table)


def capacity_obstacle(occupancy: Occupancy, position: int) -> CapacityShort | None:
    """The capacity of a device of which not even the smallest share is left, and who has the others."""
    device = occupancy.pool.view.devices[position]
    taken = occupancy.consumed(device.id.device)
    for name, entry in device.device.capacity.items():
        left, needed = entry.value.nanos - taken.get(name, 0), least_share(entry)
        if needed > left:
            return CapacityShort(
                capacity=name,
                needed=amount_text(needed),
                left=amount_text(left),
                short_by=amount_text(needed - left),
                claims=occupancy.holders(position),
            )
    return None


def amount_text(nanos: int) -> str:
    """An amount in the notation that people use: binary for whole multiples of 1024."""
    whole, rest = divmod(nanos, 10**9)
    if rest:
        return str(Quantity.parse(f"{nanos}n"))
    return str(Quantity.of_int(whole, "BinarySI" if whole and whole % 1024 == 0 else "DecimalSI"))


def _incompatible(occupancy: Occupancy, budget: CounterBudget, draw: Draw) -> GroupsIncompatible | None:
    if join_groups(budget.groups, draw) is not None:
        return None
    for counter_set, groups in draw.groups:
        single = Draw(amounts=(), groups=((counter_set, groups),))
        if join_groups(budget.groups, single) is None:
            return GroupsIncompatible(
                counter_set=counter_set,
                groups=tuple(sorted(groups)),
                present=tuple(sorted(budget.groups[counter_set])),
                claims=_claims(occupancy, [at for at, other in _draws(occupancy) if counter_set in dict(other.groups)]),
            )
    return None


def _counter_short(occupancy: Occupancy, budget: CounterBudget, draw: Draw, table: CounterTable) -> CounterShort | None:
    """Any counter of the pool that is overdrawn counts, not only those that the device draws from."""
    needed = dict(draw.amounts)
    for number, left in enumerate(budget.left):
        amount = needed.get(number, 0)
        if amount > left:
            counter_set, counter = table.names[number]
            return CounterShort(
                counter_set=counter_set,
                counter=counter,
                needed=amount_text(amount),
                left=amount_text(left),
                short_by=amount_text(amount - left),
                claims=_claims(occupancy, [at for at, other in _draws(occupancy) if dict(other.amounts).get(number)]),
            )
    return None


def _draws(occupancy: Occupancy) -> Iterator[tuple[int, Draw]]:
    """What the devices that are held take, by position."""
    table = occupancy.pool.counters
    for position in positions(occupancy.taken | occupancy.shared) if table is not None else ():
        draw = table.draws[position] if table is not None else None
        if draw is not None:
            yield position, draw


def _claims(occupancy: Occupancy, positions: Iterable[int]) -> tuple[str, ...]:
    """Who holds the devices at some positions."""
    return tuple(sorted({claim for position in positions for claim in occupancy.holders(position)}))
