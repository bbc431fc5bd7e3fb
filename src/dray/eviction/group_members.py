"""Pods of PodGroups that can be evicted: which claims reach them through their group."""

from __future__ import annotations

from collections.abc import Iterator

from dray.api.generated.core import Pod
from dray.api.generated.scheduling import PodGroup
from dray.api.pod_groups import group_of, is_group, leaves_as_a_whole
from dray.api.references import ObjectName
from dray.api.resource import ResourceClaim


class GroupMembers:
    """Members of groups by uid. Where a group leaves as a whole, what one of them has to leave for counts for all."""

    def __init__(self) -> None:
        self._group: dict[str, ObjectName] = {}
        self._claims: dict[str, frozenset[str]] = {}
        self._members: dict[ObjectName, dict[str, None]] = {}
        self._shared: dict[ObjectName, dict[ObjectName, None]] = {}
        self._whole: set[ObjectName] = set()

    def put_group(self, name: ObjectName, group: PodGroup | None) -> tuple[str, ...]:
        """Notes a group, or that it is gone. Returns the members for whom that makes a difference."""
        is_whole = group is not None and leaves_as_a_whole(group)
        if is_whole == (name in self._whole):
            return ()
        (self._whole.add if is_whole else self._whole.discard)(name)
        return tuple(self._members.get(name, ()))

    def put_pod(self, pod: Pod) -> None:
        """Notes a pod that can be evicted."""
        name = group_of(pod)
        if name is None:
            return
        uid = pod.metadata.uid
        self._group[uid] = name
        self._members.setdefault(name, {})[uid] = None
        named = [entry.resource_claim_name for entry in pod.spec.resource_claims]
        named += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
        self._claims[uid] = frozenset(filter(None, named))

    def drop_pod(self, uid: str) -> None:
        """Notes that a pod is gone, or on its way out."""
        name = self._group.pop(uid, None)
        if name is not None:
            del self._claims[uid]
            members = self._members[name]
            members.pop(uid, None)
            if not members:
                del self._members[name]

    def put_claim(self, key: ObjectName, before: ResourceClaim | None, after: ResourceClaim | None) -> None:
        """Notes which groups share a claim."""
        for name in shared_by(before):
            self._shared.get(name, {}).pop(key, None)
        for name in shared_by(after):
            self._shared.setdefault(name, {})[key] = None

    def companions(self, uid: str) -> tuple[str, ...]:
        """The pods that leave with a pod, itself among them; none if it leaves alone."""
        name = self._group.get(uid)
        return tuple(self._members.get(name, ())) if name is not None and name in self._whole else ()

    def reached(self, claim: ResourceClaim) -> Iterator[str]:
        """The pods that a claim reaches because it is reserved for their group."""
        for name in shared_by(claim):
            for uid in self._members.get(name, ()):
                if name in self._whole or claim.metadata.name in self._claims[uid]:
                    yield uid

    def shared_claims(self, uid: str) -> Iterator[ObjectName]:
        """The claims of its group that reach a pod."""
        name = self._group.get(uid)
        for key in self._shared.get(name, ()) if name is not None else ():
            if name in self._whole or key.name in self._claims[uid]:
                yield key

    @property
    def sharers(self) -> int:
        """How many pods are of groups that share claims."""
        return sum(len(self._members.get(name, ())) for name, claims in self._shared.items() if claims)


def shared_by(claim: ResourceClaim | None) -> Iterator[ObjectName]:
    """The groups that a claim is reserved for."""
    for user in claim.status.reserved_for if claim is not None else ():
        if is_group(user):
            yield ObjectName(claim.metadata.namespace if claim is not None else "", user.name)
