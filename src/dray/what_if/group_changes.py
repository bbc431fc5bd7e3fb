"""What is different about PodGroups: gangs that can run now, or no longer, and how their pods leave. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dray.allocator.reasons import Report
from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.meta import Object
from dray.api.pod_groups import group_of, leaves_as_a_whole
from dray.api.pods import is_finished
from dray.api.references import ObjectName, full_name
from dray.snapshot.group_explanation import explain_group
from dray.snapshot.snapshot import Snapshot

MAX_GROUPS = 50
"""PodGroups that are tried."""
Judged = dict[str, tuple[str, int, int, int, str]]
"""By group: its status, its pods, how many it needs and how many have nodes, and what is in the way."""


class GroupChange(Report, frozen=True, kw_only=True):
    """A PodGroup that is different."""

    group: str
    pods: int
    """How many of its pods run or wait."""
    needed: int
    placed: int
    """How many have nodes."""
    before: str | None = None
    """`scheduled`, `fits` or `pending`; absent if there is no such group."""
    after: str | None = None
    message: str = ""
    leaves_as_a_whole: bool | None = None
    """Whether from now on all of its pods leave if one has to; absent if that is as before."""

    @property
    def loses(self) -> bool:
        """Whether its pods could run, and cannot any more."""
        return self.before in ("scheduled", "fits") and self.after == "pending"


def judge_groups(snapshot: Snapshot, names: Collection[ObjectName]) -> Judged:
    """What becomes of groups, those of them that are there."""
    there = {ObjectName.of(group): group for group in snapshot.objects(PodGroup)} if names else {}
    told: Judged = {}
    for name in [one for one in names if one in there][:MAX_GROUPS]:
        found = explain_group(snapshot, str(name))
        told[str(name)] = (found.status, found.there, found.needed, found.placed, found.message)
    return told


def groups_of(differing: Collection[tuple[Object | None, Object | None]]) -> list[ObjectName]:
    """The groups that differ."""
    return [ObjectName.of(obj) for here, there in differing if isinstance(obj := there or here, PodGroup)]


def compare_groups(
    differing: Collection[tuple[Object | None, Object | None]], before: Judged, after: Judged
) -> Iterator[GroupChange]:
    """Each group that differs."""
    for here, there in differing:
        old, new = (one if isinstance(one, PodGroup) else None for one in (here, there))
        group = new if new is not None else old
        name = full_name(group) if group is not None else ""
        if group is None or (name not in before and name not in after):
            continue
        was, now = before.get(name), after.get(name)
        known = now or was
        assert known is not None, "it is there before or after"
        was_whole = old is not None and leaves_as_a_whole(old)
        is_whole = leaves_as_a_whole(new) if new is not None else was_whole
        yield GroupChange(
            group=name,
            pods=known[1],
            needed=known[2],
            placed=known[3],
            before=was[0] if was is not None else None,
            after=now[0] if now is not None else None,
            message=now[4] if now is not None else "",
            leaves_as_a_whole=is_whole if is_whole != was_whole else None,
        )


def members(snapshot: Snapshot, group: PodGroup) -> list[str]:
    """The pods that keep a group from going when somebody deletes it."""
    name = ObjectName.of(group)
    return [pod.metadata.name for pod in snapshot.objects(Pod) if group_of(pod) == name and not is_finished(pod)]
