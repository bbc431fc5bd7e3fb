"""How a pod leaves that must: what an eviction policy is asked, and what it may answer. Pure.

    decide(pod, cause, state, now) ─▶ Now: delete it          Wait: ask again at a time
                                      Force: without grace    Never: it stays, until the cause or the pod changes

The planner says who must leave and how fast; a policy may only put off, soften or harden what was planned. Whoever asks
takes an exception, an answer that comes too late and one that is none of these for a failure, and does as
`settings.FailurePolicy` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

import msgspec

from dray.api.generated.core import Pod


class Now(msgspec.Struct, frozen=True):
    """The pod leaves now, gracefully."""

    reason: str = ""
    respect_budgets: bool = False
    """Through the eviction API, which refuses while a disruption budget forbids it; the policy is then asked again."""


class Wait(msgspec.Struct, frozen=True):
    """The pod stays for the time being. The policy is asked again when the pod changes, and at the latest then."""

    until: float
    """Seconds since 1970."""
    reason: str = ""


class Never(msgspec.Struct, frozen=True):
    """The pod stays, for these causes. The policy is asked again if they, or its labels or annotations, change."""

    reason: str = ""


class Force(msgspec.Struct, frozen=True):
    """The pod is removed at once, without waiting for its node. Its processes may still be running."""

    reason: str = ""


Decision: TypeAlias = Now | Wait | Never | Force


class EvictionCause(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why a pod must leave. Of several taints the one that let it go first.

    After a restart of the controller the taint of a pod that is being deleted already is not known: `key` is empty.
    """

    kind: Literal["device", "node"]
    due: float
    """Since when, in seconds since 1970."""
    key: str = ""
    value: str = ""
    rule: str | None = None
    """The DeviceTaintRule that put the taint on the device; None if a driver or, on a node, anybody did."""
    devices: tuple[str, ...] = ()
    """The tainted devices that the pod uses, each as driver/pool/device."""


class Siblings(msgspec.Struct, frozen=True, kw_only=True):
    """The pods of one controller (the ReplicaSet, Job, … that owns the pod), itself among them, in numbers."""

    live: int
    """Neither finished nor being deleted."""
    ready: int
    """Of those, the ready ones."""
    evicting: int
    """Of the ready ones, those that were told to leave a moment ago and do not show it yet."""
    wanted: int
    """The most that were live at once since the first of them had to leave."""


class PolicyState(msgspec.Struct, frozen=True, kw_only=True):
    """What else a policy may want to know."""

    asked: int = 0
    """How often it was asked before about this pod and cause."""
    since: float = 0.0
    """When it was asked first, in seconds since 1970."""
    refused: str = ""
    """What the eviction API said when it last refused; empty if it did not."""
    siblings: Siblings | None = None
    """None if the pod has no controller."""


class EvictionPolicy(Protocol):
    """Decides about pods one by one. It is made once; `decide` is called from several threads at once.

    A plugin may block (ask another system, say): it runs beside the controller, under a time limit. Besides `decide` it
    may have an attribute `follows_up = True`, to be asked again about pods that it let go and that are still being
    deleted; of the answers only Wait and Force mean something then.
    """

    def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        """What becomes of a pod that must leave. `now` is seconds since 1970; whatever is raised counts as failure."""
        ...


PolicyFactory: TypeAlias = Callable[..., EvictionPolicy]
"""What an entry point names: a class or function that makes a policy from the options of the configuration, which are
texts given by keyword. Raises ValueError or TypeError for options that it cannot use."""
