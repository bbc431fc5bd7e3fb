"""Odd cases of whoever makes pods: what stops, pauses, fails, goes back or is limited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from patience import eventually
from peer_world import Body, World, with_image

INDEX = "batch.kubernetes.io/job-completion-index"
STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _images(world: World) -> list[str]:
    return sorted(one["spec"]["containers"][0]["image"] for one in world.live())


def _status(world: World, path: str) -> Body:
    found: Body = (world.server.ask("GET", path) or {}).get("status") or {}
    return found


def _reason(world: World, path: str, kind: str) -> str:
    conditions = _status(world, path).get("conditions") or ()
    return next((str(one.get("reason", "")) for one in conditions if one["type"] == kind), "")


def _job(world: World, **spec: Any) -> str:
    return world.workload("Job", spec, world.spec(restartPolicy="Never"))


def _of_index(world: World, index: int) -> str:
    """The name of the pod of an index that has neither ended nor is about to go."""

    def look() -> str:
        for one in world.live():
            is_over = one["status"].get("phase") in ("Failed", "Succeeded")
            if not is_over and one["metadata"]["annotations"].get(INDEX) == str(index) and one["spec"].get("nodeName"):
                return str(one["metadata"]["name"])
        return ""

    return eventually(look, f"there is no pod of index {index}")


def _end(world: World, pod: str, code: int, **status: Any) -> None:
    """The container of a pod ends with a code."""
    phase = "Failed" if code else "Succeeded"
    over = {"exitCode": code, "reason": "Error" if code else "Completed"}
    container = {"name": "c", "image": "i", "imageID": "i", "ready": False, "restartCount": 0}
    container["state"] = {"terminated": over}
    path = f"/api/v1/namespaces/{world.name}/pods/{pod}/status"
    told = {"status": {"phase": phase, "containerStatuses": [container], **status}}
    world.server.ask("PATCH", path, told, "application/strategic-merge-patch+json")


def _while_pods_go(world: World, look: Callable[[], Any], what: str) -> None:
    """Waits for something while nodes end pods that are told to go, and say nothing of others."""

    def work() -> Any:
        for one in world.get("pods")["items"]:
            if "deletionTimestamp" in one["metadata"]:
                world.kill(one["metadata"]["name"])
        return look()

    eventually(work, what)


def a_running_job_is_suspended(world: World) -> None:
    path = _job(world, parallelism=2, completions=2)
    world.at_work(lambda: _status(world, path).get("active") == 2, "it does not run")
    world.merge(path, {"spec": {"suspend": True}})
    world.at_work(lambda: not world.get("pods")["items"], "its pods go on")
    eventually(lambda: world.condition(path, "Suspended"), "it does not say so")
    eventually(lambda: not _status(world, path).get("active") and "startTime" not in _status(world, path))
    assert not _status(world, path).get("failed"), "nothing has failed"
    world.merge(path, {"spec": {"suspend": False}})
    world.at_work(lambda: world.condition(path, "Complete"), "it did not go on", "Succeeded")


def a_job_that_takes_too_long_fails(world: World) -> None:
    path = _job(world, activeDeadlineSeconds=1)
    world.at_work(lambda: world.condition(path, "Failed"), "it goes on")
    assert _reason(world, path, "Failed") == "DeadlineExceeded"
    world.at_work(lambda: not world.live(), "its pod goes on")


def an_exit_code_ends_a_job(world: World) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    path = _job(world, backoffLimit=6, podFailurePolicy={"rules": [rule]})
    (pod,) = eventually(world.live)
    world.bound(pod["metadata"]["name"])
    _end(world, pod["metadata"]["name"], 42)
    eventually(lambda: world.condition(path, "Failed"), "it did not fail")
    assert _reason(world, path, "Failed") == "PodFailurePolicy"


def disruptions_are_not_counted(world: World) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    path = _job(world, backoffLimit=0, podFailurePolicy={"rules": [rule]})
    (pod,) = eventually(world.live)
    world.bound(pod["metadata"]["name"])
    told = {"type": "DisruptionTarget", "status": "True", "reason": "x", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    _end(world, pod["metadata"]["name"], 1, conditions=[told])
    world.at_work(lambda: world.condition(path, "Complete"), "it is not complete", "Succeeded")
    assert not _status(world, path).get("failed")


def indexes_fail_by_themselves(world: World) -> None:
    mode = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}
    path = _job(world, **mode, backoffLimitPerIndex=1, maxFailedIndexes=2, podFailurePolicy={"rules": [rule]})
    _end(world, _of_index(world, 0), 42)
    eventually(lambda: _status(world, path).get("failedIndexes") == "0", "index 0 did not fail at once")
    _end(world, _of_index(world, 1), 1)
    eventually(lambda: _status(world, path).get("failed") == 2, "a try of index 1 is not counted")
    _end(world, _of_index(world, 2), 0)
    _end(world, _of_index(world, 1), 1)
    eventually(lambda: world.condition(path, "Failed"), "it did not fail")
    status = _status(world, path)
    assert (status["failedIndexes"], status["completedIndexes"]) == ("0,1", "2")
    assert _reason(world, path, "Failed") == "FailedIndexes"


def too_many_failed_indexes_end_a_job(world: World) -> None:
    mode = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    path = _job(world, **mode, backoffLimitPerIndex=0, maxFailedIndexes=1)
    for index in (0, 1):
        _end(world, _of_index(world, index), 1)
    _while_pods_go(world, lambda: world.condition(path, "Failed"), "it goes on")
    assert _reason(world, path, "Failed") == "MaxFailedIndexesExceeded"


def a_leader_is_enough(world: World) -> None:
    mode = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    path = _job(world, **mode, successPolicy={"rules": [{"succeededIndexes": "0"}]})
    for index in (1, 2):
        world.report(_of_index(world, index), "Running")
    _end(world, _of_index(world, 0), 0)
    eventually(lambda: world.condition(path, "SuccessCriteriaMet"), "it was not enough")
    _while_pods_go(world, lambda: world.condition(path, "Complete"), "it is not complete")
    assert _reason(world, path, "Complete") == "SuccessPolicy"


def a_job_of_another_controller_is_left_alone(world: World) -> None:
    path = _job(world, managedBy="example.com/other")
    other = world.workload("Job", {"managedBy": "kubernetes.io/job-controller"}, world.spec(restartPolicy="Never"), "o")
    eventually(lambda: len(world.live("o")) == 1, "ours is not run")
    assert not world.live()
    assert not _status(world, path)
    assert _status(world, other)


def a_pod_that_is_going_is_not_replaced_yet(world: World) -> None:
    _job(world, podReplacementPolicy="Failed")
    (pod,) = eventually(world.live)
    name = pod["metadata"]["name"]
    world.bound(name)
    world.report(name, "Running")
    world.server.ask("DELETE", f"/api/v1/namespaces/{world.name}/pods/{name}", {"gracePeriodSeconds": 60})
    path = f"/apis/batch/v1/namespaces/{world.name}/jobs/w"
    eventually(lambda: _status(world, path).get("terminating") == 1, "it is not counted")
    assert [one["metadata"]["name"] for one in world.get("pods")["items"]] == [name]
    _end(world, name, 1)
    eventually(lambda: len(world.live()) == 1, "it was not replaced")


def an_indexed_job_grows_and_shrinks(world: World) -> None:
    path = _job(world, completionMode="Indexed", completions=2, parallelism=2)
    eventually(lambda: len(world.live()) == 2)
    world.merge(path, {"spec": {"completions": 3, "parallelism": 3}})
    eventually(lambda: len(world.live()) == 3, "it did not grow")
    world.merge(path, {"spec": {"completions": 1, "parallelism": 1}})
    world.at_work(lambda: len(world.get("pods")["items"]) == 1, "it did not shrink")
    world.at_work(lambda: world.condition(path, "Complete"), "it is not complete", "Succeeded")
    assert _status(world, path)["completedIndexes"] == "0"


def a_deployment_may_replace_all_at_once(world: World) -> None:
    path = world.workload("Deployment", {"replicas": 2, "strategy": {"type": "Recreate"}})
    world.at_work(lambda: world.condition(path, "Available"), "it is not available")
    world.merge(path, with_image("j"))
    eventually(lambda: not world.live(), "old pods go on")
    eventually(lambda: all("deletionTimestamp" in one["metadata"] for one in world.get("pods")["items"]))
    world.at_work(lambda: _images(world) == ["j", "j"], "new ones did not come")


def a_paused_deployment_keeps_its_template(world: World) -> None:
    path = world.workload("Deployment", {"replicas": 1, "paused": True})
    eventually(lambda: _reason(world, path, "Progressing") == "DeploymentPaused", "it does not say so")
    assert not world.live()
    world.merge(path, {"spec": {"paused": False}})
    world.at_work(lambda: world.condition(path, "Available"), "it did not go on")
    world.merge(path, {"spec": {"paused": True}})
    eventually(lambda: _reason(world, path, "Progressing") == "DeploymentPaused", "it does not say so")
    world.merge(path, {**with_image("j"), "spec": {**with_image("j")["spec"], "replicas": 3}})
    world.at_work(lambda: _images(world) == ["i", "i", "i"], "it was not scaled")
    world.merge(path, {"spec": {"paused": False}})
    eventually(lambda: _reason(world, path, "Progressing") != "DeploymentPaused", "it does not say so")
    world.at_work(lambda: _images(world) == ["j", "j", "j"], "it did not go on")


def a_deployment_that_does_not_get_on_says_so(world: World) -> None:
    path = world.workload("Deployment", {"replicas": 1, "progressDeadlineSeconds": 1})
    eventually(lambda: _reason(world, path, "Progressing") == "ProgressDeadlineExceeded", "it does not say so")
    world.at_work(lambda: world.condition(path, "Available"), "it did not go on")
    world.at_work(lambda: _reason(world, path, "Progressing") == "NewReplicaSetAvailable", "it does not say so")


def old_templates_are_forgotten(world: World) -> None:
    path = world.workload("Deployment", {"replicas": 1, "revisionHistoryLimit": 1})
    for image in ("i", "j", "k", "l"):
        wanted = [image]
        world.merge(path, with_image(image))
        world.at_work(lambda: _images(world) == wanted and world.condition(path, "Available"), "it did not roll out")  # noqa: B023  # used before the next one
    world.at_work(
        lambda: len(world.get("replicasets", root="/apis/apps/v1")["items"]) == 2, "old ReplicaSets are still there"
    )


def a_rollout_that_is_scaled_keeps_its_shares(world: World) -> None:
    rolling = {"maxSurge": 2, "maxUnavailable": 0}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    path = world.workload("Deployment", {"replicas": 4, "strategy": strategy})
    world.at_work(lambda: _status(world, path).get("availableReplicas") == 4, "it is not available")
    world.merge(path, with_image("j"))
    eventually(lambda: _images(world) == ["i"] * 4 + ["j"] * 2, "it did not begin")
    eventually(lambda: _status(world, path).get("replicas") == 6, "it is not counted")
    world.merge(path, {"spec": {"replicas": 10}})
    eventually(lambda: _images(world) == ["i"] * 8 + ["j"] * 4, "it did not grow in both")


def a_refused_pod_is_told_of(world: World) -> None:
    path = f"/api/v1/namespaces/{world.name}/resourcequotas"
    world.create(path, "v1", "ResourceQuota", "q", {"hard": {"pods": "1"}})
    eventually(lambda: (world.get("resourcequotas", "q").get("status") or {}).get("used"), "nobody counts")
    made = world.workload("ReplicaSet", {"replicas": 3})
    eventually(lambda: _reason(world, made, "ReplicaFailure") == "FailedCreate", "it does not say so")
    eventually(lambda: _status(world, made).get("replicas") == 1)
    world.merge(f"{path}/q", {"spec": {"hard": {"pods": "5"}}})
    eventually(lambda: len(world.live()) == 3, "it was not tried again")
    eventually(lambda: not _reason(world, made, "ReplicaFailure"), "it still says so")


def numbers_may_begin_later(world: World) -> None:
    policy = {"podManagementPolicy": "Parallel", "serviceName": "w"}
    path = world.workload("StatefulSet", {"replicas": 2, "ordinals": {"start": 5}, **policy})
    eventually(lambda: world.live_names() == ["w-5", "w-6"])
    world.merge(path, {"spec": {"ordinals": {"start": 6}}})
    world.at_work(lambda: world.live_names() == ["w-6", "w-7"], "they did not move")


def storage_goes_with_its_number(world: World) -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    claims = [{"metadata": {"name": "data"}, "spec": {**STORAGE, "storageClassName": "none"}}]
    spec = {"replicas": 2, "serviceName": "w", "podManagementPolicy": "Parallel", "volumeClaimTemplates": claims}
    path = world.workload("StatefulSet", {**spec, "persistentVolumeClaimRetentionPolicy": policy})

    def stored() -> list[str]:
        found = world.get("persistentvolumeclaims")["items"]
        return sorted(one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"])

    eventually(lambda: stored() == ["data-w-0", "data-w-1"] and len(world.live()) == 2)
    world.merge(f"{path}/scale", {"spec": {"replicas": 1}})
    world.at_work(lambda: stored() == ["data-w-0"], "storage is still there")
    world.server.ask("DELETE", path, {"propagationPolicy": "Background"})
    world.at_work(lambda: not world.get("pods")["items"], "its pod is still there")
    assert stored() == ["data-w-0"]
    assert not world.get("persistentvolumeclaims", "data-w-0")["metadata"].get("ownerReferences")


def a_stateful_set_is_replaced_by_hand(world: World) -> None:
    strategy = {"type": "OnDelete"}
    path = world.workload("StatefulSet", {"replicas": 2, "serviceName": "w", "updateStrategy": strategy})
    world.at_work(lambda: _status(world, path).get("availableReplicas") == 2, "not all are there")
    world.merge(path, with_image("j"))
    eventually(lambda: _status(world, path).get("updateRevision") != _status(world, path).get("currentRevision"))
    assert _images(world) == ["i", "i"]
    world.kill("w-0")
    world.at_work(lambda: _images(world) == ["i", "j"], "it was not made anew")


def ready_is_not_available_at_once(world: World) -> None:
    path = world.workload("StatefulSet", {"replicas": 2, "serviceName": "w", "minReadySeconds": 3600})
    eventually(lambda: world.node_of("w-0"))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": None}]}
    told = f"/api/v1/namespaces/{world.name}/pods/w-0/status"
    world.server.ask("PATCH", told, {"status": status}, "application/strategic-merge-patch+json")
    eventually(lambda: _status(world, path).get("readyReplicas") == 1, "it is not ready")
    assert not _status(world, path).get("availableReplicas")
    assert world.live_names() == ["w-0"]


def a_daemon_set_surges(world: World) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    path = world.workload("DaemonSet", {"updateStrategy": strategy})
    world.at_work(lambda: _status(world, path).get("numberAvailable") == 2, "not all are there")
    world.merge(path, with_image("j"))
    eventually(lambda: _images(world) == ["i", "i", "j"], "there is no new one beside an old one")
    world.at_work(lambda: _images(world) == ["j", "j"], "it was not updated")


def a_daemon_that_failed_is_replaced(world: World) -> None:
    path = world.workload("DaemonSet", {})
    world.at_work(lambda: _status(world, path).get("numberAvailable") == 2, "not all are there")
    name = world.live_names()[0]
    world.report(name, "Failed")
    _while_pods_go(world, lambda: name not in world.live_names() and len(world.live()) == 2, "it was not replaced")
    events = world.get("events")["items"]
    assert "FailedDaemonPod" in {one["reason"] for one in events if one["involvedObject"]["kind"] == "DaemonSet"}


def a_daemon_waits_for_its_node(world: World) -> None:
    world.merge(f"/api/v1/nodes/{world.nodes[0]}", {"spec": {"unschedulable": True}})
    taint = {"key": "example.com/no", "effect": "NoSchedule"}
    world.merge(f"/api/v1/nodes/{world.nodes[1]}", {"spec": {"taints": [taint]}})
    path = world.workload("DaemonSet", {})
    eventually(lambda: [one["spec"].get("nodeName") for one in world.live()] == world.nodes[:1], "it is not there")
    assert _status(world, path)["desiredNumberScheduled"] == 1
    world.merge(f"/api/v1/nodes/{world.nodes[1]}", {"spec": {"taints": None}})
    eventually(lambda: len(world.live()) == 2, "it did not come")


def _cron_job(world: World, **spec: Any) -> str:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": world.spec(restartPolicy="Never")}
    wanted = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}, **spec}
    path = f"/apis/batch/v1/namespaces/{world.name}/cronjobs"
    world.create(path, "batch/v1", "CronJob", "c", wanted)
    return f"{path}/c"


def _jobs(world: World) -> list[Any]:
    found: list[Any] = world.get("jobs", root="/apis/batch/v1")["items"]
    return found


def a_cron_job_makes_jobs(world: World) -> None:
    path = _cron_job(world, concurrencyPolicy="Forbid", successfulJobsHistoryLimit=0)
    (job,) = eventually(lambda: _jobs(world), "no job came")
    assert "batch.kubernetes.io/cronjob-scheduled-timestamp" in job["metadata"]["annotations"]
    eventually(lambda: _status(world, path).get("active"), "it does not know its job")
    world.at_work(lambda: not _jobs(world), "the finished job is still there", "Succeeded")
    eventually(lambda: _status(world, path).get("lastSuccessfulTime"), "it does not know that it ended")


def a_cron_job_may_rest(world: World) -> None:
    path = _cron_job(world, suspend=True, schedule="@every 1s", timeZone="Europe/Berlin")
    world.workload("Job", {}, world.spec(restartPolicy="Never"), "after")
    eventually(lambda: len(world.live("after")) == 1)
    assert [one["metadata"]["name"] for one in _jobs(world)] == ["after"]
    assert not _status(world, path).get("lastScheduleTime")


def a_replication_controller_adopts(world: World) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"app": "w"}}, "spec": world.spec()}
    world.server.ask("POST", f"/api/v1/namespaces/{world.name}/pods", body)
    template = {"metadata": {"labels": {"app": "w"}}, "spec": world.spec()}
    spec = {"replicas": 2, "selector": {"app": "w"}, "template": template}
    path = f"/api/v1/namespaces/{world.name}/replicationcontrollers"
    world.create(path, "v1", "ReplicationController", "w", spec)
    eventually(lambda: len(world.live()) == 2)
    (owner,) = eventually(lambda: world.get("pods", "a")["metadata"].get("ownerReferences"), "it was not adopted")
    assert (owner["kind"], owner["controller"]) == ("ReplicationController", True)
    world.merge(f"/api/v1/namespaces/{world.name}/pods/a", {"metadata": {"labels": {"app": "other"}}})
    eventually(lambda: not world.get("pods", "a")["metadata"].get("ownerReferences"), "it was not let go")
    eventually(lambda: len(world.live()) == 2, "it was not replaced")
