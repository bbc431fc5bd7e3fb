"""Whoever writes a part of an object looks again when that part says something else than was found right, whoever wrote
that: a write whose answer was lost may come when its writer has found that there is nothing to write.

Each case is a cluster at rest. Somebody then writes what such a late write would, and nothing else happens.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from builders import allocated, claim, claim_template, pod_claim, pod_template, request
from controller_world import Manifest, World, controller_world, manifest, pod
from dray.api import codec
from dray.api.conditions import is_true
from dray.api.kinds import CONFIG_MAPS, POD_GROUPS, PODS
from dray.controllers.pod_templates import reference_to
from dray.controllers.settings import ControllerSettings
from dray.eviction.settings import EvictionSettings, Limit
from dray.eviction.stop import PLACE
from dray.eviction.told_past import PAST_ANNOTATION, read_told
from dray.server.local import LocalClient
from eviction_objects import rule, run_pod
from eviction_policy_world import NODE, eviction_policy_world, policy, taint_node, waiting
from hub_world import Hub, hub_world, placement, taint
from scheduler_world import scheduler_world

LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}
SECONDS = 40.0
"""After so long all is put right: use of quotas, and what guards tell, are looked at every half minute."""

Read = Callable[[], Awaitable[Any]]
Story = Callable[[Any], AsyncIterator[Read]]
"""Makes a cluster, says how to read what is to stay so, and then writes what comes late."""


class Case(NamedTuple):
    """A story, and where it happens."""

    world: Callable[[], AbstractAsyncContextManager[Any]]
    story: Story


template = partial(pod_template, LABELS)


def case(
    controllers: str | tuple[str, ...],
    objects: list[Manifest],
    late: tuple[str, str, Manifest],
    read: Callable[[Any], Any],
    settings: ControllerSettings | None = None,
) -> Case:
    """Controllers that make something of objects; a late patch, of a status if it has one; what it is read by."""
    plural, name, patch = late
    wanted = (controllers,) if isinstance(controllers, str) else controllers

    async def story(world: World) -> AsyncIterator[Read]:
        await world.create(*objects)
        yield lambda: reading(world, plural, name, read)
        await world.patch(plural, name, patch, "status" if "status" in patch else "")

    return Case(lambda: controller_world(*wanted, settings=settings), story)


async def reading(world: World, plural: str, name: str, read: Callable[[Any], Any], namespace: str = "default") -> Any:
    return read(await world.get(plural, name, namespace))


def workload(kind: str, name: str, **spec: Any) -> Manifest:
    return manifest("apps/v1", kind, name, spec={"selector": SELECTOR, "template": template(), **spec})


def status_of(obj: Any) -> Any:
    return obj.status


def phase_of(obj: Any) -> Any:
    return obj.status.phase


def condition(type_: str, status: str, **more: Any) -> Manifest:
    since = "2026-01-01T00:00:00Z"
    return {"type": type_, "status": status, "reason": "Late", "message": "late", "lastTransitionTime": since, **more}


def told(type_: str) -> Callable[[Any], Any]:
    """What a condition says."""
    return lambda obj: [(one.status, one.reason) for one in obj.status.conditions if one.type == type_]


WORKLOADS = {
    "replica set": case(
        "replicaset-controller",
        [workload("ReplicaSet", "w", replicas=2)],
        ("replicasets", "w", {"status": {"replicas": 7}}),
        status_of,
    ),
    "replication controller": case(
        "replicationcontroller-controller",
        [manifest("v1", "ReplicationController", "w", spec={"selector": LABELS, "template": template()})],
        ("replicationcontrollers", "w", {"status": {"replicas": 7}}),
        status_of,
    ),
    "deployment": case(
        ("deployment-controller", "replicaset-controller"),
        [workload("Deployment", "w", replicas=2)],
        ("deployments", "w", {"status": {"replicas": 7}}),
        lambda obj: obj.status.replicas,
    ),
    "daemon set": case(
        "daemonset-controller",
        [manifest("v1", "Node", "n"), workload("DaemonSet", "w")],
        ("daemonsets", "w", {"status": {"desiredNumberScheduled": 7}}),
        status_of,
    ),
    "stateful set": case(
        "statefulset-controller",
        [workload("StatefulSet", "w", serviceName="s")],
        ("statefulsets", "w", {"status": {"replicas": 7}}),
        status_of,
    ),
    "job": case(
        "job-controller",
        [manifest("batch/v1", "Job", "w", spec={"template": template(restartPolicy="Never")})],
        ("jobs", "w", {"status": {"active": 7}}),
        status_of,
    ),
    "cron job": case(
        "cronjob-controller",
        [
            manifest(
                "batch/v1",
                "CronJob",
                "w",
                spec={
                    "schedule": "0 0 1 1 *",
                    "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}},
                },
            )
        ],
        ("cronjobs", "w", {"status": {"active": [{"kind": "Job", "name": "gone", "namespace": "default"}]}}),
        status_of,
    ),
    "budget": case(
        "disruption-controller",
        [manifest("policy/v1", "PodDisruptionBudget", "b", spec={"minAvailable": 1, "selector": SELECTOR})],
        ("poddisruptionbudgets", "b", {"status": {"disruptionsAllowed": 7}}),
        lambda obj: obj.status.disruptions_allowed,
    ),
    "quota": case(
        "resourcequota-controller",
        [pod("p"), manifest("v1", "ResourceQuota", "q", spec={"hard": {"pods": "5"}})],
        ("resourcequotas", "q", {"status": {"used": {"pods": "3"}}}),
        status_of,
    ),
    "role": case(
        "clusterrole-aggregation-controller",
        [
            manifest(
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                "sum",
                aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"part": "sum"}}]},
                rules=[],
            )
        ],
        ("clusterroles", "sum", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        lambda obj: obj.rules,
    ),
    "certificate": case(
        "root-ca-certificate-publisher-controller",
        [],
        ("configmaps", "kube-root-ca.crt", {"data": {"ca.crt": "old"}}),
        lambda obj: obj.data,
        ControllerSettings(root_certificate=b"new"),
    ),
}

SIZE = {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow"}
VOLUME = manifest(
    "v1", "PersistentVolume", "v", spec={**SIZE, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
)
CLAIM = manifest("v1", "PersistentVolumeClaim", "c", spec={**SIZE, "resources": {"requests": {"storage": "1Gi"}}})
BINDER = "persistentvolume-binder-controller"

STORAGE = {
    "volume": case(BINDER, [VOLUME, CLAIM], ("persistentvolumes", "v", {"status": {"phase": "Released"}}), phase_of),
    "volume claim": case(
        BINDER, [VOLUME, CLAIM], ("persistentvolumeclaims", "c", {"status": {"phase": "Lost"}}), phase_of
    ),
    "volume claim in use": case(
        "persistentvolumeclaim-protection-controller",
        [CLAIM],
        ("persistentvolumeclaims", "c", {"metadata": {"finalizers": None}}),
        lambda obj: obj.metadata.finalizers,
    ),
    "volume in use": case(
        "persistentvolume-protection-controller",
        [VOLUME],
        ("persistentvolumes", "v", {"metadata": {"finalizers": None}}),
        lambda obj: obj.metadata.finalizers,
    ),
}


async def owner_of_volume_claim(world: World) -> AsyncIterator[Read]:
    """The claim of a pod was to go with it, when there were to be fewer pods and the policy was another one."""
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": storage}]
    await world.create(workload("StatefulSet", "w", serviceName="s", volumeClaimTemplates=claims))
    yield lambda: reading(world, "persistentvolumeclaims", "data-w-0", lambda obj: obj.metadata.owner_references)
    owner = codec.to_builtins(reference_to(await world.get("pods", "w-0")))
    await world.patch("persistentvolumeclaims", "data-w-0", {"metadata": {"ownerReferences": [owner]}})


async def number_of_revision(world: World) -> AsyncIterator[Read]:
    """An old template was numbered anew, when it was to be the current one again."""
    await world.create(workload("DaemonSet", "w"))
    await world.settle()
    (first,) = await world.objects("controllerrevisions")
    await world.patch("daemonsets", "w", {"spec": {"template": template(hostNetwork=True)}})

    async def newest() -> str:
        newest = max(await world.objects("controllerrevisions"), key=lambda one: one.revision)
        return str(newest.metadata.name)

    yield newest
    await world.patch("controllerrevisions", first.metadata.name, {"revision": 3})


async def content_of_namespace(world: World) -> AsyncIterator[Read]:
    await world.create(manifest("v1", "Namespace", "going", ""), manifest("v1", "ConfigMap", "stays", "going"))
    await world.patch("configmaps", "stays", {"metadata": {"finalizers": ["example.com/stays"]}}, namespace="going")
    await world.delete("namespaces", "going")
    yield lambda: reading(world, "namespaces", "going", told("NamespaceContentRemaining"))
    late = {"status": {"conditions": [condition("NamespaceContentRemaining", "False")]}}
    await world.patch("namespaces", "going", late, "status")


SLICE_LABELS = {
    "kubernetes.io/service-name": "s",
    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
}


async def endpoints_of_service(world: World) -> AsyncIterator[Read]:
    """A slice that was not answered for was made once more, with what is so by now; it comes all the same."""
    await world.create(manifest("v1", "Service", "s", spec={"selector": LABELS, "ports": [{"port": 80}]}))

    async def addresses() -> list[tuple[str, ...]]:
        slices = await world.objects("endpointslices")
        own = [one for one in slices if one.metadata.labels.items() >= SLICE_LABELS.items()]
        return [endpoint.addresses for one in own for endpoint in one.endpoints]

    yield addresses
    made = manifest("discovery.k8s.io/v1", "EndpointSlice", "s-late", addressType="IPv4")
    made["metadata"]["labels"] = SLICE_LABELS
    await world.create({**made, "ports": [], "endpoints": [{"addresses": ["10.0.0.1"]}]})


async def old_endpoints_of_service(world: World) -> AsyncIterator[Read]:
    await world.create(manifest("v1", "Service", "s", spec={"selector": LABELS, "ports": [{"port": 80}]}))
    yield lambda: reading(world, "endpoints", "s", lambda obj: obj.subsets)
    late = [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]
    await world.patch("endpoints", "s", {"subsets": late})


async def claims_of_pod(world: World) -> AsyncIterator[Read]:
    await world.create(claim_template("t"), pod("p", claims=[pod_claim("dev", template="t")]))
    yield lambda: reading(world, "pods", "p", lambda obj: obj.status.resource_claim_statuses)
    await world.patch("pods", "p", {"status": {"resourceClaimStatuses": None}}, "status")


async def users_of_claim(world: World) -> AsyncIterator[Read]:
    """A claim was reserved for a pod, which is gone by now."""
    await world.create(claim("c", request("r")))
    yield lambda: reading(world, "resourceclaims", "c", lambda obj: obj.status.reserved_for)
    late = {**allocated("gpu-0", pool="pool"), "reservedFor": [{"resource": "pods", "name": "gone", "uid": "u"}]}
    await world.patch("resourceclaims", "c", {"status": late}, "status")


async def taints_of_silent_node(world: World) -> AsyncIterator[Read]:
    await world.create(manifest("v1", "Node", "n"))
    await world.settle(60)
    yield lambda: reading(world, "nodes", "n", lambda obj: [(one.key, one.effect) for one in obj.spec.taints])
    await world.patch("nodes", "n", {"spec": {"taints": []}})


async def held_evictions_of_node(world: World) -> AsyncIterator[Read]:
    await world.create(manifest("v1", "Node", "node-1"))
    yield lambda: reading(world, "nodes", "node-1", lambda obj: is_true(obj.status.conditions, "EvictionHeld"))
    late = {"status": {"conditions": [condition("EvictionHeld", "True")]}}
    await world.patch("nodes", "node-1", late, "status")


async def evictions_of_rule(world: World) -> AsyncIterator[Read]:
    await world.create(rule())
    yield lambda: reading(world, "devicetaintrules", "rule", told("EvictionInProgress"))
    late = {"status": {"conditions": [condition("EvictionInProgress", "True")]}}
    await world.patch("devicetaintrules", "rule", late, "status")


async def pod_that_waited(world: World) -> AsyncIterator[Read]:
    await run_pod(world, "db")
    await taint_node(world)
    await world.settle(10)
    late = codec.to_builtins((await world.get("pods", "db")).status.conditions)
    await world.patch("nodes", "node-1", {"spec": {"taints": []}})
    yield lambda: waiting(world, "db")
    await world.patch("pods", "db", {"status": {"conditions": late}}, "status")


async def told_hold(world: World) -> AsyncIterator[Read]:
    """What guards that start anew go by: whether something is held."""
    await world.create(manifest("v1", "Node", "node-1"))
    for name in ("a", "b", "c"):
        await run_pod(world, name)
    await taint_node(world)
    await world.settle(60)
    late = (await world.get("namespaces", PLACE)).metadata.annotations[PAST_ANNOTATION]
    await world.patch("nodes", "node-1", {"spec": {"taints": []}})

    async def held() -> bool:
        return any(one.held_since is not None for one in read_told(await world.get("namespaces", PLACE)).values())

    yield held
    await world.patch("namespaces", PLACE, {"metadata": {"annotations": {PAST_ANNOTATION: late}}})


async def status_of_placement(hub: Hub) -> AsyncIterator[Read]:
    """A status is written and not answered for; then the one before it is right again."""
    await hub.fleet("a", "b")
    await hub.create(placement())
    await hub.settle()
    with lost_status_writes("Placement") as lost:
        await hub.taint("a", taint("x=1:NoSelect"))
        await hub.settle()
        await hub.taint("a")
        await hub.settle(10)
    yield lambda: reading(hub, "placements", "placement1", lambda obj: obj.status.number_of_selected_clusters)
    await hub.admin.update(lost[0], "status")


async def labels_of_decision(hub: Hub) -> AsyncIterator[Read]:
    await hub.fleet("a")
    await hub.create(placement())
    yield lambda: reading(hub, "placementdecisions", "placement1-decision-1", lambda obj: obj.metadata.labels)
    late = {"cluster.open-cluster-management.io/decision-group-index": "7"}
    await hub.patch("placementdecisions", "placement1-decision-1", {"metadata": {"labels": late}})


async def conditions_of_set(hub: Hub) -> AsyncIterator[Read]:
    await hub.fleet("a")
    yield lambda: reading(hub, "managedclustersets", "clusterset1", told("ClusterSetEmpty"))
    late = {"status": {"conditions": [condition("ClusterSetEmpty", "True")]}}
    await hub.patch("managedclustersets", "clusterset1", late, "status")


async def conditions_of_binding(hub: Hub) -> AsyncIterator[Read]:
    await hub.fleet("a")
    yield lambda: reading(hub, "managedclustersetbindings", "clusterset1", told("Bound"))
    late = {"status": {"conditions": [condition("Bound", "False")]}}
    await hub.patch("managedclustersetbindings", "clusterset1", late, "status")


async def taints_of_cluster(hub: Hub) -> AsyncIterator[Read]:
    await hub.fleet("a")
    yield lambda: hub.taints("a")
    await hub.taint("a", taint("cluster.open-cluster-management.io/unavailable:NoSelect"))


async def rights_of_denied_agent(hub: Hub) -> AsyncIterator[Read]:
    """What lets an agent in was made, and comes when the cluster is denied."""
    await hub.fleet("a")
    (late,) = [one for one in await hub.objects("rolebindings", "a") if one.metadata.name.endswith(":registration")]
    await hub.patch("managedclusters", "a", {"spec": {"hubAcceptsClient": False}})

    async def bindings() -> list[str]:
        return [one.metadata.name for one in await hub.objects("rolebindings", "a")]

    yield bindings
    await hub.admin.create(replace(late, metadata=replace(late.metadata, uid="", resource_version="")))


async def why_pod_waits(here: Any) -> AsyncIterator[Read]:
    await here.add_node("a")
    await here.add_pod("p", nodeSelector={"zone": "z"})
    yield lambda: here.message("p")
    late = {"conditions": [condition("PodScheduled", "False", reason="Unschedulable")]}
    await here.admin.patch(PODS, "default", "p", {"status": late}, subresource="status")


async def node_that_pod_waits_for(here: Any) -> AsyncIterator[Read]:
    await here.add_node("a")
    await here.add_pod("p", nodeSelector={"zone": "z"})

    async def nominated() -> str:
        return str((await here.pod("p")).status.nominated_node_name)

    yield nominated
    await here.admin.patch(PODS, "default", "p", {"status": {"nominatedNodeName": "a"}}, subresource="status")


async def why_group_waits(here: Any) -> AsyncIterator[Read]:
    await here.add_node("a")
    policy = {"gang": {"minCount": 2}}
    await here.add("scheduling.k8s.io/v1beta1", "PodGroup", "g", "default", spec={"schedulingPolicy": policy})
    await here.add_pod("p", schedulingGroup={"podGroupName": "g"})

    async def message() -> str:
        group = await here.admin.get(POD_GROUPS, "default", "g")
        return "".join(one.message for one in group.status.conditions)

    yield message
    group = await here.admin.get(POD_GROUPS, "default", "g")
    conditions = [{**codec.to_builtins(one), "message": "late"} for one in group.status.conditions]
    await here.admin.patch(POD_GROUPS, "default", "g", {"status": {"conditions": conditions}}, subresource="status")


@contextmanager
def lost_status_writes(kind: str) -> Iterator[list[Any]]:
    """For a while no status of a kind is stored, and nobody is told what became of it."""
    lost: list[Any] = []
    update = LocalClient.update

    async def lose(self: LocalClient, obj: Any, subresource: str = "") -> Any:
        if obj.kind == kind and subresource == "status":
            lost.append(obj)
            raise TimeoutError
        return await update(self, obj, subresource)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalClient, "update", lose)
        yield lost


def stories(*controllers: str, settings: ControllerSettings | None = None) -> Callable[[Story], Case]:
    return lambda story: Case(lambda: controller_world(*controllers, settings=settings), story)


GUARD = ControllerSettings(eviction=EvictionSettings(max_evictions=Limit.parse("1")))
claims_case, device_case = stories("resourceclaim-controller"), stories("device-taint-eviction-controller")

OTHERS = {
    "owner of a volume claim": stories("statefulset-controller")(owner_of_volume_claim),
    "revision": stories("daemonset-controller")(number_of_revision),
    "namespace": stories("namespace-controller")(content_of_namespace),
    "endpoint slice": stories("endpointslice-controller")(endpoints_of_service),
    "endpoints": stories("endpoints-controller")(old_endpoints_of_service),
    "claims of a pod": claims_case(claims_of_pod),
    "users of a claim": claims_case(users_of_claim),
    "taints of a silent node": stories("node-lifecycle-controller")(taints_of_silent_node),
    "held evictions of a node": stories(NODE, settings=GUARD)(held_evictions_of_node),
    "rule": device_case(evictions_of_rule),
    "pod that waited": Case(lambda: eviction_policy_world(policy("checkpoint")), pod_that_waited),
    "told hold": stories(NODE, settings=GUARD)(told_hold),
    "placement": Case(hub_world, status_of_placement),
    "decision": Case(hub_world, labels_of_decision),
    "cluster set": Case(hub_world, conditions_of_set),
    "binding of a set": Case(hub_world, conditions_of_binding),
    "taints of a cluster": Case(hub_world, taints_of_cluster),
    "rights of an agent": Case(hub_world, rights_of_denied_agent),
    "why a pod waits": Case(scheduler_world, why_pod_waits),
    "node that a pod waits for": Case(scheduler_world, node_that_pod_waits_for),
    "why a group waits": Case(scheduler_world, why_group_waits),
}
CASES = {**WORKLOADS, **STORAGE, **OTHERS}


@pytest.mark.parametrize("name", CASES)
async def test_what_is_written_late_is_put_right_and_then_left_alone(name: str) -> None:
    async with CASES[name].world() as world:
        story = CASES[name].story(world)
        read = await anext(story)
        await world.settle(SECONDS)
        right = await read()
        with pytest.raises(StopAsyncIteration):
            await anext(story)
        assert await read() != right
        await world.settle(SECONDS)
        assert await read() == right
        stored = await revision(world)
        await world.settle(SECONDS)
        assert await revision(world) == stored


async def revision(world: Any) -> str:
    """How far the store has come."""
    return str((await world.admin.list(CONFIG_MAPS)).revision)
