"""What quotas let in: pods that come are counted as a server would, next to what is there. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dray.api.generated.core import Pod, ResourceQuota
from dray.api.kinds import PODS
from dray.api.meta import Object
from dray.api.quantity import Quantity
from dray.api.references import full_name
from dray.api.registry import by_kind
from dray.snapshot.snapshot import Snapshot
from dray.validation.pod_resources import ZERO
from dray.validation.quota_devices import Listed, may_count_claims
from dray.validation.quota_scopes import is_in_scope
from dray.validation.quota_usage import Usage, counted_kinds, missing_amounts, usage


class KeptOut(NamedTuple):
    """The quota that lets an object in no more, and why."""

    quota: str
    why: str

    def __str__(self) -> str:
        return f"not let in by quota {self.quota}: {self.why}"


class QuotaRoom:
    """What is used of the quotas of a snapshot, and of what objects bring and take with them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._quotas: dict[str, list[ResourceQuota]] = {}
        for quota in snapshot.objects(ResourceQuota):
            self._quotas.setdefault(quota.metadata.namespace, []).append(quota)
        self._used: dict[tuple[str, str], Quantity] = {}
        self._listed: Listed | None = None
        if self._quotas:
            self._count(snapshot)

    def _count(self, snapshot: Snapshot) -> None:
        limited = {name for quotas in self._quotas.values() for one in quotas for name in one.spec.hard}
        kinds = {kind.kind for name in limited for kind in counted_kinds(name)}
        if any(may_count_claims(name) for name in limited):
            self._listed = Listed(snapshot.objects(Object))
        for obj in snapshot.objects(Object):
            if obj.kind in kinds and obj.metadata.namespace in self._quotas:
                self._add(obj)

    def let_in(self, objects: Iterable[Object]) -> KeptOut | None:
        """Counts objects that come together; if one of them is kept out, says so, and counts none."""
        come: list[Object] = []
        for obj in objects:
            why = self._keeps_out(obj)
            if why is not None:
                self.give_back(come)
                return why
            self._add(obj)
            come.append(obj)
        return None

    def give_back(self, objects: Iterable[Object]) -> None:
        """Objects are gone."""
        for obj in objects:
            self._add(obj, sign=-1)

    def used(self, quota: ResourceQuota, resource: str) -> Quantity:
        """How much of a limit is used."""
        return self._used.get((full_name(quota), resource), ZERO)

    def _add(self, obj: Object, sign: int = 1) -> None:
        quotas = self._quotas.get(obj.metadata.namespace, ())
        uses = self._usage(obj) if quotas else {}
        for quota in quotas:
            if is_in_scope(quota.spec, obj):
                for name in quota.spec.hard.keys() & uses.keys():
                    key = full_name(quota), name
                    now = self._used.get(key, ZERO)
                    self._used[key] = now + uses[name] if sign > 0 else now - uses[name]

    def _usage(self, obj: Object) -> Usage:
        is_pod = isinstance(obj, Pod)  # one that only reservations mention says no kind
        return usage(PODS.resource if is_pod else by_kind(obj.api_version, obj.kind).resource, obj, self._listed)

    def _keeps_out(self, obj: Object) -> KeptOut | None:
        uses = self._usage(obj) if obj.metadata.namespace in self._quotas else {}
        for quota in self._quotas.get(obj.metadata.namespace, ()):
            if not is_in_scope(quota.spec, obj):
                continue
            missing = missing_amounts(quota.spec.hard, obj)
            if missing:
                return KeptOut(full_name(quota), missing)
            for name in sorted(quota.spec.hard.keys() & uses.keys()):
                used, limit = self.used(quota, name), quota.spec.hard[name]
                if uses[name].sign() and used + uses[name] > limit:
                    return KeptOut(full_name(quota), f"{name} used {used} of {limit}, {uses[name]} more needed")
        return None
