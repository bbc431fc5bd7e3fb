"""Device taints, the tolerations of claims, and DeviceTaintRule (KEP-5055)."""

from __future__ import annotations

from typing import Any

from msgspec import field

from dray.api.meta import Condition, Object
from dray.api.resource.device_class import DeviceSelector
from dray.api.struct import Struct
from dray.api.times import Time

EFFECT_NONE = "None"
EFFECT_NO_SCHEDULE = "NoSchedule"
EFFECT_NO_EXECUTE = "NoExecute"

OPERATOR_EQUAL = "Equal"
OPERATOR_EXISTS = "Exists"

TAINTS_PER_SLICE = 32
TAINTS_PER_DEVICE = 16
TOLERATIONS_PER_REQUEST = 16
TAINT_DATA_BYTES = 10 * 1024
TAINT_DESCRIPTION_LENGTH = 1024
DEFAULT_EVICTIONS_PER_SECOND = 10
RULE_CONDITIONS = 8


class DeviceTaint(Struct):
    """A mark on a device: with which effect, since when, and how fast pods that do not tolerate it leave.

    An effect that this version does not know counts as `None` (SVS-08). `data` and `description` inform; dray acts on
    neither. Without `evictions_per_second` the rate is 10.
    """

    key: str = field(default_factory=str)
    value: str = ""
    effect: str = field(default_factory=str)
    time_added: Time | None = None
    description: str = ""
    data: Any = None
    evictions_per_second: int | None = None


class DeviceToleration(Struct):
    """Lets a request use devices with a matching taint. An empty key (with Exists) and an empty effect match all."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class DeviceTaintSelector(Struct):
    """Devices that a rule taints: every given criterion must hold; none given matches all devices."""

    device_class_name: str | None = None
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    selectors: tuple[DeviceSelector, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no criterion is given: it matches every device that there is or will be."""
        return self == DeviceTaintSelector()


class DeviceTaintRuleSpec(Struct):
    """One taint, and the devices that get it. Without a selector the rule matches nothing (5055-68)."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = field(default_factory=DeviceTaint)


class DeviceTaintRuleStatus(Struct):
    """What became of the rule; the condition EvictionInProgress reports the eviction."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(Object):
    """Adds a taint to all devices that match, as if their drivers had published it. Cluster-scoped."""

    spec: DeviceTaintRuleSpec = field(default_factory=DeviceTaintRuleSpec)
    status: DeviceTaintRuleStatus = field(default_factory=DeviceTaintRuleStatus)
