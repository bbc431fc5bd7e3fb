"""Whether what would help really does: tried on a copy of the cluster before anybody is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from msgspec.structs import replace

from dray.allocator.reasons import DeviceReport, InUse
from dray.api.kinds import CLAIMS
from dray.api.meta import Object
from dray.api.resource import ResourceClaim, ResourceClaimStatus, ResourceSlice
from dray.snapshot.snapshot import Snapshot


class Advice:
    """Answers for claims (`namespace/name`) on a node. Implements `prose.remedies.Trials`."""

    def __init__(self, snapshot: Snapshot, expected: Iterable[ResourceClaim] = (), company: Sequence[str] = ()) -> None:
        """`expected` are claims that somebody is going to make; `company` those that must fit together with one."""
        self._company = company
        self._snapshot = snapshot.with_typed(_named(claim) for claim in expected)

    def released(self, claim: str, node: str, holders: Sequence[str]) -> bool:
        """If some claims give back what they hold."""
        return self._fits(claim, node, self._emptied(holders))

    def without_holders(self, claim: str, node: str, devices: Sequence[DeviceReport]) -> bool:
        """If these devices, and no others that their holders have, are given back."""
        given = {(one.driver, one.pool, one.device) for one in devices}
        names = {name for one in devices if isinstance(one.check, InUse) for name in one.check.claims}
        company = [name for name in names if name in self._company]  # needs anew what it gives back, and all of it
        others = [held for held in map(self._find, names.difference(company)) if held is not None]
        changed = [*self._emptied(company), *(_without(held, given) for held in others)]
        return self._fits(claim, node, changed)

    def without_rules(self, claim: str, node: str, rules: Sequence[str]) -> bool:
        """If some taint rules are gone."""
        return self._is_allocated(self._snapshot.without(*(f"devicetaintrule/{rule}" for rule in rules)), claim, node)

    def without_constraint(self, claim: str, node: str, attribute: str) -> bool:
        """If a claim does not demand that devices agree, or differ, in an attribute."""
        wanted = self._find(claim)
        if wanted is None:
            return False
        devices = wanted.spec.devices
        left = tuple(
            one for one in devices.constraints if attribute not in (one.match_attribute, one.distinct_attribute)
        )
        changed = replace(wanted, spec=replace(wanted.spec, devices=replace(devices, constraints=left)))
        return self._fits(claim, node, [changed])

    def with_whole_pool(self, claim: str, node: str, driver: str, pool: str) -> bool:
        """If the slices of an incomplete pool that are there already were all of it."""
        mine = [
            one
            for one in self._snapshot.objects(ResourceSlice)
            if (one.spec.driver, one.spec.pool.name) == (driver, pool)
        ]
        newest = max((one.spec.pool.generation for one in mine), default=0)
        there = [one for one in mine if one.spec.pool.generation == newest]
        whole = [
            replace(one, spec=replace(one.spec, pool=replace(one.spec.pool, resource_slice_count=len(there))))
            for one in there
        ]
        return self._fits(claim, node, whole)

    def _emptied(self, holders: Iterable[str]) -> list[ResourceClaim]:
        return [replace(held, status=ResourceClaimStatus()) for held in map(self._find, holders) if held is not None]

    def _fits(self, claim: str, node: str, changed: Sequence[Object]) -> bool:
        return self._is_allocated(self._snapshot.with_typed(changed), claim, node)

    def _is_allocated(self, snapshot: Snapshot, claim: str, node: str) -> bool:
        """On the node, and no other node sees a device on which it fails: it gets nothing anywhere then."""
        wanted = dict.fromkeys((claim, *self._company))
        try:
            return all(snapshot.allocate(*wanted, node=where).status == "allocated" for where in (node, None))
        except LookupError:
            return False  # somebody who is not there cannot be helped

    def _find(self, name: str) -> ResourceClaim | None:
        namespace, _, short = name.partition("/")
        found = self._snapshot.get(CLAIMS.resource, namespace, short)
        return found if isinstance(found, ResourceClaim) else None


def _without(claim: ResourceClaim, given: Set[tuple[str, str, str]]) -> ResourceClaim:
    """What is left of a claim that gives devices back, which it could not do in part."""
    allocation = claim.status.allocation
    if allocation is None:
        return claim
    kept = tuple(one for one in allocation.devices.results if (one.driver, one.pool, one.device) not in given)
    devices = replace(allocation.devices, results=kept)
    return replace(claim, status=replace(claim.status, allocation=replace(allocation, devices=devices)))


def _named(claim: ResourceClaim) -> ResourceClaim:
    return replace(claim, kind=CLAIMS.kind, api_version=f"{CLAIMS.group}/{CLAIMS.versions[0]}")
