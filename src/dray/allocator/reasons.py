"""Why claims do not fit, as data: claim → request → node → device, each device with the first check that it failed.

    Explanation
      nodes     how each node fares with all claims together
      claims    ClaimReport
        requests  RequestReport, one for each alternative
          nodes     NodeReport: how many devices match and are free, how many are missing, conflicts, pool problems
            devices   DeviceReport: a Check, or none if the device could be taken

Everything is immutable and has `to_dict()`. Texts for people are made elsewhere.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A part of an explanation."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; a check says its kind under `check`."""
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return plain


class Check(Report, frozen=True, kw_only=True, tag_field="check"):
    """A check that a device failed."""


class SelectorFalse(Check, frozen=True, kw_only=True, tag="selector"):
    """A selector of the class (`class_name` is set) or of the request is false."""

    class_name: str | None = None
    index: int
    expression: str
    condition: str
    """The part of the expression that is false; the whole if it has no parts."""
    line: int = 1
    column: int = 1
    values: dict[str, Any] = {}
    """What the condition looked at, by qualified name; null for what the device does not have."""


class SelectorFailed(Check, frozen=True, kw_only=True, tag="selectorError"):
    """A selector cannot be evaluated on the device. This aborts the allocation."""

    class_name: str | None = None
    index: int
    expression: str
    message: str


class OutOfReach(Check, frozen=True, kw_only=True, tag="node"):
    """The device, of a slice that selects nodes per device, cannot be used from the node."""


class CapacityUnsuitable(Check, frozen=True, kw_only=True, tag="capacityPolicy"):
    """The device can never serve the request: it lacks a capacity, has less of it, or its policy forbids the amount."""

    capacity: str
    requested: str
    value: str | None = None
    """What the device has in all."""
    at_most: str | None = None
    """What its policy lets one request have, at the most."""
    choices: tuple[str, ...] = ()
    """The amounts that its policy lets one request have."""
    message: str = ""
    """Set if the amount cannot be computed with, which aborts the allocation."""


class Tainted(Check, frozen=True, kw_only=True, tag="taint"):
    """A taint is not tolerated. `rule` is the DeviceTaintRule that it comes from, absent if the driver set it."""

    key: str
    value: str = ""
    effect: str
    rule: str | None = None
    time_added: str | None = None
    more_rules: tuple[str, ...] = ()
    """Other rules with taints on the device that are not tolerated either."""
    by_driver_too: bool = False
    """Whether the driver set such a taint as well, if this one comes from a rule."""

    @property
    def rules(self) -> tuple[str, ...]:
        """All rules that keep the device from being taken."""
        return (*([self.rule] if self.rule else ()), *self.more_rules)


class InUse(Check, frozen=True, kw_only=True, tag="inUse"):
    """Claims hold the device."""

    claims: tuple[str, ...]


class CounterShort(Check, frozen=True, kw_only=True, tag="counter"):
    """Too little is left of a counter that devices of the pool share."""

    counter_set: str
    counter: str
    needed: str
    left: str
    short_by: str
    claims: tuple[str, ...] = ()
    """Whose devices draw from the counter."""


class GroupsIncompatible(Check, frozen=True, kw_only=True, tag="compatibilityGroups"):
    """Devices that draw from the same counter set now have no compatibility group in common with this one."""

    counter_set: str
    groups: tuple[str, ...]
    present: tuple[str, ...]
    claims: tuple[str, ...] = ()
    """Whose devices draw from the set."""


class CapacityShort(Check, frozen=True, kw_only=True, tag="capacity"):
    """Shares of other claims leave too little of a capacity."""

    capacity: str
    needed: str
    left: str
    short_by: str
    claims: tuple[str, ...]


class AttributeMissing(Check, frozen=True, kw_only=True, tag="attributeMissing"):
    """A constraint is about an attribute that the device does not have."""

    attribute: str


class ConstraintConflict(Check, frozen=True, kw_only=True, tag="constraint"):
    """The device could be taken by itself, but not with the others that the request needs."""

    attribute: str
    distinct: bool = False
    values: tuple[str, ...]
    """Of this device."""
    others: dict[str, tuple[str, ...]]
    """Other devices that could be taken, by value."""


AnyCheck: TypeAlias = (
    SelectorFalse
    | SelectorFailed
    | OutOfReach
    | CapacityUnsuitable
    | Tainted
    | InUse
    | CounterShort
    | GroupsIncompatible
    | CapacityShort
    | AttributeMissing
    | ConstraintConflict
)


class DeviceReport(Report, frozen=True, kw_only=True):
    """One device in sight of a node. Without a check it could be taken for the request."""

    driver: str
    pool: str
    device: str
    node: str = ""
    """The node that it is local to: a pool may publish one name on several nodes."""
    check: AnyCheck | None = None
    values: dict[str, tuple[str, ...]] = {}
    """Values of the attributes that constraints on the request are about."""


class PoolProblem(Report, frozen=True, kw_only=True):
    """A pool in sight whose devices do not count, because it is incomplete or invalid (SVS-50)."""

    driver: str
    pool: str
    message: str
    incomplete: bool = False


class NodeReport(Report, frozen=True, kw_only=True):
    """One request (or alternative) by itself on one node."""

    node: str
    fits: bool
    error: str | None = None
    """Why the request cannot be judged here."""
    matching: int = 0
    """Devices that the selectors want."""
    free: int = 0
    """Devices that could be taken, each by itself."""
    missing: int = 0
    """How many devices fewer would have to be asked for; 0 if it fits."""
    fits_without: tuple[str, ...] = ()
    """Attributes whose constraint alone keeps the request from fitting."""
    problems: tuple[PoolProblem, ...] = ()
    devices: tuple[DeviceReport, ...] = ()


class RequestReport(Report, frozen=True, kw_only=True):
    """One request, or one alternative of it, on every node."""

    name: str
    resource: str = ""
    """The extended resource of a pod for which it was made."""
    device_class: str
    count: int | None = None
    """How many devices; absent for all."""
    admin_access: bool = False
    matching_attributes: tuple[str, ...] = ()
    distinct_attributes: tuple[str, ...] = ()
    nodes: tuple[NodeReport, ...] = ()


class NodeVerdict(Report, frozen=True, kw_only=True):
    """How a node fares with one claim, or with all claims together."""

    node: str
    status: str
    """`allocated`, `unsatisfiable`, `error` or `timeout`."""
    message: str = ""


class ClaimReport(Report, frozen=True, kw_only=True):
    """One claim by itself."""

    claim: str
    nodes: tuple[NodeVerdict, ...] = ()
    requests: tuple[RequestReport, ...] = ()
    error: str | None = None
    """Why the claim cannot be judged, wherever it would fit."""
    missing_class: tuple[str, str] | None = None
    """The request and the device class that it names, if there is none of that name: the claim waits for it."""


class Explanation(Report, frozen=True, kw_only=True):
    """The whole answer. `nodes` is about all claims together; a claim may fit alone and not with the others.

    With an `error` nothing can be decided, or not for all claims together.
    """

    nodes: tuple[NodeVerdict, ...] = ()
    claims: tuple[ClaimReport, ...] = ()
    error: str | None = None
