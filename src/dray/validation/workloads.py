"""ReplicaSet, ReplicationController, Deployment, DaemonSet and StatefulSet: numbers of pods made from a template."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.structs import replace

from dray.api import labels
from dray.api.field import forbidden, invalid, required, too_many
from dray.api.generated import apps
from dray.api.generated.core import (
    PersistentVolumeClaim,
    PersistentVolumeClaimVolumeSource,
    PodTemplate,
    PodTemplateSpec,
    ReplicationController,
    Volume,
)
from dray.api.meta import LabelSelector
from dray.api.times import Time
from dray.validation import check, names
from dray.validation.context import Context, Errors
from dray.validation.label_selectors import MOST_VALUES, validate_label_selector
from dray.validation.metadata import MOST_LABELS_OF_TEMPLATES, validate_annotations, validate_labels, with_metadata
from dray.validation.persistent_volume_claim import default_claim, validate_claim_spec
from dray.validation.pod_defaults import default_pod_spec
from dray.validation.pod_spec import validate_pod_spec
from dray.validation.pod_warnings import owner_warnings, template_warnings
from dray.validation.rules import CONTENT, Rules
from dray.validation.volume_warnings import claim_warnings
from dray.validation.workload_status import status_check

HISTORY: Final = 10
PROGRESS_SECONDS: Final = 600
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_PERCENT: Final = re.compile(r"[0-9]++%")


def default_template(template: PodTemplateSpec) -> PodTemplateSpec:
    """A template with the defaults of its pods."""
    return replace(template, spec=default_pod_spec(template.spec))


def validate_template(errors: Errors, template: PodTemplateSpec, path: str) -> None:
    """A template by itself."""
    validate_labels(errors, template.metadata.labels, f"{path}.labels", most=MOST_LABELS_OF_TEMPLATES)
    validate_annotations(errors, template.metadata.annotations, f"{path}.annotations")
    validate_pod_spec(errors, template.spec, f"{path}.spec", is_pod=False)
    if template.spec.ephemeral_containers:
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))


def validate_int_or_percent(errors: Errors, value: int | str, path: str, *, limited: bool = True) -> None:
    """A number that is not negative, or a share in percent, of at most 100% if `limited`."""
    if isinstance(value, int):
        check.not_negative(errors, path, value)
    elif _PERCENT.fullmatch(value) is None:
        errors.append(invalid(path, value, "must be a whole number or a percentage such as 25%"))
    elif limited and (len(value) > 6 or int(value[:-1]) > 100):
        errors.append(invalid(path, value, "must not be greater than 100%"))


def _is_none(value: int | str | None) -> bool:
    """Whether it comes to nothing: zero, or what cannot be read."""
    if isinstance(value, str):
        return _PERCENT.fullmatch(value) is None or not value.strip("0%")
    return not value


def _default_replica_set(obj: apps.ReplicaSet, _now: Time) -> apps.ReplicaSet:
    spec = obj.spec
    replicas = 1 if spec.replicas is None else spec.replicas
    return replace(obj, spec=replace(spec, replicas=replicas, template=default_template(spec.template)))


def _default_replication_controller(obj: ReplicationController, _now: Time) -> ReplicationController:
    """Without a selector or labels of its own it takes those of its pods."""
    spec = obj.spec
    if spec.template is not None:
        labels = spec.template.metadata.labels
        spec = replace(spec, template=default_template(spec.template), selector=spec.selector or labels)
        if not obj.metadata.labels:
            obj = with_metadata(obj, labels=labels)
    return replace(obj, spec=replace(spec, replicas=1 if spec.replicas is None else spec.replicas))


def _default_deployment(obj: apps.Deployment, _now: Time) -> apps.Deployment:
    spec, strategy = obj.spec, obj.spec.strategy
    strategy = replace(strategy, type=strategy.type or "RollingUpdate")
    if strategy.type == "RollingUpdate":
        rolling = strategy.rolling_update or apps.RollingUpdateDeployment()
        unavailable = "25%" if rolling.max_unavailable is None else rolling.max_unavailable
        surge = "25%" if rolling.max_surge is None else rolling.max_surge
        strategy = replace(strategy, rolling_update=replace(rolling, max_unavailable=unavailable, max_surge=surge))
    deadline = PROGRESS_SECONDS if spec.progress_deadline_seconds is None else spec.progress_deadline_seconds
    return replace(
        obj,
        spec=replace(
            spec,
            replicas=1 if spec.replicas is None else spec.replicas,
            strategy=strategy,
            revision_history_limit=HISTORY if spec.revision_history_limit is None else spec.revision_history_limit,
            progress_deadline_seconds=deadline,
            template=default_template(spec.template),
        ),
    )


def _default_daemon_set(obj: apps.DaemonSet, _now: Time) -> apps.DaemonSet:
    spec, strategy = obj.spec, obj.spec.update_strategy
    strategy = replace(strategy, type=strategy.type or "RollingUpdate")
    if strategy.type == "RollingUpdate":
        rolling = strategy.rolling_update or apps.RollingUpdateDaemonSet()
        unavailable = 1 if rolling.max_unavailable is None else rolling.max_unavailable
        surge = 0 if rolling.max_surge is None else rolling.max_surge
        strategy = replace(strategy, rolling_update=replace(rolling, max_unavailable=unavailable, max_surge=surge))
    history = HISTORY if spec.revision_history_limit is None else spec.revision_history_limit
    template = default_template(spec.template)
    spec = replace(spec, update_strategy=strategy, revision_history_limit=history, template=template)
    return replace(obj, spec=spec)


def _default_stateful_set(obj: apps.StatefulSet, _now: Time) -> apps.StatefulSet:
    spec, strategy = obj.spec, obj.spec.update_strategy
    rolling = strategy.rolling_update
    if not strategy.type:
        rolling = rolling or apps.RollingUpdateStatefulSetStrategy()
        strategy = replace(strategy, type="RollingUpdate")
    if rolling is not None:
        unavailable = 1 if rolling.max_unavailable is None else rolling.max_unavailable
        rolling = replace(rolling, partition=rolling.partition or 0, max_unavailable=unavailable)
        strategy = replace(strategy, rolling_update=rolling)
    retention = spec.persistent_volume_claim_retention_policy or apps.StatefulSetPersistentVolumeClaimRetentionPolicy()
    retention = replace(
        retention, when_deleted=retention.when_deleted or "Retain", when_scaled=retention.when_scaled or "Retain"
    )
    return replace(
        obj,
        spec=replace(
            spec,
            replicas=1 if spec.replicas is None else spec.replicas,
            pod_management_policy=spec.pod_management_policy or "OrderedReady",
            update_strategy=strategy,
            persistent_volume_claim_retention_policy=retention,
            revision_history_limit=HISTORY if spec.revision_history_limit is None else spec.revision_history_limit,
            template=default_template(spec.template),
            volume_claim_templates=tuple([_default_claim(claim) for claim in spec.volume_claim_templates]),
        ),
    )


def _default_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    return default_claim(replace(claim, api_version="v1", kind="PersistentVolumeClaim"))


def _default_pod_template(obj: PodTemplate, _now: Time) -> PodTemplate:
    return replace(obj, template=default_template(obj.template))


def _check_pod_template(errors: Errors, new: PodTemplate, _old: PodTemplate | None, _ctx: Context) -> None:
    validate_template(errors, new.template, "template")


def _warnings(obj: Any) -> list[str]:
    """What can hardly be meant: in the name, which begins those of the pods, and in their template."""
    template = obj.spec.template
    return [*owner_warnings(obj.metadata.name), *(template_warnings(template, "spec.template") if template else ())]


def _daemon_set_warnings(obj: apps.DaemonSet) -> list[str]:
    return template_warnings(obj.spec.template, "spec.template")


def _stateful_set_warnings(obj: apps.StatefulSet) -> list[str]:
    found = template_warnings(obj.spec.template, "spec.template")
    for index, claim in enumerate(obj.spec.volume_claim_templates):
        found += claim_warnings(claim.spec, f"spec.volumeClaimTemplates[{index}]")
    if (obj.spec.revision_history_limit or 0) < 0:
        told = "a negative value retains all historical revisions; a value >= 0 is recommended"
        found.append(f"spec.revisionHistoryLimit: {told}")
    return found


def _check(errors: Errors, new: Any, old: Any, _ctx: Context) -> None:
    """What all have in common that have a selector: it finds the pods of the template, and those run for ever."""
    spec = new.spec
    for field, value in (
        ("replicas", getattr(spec, "replicas", None)),
        ("minReadySeconds", spec.min_ready_seconds),
        ("revisionHistoryLimit", getattr(spec, "revision_history_limit", None)),
    ):
        is_all = field == "revisionHistoryLimit" and isinstance(new, apps.StatefulSet)  # then negative keeps all
        if value is not None and not is_all:
            check.not_negative(errors, f"spec.{field}", value)
    is_daemon_set = isinstance(new, apps.DaemonSet)
    if spec.selector is None:
        if not is_daemon_set:
            errors.append(required("spec.selector"))
        where = "spec.template.metadata.labels"
        errors.append(invalid(where, spec.template.metadata.labels, "must match the selector"))
    else:
        before = len(errors)
        validate_selector(errors, spec.selector, spec.template)
        if any(error.field.startswith("spec.selector.") for error in errors[before:]) and not is_daemon_set:
            errors.append(invalid("spec.selector", spec.selector, "invalid label selector"))
            if isinstance(new, apps.StatefulSet):
                _validate_endless(errors, spec.template)
            return  # as in Kubernetes: of the pods little is said before they can be found
    _validate_lasting(errors, _of_pods(spec) if isinstance(spec, apps.StatefulSetSpec) else spec.template)
    if old is not None:
        check.immutable(errors, "spec.selector", spec.selector, old.spec.selector)


def _of_pods(spec: apps.StatefulSetSpec) -> PodTemplateSpec:
    """The template as pods will have it: a name and a domain of their own, and for each claim of theirs a volume."""
    pod = spec.template.spec
    made = {
        name: Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))
        for name in (claim.metadata.name for claim in spec.volume_claim_templates)
    }
    own = [volume for volume in pod.volumes if volume.name not in made]
    return replace(spec.template, spec=replace(pod, hostname="", subdomain="", volumes=(*made.values(), *own)))


def _validate_lasting(errors: Errors, template: PodTemplateSpec) -> None:
    """A template of pods that run for ever."""
    validate_template(errors, template, "spec.template")
    _validate_endless(errors, template)


def _validate_endless(errors: Errors, template: PodTemplateSpec) -> None:
    if template.spec.restart_policy in ("OnFailure", "Never"):
        check.one_of(errors, "spec.template.spec.restartPolicy", template.spec.restart_policy, ("Always",))
    if template.spec.active_deadline_seconds is not None:
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", "not supported here"))


def _check_replication_controller(
    errors: Errors, new: ReplicationController, _old: ReplicationController | None, _ctx: Context
) -> None:
    spec = new.spec
    check.not_negative(errors, "spec.replicas", spec.replicas or 0)
    check.not_negative(errors, "spec.minReadySeconds", spec.min_ready_seconds)
    if not spec.selector:
        errors.append(required("spec.selector"))
    if len(spec.selector) > MOST_VALUES:
        errors.append(too_many("spec.selector", len(spec.selector), MOST_VALUES))
    if spec.template is None:
        errors.append(required("spec.template"))
        return
    labels = spec.template.metadata.labels
    if spec.selector and not spec.selector.items() <= labels.items():
        errors.append(invalid("spec.template.metadata.labels", labels, "must match the selector"))
    _validate_lasting(errors, spec.template)


def validate_selector(
    errors: Errors, selector: LabelSelector, template: PodTemplateSpec, *, may_be_empty: bool = False
) -> None:
    """A selector that finds the pods of the template."""
    before = len(errors)
    validate_label_selector(errors, selector, "spec.selector")
    if len(errors) > before:
        return
    if not selector.match_labels and not selector.match_expressions and not may_be_empty:
        errors.append(invalid("spec.selector", {}, "must not be empty"))
    elif not labels.LabelSelector.of(selector).matches(template.metadata.labels):
        where = "spec.template.metadata.labels"
        errors.append(invalid(where, template.metadata.labels, "must match the selector"))


def _check_deployment(errors: Errors, new: apps.Deployment, old: apps.Deployment | None, ctx: Context) -> None:
    _check(errors, new, old, ctx)
    spec = new.spec
    check.one_of(errors, "spec.strategy", spec.strategy.type, ("Recreate", "RollingUpdate"))
    rolling = spec.strategy.rolling_update
    if rolling is not None and spec.strategy.type == "Recreate":
        errors.append(
            forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
        )
    elif rolling is not None and spec.strategy.type == "RollingUpdate":
        path = "spec.strategy.rollingUpdate"
        unavailable = 0 if rolling.max_unavailable is None else rolling.max_unavailable
        validate_int_or_percent(errors, unavailable, f"{path}.maxUnavailable")
        validate_int_or_percent(
            errors, 0 if rolling.max_surge is None else rolling.max_surge, f"{path}.maxSurge", limited=False
        )
        if _is_none(rolling.max_unavailable) and _is_none(rolling.max_surge):
            errors.append(invalid(f"{path}.maxUnavailable", rolling.max_unavailable, "may not be 0 with maxSurge 0"))
    deadline = spec.progress_deadline_seconds
    if deadline is not None:
        check.not_negative(errors, "spec.progressDeadlineSeconds", deadline)
        if deadline <= spec.min_ready_seconds:
            where = "spec.progressDeadlineSeconds"
            errors.append(invalid(where, deadline, "must be greater than minReadySeconds"))


def _check_daemon_set(errors: Errors, new: apps.DaemonSet, old: apps.DaemonSet | None, ctx: Context) -> None:
    _check(errors, new, old, ctx)
    strategy = new.spec.update_strategy
    check.one_of(errors, "spec.updateStrategy", strategy.type, ("OnDelete", "RollingUpdate"))
    if strategy.type != "RollingUpdate":
        return
    rolling, path = strategy.rolling_update, "spec.updateStrategy.rollingUpdate"
    if rolling is None:
        errors.append(required(path))
        return
    unavailable = 0 if rolling.max_unavailable is None else rolling.max_unavailable
    surge = 0 if rolling.max_surge is None else rolling.max_surge
    validate_int_or_percent(errors, unavailable, f"{path}.maxUnavailable")
    validate_int_or_percent(errors, surge, f"{path}.maxSurge")
    if not _is_none(unavailable) and not _is_none(surge):
        errors.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif _is_none(unavailable) and _is_none(surge):
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))


def _check_stateful_set(errors: Errors, new: apps.StatefulSet, old: apps.StatefulSet | None, ctx: Context) -> None:
    _check(errors, new, old, ctx)
    spec, strategy = new.spec, new.spec.update_strategy
    if old is not None:
        _check_kept(errors, spec, old.spec)
    if spec.service_name and old is None:
        check.name(errors, "spec.serviceName", spec.service_name, names.dns_label)
    if spec.pod_management_policy not in ("OrderedReady", "Parallel"):
        told = "must be 'OrderedReady' or 'Parallel'"
        errors.append(invalid("spec.podManagementPolicy", spec.pod_management_policy, told))
    if strategy.type not in ("OnDelete", "RollingUpdate"):
        errors.append(invalid("spec.updateStrategy", strategy.type, "must be 'RollingUpdate' or 'OnDelete'"))
    if old is None:
        for index, claim in enumerate(spec.volume_claim_templates):
            validate_claim_spec(errors, claim.spec, f"spec.volumeClaimTemplates[{index}].spec")
    rolling, path = strategy.rolling_update, "spec.updateStrategy.rollingUpdate"
    if rolling is not None and strategy.type == "OnDelete":
        errors.append(invalid(path, "", "only allowed for updateStrategy 'RollingUpdate'"))
    elif rolling is not None:
        check.not_negative(errors, f"{path}.partition", rolling.partition or 0)
        if rolling.max_unavailable is not None:
            validate_int_or_percent(errors, rolling.max_unavailable, f"{path}.maxUnavailable")
            if _is_none(rolling.max_unavailable):
                errors.append(invalid(f"{path}.maxUnavailable", rolling.max_unavailable, "cannot be 0"))
    if spec.ordinals is not None:
        check.not_negative(errors, "spec.ordinals.start", spec.ordinals.start)
    retention = spec.persistent_volume_claim_retention_policy
    if retention is not None:
        where = "spec.persistentVolumeClaimRetentionPolicy"
        check.one_of(errors, f"{where}.whenDeleted", retention.when_deleted, ("Delete", "Retain"))
        check.one_of(errors, f"{where}.whenScaled", retention.when_scaled, ("Delete", "Retain"))


def _check_kept(errors: Errors, now: apps.StatefulSetSpec, before: apps.StatefulSetSpec) -> None:
    """What may not change: how pods are named, and what they keep."""
    for field, value, known in (
        ("volumeClaimTemplates", now.volume_claim_templates, before.volume_claim_templates),
        ("serviceName", now.service_name, before.service_name),
        ("podManagementPolicy", now.pod_management_policy, before.pod_management_policy),
    ):
        check.immutable(errors, f"spec.{field}", value, known)


def _check_revision(
    errors: Errors, new: apps.ControllerRevision, old: apps.ControllerRevision | None, _ctx: Context
) -> None:
    check.not_negative(errors, "revision", new.revision)
    if old is not None:
        check.immutable(errors, "data", new.data, old.data)
    elif not isinstance(new.data, dict):
        errors.append(required("data", "must be a JSON object"))


def _change_deployment_status(new: apps.Deployment, old: apps.Deployment, _ctx: Context) -> apps.Deployment:
    """Labels stay; annotations do not: that is how a deployment's revision is written."""
    return with_metadata(new, labels=old.metadata.labels)


def _keep_count(new: apps.DaemonSet, old: apps.DaemonSet, _ctx: Context) -> apps.DaemonSet:
    """The count of templates stays when the status is written."""
    number = old.metadata.annotations.get(TEMPLATE_GENERATION)
    if number is None or new.metadata.annotations.get(TEMPLATE_GENERATION) == number:
        return new
    return with_metadata(new, annotations={**new.metadata.annotations, TEMPLATE_GENERATION: number})


def _count_templates(new: apps.DaemonSet, old: apps.DaemonSet | None, _ctx: Context) -> apps.DaemonSet:
    """How often the template was changed is counted by the server, in an annotation."""
    number = "1"
    if old is not None:
        number = old.metadata.annotations.get(TEMPLATE_GENERATION, "1")
        if new.spec.template != old.spec.template and number.isdecimal() and len(number) < 19:
            number = str(int(number) + 1)
    if new.metadata.annotations.get(TEMPLATE_GENERATION) == number:
        return new
    return with_metadata(new, annotations={**new.metadata.annotations, TEMPLATE_GENERATION: number})


RULES: Final = {
    "ReplicaSet": Rules(
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        default=_default_replica_set,
        warnings=_warnings,
        check=_check,
        check_status=status_check("fullyLabeledReplicas"),
    ),
    "ReplicationController": Rules(
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        default=_default_replication_controller,
        warnings=_warnings,
        check=_check_replication_controller,
        check_status=status_check("fullyLabeledReplicas"),
    ),
    "Deployment": Rules(
        has_generation=True,
        generation_counts=(CONTENT, "annotations"),
        has_status=True,
        status_guards_metadata=False,
        default=_default_deployment,
        warnings=_warnings,
        change_status=_change_deployment_status,
        check=_check_deployment,
        check_status=status_check("updatedReplicas"),
    ),
    "DaemonSet": Rules(
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        default=_default_daemon_set,
        warnings=_daemon_set_warnings,
        change=_count_templates,
        change_status=_keep_count,
        check=_check_daemon_set,
        check_status=status_check(parts=()),
    ),
    "StatefulSet": Rules(
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        default=_default_stateful_set,
        warnings=_stateful_set_warnings,
        check=_check_stateful_set,
        check_status=status_check("currentReplicas", "updatedReplicas"),
    ),
    "ControllerRevision": Rules(check=_check_revision),
    "PodTemplate": Rules(
        has_generation=True,
        default=_default_pod_template,
        check=_check_pod_template,
        warnings=lambda obj: template_warnings(obj.template, "template"),
    ),
}
