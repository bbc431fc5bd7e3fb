"""The labels of a namespace about Pod Security, acted upon: pods are refused, noted in the audit log, or warned of."""

from __future__ import annotations

from dray.api.generated.apps import DaemonSet, Deployment, ReplicaSet, StatefulSet
from dray.api.generated.batch import CronJob, Job
from dray.api.generated.core import Namespace, Pod, PodTemplate, PodTemplateSpec, ReplicationController
from dray.api.kinds import PODS, WITH_TEMPLATES_OF_PODS
from dray.api.meta import Object
from dray.api.pods import containers_of
from dray.pod_admission.security import policy, standards
from dray.pod_admission.security.policy import FREE, PREFIX, PRIVILEGED, Policy
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine


class PodSecurity(Plugin):
    """Holds pods to what is enforced; whoever writes a workload only hears what would become of its pods."""

    switch = "PodSecurity"
    kinds = frozenset({"Pod", "Namespace", *WITH_TEMPLATES_OF_PODS})
    parts = frozenset({"", "ephemeralcontainers", "resize"})

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Raises ApiError for a pod that is not allowed, and for labels that nobody understands."""
        if new is None:
            return
        if isinstance(new, Namespace):
            self._check_namespace(engine, call, new, old)
            return
        namespace = engine.namespace(call.route.namespace)
        if namespace is None:
            return
        wanted, _ = policy.read(namespace.metadata)
        if wanted is FREE or wanted.is_free:
            return
        if isinstance(new, Pod):
            if not isinstance(old, Pod) or _has_other_images(new, old):
                self._check_pod(call, new, wanted)
        elif not call.route.subresource and (template := _template(new)) is not None:
            _tell(call, template, wanted)

    def _check_pod(self, call: Call, pod: Pod, wanted: Policy) -> None:
        call.annotations[f"{PREFIX}enforce-policy"] = str(wanted.enforce)
        found = standards.violations(pod.spec, pod.metadata.annotations, wanted.enforce)
        if found:
            why = f'violates PodSecurity "{wanted.enforce}": {standards.in_words(found)}'
            raise errors.forbidden(call.route.kind, pod.metadata.name, why)
        _tell(call, pod, wanted)

    def _check_namespace(self, engine: Engine, call: Call, new: Namespace, old: Object | None) -> None:
        wanted, problems = policy.read(new.metadata)
        before, known = policy.read(old.metadata) if old is not None else (Policy(), ())
        if problems and problems != known:
            raise errors.invalid(call.route.kind, new.metadata.name, problems)
        if old is not None and policy.is_stricter(wanted.enforce, before.enforce):
            pods = (record.obj for record in engine.store.list(PODS.resource, new.metadata.name).records)
            call.warnings += standards.warnings_about(pods, new.metadata.name, wanted.enforce)


def _tell(call: Call, pod: Pod | PodTemplateSpec, wanted: Policy) -> None:
    """Notes and warns of what would be forbidden."""
    if pod.spec is None:
        return
    if wanted.audit.level != PRIVILEGED:
        found = standards.violations(pod.spec, pod.metadata.annotations, wanted.audit)
        if found:
            text = f'would violate PodSecurity "{wanted.audit}": {standards.in_words(found)}'
            call.annotations[f"{PREFIX}audit-violations"] = text
    found = standards.violations(pod.spec, pod.metadata.annotations, wanted.warn)
    if found:
        call.warnings.append(f'would violate PodSecurity "{wanted.warn}": {standards.in_words(found)}')


def _template(workload: Object) -> PodTemplateSpec | None:
    """What the pods of a workload are made from."""
    match workload:
        case PodTemplate():
            return workload.template
        case CronJob():
            job = workload.spec.job_template.spec
            return None if job is None else job.template
        case ReplicaSet() | Deployment() | DaemonSet() | StatefulSet() | Job() | ReplicationController():
            return workload.spec.template
    return None


def _has_other_images(new: Pod, old: Pod) -> bool:
    """Whether what runs in a pod changes: of its containers only that may, and ephemeral ones may come."""

    def images(pod: Pod) -> list[tuple[str, str]]:
        every = containers_of(pod.spec)
        return [(one.name, one.image) for one in every] + [
            (one.name, one.image) for one in pod.spec.ephemeral_containers
        ]

    return images(new) != images(old)
