"""Why devices are blocked, in words."""

from __future__ import annotations

from collections.abc import Iterable

from dray.allocator.reasons import CapacityShort
from dray.prose.device_reasons import tell_check
from dray.prose.wording import ends, local_name, names
from dray.scheduling.device_states import Block, DeviceState, NodeBlock, NodeProblem, PoolBlock

_REACH = {
    NodeProblem.GONE: "there is no node in reach",
    NodeProblem.NOT_READY: "no node in reach is ready",
    NodeProblem.CORDONED: "all nodes in reach are cordoned",
    NodeProblem.DRAINED: "all nodes in reach are set aside by drains",
    NodeProblem.TAINTED: "all nodes in reach are tainted NoExecute",
}


def tell_block(block: Block) -> str:
    """Why one device cannot be had."""
    match block:
        case NodeBlock(None, problem):
            return _REACH[problem]
        case NodeBlock(node, problem):
            return f"node {node} is {problem.value}"
        case PoolBlock(message, _):
            return message
        case CapacityShort():
            return _tell_capacity(block)
    return tell_check(block, None)


def tell_used_up(block: Block) -> str:
    """`counters used up (ml/train-1)`: what holders leave nothing of; empty if it is not for holders."""
    if isinstance(block, NodeBlock | PoolBlock):
        return ""
    return f"{_label(block)} ({ends(block.claims)})" if block.claims else _label(block)


def tell_blocked(devices: Iterable[DeviceState]) -> str:
    """`32 counters used up (ml/train-1 … ml/train-4)`: the blocked ones of some devices, counted by what it is."""
    tally: dict[str, int] = {}
    users: dict[str, set[str]] = {}
    for device in devices:
        block = device.block
        if block is None:
            continue
        label = _label(block)
        tally[label] = tally.get(label, 0) + 1
        claims = () if isinstance(block, NodeBlock | PoolBlock) else block.claims
        users.setdefault(label, set()).update(claims)
    told = []
    for label, number in sorted(tally.items(), key=lambda item: (-item[1], item[0])):
        holders = ends(sorted(users[label]))
        told.append(f"{number} {label}" + (f" ({holders})" if holders else ""))
    return names(told, 3)


def _tell_capacity(block: CapacityShort) -> str:
    capacity = local_name(block.capacity)
    is_empty = block.left.startswith(("0", "-"))
    rest = f"no {capacity} left" if is_empty else f"{capacity} {block.left} left, less than the least share"
    return f"{rest} (shared with {names(block.claims)})" if block.claims else rest


def _label(block: Block) -> str:
    match block:
        case NodeBlock(node, problem):
            return f"({_REACH[problem]})" if node is None else f"on a node that is {problem.value}"
        case PoolBlock(_, incomplete):
            return "pool incomplete" if incomplete else "pool invalid"
    return "capacity used up" if isinstance(block, CapacityShort) else "counters used up"
