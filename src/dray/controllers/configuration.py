"""The configuration file of controllers, from text to `ControllerSettings`. Described in docs/eviction.md.

apiVersion: dray.dev/v1
kind: ControllersConfiguration
nodeLifecycle: {nodeMonitorGracePeriod: 40s}
eviction: {policy: {name: pdb}, maxEvictions: 10%}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import field

from dray.api import codec, manifest
from dray.api.durations import parse_duration
from dray.api.struct import Struct
from dray.controllers.settings import ControllerSettings, NodeLifecycleSettings
from dray.eviction.settings import EvictionSettings, FailurePolicy, Limit, PolicyChoice, SettingsError, Webhook

API_VERSION: Final = "dray.dev/v1"
KIND: Final = "ControllersConfiguration"


class _TaintManager(Struct):
    enable_no_execute_taint_manager: bool = True


class _NodeLifecycle(Struct):
    node_monitor_period: str = ""
    node_monitor_grace_period: str = ""
    node_startup_grace_period: str = ""
    node_eviction_rate: float | None = None
    secondary_node_eviction_rate: float | None = None
    large_cluster_size_threshold: int | None = None
    unhealthy_zone_threshold: float | None = None


class _Policy(Struct):
    name: str = field(default_factory=str)
    options: dict[str, str] = field(default_factory=dict)


class _Webhook(Struct):
    name: str = field(default_factory=str)
    url: str = field(default_factory=str)
    ca_file: str = ""
    follows_up: bool = False


class _Eviction(Struct):
    policy: _Policy | None = None
    offered: tuple[_Policy, ...] = ()
    webhooks: tuple[_Webhook, ...] = ()
    failure_policy: str = ""
    fallback: str = ""
    """The older name of `failurePolicy`."""
    timeout: str = ""
    max_evictions: str = ""


class _Configuration(Struct):
    api_version: str = ""
    kind: str = ""
    no_execute_taint_manager: _TaintManager = field(default_factory=_TaintManager)
    node_lifecycle: _NodeLifecycle = field(default_factory=_NodeLifecycle)
    eviction: _Eviction = field(default_factory=_Eviction)


def parse_configuration(data: bytes, source: str) -> ControllerSettings:
    """Settings from the text of a file; `source` stands in messages. Raises SettingsError."""
    try:
        value = manifest.parse_single(data, source, f"give one document of kind {KIND}")
    except manifest.ManifestError as error:
        raise SettingsError(error.message) from None
    try:
        return read_configuration(value)
    except SettingsError as error:
        raise SettingsError(f"{source}: {error}") from None


def read_configuration(value: Mapping[str, Any]) -> ControllerSettings:
    """Settings from the plain values of a document. Raises SettingsError."""
    found = _read(value)
    return ControllerSettings(
        enable_no_execute_taint_manager=found.no_execute_taint_manager.enable_no_execute_taint_manager,
        node_lifecycle=_node_lifecycle(found.node_lifecycle),
        eviction=_eviction(found.eviction),
    )


def check_configuration(value: Mapping[str, Any]) -> str:
    """What is wrong with a document of this kind; empty if nothing is, as far as that can be told without starting."""
    try:
        read_configuration(value)
    except SettingsError as error:
        return str(error)
    return ""


def node_lifecycle_settings(before: NodeLifecycleSettings, **changes: float | str | None) -> NodeLifecycleSettings:
    """Settings with some changed, by the names of NodeLifecycleSettings; durations may be texts, None changes nothing.

    Raises SettingsError.
    """
    values: dict[str, Any] = {}
    for name, given in changes.items():
        if given is None or given == "":
            continue
        value = _duration(name, given) if isinstance(given, str) else given
        if value < 0 or (value == 0 and name.endswith("period")):
            raise SettingsError(f"{name.replace('_', ' ')} must be more than 0, not {given}")
        values[name] = value
    if values.get("unhealthy_share", 0.0) > 1:
        raise SettingsError(f"an unhealthy zone is told by a share from 0 to 1, not {values['unhealthy_share']}")
    return NodeLifecycleSettings(**{name: values.get(name, getattr(before, name)) for name in before.__struct_fields__})


def _read(value: Mapping[str, Any]) -> _Configuration:
    if (value.get("apiVersion"), value.get("kind")) != (API_VERSION, KIND):
        raise SettingsError(f"apiVersion must be {API_VERSION} and kind {KIND}")
    reading = codec.read(_texts(value), _Configuration)
    if reading.problems or reading.obj is None:
        raise SettingsError("; ".join(reading.problems))
    return reading.obj


def _texts(value: Mapping[str, Any]) -> dict[str, Any]:
    """`maxEvictions: 100` and `timeout: 5` are numbers to YAML, and meant as what they look like."""
    eviction = value.get("eviction")
    if not isinstance(eviction, dict):
        return dict(value)
    numbers = {
        name: str(given)
        for name, given in eviction.items()
        if name in ("maxEvictions", "timeout") and type(given) in (int, float)
    }
    return {**value, "eviction": {**eviction, **numbers}}


def _node_lifecycle(found: _NodeLifecycle) -> NodeLifecycleSettings:
    return node_lifecycle_settings(
        NodeLifecycleSettings(),
        monitor_period=found.node_monitor_period,
        grace_period=found.node_monitor_grace_period,
        startup_grace_period=found.node_startup_grace_period,
        taint_rate=found.node_eviction_rate,
        secondary_taint_rate=found.secondary_node_eviction_rate,
        large_zone=found.large_cluster_size_threshold,
        unhealthy_share=found.unhealthy_zone_threshold,
    )


def _eviction(found: _Eviction) -> EvictionSettings:
    default = EvictionSettings()
    for path, named in (("offered", found.offered), ("webhooks", found.webhooks)):
        _check_names(path, [one.name for one in named])
    webhooks = (
        Webhook(name=one.name, url=one.url, ca_file=one.ca_file, follows_up=one.follows_up) for one in found.webhooks
    )
    return EvictionSettings(
        policy=default.policy if found.policy is None else PolicyChoice(found.policy.name, found.policy.options),
        offered=tuple(PolicyChoice(one.name, one.options) for one in found.offered),
        webhooks=tuple(webhooks),
        failure_policy=_failure_policy(found) or default.failure_policy,
        timeout=_duration("eviction.timeout", found.timeout) if found.timeout else default.timeout,
        max_evictions=Limit.parse(found.max_evictions) if found.max_evictions else None,
    )


def _failure_policy(found: _Eviction) -> FailurePolicy | None:
    if found.failure_policy and found.fallback:
        raise SettingsError("eviction.fallback is the older name of eviction.failurePolicy; give only the latter")
    name, value = ("failurePolicy", found.failure_policy) if found.failure_policy else ("fallback", found.fallback)
    if value and value not in list(FailurePolicy):
        raise SettingsError(f"eviction.{name}: {value!r} is neither {' nor '.join(FailurePolicy)}")
    return FailurePolicy(value) if value else None


def _check_names(path: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not name or name in seen:
            raise SettingsError(f"eviction.{path}[{position}].name: {'given twice' if name else 'missing'}: {name!r}")
        seen.add(name)


def _duration(name: str, text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise SettingsError(f"{name.replace('_', ' ')}: {error}") from None
