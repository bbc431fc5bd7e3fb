"""Where policies come from: built in, an entry point of an installed package, or a webhook of the settings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from dray.controllers.eviction.deciders import Decider, Direct, Threaded
from dray.eviction.builtin_policies import BUILTIN
from dray.eviction.policy import EvictionPolicy, PolicyFactory
from dray.eviction.settings import EvictionSettings, FailurePolicy, PolicyChoice, SettingsError

ENTRY_POINTS: Final = "dray.eviction_policies"


class Policies(NamedTuple):
    """Whom to ask, for how long, and what if there is no answer."""

    default: Decider
    offered: Mapping[str, Decider]
    failure_policy: FailurePolicy
    timeout: float

    def all(self) -> Iterator[Decider]:
        """Everybody who may be asked."""
        yield self.default
        yield from self.offered.values()


def check_settings(settings: EvictionSettings) -> None:
    """That every policy can be made. Raises SettingsError."""
    make_policies(settings)


def make_policies(settings: EvictionSettings) -> Policies:
    """The policies that settings name. Raises SettingsError."""
    offered = {choice.name: _make(choice, settings) for choice in settings.offered}
    return Policies(_make(settings.policy, settings), offered, settings.failure_policy, settings.timeout)


def _make(choice: PolicyChoice, settings: EvictionSettings) -> Decider:
    name = choice.name
    webhook = next((one for one in settings.webhooks if one.name == name), None)
    if webhook is not None:
        if choice.options:
            raise SettingsError(f"eviction policy {name} is a webhook, which has no options")
        from dray.controllers.eviction.webhook import WebhookDecider

        return WebhookDecider(webhook)
    if name in BUILTIN:
        return Direct(name, _make_policy(choice, BUILTIN[name]))
    from importlib import metadata

    found = next(iter(metadata.entry_points(group=ENTRY_POINTS, name=name)), None)
    if found is None:
        raise SettingsError(f"there is no eviction policy {name!r}; there are {', '.join(_names(settings))}")
    try:
        factory = found.load()
    except Exception as error:  # any mistake in somebody else's package
        raise SettingsError(f"eviction policy {name} cannot be loaded: {type(error).__name__}: {error}") from error
    return Threaded(name, _make_policy(choice, factory))


def _make_policy(choice: PolicyChoice, factory: PolicyFactory) -> EvictionPolicy:
    known = _options(factory)
    unknown = sorted(choice.options.keys() - known) if known is not None else []
    if unknown:
        there = f"it has {', '.join(sorted(known or ()))}" if known else "it has none"
        raise SettingsError(f"eviction policy {choice.name} has no option {unknown[0]!r}; {there}")
    try:
        policy = factory(**choice.options)
    except Exception as error:
        raise SettingsError(f"eviction policy {choice.name}: {error}") from error
    if not callable(getattr(policy, "decide", None)):
        raise SettingsError(f"eviction policy {choice.name}: {type(policy).__name__} has no method decide")
    return policy


def _options(factory: PolicyFactory) -> set[str] | None:
    """The names of the options that a policy has; None if any name will do, or that cannot be told."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    return {one.name for one in parameters}


def _names(settings: EvictionSettings) -> list[str]:
    from importlib import metadata

    plugins = {found.name for found in metadata.entry_points(group=ENTRY_POINTS)}
    return sorted({*BUILTIN, *plugins, *(webhook.name for webhook in settings.webhooks)})
