"""ReplicaSet, Deployment, DaemonSet and StatefulSet: numbers of pods made from a template."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.structs import replace

from dray.api import labels
from dray.api.field import forbidden, invalid, required
from dray.api.generated import apps
from dray.api.generated.core import PodTemplateSpec
from dray.api.meta import LabelSelector
from dray.api.times import Time
from dray.validation import check
from dray.validation.context import Context, Errors
from dray.validation.label_selectors import validate_label_selector
from dray.validation.metadata import validate_annotations, validate_labels, with_metadata
from dray.validation.pod_defaults import default_pod_spec
from dray.validation.pod_spec import validate_pod_spec
from dray.validation.rules import Rules

HISTORY: Final = 10
PROGRESS_SECONDS: Final = 600
_PERCENT: Final = re.compile(r"[0-9]++%")


def default_template(template: PodTemplateSpec) -> PodTemplateSpec:
    """A template with the defaults of its pods."""
    return replace(template, spec=default_pod_spec(template.spec))


def validate_template(errors: Errors, template: PodTemplateSpec, path: str) -> None:
    """A template by itself."""
    validate_labels(errors, template.metadata.labels, f"{path}.labels")
    validate_annotations(errors, template.metadata.annotations, f"{path}.annotations")
    validate_pod_spec(errors, template.spec, f"{path}.spec", is_pod=False)


def validate_int_or_percent(errors: Errors, value: int | str, path: str, *, limited: bool = True) -> None:
    """A number that is not negative, or a share in percent, of at most 100% if `limited`."""
    if isinstance(value, int):
        check.not_negative(errors, path, value)
    elif _PERCENT.fullmatch(value) is None:
        errors.append(invalid(path, value, "must be a whole number or a percentage such as 25%"))
    elif limited and (len(value) > 6 or int(value[:-1]) > 100):
        errors.append(invalid(path, value, "must not be greater than 100%"))


def _default_replica_set(obj: apps.ReplicaSet, _now: Time) -> apps.ReplicaSet:
    spec = obj.spec
    replicas = 1 if spec.replicas is None else spec.replicas
    return replace(obj, spec=replace(spec, replicas=replicas, template=default_template(spec.template)))


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
    if not strategy.type:
        rolling = strategy.rolling_update or apps.RollingUpdateStatefulSetStrategy()
        strategy = replace(strategy, type="RollingUpdate", rolling_update=rolling)
    if strategy.rolling_update is not None and strategy.rolling_update.partition is None:
        strategy = replace(strategy, rolling_update=replace(strategy.rolling_update, partition=0))
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
        ),
    )


def _check(errors: Errors, new: Any, old: Any, _ctx: Context) -> None:
    """What all four have in common: a selector that finds the pods of the template, and pods that run for ever."""
    spec = new.spec
    for field, value in (
        ("replicas", getattr(spec, "replicas", None)),
        ("minReadySeconds", spec.min_ready_seconds),
        ("revisionHistoryLimit", getattr(spec, "revision_history_limit", None)),
    ):
        if value is not None:
            check.not_negative(errors, f"spec.{field}", value)
    _validate_selector(errors, spec.selector, spec.template, "spec")
    validate_template(errors, spec.template, "spec.template")
    if spec.template.spec.restart_policy in ("OnFailure", "Never"):
        check.one_of(errors, "spec.template.spec.restartPolicy", spec.template.spec.restart_policy, ("Always",))
    if spec.template.spec.active_deadline_seconds is not None:
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", "not supported here"))
    if old is not None:
        check.immutable(errors, "spec.selector", spec.selector, old.spec.selector)


def _validate_selector(errors: Errors, selector: LabelSelector | None, template: PodTemplateSpec, path: str) -> None:
    if selector is None:
        errors.append(required(f"{path}.selector"))
        errors.append(invalid(f"{path}.template.metadata.labels", template.metadata.labels, "must match the selector"))
        return
    before = len(errors)
    validate_label_selector(errors, selector, f"{path}.selector")
    if not selector.match_labels and not selector.match_expressions:
        errors.append(invalid(f"{path}.selector", {}, "must not be empty"))
    elif len(errors) == before and not labels.LabelSelector.of(selector).matches(template.metadata.labels):
        where = f"{path}.template.metadata.labels"
        errors.append(invalid(where, template.metadata.labels, "must match the selector"))


def _check_deployment(errors: Errors, new: apps.Deployment, old: apps.Deployment | None, ctx: Context) -> None:
    _check(errors, new, old, ctx)
    spec = new.spec
    check.required_one_of(errors, "spec.strategy.type", spec.strategy.type, ("Recreate", "RollingUpdate"))
    rolling = spec.strategy.rolling_update
    if rolling is not None and spec.strategy.type == "Recreate":
        errors.append(
            forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
        )
    elif rolling is not None:
        path = "spec.strategy.rollingUpdate"
        validate_int_or_percent(errors, rolling.max_unavailable or 0, f"{path}.maxUnavailable")
        validate_int_or_percent(errors, rolling.max_surge or 0, f"{path}.maxSurge", limited=False)
        if rolling.max_unavailable in (0, "0%") and rolling.max_surge in (0, "0%"):
            errors.append(invalid(f"{path}.maxUnavailable", rolling.max_unavailable, "may not be 0 with maxSurge 0"))
    deadline = spec.progress_deadline_seconds
    if deadline is not None:
        check.not_negative(errors, "spec.progressDeadlineSeconds", deadline)
        if deadline <= spec.min_ready_seconds:
            where = "spec.progressDeadlineSeconds"
            errors.append(invalid(where, deadline, "must be greater than minReadySeconds"))


def _change_deployment_status(new: apps.Deployment, old: apps.Deployment, _ctx: Context) -> apps.Deployment:
    """Labels stay; annotations do not: that is how a deployment's revision is written."""
    return with_metadata(new, labels=old.metadata.labels)


RULES: Final = {
    "ReplicaSet": Rules(
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        default=_default_replica_set,
        check=_check,
    ),
    "Deployment": Rules(
        has_generation=True,
        generation_counts_annotations=True,
        has_status=True,
        status_guards_metadata=False,
        default=_default_deployment,
        change_status=_change_deployment_status,
        check=_check_deployment,
    ),
    "DaemonSet": Rules(
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        default=_default_daemon_set,
        check=_check,
    ),
    "StatefulSet": Rules(
        has_generation=True,
        has_status=True,
        status_guards_metadata=False,
        default=_default_stateful_set,
        check=_check,
    ),
}
