"""How taints are written, on devices, nodes and clusters alike: `key=value:Effect`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar


class AnyTaint(Protocol):
    """What the taints of devices, nodes and clusters have."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


def taint_text(taint: AnyTaint) -> str:
    """`key=value:Effect`, or `key:Effect` for a taint without a value, as kubectl writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


class TaintName(NamedTuple):
    """What tells the taints of one object apart: `key:Effect`."""

    key: str
    effect: str

    @classmethod
    def of(cls, taint: AnyTaint) -> TaintName:
        """The name of a taint."""
        return cls(taint.key, taint.effect)

    def __str__(self) -> str:
        return f"{self.key}:{self.effect}"


AnyTaintT = TypeVar("AnyTaintT", bound=AnyTaint)


def without(taints: Iterable[AnyTaintT], names: Iterable[TaintName]) -> tuple[AnyTaintT, ...]:
    """The taints but those of these names."""
    gone = frozenset(names)
    return tuple(taint for taint in taints if TaintName.of(taint) not in gone)
