"""Says which fields of a write were dropped because a feature gate is off (nothing is ignored silently)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from dray.api import codec
from dray.api.meta import Object
from dray.validation import Context

Prepare = Callable[[Context], Object]
"""What the server makes of the written object in a context: `Rules.prepare_create` and the like."""


def warnings(prepare: Prepare, context: Context) -> list[str]:
    """One warning per field that is gone only because a gate is off. Costs nothing while all gates are on."""
    if not context.disabled_gates:
        return []
    everything = _plain(prepare(replace(context, disabled_gates=frozenset())))
    found = []
    for gate in sorted(context.disabled_gates):
        without = _plain(prepare(replace(context, disabled_gates=frozenset({gate}))))
        found += [f"{path}: dropped, feature gate {gate} is off" for path in _missing(everything, without, "")]
    return found


def _plain(obj: Object) -> Any:
    return codec.to_builtins(obj)


def _missing(before: Any, after: Any, path: str) -> Iterator[str]:
    """The paths of what is in `before` and not in `after`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            inner = f"{path}.{name}" if path else name
            if name not in after:
                yield inner
            else:
                yield from _missing(value, after[name], inner)
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield path
            return
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _missing(old, new, f"{path}[{index}]")
