"""How the pods of each controller are, in numbers, for policies that wait for replacements. Asking costs nothing."""

from __future__ import annotations

from dray.api.generated.core import Pod
from dray.api.pods import is_active, is_ready
from dray.api.references import controller_of
from dray.eviction.policy import Siblings


class _Group:
    """The pods of one controller, by uid."""

    __slots__ = ("evicting", "live", "pending", "ready", "wanted")

    def __init__(self) -> None:
        self.live: set[str] = set()
        self.ready: set[str] = set()
        self.evicting: set[str] = set()
        self.pending: set[str] = set()
        self.wanted = 0

    def forget_wanted(self) -> None:
        if not self.pending and len(self.ready) >= self.wanted:
            self.wanted = 0


class Replicas:
    """Kept up to date by `put` and `drop`. `wanted` is forgotten when nobody is pending and all are ready again."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    def put(self, pod: Pod) -> None:
        """A pod is there, or has changed."""
        owner = _owner(pod)
        if not owner:
            return
        uid = pod.metadata.uid
        if not is_active(pod):
            self.drop(pod)
            return
        group = self._groups.setdefault(owner, _Group())
        group.live.add(uid)
        (group.ready.add if is_ready(pod) else group.ready.discard)(uid)
        if group.pending:
            group.wanted = max(group.wanted, len(group.live))
        group.forget_wanted()

    def drop(self, pod: Pod) -> None:
        """A pod is gone, or as good as gone."""
        owner = _owner(pod)
        group = self._groups.get(owner)
        if group is None:
            return
        uid = pod.metadata.uid
        for members in (group.live, group.ready, group.evicting, group.pending):
            members.discard(uid)
        if not group.live:
            self._groups.pop(owner, None)

    def siblings(self, pod: Pod) -> Siblings | None:
        """The pods of a pod's controller, from now on pending; None if it has none."""
        group = self._groups.get(_owner(pod))
        if group is None:
            return None
        group.pending.add(pod.metadata.uid)
        group.wanted = max(group.wanted, len(group.live))
        return Siblings(
            live=len(group.live),
            ready=len(group.ready),
            evicting=len(group.evicting & group.ready),
            wanted=group.wanted,
        )

    def evicting(self, pod: Pod, *, is_so: bool) -> None:
        """A pod is being told to leave, or could not be told to."""
        group = self._groups.get(_owner(pod))
        if group is not None:
            (group.evicting.add if is_so else group.evicting.discard)(pod.metadata.uid)

    def stays(self, pod: Pod) -> None:
        """A pod does not have to leave any more."""
        group = self._groups.get(_owner(pod))
        if group is not None:
            group.evicting.discard(pod.metadata.uid)
            group.pending.discard(pod.metadata.uid)
            group.forget_wanted()


def _owner(pod: Pod) -> str:
    """The uid of the object that manages a pod; empty if none does."""
    owner = controller_of(pod)
    return "" if owner is None else owner.uid
