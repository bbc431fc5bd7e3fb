"""The policies that come with dray: `delete`, `pdb` and `checkpoint`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dray.api.durations import describe_duration, parse_duration
from dray.api.generated.core import Pod
from dray.api.labels import LabelSelector, SelectorError
from dray.api.pods import is_ready
from dray.api.times import Time, TimeError, moment_at
from dray.eviction.policy import Decision, EvictionCause, Now, PolicyFactory, PolicyState, Wait

CHECKPOINTED: Final = "dray.dev/checkpointed"
"""An annotation of a pod: its data is safe."""
LOOK_SECONDS: Final = 2.0


class Delete:
    """Everybody leaves when planned, whatever budgets say: what the default controllers of Kubernetes do (3902-14)."""

    def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        """Now."""
        return Now()


class RespectBudgets:
    """Pods leave through the eviction API, and a ready pod only when those that left before it are replaced.

    Options: `deadline`, after which a pod is deleted whatever its budget says (never, unless given);
    `replacement_timeout`, after which missing replacements are not waited for any more (5 minutes).
    """

    def __init__(self, *, deadline: str = "", replacement_timeout: str = "5m") -> None:
        """Raises ValueError for what is no duration."""
        self._deadline = parse_duration(deadline) if deadline else float("inf")
        self._replacement_timeout = parse_duration(replacement_timeout)

    def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        """Now, as far as budgets allow, or when that is to be asked again."""
        if now >= cause.due + self._deadline:
            return Now(f"{describe_duration(self._deadline)} are over")
        siblings = state.siblings
        if siblings is not None and is_ready(pod) and now < state.since + self._replacement_timeout:
            missing = siblings.wanted - (siblings.ready - siblings.evicting)
            if missing > 0:
                return Wait(now + LOOK_SECONDS, f"{missing} of {siblings.wanted} pods of its controller are not ready")
        return Now(respect_budgets=True)


class Checkpoint:
    """Pods stay until their data is safe, which somebody says with an annotation.

    Its value is anything but `false` or, if it is a time, one that is not before the cause. Options: `deadline`, after
    which a pod is deleted all the same (10 minutes); `annotation`; `selector` of labels, for pods that this is about.
    """

    def __init__(self, *, deadline: str = "10m", annotation: str = CHECKPOINTED, selector: str = "") -> None:
        """Raises ValueError for what is no duration or selector."""
        self._deadline = parse_duration(deadline)
        self._annotation = annotation
        try:
            self._selector = LabelSelector.parse(selector)
        except SelectorError as error:
            raise ValueError(f"selector: {error}") from error

    def decide(self, pod: Pod, cause: EvictionCause, state: PolicyState, now: float) -> Decision:
        """Now, if the data is safe, or until when to wait."""
        if not self._selector.matches(pod.metadata.labels):
            return Now()
        if _is_said(pod.metadata.annotations.get(self._annotation), cause.due):
            return Now("its data is safe")
        until = cause.due + self._deadline
        if now >= until:
            return Now(f"no checkpoint in {describe_duration(self._deadline)}")
        moment = Time.of(moment_at(until))
        return Wait(until, f"annotation {self._annotation} is not set; it is waited for until {moment}")


def _is_said(value: str | None, due: float) -> bool:
    if value is None or value.strip().lower() == "false":
        return False
    try:
        return Time.parse(value).datetime().timestamp() >= int(due)
    except TimeError:
        return True


BUILTIN: Final[Mapping[str, PolicyFactory]] = {"delete": Delete, "pdb": RespectBudgets, "checkpoint": Checkpoint}
DEFAULT: Final = "delete"
