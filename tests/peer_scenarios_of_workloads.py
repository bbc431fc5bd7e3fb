"""Whoever makes pods, and what becomes of what belongs to others."""

from __future__ import annotations

from typing import Any

from patience import eventually
from peer_world import RESOURCE, Body, World, with_image


def a_pod_that_goes_is_replaced(world: World) -> None:
    world.workload("ReplicaSet", {"replicas": 2})
    eventually(lambda: len(world.live()) == 2)
    gone = world.live()[0]["metadata"]["name"]
    world.kill(gone)
    eventually(lambda: len(world.live()) == 2 and gone not in world.live_names(), "it was not replaced")


def a_workload_is_scaled(world: World) -> None:
    path = world.workload("ReplicaSet", {"replicas": 1})
    eventually(lambda: len(world.live()) == 1)
    world.merge(f"{path}/scale", {"spec": {"replicas": 3}})
    eventually(lambda: len(world.live()) == 3, "it did not grow")
    world.merge(f"{path}/scale", {"spec": {"replicas": 1}})
    eventually(lambda: len(world.live()) == 1, "it did not shrink")


def a_replication_controller_has_pods(world: World) -> None:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": world.spec()}
    spec = {"replicas": 2, "selector": {"app": "w"}, "template": template}
    path = f"/api/v1/namespaces/{world.name}/replicationcontrollers"
    world.create(path, "v1", "ReplicationController", "w", spec)
    eventually(lambda: len(world.live()) == 2)


def _images(world: World) -> set[str]:
    return {one["spec"]["containers"][0]["image"] for one in world.live()}


def a_deployment_rolls_out(world: World) -> None:
    path = world.workload("Deployment", {"replicas": 2})
    world.at_work(lambda: world.condition(path, "Available"), "it is not available")
    world.merge(path, with_image("j"))
    world.at_work(lambda: _images(world) == {"j"} and len(world.live()) == 2, "it did not roll out")


def a_deployment_goes_back(world: World) -> None:
    path = world.workload("Deployment", {"replicas": 1})
    world.at_work(lambda: world.condition(path, "Available"), "it is not available")
    world.merge(path, with_image("j"))
    world.at_work(lambda: _images(world) == {"j"}, "it did not roll out")
    world.merge(path, with_image("i"))
    world.at_work(lambda: _images(world) == {"i"}, "it did not go back")
    revision = "deployment.kubernetes.io/revision"
    eventually(lambda: world.server.ask("GET", path)["metadata"]["annotations"].get(revision) == "3")
    assert len(world.get("replicasets", root="/apis/apps/v1")["items"]) == 2


def one_pod_of_a_stateful_set_comes_after_the_other(world: World) -> None:
    world.workload("StatefulSet", {"replicas": 2, "serviceName": "w"})
    eventually(lambda: world.node_of("w-0"))
    assert world.live_names() == ["w-0"]
    world.report("w-0", "Running")
    eventually(lambda: world.live_names() == ["w-0", "w-1"], "the second did not come")


def a_parallel_stateful_set_does_not_wait(world: World) -> None:
    world.workload("StatefulSet", {"replicas": 3, "serviceName": "w", "podManagementPolicy": "Parallel"})
    eventually(lambda: world.live_names() == ["w-0", "w-1", "w-2"])


def a_stateful_set_keeps_names_and_gets_devices(world: World) -> None:
    world.template("t")
    pod = world.spec(template="t")
    world.workload("StatefulSet", {"replicas": 1, "serviceName": "w"}, pod)
    world.bound("w-0")
    uid = world.get("pods", "w-0")["metadata"]["uid"]
    world.kill("w-0")
    eventually(lambda: (world.get("pods", "w-0") or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid)
    world.bound("w-0")


def a_stateful_set_updates_above_its_partition(world: World) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    path = world.workload("StatefulSet", {"replicas": 2, "serviceName": "w", "updateStrategy": strategy})
    world.at_work(lambda: len(world.live()) == 2, "not all are there")
    world.merge(path, with_image("j"))

    def images() -> dict[str, str]:
        return {one["metadata"]["name"]: one["spec"]["containers"][0]["image"] for one in world.live()}

    world.at_work(lambda: images() == {"w-0": "i", "w-1": "j"}, "it was not updated")


def every_node_has_a_pod_of_a_daemon_set(world: World) -> None:
    world.workload("DaemonSet", {})
    eventually(lambda: sorted(one["spec"].get("nodeName", "") for one in world.live()) == world.nodes)


def a_daemon_set_leaves_a_node(world: World) -> None:
    world.workload("DaemonSet", {})
    eventually(lambda: len(world.live()) == 2)
    world.merge(f"/api/v1/nodes/{world.nodes[0]}", {"metadata": {"labels": {"world": None}}})
    world.at_work(lambda: len(world.live()) == 1, "it is still there")


def a_daemon_set_is_updated(world: World) -> None:
    path = world.workload("DaemonSet", {})
    world.at_work(lambda: len(world.live()) == 2, "not all are there")
    world.merge(path, with_image("j"))
    world.at_work(lambda: _images(world) == {"j"} and len(world.live()) == 2, "it was not updated")


def _once(world: World, **more: Any) -> Body:
    return world.spec(restartPolicy="Never", **more)


def a_job_is_complete(world: World) -> None:
    path = world.workload("Job", {"completions": 2, "parallelism": 1}, _once(world))
    world.at_work(lambda: world.condition(path, "Complete"), "it is not complete", "Succeeded")
    assert world.server.ask("GET", path)["status"]["succeeded"] == 2


def a_job_fails(world: World) -> None:
    path = world.workload("Job", {"backoffLimit": 0}, _once(world))
    world.at_work(lambda: world.condition(path, "Failed"), "it did not fail", "Failed")


def a_job_knows_its_indexes(world: World) -> None:
    path = world.workload("Job", {"completions": 3, "parallelism": 3, "completionMode": "Indexed"}, _once(world))
    eventually(lambda: len(world.live()) == 3)
    key = "batch.kubernetes.io/job-completion-index"
    assert {one["metadata"]["annotations"][key] for one in world.live()} == {"0", "1", "2"}
    world.at_work(lambda: world.condition(path, "Complete"), "it is not complete", "Succeeded")
    assert world.server.ask("GET", path)["status"]["completedIndexes"] == "0-2"


def a_suspended_job_waits(world: World) -> None:
    path = world.workload("Job", {"suspend": True}, _once(world))
    eventually(lambda: world.condition(path, "Suspended"), "it is not suspended")
    assert not world.live()
    world.merge(path, {"spec": {"suspend": False}})
    eventually(lambda: len(world.live()) == 1, "it did not go on")


def a_job_with_devices_gives_them_back(world: World) -> None:
    world.template("t", count=2)
    path = world.workload("Job", {"completions": 3, "parallelism": 3}, _once(world, template="t"))
    world.at_work(lambda: world.condition(path, "Complete"), "it is not complete", "Succeeded")
    eventually(lambda: not world.get("resourceclaims", root=RESOURCE)["items"], "claims are still there")


def a_finished_job_goes(world: World) -> None:
    path = world.workload("Job", {"ttlSecondsAfterFinished": 0}, _once(world))
    world.at_work(lambda: world.server.ask("GET", path) is None, "it is still there", "Succeeded")


def what_belongs_to_another_goes_with_it(world: World) -> None:
    path = world.workload("ReplicaSet", {"replicas": 1})
    eventually(lambda: len(world.live()) == 1)
    world.server.ask("DELETE", path, {"propagationPolicy": "Background"})
    world.at_work(lambda: not world.get("pods")["items"], "its pods are still there")


def what_belongs_to_another_goes_first(world: World) -> None:
    path = world.workload("ReplicaSet", {"replicas": 1})
    (pod,) = eventually(world.live)
    world.bound(pod["metadata"]["name"])
    world.server.ask("DELETE", path, {"propagationPolicy": "Foreground"})
    eventually(lambda: not world.live(), "its pod stays")
    assert world.server.ask("GET", path)["metadata"]["finalizers"] == ["foregroundDeletion"]
    world.at_work(lambda: world.server.ask("GET", path) is None, "it is still there")


def orphans_stay(world: World) -> None:
    path = world.workload("ReplicaSet", {"replicas": 1})
    eventually(lambda: len(world.live()) == 1)
    world.server.ask("DELETE", path, {"propagationPolicy": "Orphan"})
    eventually(lambda: world.server.ask("GET", path) is None, "it is still there")
    (pod,) = world.live()
    assert not pod["metadata"].get("ownerReferences")


def _limit(world: World, what: str, amount: int) -> None:
    """A quota that somebody looks after."""
    path = f"/api/v1/namespaces/{world.name}/resourcequotas"
    world.create(path, "v1", "ResourceQuota", "q", {"hard": {what: str(amount)}})
    eventually(lambda: (world.get("resourcequotas", "q").get("status") or {}).get("used"), "nobody counts")


def _refuse_claim(world: World) -> str:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": world.name}}]}}
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "b"}, "spec": spec}
    return world.refuse("POST", f"{RESOURCE}/namespaces/{world.name}/resourceclaims", body)


def _pod(world: World, name: str) -> Body:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": world.spec()}


def pods_are_counted(world: World) -> None:
    _limit(world, "pods", 1)
    world.pod("a")
    path = f"/api/v1/namespaces/{world.name}/pods"
    assert "exceeded quota" in world.refuse("POST", path, _pod(world, "b"))
    world.kill("a")

    def second() -> bool:
        try:
            world.server.ask("POST", path, _pod(world, "b"))
        except AssertionError:
            return False
        return True

    eventually(second, "what was given back is not counted")


def claims_are_counted(world: World) -> None:
    _limit(world, "count/resourceclaims.resource.k8s.io", 1)
    world.claim("a")
    assert "exceeded quota" in _refuse_claim(world)


def devices_of_a_class_are_counted(world: World) -> None:
    _limit(world, f"{world.name}.deviceclass.resource.k8s.io/devices", 2)
    world.claim("a", count=2)
    assert "exceeded quota" in _refuse_claim(world)


def a_budget_holds_evictions(world: World) -> None:
    world.workload("ReplicaSet", {"replicas": 1})
    selector = {"matchLabels": {"app": "w"}}
    path = f"/apis/policy/v1/namespaces/{world.name}/poddisruptionbudgets"
    world.create(path, "policy/v1", "PodDisruptionBudget", "b", {"minAvailable": 1, "selector": selector})
    world.at_work(
        lambda: (world.server.ask("GET", f"{path}/b").get("status") or {}).get("currentHealthy") == 1,
        "nobody is healthy",
    )
    (name,) = world.live_names()
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    assert world.refuse("POST", f"/api/v1/namespaces/{world.name}/pods/{name}/eviction", body).startswith("429")
    world.merge(f"{path}/b", {"spec": {"minAvailable": 0}})
    eventually(lambda: world.server.ask("GET", f"{path}/b")["status"].get("disruptionsAllowed") == 1)
    world.server.ask("POST", f"/api/v1/namespaces/{world.name}/pods/{name}/eviction", body)
    eventually(lambda: world.leaving(name), "it was not evicted")


def limits_are_filled_in(world: World) -> None:
    limit = {"type": "Container", "defaultRequest": {"cpu": "300m"}, "default": {"cpu": "400m"}}
    path = f"/api/v1/namespaces/{world.name}/limitranges"
    world.create(path, "v1", "LimitRange", "l", {"limits": [limit]})
    world.pod("p")
    resources = world.get("pods", "p")["spec"]["containers"][0]["resources"]
    assert (resources["requests"]["cpu"], resources["limits"]["cpu"]) == ("300m", "400m")


def a_namespace_has_an_account_and_a_root_certificate(world: World) -> None:
    eventually(lambda: world.get("serviceaccounts", "default"), "it has no account")
    eventually(lambda: world.get("configmaps", "kube-root-ca.crt"), "it has no root certificate")


def a_service_knows_its_pods(world: World) -> None:
    world.workload("ReplicaSet", {"replicas": 1})
    spec = {"selector": {"app": "w"}, "ports": [{"port": 80}]}
    world.create(f"/api/v1/namespaces/{world.name}/services", "v1", "Service", "s", spec)

    def addresses() -> list[Any]:
        slices = world.get("endpointslices", root="/apis/discovery.k8s.io/v1")["items"]
        return [address for one in slices for each in one.get("endpoints") or () for address in each["addresses"]]

    (found,) = world.at_work(addresses, "the service has no addresses")
    assert found == world.live()[0]["status"]["podIP"]


def a_volume_is_bound(world: World) -> None:
    about = {"accessModes": ["ReadWriteOnce"], "storageClassName": world.name}
    volume = {**about, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp/x"}}
    world.create("/api/v1/persistentvolumes", "v1", "PersistentVolume", world.name, volume)
    claim = {**about, "resources": {"requests": {"storage": "1Gi"}}}
    path = f"/api/v1/namespaces/{world.name}/persistentvolumeclaims"
    world.create(path, "v1", "PersistentVolumeClaim", "v", claim)
    eventually(lambda: world.server.ask("GET", f"{path}/v")["status"].get("phase") == "Bound", "it is not bound")


def roles_are_added_up(world: World) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    about = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    selector = {"matchLabels": {"sum": world.name}}
    whole = {"metadata": {"name": world.name}, "aggregationRule": {"clusterRoleSelectors": [selector]}, "rules": []}
    world.server.ask("POST", roles, {**about, **whole})
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    part = {"metadata": {"name": f"{world.name}-part", "labels": {"sum": world.name}}, "rules": [rule]}
    world.server.ask("POST", roles, {**about, **part})
    eventually(lambda: world.server.ask("GET", f"{roles}/{world.name}")["rules"] == [rule], "it was not added")


def who_leaves_a_tainted_node_is_told_why(world: World) -> None:
    world.pod("p", terminationGracePeriodSeconds=60)
    node = world.bound("p")
    world.report("p", "Running")
    world.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": [{"key": "example.com/out", "effect": "NoExecute"}]}})
    eventually(lambda: world.leaving("p"), "the pod was not evicted")
    conditions = world.get("pods", "p")["status"]["conditions"]
    (told,) = [one for one in conditions if one["type"] == "DisruptionTarget"]
    assert told["reason"] == "DeletionByTaintManager"
