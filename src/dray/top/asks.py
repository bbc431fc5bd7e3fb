"""What a key asks for that takes somebody who can do I/O: the session answers by calling the model."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from dray.snapshot.device_selection import DeviceSelection


class Quit(msgspec.Struct, frozen=True):
    """The end."""


class Redraw(msgspec.Struct, frozen=True):
    """Somebody else wrote on the screen."""


class Filter(msgspec.Struct, frozen=True):
    """Show devices of which a CEL expression is true; all if it is empty. Answer: `filtered`."""

    expression: str


class Explain(msgspec.Struct, frozen=True):
    """Why a pod waits. Answer: `show`."""

    pod: str


class Describe(msgspec.Struct, frozen=True):
    """A device in full. Answer: `show`."""

    device: str
    node: str


class Preview(msgspec.Struct, frozen=True):
    """Who would be hit. Answer: `previewed`."""

    selections: tuple[DeviceSelection, ...]
    effect: str


class Apply(msgspec.Struct, frozen=True):
    """Do what was previewed. Answer: `applied`."""

    selections: tuple[DeviceSelection, ...]
    effect: str
    digest: str


class Act(msgspec.Struct, frozen=True):
    """`confirm`, `stop` or `undo` a rule; of a node `confirm` or `stop` what makes pods leave it. Answer: `said`."""

    action: str
    name: str
    is_node: bool = False


Ask: TypeAlias = Quit | Redraw | Filter | Explain | Describe | Preview | Apply | Act
