"""Clusters on a hub in memory: accepted or denied, watched over by their leases, and what their agents may do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from controller_world import Manifest, find_kind, manifest, typed
from dray.api.cluster.cluster_set import CLUSTER_SET_LABEL
from dray.api.times import MicroTime
from dray.reconcile import VirtualClock
from dray.server.local import LocalClient
from dray.server.security.identity import authenticated, service_account_groups, service_account_user
from hub_world import (
    GROUP,
    UNAVAILABLE,
    UNREACHABLE,
    Hub,
    binding,
    cluster,
    cluster_set,
    hub_world,
    placement,
    taint,
)
from local_server import local_server, refused

CLUSTERS = find_kind("managedclusters")
LEASES = find_kind("leases")
LEASE = "managed-cluster-lease"
ROLE = "open-cluster-management:managedcluster:{}"


def agent(hub: Hub, name: str) -> LocalClient:
    """The agent of a cluster, by its token of the hub."""
    user = service_account_user(name, "cluster-agent")
    return hub.server.client(authenticated(user, service_account_groups(name)))


def agent_of_group(hub: Hub, name: str) -> LocalClient:
    """The agent of a cluster, by a certificate that says so."""
    user = f"system:open-cluster-management:{name}:agent"
    return hub.server.client(authenticated(user, (f"system:open-cluster-management:{name}",)))


async def condition(hub: Hub, name: str, kind: str) -> tuple[str, str] | None:
    found = await hub.get("managedclusters", name)
    return next(((one.status, one.reason) for one in found.status.conditions if one.type == kind), None)


async def available(hub: Hub, name: str) -> tuple[str, str] | None:
    return await condition(hub, name, "ManagedClusterConditionAvailable")


async def accepted(hub: Hub, name: str) -> tuple[str, str] | None:
    return await condition(hub, name, "HubAcceptedManagedCluster")


async def test_an_accepted_cluster_gets_what_it_needs_on_the_hub() -> None:
    async with hub_world() as hub:
        await hub.create(cluster("c1"))
        await hub.settle()
        assert await accepted(hub, "c1") == ("True", "HubClusterAdminAccepted")
        assert (await hub.get("namespaces", "c1")).metadata.labels["open-cluster-management.io/cluster-name"] == "c1"
        assert (await hub.get("leases", LEASE, "c1")).spec.renew_time is not None
        assert ("ManagedClusterAccepted", "Cluster c1: Accepted by hub cluster admin") in await hub.events("c1")


@pytest.mark.parametrize("name", ["kube-system", "default", "kube-node-lease", "tenant"])
async def test_the_namespace_of_somebody_else_is_not_the_clusters(name: str) -> None:
    """Its agent would get rights there, and whoever has rights there would be its agent."""
    async with hub_world() as hub:
        if name == "tenant":
            await hub.create(manifest("v1", "Namespace", name))
        await hub.create(cluster(name))
        await hub.settle()
        assert await accepted(hub, name) == ("False", "NamespaceTaken")
        assert [reason for reason, _ in await hub.events(name)].count("ManagedClusterDenied") == 1
        for plural in ("rolebindings", "leases"):
            of_cluster = [one for one in await hub.objects(plural, name) if one.metadata.owner_references]
            assert of_cluster == []
        assert await hub.get("serviceaccounts", "cluster-agent", name) is None
        assert await hub.get("clusterrolebindings", ROLE.format(name)) is None
        for as_agent in (agent, agent_of_group):
            await refused(as_agent(hub, name).list(LEASES, name), "leases")
            await refused(as_agent(hub, name).get(CLUSTERS, "", name), "managedclusters")


async def test_a_namespace_that_says_so_is_the_clusters() -> None:
    async with hub_world() as hub:
        await hub.create(manifest("v1", "Namespace", "c1"), cluster("c1"))
        await hub.settle()
        assert await accepted(hub, "c1") == ("False", "NamespaceTaken")
        label = "open-cluster-management.io/cluster-name"
        await hub.patch("namespaces", "c1", {"metadata": {"labels": {label: "c1"}}})
        await hub.settle()
        assert await accepted(hub, "c1") == ("True", "HubClusterAdminAccepted")
        own = agent(hub, "c1")
        await own.patch(LEASES, "c1", LEASE, {"spec": {}})
        await hub.patch("namespaces", "c1", {"metadata": {"labels": {label: "c2"}}})
        await hub.settle()
        assert await accepted(hub, "c1") == ("False", "NamespaceTaken")
        await refused(own.patch(LEASES, "c1", LEASE, {"spec": {}}), "leases")
        await refused(own.get(CLUSTERS, "", "c1"), "managedclusters")


async def test_a_cluster_that_is_denied_in_the_namespace_of_somebody_else_is_denied() -> None:
    async with hub_world() as hub:
        await hub.create(cluster("default"))
        await hub.settle()
        await hub.patch("managedclusters", "default", {"spec": {"hubAcceptsClient": False}})
        await hub.settle()
        assert await accepted(hub, "default") == ("False", "HubClusterAdminDenied")


async def test_nobody_is_expected_of_a_cluster_that_was_never_accepted() -> None:
    async with hub_world() as hub:
        await hub.create(manifest(f"{GROUP}/v1", "ManagedCluster", "c1", spec={"hubAcceptsClient": False}))
        await hub.settle(1000)
        assert await accepted(hub, "c1") is None
        assert await available(hub, "c1") is None
        assert await hub.get("namespaces", "c1") is None
        assert await hub.taints("c1") == [f"{UNREACHABLE}:NoSelect"]


@pytest.mark.parametrize("as_agent", [agent, agent_of_group])
async def test_an_agent_may_touch_its_own_cluster_and_nothing_else(as_agent: Callable[[Hub, str], LocalClient]) -> None:
    async with hub_world() as hub:
        await hub.create(cluster("c1"), cluster("c2"))
        await hub.settle()
        own = as_agent(hub, "c1")
        await own.get(CLUSTERS, "", "c1")
        await own.list(CLUSTERS, fields="metadata.name=c1")
        await own.patch(LEASES, "c1", LEASE, {"spec": {"renewTime": "2025-06-15T15:06:41.000000Z"}})
        await own.patch(CLUSTERS, "", "c1", {"status": {"version": {"kubernetes": "v1"}}}, subresource="status")
        await refused(own.get(CLUSTERS, "", "c2"), "c2")
        await refused(own.list(CLUSTERS), "list")
        await refused(own.patch(CLUSTERS, "", "c2", {}, subresource="status"), "c2")
        await refused(own.patch(LEASES, "c2", LEASE, {}), "leases")
        await refused(own.delete(CLUSTERS, "", "c1"), "delete")
        await refused(own.list(find_kind("placements")), "placements")


@pytest.mark.req("OCM-32", "SVS-79")
@pytest.mark.parametrize("as_agent", [agent, agent_of_group])
@pytest.mark.parametrize("key", [UNAVAILABLE, UNREACHABLE])
async def test_an_agent_may_taint_its_cluster_but_for_the_taints_of_the_hub(
    as_agent: Callable[[Hub, str], LocalClient], key: str
) -> None:
    async with hub_world() as hub:
        await hub.create(cluster("c1"))
        await hub.settle()
        own = as_agent(hub, "c1")
        why = "agents may not add, change or remove"
        await refused(own.patch(CLUSTERS, "", "c1", {"spec": {"taints": []}}), why)
        await hub.report("c1", "True")
        await hub.settle()
        await refused(own.patch(CLUSTERS, "", "c1", {"spec": {"taints": [taint(f"{key}:NoSelect")]}}), why)
        await own.patch(CLUSTERS, "", "c1", {"spec": {"taints": [taint("example.com/own:NoSelect")]}})
        await hub.settle()
        assert await hub.taints("c1") == ["example.com/own:NoSelect"]


async def test_accepting_a_cluster_is_a_right_of_its_own() -> None:
    async with hub_world() as hub:
        await hub.create(
            role("joins", "create get update patch", "managedclusters", GROUP),
            role("fills", "create", "managedclustersets/join", GROUP),
            role("accepts", "update", "managedclusters/accept", "register.open-cluster-management.io"),
            role_binding("joins", "ann", "ben"),
            role_binding("fills", "ann", "ben"),
            role_binding("accepts", "ben"),
        )
        ann, ben = (hub.server.client(authenticated(name)) for name in ("ann", "ben"))
        wanted = typed(cluster("c1"))
        why = "'ann' may not accept or deny clusters"
        await refused(ann.create(wanted), why)
        await ann.create(replace(wanted, spec=replace(wanted.spec, hub_accepts_client=False)))
        await refused(ann.patch(CLUSTERS, "", "c1", {"spec": {"hubAcceptsClient": True}}), why)
        await ben.patch(CLUSTERS, "", "c1", {"spec": {"hubAcceptsClient": True}})
        await ann.patch(CLUSTERS, "", "c1", {"metadata": {"labels": {"region": "eu"}}})
        await refused(ann.patch(CLUSTERS, "", "c1", {"spec": {"hubAcceptsClient": False}}), why)


@pytest.mark.parametrize("as_agent", [agent, agent_of_group])
async def test_no_agent_puts_its_cluster_into_a_set(as_agent: Callable[[Hub, str], LocalClient]) -> None:
    """Others place their work on the clusters of a set: who is in it is not for the cluster to say."""

    def labelled(name: str | None) -> Manifest:
        return {"metadata": {"labels": {CLUSTER_SET_LABEL: name}}}

    async with hub_world() as hub:
        await hub.create(cluster("c1"))
        await hub.settle()
        own = as_agent(hub, "c1")
        await own.patch(CLUSTERS, "", "c1", {"metadata": {"labels": {"region": "eu"}}})
        await refused(own.patch(CLUSTERS, "", "c1", labelled("secret")), "may not put clusters into the set")
        await hub.patch("managedclusters", "c1", labelled("secret"))
        await own.patch(CLUSTERS, "", "c1", {"metadata": {"labels": {"region": "us"}}})
        for other in (None, "plain"):
            await refused(own.patch(CLUSTERS, "", "c1", labelled(other)), "'secret'")


async def test_sets_are_filled_and_bound_by_those_who_may() -> None:
    async with hub_world() as hub:
        joins, binds = (role(f"{right}s", "create", f"managedclustersets/{right}", GROUP) for right in ("join", "bind"))
        joins["rules"][0]["resourceNames"] = ["one", "two"]
        await hub.create(
            role("writes", "create get update patch", "managedclusters", GROUP),
            role("namespaced", "create get update patch", "managedclustersetbindings", GROUP),
            joins,
            binds,
            role_binding("writes", "ann", "ben"),
            role_binding("namespaced", "ann", "ben"),
            role_binding("joins", "ben"),
            role_binding("binds", "ben"),
        )
        ann, ben = (hub.server.client(authenticated(name)) for name in ("ann", "ben"))
        made = {**cluster("c1"), "spec": {"hubAcceptsClient": False}}
        made["metadata"] = {**made["metadata"], "labels": {CLUSTER_SET_LABEL: "one"}}
        await refused(ann.create(typed(made)), "create managedclustersets/join 'one'")
        await ben.create(typed(made))
        await ben.patch(CLUSTERS, "", "c1", {"metadata": {"labels": {CLUSTER_SET_LABEL: "two"}}})
        why = "create managedclustersets/join 'three'"
        await refused(ben.patch(CLUSTERS, "", "c1", {"metadata": {"labels": {CLUSTER_SET_LABEL: "three"}}}), why)
        binding = typed(
            manifest(f"{GROUP}/v1beta2", "ManagedClusterSetBinding", "one", "default", spec={"clusterSet": "one"})
        )
        await refused(ann.create(binding), "'ann' may not bind the set .create managedclustersets.bind 'one'")
        await ben.create(binding)


def role(name: str, verbs: str, resource: str, group: str) -> Manifest:
    rule = {"apiGroups": [group], "resources": [resource], "verbs": verbs.split()}
    return manifest("rbac.authorization.k8s.io/v1", "ClusterRole", name, rules=[rule])


def role_binding(name: str, *users: str) -> Manifest:
    api = "rbac.authorization.k8s.io"
    subjects = [{"kind": "User", "apiGroup": api, "name": user} for user in users]
    reference = {"kind": "ClusterRole", "apiGroup": api, "name": name}
    return manifest(f"{api}/v1", "ClusterRoleBinding", name, roleRef=reference, subjects=subjects)


async def test_a_cluster_that_is_denied_loses_its_rights_and_is_missed() -> None:
    async with hub_world() as hub:
        await hub.fleet("c1")
        await hub.patch("managedclusters", "c1", {"spec": {"hubAcceptsClient": False}})
        await hub.settle()
        assert await accepted(hub, "c1") == ("False", "HubClusterAdminDenied")
        own = agent(hub, "c1")
        await own.get(CLUSTERS, "", "c1")
        await refused(own.patch(LEASES, "c1", LEASE, {"spec": {}}), "leases")
        await refused(own.patch(CLUSTERS, "", "c1", {}, subresource="status"), "managedclusters/status")
        await hub.settle(300)
        assert await available(hub, "c1") == ("Unknown", "ManagedClusterLeaseUpdateStopped")
        await hub.patch("managedclusters", "c1", {"spec": {"hubAcceptsClient": True}})
        await hub.settle()
        await own.patch(LEASES, "c1", LEASE, {"spec": {}})


async def test_what_a_cluster_has_goes_with_it_and_is_made_again_if_somebody_removes_it() -> None:
    async with hub_world() as hub:
        await hub.create(cluster("c1"))
        await hub.settle()
        await hub.delete("clusterroles", ROLE.format("c1"))
        await hub.settle()
        assert await hub.get("clusterroles", ROLE.format("c1")) is not None
        await hub.delete("managedclusters", "c1")
        await hub.settle(10)
        for plural in ("clusterroles", "clusterrolebindings"):
            assert await hub.get(plural, ROLE.format("c1")) is None
        assert await hub.objects("rolebindings", "c1") == []
        assert await hub.get("leases", LEASE, "c1") is None
        assert await hub.get("namespaces", "c1") is not None


@pytest.mark.req("OCM-29", "OCM-30", "OCM-31", "OCM-33", "OCM-42", "SVS-74")
async def test_the_automatic_taints_follow_what_the_agent_says() -> None:
    async with hub_world() as hub:
        await hub.create(cluster("c1", taint("own:PreferNoSelect")))
        await hub.settle()
        own = "own:PreferNoSelect"
        assert await hub.taints("c1") == [own, f"{UNREACHABLE}:NoSelect"]
        for said, key in (
            ("True", None),
            ("False", UNAVAILABLE),
            ("Unknown", UNREACHABLE),
            ("True", None),
            (None, UNREACHABLE),
        ):
            await hub.report("c1", said)
            await hub.settle()
            assert await hub.taints("c1") == [own, *([f"{key}:NoSelect"] if key else [])], said
        added = (await hub.get("managedclusters", "c1")).spec.taints[-1].time_added
        assert added.datetime().timestamp() == pytest.approx(hub.clock.now(), abs=2)


@pytest.mark.req("OCM-26", "OCM-27", "OCM-30", "OCM-31")
async def test_a_cluster_that_stops_renewing_is_left_by_everybody_and_taken_back() -> None:
    async with hub_world() as hub:
        await hub.fleet("c1", "c2")
        await hub.create(placement(numberOfClusters=1), placement("all"))
        await hub.settle()
        assert (await hub.decisions(), await hub.decisions("all")) == (["c1"], ["c1", "c2"])
        for _ in range(5):
            await hub.settle(58)
            await hub.renew("c2")
        assert await available(hub, "c1") == ("True", "Reported")
        await hub.settle(12)
        assert await available(hub, "c1") == ("Unknown", "ManagedClusterLeaseUpdateStopped")
        assert await hub.taints("c1") == [f"{UNREACHABLE}:NoSelect"]
        assert (await hub.decisions(), await hub.decisions("all")) == (["c2"], ["c2"])
        assert "AvailableUnknown" in [reason for reason, _ in await hub.events("c1")]
        await hub.renew("c1")
        await hub.report("c1", "True")
        await hub.settle()
        assert await hub.taints("c1") == []
        assert (len(await hub.decisions()), await hub.decisions("all")) == (1, ["c1", "c2"])


async def test_the_lease_duration_of_the_spec_counts() -> None:
    async with hub_world() as hub:
        await hub.fleet("c1")
        await hub.patch("managedclusters", "c1", {"spec": {"leaseDurationSeconds": 2}})
        await hub.renew("c1")
        await hub.settle(9)
        assert await available(hub, "c1") == ("True", "Reported")
        await hub.settle(2)
        assert await available(hub, "c1") == ("Unknown", "ManagedClusterLeaseUpdateStopped")


async def test_a_hub_that_was_away_itself_lets_its_clusters_come_back_first() -> None:
    async with local_server(VirtualClock()) as server:
        async with hub_world(server=server) as hub:
            await hub.fleet("c1", "c2")
            await hub.create(placement())
            await hub.settle()
        await server.clock.advance(3600)
        async with hub_world(server=server) as hub:
            await hub.settle(20)
            assert await hub.decisions() == ["c1", "c2"]
            await hub.renew("c1")
            await hub.settle(20)
            assert await hub.decisions() == ["c1"]
            assert await available(hub, "c1") == ("True", "Reported")
            assert await available(hub, "c2") == ("Unknown", "ManagedClusterLeaseUpdateStopped")


@pytest.mark.parametrize("hours", [-30, -1, 1, 30])
async def test_a_clock_that_is_set_makes_no_cluster_unreachable_and_hides_none_that_is(hours: int) -> None:
    """The agents' clocks go on as before: what they write is hours off, and comes all the same."""
    async with hub_world() as hub:
        await hub.fleet("c1", "c2")
        await hub.create(placement())
        await hub.settle()
        hub.clock.jump(hours * 3600)
        for _ in range(8):
            now = datetime.fromtimestamp(hub.clock.now() - hours * 3600, UTC)
            await hub.patch("leases", LEASE, {"spec": {"renewTime": str(MicroTime.of(now))}}, namespace="c1")
            await hub.settle(55)
            assert await available(hub, "c1") == ("True", "Reported")
        assert await available(hub, "c2") == ("Unknown", "ManagedClusterLeaseUpdateStopped")
        assert await hub.decisions() == ["c1"]


async def test_an_agent_whose_clock_is_ahead_is_missed_like_any_other() -> None:
    async with hub_world() as hub:
        await hub.fleet("c1")
        await hub.patch("leases", LEASE, {"spec": {"renewTime": "2099-01-01T00:00:00.000000Z"}}, namespace="c1")
        await hub.settle(290)
        assert await available(hub, "c1") == ("True", "Reported")
        await hub.settle(20)
        assert await available(hub, "c1") == ("Unknown", "ManagedClusterLeaseUpdateStopped")


async def test_sets_say_whether_they_are_empty_and_bindings_whether_they_are_bound() -> None:
    async with hub_world() as hub:

        async def said(plural: str) -> tuple[str, str, str]:
            (one,) = (await hub.get(plural, "clusterset1")).status.conditions
            return one.type, one.status, one.reason

        await hub.create(binding())
        await hub.settle()
        assert await said("managedclustersetbindings") == ("Bound", "False", "ClusterSetNotFound")
        await hub.create(cluster_set())
        await hub.settle()
        assert await said("managedclustersetbindings") == ("Bound", "True", "ClusterSetBound")
        assert await said("managedclustersets") == ("ClusterSetEmpty", "True", "NoClusterMatched")
        await hub.create(cluster("c1"))
        await hub.settle()
        assert await said("managedclustersets") == ("ClusterSetEmpty", "False", "ClustersSelected")
        await hub.delete("managedclusters", "c1")
        await hub.settle()
        assert await said("managedclustersets") == ("ClusterSetEmpty", "True", "NoClusterMatched")
