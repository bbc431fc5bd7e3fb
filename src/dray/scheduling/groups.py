"""PodGroups and the pods that say they are of them."""

from __future__ import annotations

from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.pod_groups import group_of, leaves_as_a_whole
from dray.api.pods import is_active
from dray.api.references import ObjectName


class Groups:
    """All groups by name, and their pods, with and without nodes, by uid. A pod may come before its group."""

    def __init__(self) -> None:
        self._groups: dict[ObjectName, PodGroup] = {}
        self._members: dict[ObjectName, dict[str, Pod]] = {}
        self._group_of: dict[str, ObjectName] = {}
        self._gated: dict[ObjectName, int] = {}
        self._placed: dict[ObjectName, set[str]] = {}
        """Members that have a node, or are about to: groups have thousands, and are asked at each event of one."""

    def set(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """A group came, changed or went."""
        if new is not None:
            self._groups[ObjectName.of(new)] = new
        elif old is not None:
            self._groups.pop(ObjectName.of(old), None)

    def set_pod(self, pod: Pod | None, uid: str) -> None:
        """A pod came, changed or went; those that are finished or leave are no members any more."""
        name = group_of(pod) if pod is not None and is_active(pod) else None
        known = self._group_of.get(uid)
        if known is not None:
            self._count_gated(known, self._members[known][uid], -1)
        if known is not None and known != name:
            self.note_place(uid, has_node=False)
            del self._group_of[uid]
            members = self._members[known]
            del members[uid]
            if not members:
                del self._members[known]
        if name is not None and pod is not None:
            self._group_of[uid] = name
            self._members.setdefault(name, {})[uid] = pod
            self._count_gated(name, pod, 1)

    def _count_gated(self, name: ObjectName, pod: Pod, step: int) -> None:
        if not pod.spec.scheduling_gates:
            return
        gated = self._gated.pop(name, 0) + step
        if gated:
            self._gated[name] = gated

    def note_place(self, uid: str, *, has_node: bool) -> None:
        """A pod has a node now, or is about to; or it has none any more."""
        name = self._group_of.get(uid)
        if name is None:
            return
        if has_node:
            self._placed.setdefault(name, set()).add(uid)
        elif (placed := self._placed.get(name)) is not None:
            placed.discard(uid)
            if not placed:
                del self._placed[name]

    def number_without_gates(self, name: ObjectName) -> int:
        """How many members of a group may be scheduled, or have been."""
        return len(self.members(name)) - self._gated.get(name, 0)

    def number_placed(self, name: ObjectName) -> int:
        """How many members of a group have a node, or are about to."""
        return len(self._placed.get(name, ()))

    def get(self, name: ObjectName | None) -> PodGroup | None:
        """A group; None if it is not there."""
        return None if name is None else self._groups.get(name)

    def members(self, name: ObjectName) -> dict[str, Pod]:
        """The pods of a group that run or wait, in the order in which they came."""
        return self._members.get(name, {})

    def goes_as_a_whole(self, pod: Pod) -> ObjectName | None:
        """The group whose pods all go if this one has to; None if it goes alone."""
        name = group_of(pod)
        group = self.get(name)
        return name if group is not None and leaves_as_a_whole(group) else None

    def __bool__(self) -> bool:
        return bool(self._groups)
