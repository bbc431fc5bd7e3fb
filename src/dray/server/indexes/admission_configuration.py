"""The policies, bindings and webhooks in the store as they are now, compiled once per version.

One counts from the moment its write is acknowledged: every question first reads what has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from dray.admission import policies, validating_policy
from dray.admission.mutating_policy import MutatingPolicy
from dray.admission.validating_policy import ValidatingPolicy
from dray.admission.webhook import Webhook, webhooks_of
from dray.server.indexes.followed import Followed
from dray.store import Key, Store

__all__ = ["ADMISSION_GROUP", "AdmissionConfiguration", "Hooks"]

ADMISSION_GROUP: Final = "admissionregistration.k8s.io"


P = TypeVar("P")
B = TypeVar("B", bound=policies.Binding)


class Bound(NamedTuple, Generic[P, B]):
    """A policy with its bindings, in the order of their names."""

    policy: P
    bindings: tuple[B, ...]


BoundMutating = Bound[MutatingPolicy, policies.Binding]
BoundValidating = Bound[ValidatingPolicy, validating_policy.Binding]


class Hooks(NamedTuple):
    """Everything that has to be asked, in the order in which it is asked."""

    mutating_policies: tuple[BoundMutating, ...] = ()
    validating_policies: tuple[BoundValidating, ...] = ()
    mutating_webhooks: tuple[Webhook, ...] = ()
    validating_webhooks: tuple[Webhook, ...] = ()


class _Compiled:
    """The objects of one resource, compiled one by one when they change."""

    def __init__(self, store: Store, plural: str, compile: Callable[[Any], Any]) -> None:
        self.by_name: dict[str, Any] = {}
        self._compile = compile
        self.followed: Final = Followed(store, f"{plural}.{ADMISSION_GROUP}", self._apply)

    def _apply(self, key: Key, obj: Any) -> None:
        if obj is None:
            self.by_name.pop(key.name, None)
        else:
            self.by_name[key.name] = self._compile(obj)


class AdmissionConfiguration:
    """What is configured. `hooks` costs a look at a few counters while nothing changes."""

    def __init__(self, store: Store) -> None:
        self._progress = store.progress
        self._revision = -1
        self._hooks: Hooks | None = None
        self._policies = _Compiled(store, "validatingadmissionpolicies", ValidatingPolicy)
        self._bindings = _Compiled(store, "validatingadmissionpolicybindings", validating_policy.Binding)
        self._mutating = _Compiled(store, "mutatingadmissionpolicies", MutatingPolicy)
        self._mutating_bindings = _Compiled(store, "mutatingadmissionpolicybindings", policies.Binding)
        self._mutating_webhooks = _Compiled(store, "mutatingwebhookconfigurations", webhooks_of)
        self._validating_webhooks = _Compiled(store, "validatingwebhookconfigurations", webhooks_of)
        self._all = (
            self._policies,
            self._bindings,
            self._mutating,
            self._mutating_bindings,
            self._mutating_webhooks,
            self._validating_webhooks,
        )

    @property
    def hooks(self) -> Hooks | None:
        """Whom to ask; None if nobody. Raises Closed when the store is."""
        revision = self._progress.revision
        if revision != self._revision:
            changed = [each.followed.catch_up() for each in self._all]
            if any(changed):
                self._hooks = self._arrange()
            self._revision = revision
        return self._hooks

    def close(self) -> None:
        """Lets go of the store."""
        for each in self._all:
            each.followed.close()

    def _arrange(self) -> Hooks | None:
        hooks = Hooks(
            _bound(self._mutating.by_name, self._mutating_bindings.by_name),
            _bound(self._policies.by_name, self._bindings.by_name),
            _in_order(self._mutating_webhooks.by_name),
            _in_order(self._validating_webhooks.by_name),
        )
        return hooks if any(hooks) else None


def _in_order(configurations: dict[str, tuple[Webhook, ...]]) -> tuple[Webhook, ...]:
    """The webhooks of all configurations, by the names of those."""
    return tuple(webhook for _, webhooks in sorted(configurations.items()) for webhook in webhooks)


def _bound(policies: dict[str, P], bindings: dict[str, B]) -> tuple[Bound[P, B], ...]:
    """Policies in the order of their names, with their bindings; one that nobody has bound is not asked."""
    by_policy: dict[str, list[B]] = {}
    for _, binding in sorted(bindings.items()):
        by_policy.setdefault(binding.policy, []).append(binding)
    return tuple(
        Bound(policy, tuple(by_policy[name])) for name, policy in sorted(policies.items()) if name in by_policy
    )
