"""The shell: looks at a cluster when it, its lease or what it has on the hub changes, and when the lease expires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from dray.api.cluster import ManagedCluster
from dray.api.cluster.managed_cluster import CLUSTER_NAME_LABEL, CONDITION_HUB_ACCEPTED, is_accepted
from dray.api.conditions import find_condition
from dray.api.generated.coordination import Lease
from dray.api.generated.core import Namespace, ServiceAccount
from dray.api.generated.rbac import ClusterRole, ClusterRoleBinding, RoleBinding
from dray.api.kinds import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTERS,
    LEASES,
    NAMESPACES,
    ROLE_BINDINGS,
    SERVICE_ACCOUNTS,
)
from dray.api.meta import DeleteOptions, Object
from dray.api.status import ApiError
from dray.api.taints import TaintName
from dray.api.times import MicroTime, Time
from dray.client import Informer
from dray.controllers.context import Context
from dray.controllers.managed_cluster import acceptance
from dray.controllers.queue_controller import QueueController
from dray.placement import AvailabilityPlan, plan_availability
from dray.placement.availability import EVENT_TAINTS_UPDATED, EVENT_UNKNOWN, LEASE_NAME, grace_of
from dray.process.clock import as_time

RETURN_SECONDS = 30.0
"""How long agents have to come back to a hub that was away itself, before their silence counts."""


class _Heard(NamedTuple):
    """A renewal of a lease, as it is written, and when it was heard of, by the clock that never jumps."""

    written: MicroTime | Time
    at: float
    is_from_before: bool = False
    """Whether it was there when the hub began to listen."""


class ManagedClusterController(QueueController[str]):
    """Keys are names of clusters."""

    name = "managed-cluster-controller"

    def __init__(self, context: Context) -> None:
        """Registers with the informers of clusters, leases, and what clusters have on the hub."""
        of = context.informers.of
        self._clusters = of(CLUSTERS, ManagedCluster)
        self._leases = of(LEASES, Lease)
        self._belongings: dict[str, Informer[Any]] = {
            "Namespace": of(NAMESPACES, Namespace),
            "ServiceAccount": of(SERVICE_ACCOUNTS, ServiceAccount),
            "ClusterRole": of(CLUSTER_ROLES, ClusterRole),
            "ClusterRoleBinding": of(CLUSTER_ROLE_BINDINGS, ClusterRoleBinding),
            "RoleBinding": of(ROLE_BINDINGS, RoleBinding),
        }
        super().__init__(context, self._clusters, self._leases, *self._belongings.values())
        self._recorder = context.recorder(self.name)
        self._heard: dict[str, _Heard] = {}
        self._started = self._clock.monotonic()
        self._clusters.on_change(self._cluster_changed)
        self._leases.on_change(self._lease_changed)
        for informer in self._belongings.values():
            informer.on_change(self._belonging_changed)

    async def run(self) -> None:
        """Works until cancelled. Leases that nobody could renew while the hub was away are given a little longer."""
        for informer in self.informers:
            await informer.synced()
        self._started, now = self._clock.monotonic(), self._now()
        for name in [cluster.metadata.name for cluster in self._clusters]:
            written = self._last_renewal(name)
            if written is not None:
                age = (now - written.datetime()).total_seconds()
                self._heard[name] = _Heard(written, self._started - max(age, 0.0), is_from_before=True)
        await super().run()

    async def reconcile(self, key: str) -> float | None:
        """Provides for an accepted cluster, and writes its conditions and automatic taints where they are wrong."""
        cluster = self._clusters.get("", key)
        if cluster is None:
            self._heard.pop(key, None)
            return None
        room = acceptance.has_room(cluster, self._belongings["Namespace"].get("", key))
        if not room:
            await self._take_away(*acceptance.bindings(cluster))
        elif cluster.metadata.deletion_timestamp is None:
            await self._provide(cluster)
        cluster = await self._answer(cluster, room=room)
        plan = plan_availability(cluster, self._renewed(cluster), self._now())
        if plan.create_lease and room:
            await self._create_lease(cluster)
        cluster = await self._write_availability(cluster, plan)
        if plan.taints is not None:
            await self._write_taints(cluster, plan)
        return plan.requeue_after

    async def _provide(self, cluster: ManagedCluster) -> None:
        """Makes what is missing on the hub and puts right what is different.

        For a cluster that is not accepted nothing is made, and rights that come late are taken away again.
        """
        may_make = cluster.spec.hub_accepts_client or is_accepted(cluster)
        for wanted in acceptance.wanted_objects(cluster):
            await self._apply(wanted, may_make=may_make)
        if not cluster.spec.hub_accepts_client:
            await self._take_away(acceptance.registration_binding(cluster))

    async def _apply(self, wanted: Object, *, may_make: bool) -> None:
        informer = self._belongings[wanted.kind]
        found = informer.get(wanted.metadata.namespace, wanted.metadata.name)
        if found is None:
            if may_make:
                informer.put(await self._client.create(wanted))
        elif isinstance(wanted, ClusterRole) and cast(ClusterRole, found).rules != wanted.rules:
            informer.put(await self._client.update(replace(found, rules=wanted.rules)))

    async def _take_away(self, *unwanted: RoleBinding | ClusterRoleBinding) -> None:
        for one in unwanted:
            meta = one.metadata
            if self._belongings[one.kind].get(meta.namespace, meta.name) is None:
                continue
            kind = ROLE_BINDINGS if isinstance(one, RoleBinding) else CLUSTER_ROLE_BINDINGS
            try:
                await self._client.delete(kind, meta.namespace, meta.name, DeleteOptions())
            except ApiError as error:
                if error.code != 404:
                    raise

    async def _answer(self, cluster: ManagedCluster, *, room: bool) -> ManagedCluster:
        """Writes whether the hub accepts the cluster, and has room for it."""
        conditions = acceptance.plan_condition(cluster, as_time(self._clock.now()), room=room)
        if conditions is None:
            return cluster
        written = await self._write_status(replace(cluster, status=replace(cluster.status, conditions=conditions)))
        answer = find_condition(conditions, CONDITION_HUB_ACCEPTED)
        assert answer is not None
        tell = self._recorder.warning if answer.reason == acceptance.NAMESPACE_TAKEN else self._recorder.normal
        reason = "ManagedClusterAccepted" if answer.status == "True" else "ManagedClusterDenied"
        await tell(written, reason, f"Cluster {cluster.metadata.name}: {answer.message}")
        return written

    async def _create_lease(self, cluster: ManagedCluster) -> None:
        try:
            self._leases.put(await self._client.create(acceptance.first_lease(cluster, MicroTime.of(self._now()))))
        except ApiError as error:
            if error.code != 409:  # there is one already: the news is on its way
                raise

    async def _write_availability(self, cluster: ManagedCluster, plan: AvailabilityPlan) -> ManagedCluster:
        if plan.conditions is None:
            return cluster
        status = replace(cluster.status, conditions=plan.conditions)
        written = await self._write_status(replace(cluster, status=status))
        name = cluster.metadata.name
        message = f"Cluster {name} has not renewed its lease in time: whether it is available is not known"
        await self._recorder.warning(written, EVENT_UNKNOWN, message)
        return written

    async def _write_status(self, changed: ManagedCluster) -> ManagedCluster:
        """For the version that was read: if somebody else was faster, this fails and is tried again."""
        written = await self._client.update(changed, subresource="status")
        self._clusters.put(written)
        return written

    async def _write_taints(self, cluster: ManagedCluster, plan: AvailabilityPlan) -> None:
        taints = plan.taints or ()
        written = await self._client.update(replace(cluster, spec=replace(cluster.spec, taints=taints)))
        self._clusters.put(written)
        shown = ", ".join(str(TaintName.of(taint)) for taint in taints) or "none"
        await self._recorder.normal(written, EVENT_TAINTS_UPDATED, f"Taints follow the condition Available: {shown}")

    def _renewed(self, cluster: ManagedCluster) -> datetime | None:
        """When the lease was last renewed as far as that counts; None if there is none.

        That is when the hub heard of it, by a clock that nobody sets: what an agent writes is of its own clock, and
        the hub's may be set by hours.
        """
        name, tick = cluster.metadata.name, self._clock.monotonic()
        written = self._last_renewal(name)
        if written is None:
            self._heard.pop(name, None)
            return None
        heard = self._heard.get(name)
        if heard is None or heard.written != written:
            heard = self._heard[name] = _Heard(written, tick)
        at = heard.at
        if heard.is_from_before:
            at = max(at, self._started + RETURN_SECONDS - grace_of(cluster).total_seconds())
        return self._now() - timedelta(seconds=tick - at)

    def _last_renewal(self, cluster: str) -> MicroTime | Time | None:
        lease = self._leases.get(cluster, LEASE_NAME)
        return (lease.spec.renew_time or lease.metadata.creation_timestamp) if lease is not None else None

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)

    def _cluster_changed(self, _old: ManagedCluster | None, new: ManagedCluster | None) -> None:
        if new is not None:
            self.queue.add(new.metadata.name)

    def _lease_changed(self, old: Lease | None, new: Lease | None) -> None:
        lease = new or old
        if lease is not None and lease.metadata.name == LEASE_NAME:
            self.queue.add(lease.metadata.namespace)

    def _belonging_changed(self, old: Object | None, new: Object | None) -> None:
        """Somebody changed, removed or made what a cluster has: what we made ourselves may come when it is unwanted."""
        for obj in (old, new):
            cluster = obj.metadata.labels.get(CLUSTER_NAME_LABEL) if obj is not None else None
            if cluster:
                self.queue.add(cluster)
            elif isinstance(obj, Namespace) and self._clusters.get("", obj.metadata.name) is not None:
                self.queue.add(obj.metadata.name)
