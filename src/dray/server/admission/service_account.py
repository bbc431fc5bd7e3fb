"""Every pod acts as a ServiceAccount of its namespace, and gets what that gives."""

from __future__ import annotations

from msgspec.structs import replace

from dray.api.generated.core import Pod, ServiceAccount
from dray.api.kinds import SERVICE_ACCOUNTS
from dray.api.meta import Object
from dray.api.pods import MIRROR_ANNOTATION
from dray.pod_admission import service_account
from dray.server import errors
from dray.server.admission.chain import Plugin
from dray.server.engine import Call, Engine
from dray.server.security.pod_references import references


class PodServiceAccount(Plugin):
    """Names the account, mounts its token, adds its pull secrets; refuses accounts that there are not.

    Every namespace begins with its account `default` (`verbs.first_account`), so nobody has to wait for it.
    """

    switch = "ServiceAccount"
    kinds = frozenset({"Pod"})
    parts = frozenset({"", "ephemeralcontainers"})

    def mutate(self, engine: Engine, call: Call, new: Object, old: Object | None) -> Object:
        """Completes a new pod. Mirror pods are what their node made them. Raises ApiError."""
        if old is not None or not isinstance(new, Pod) or call.route.subresource:
            return new
        if MIRROR_ANNOTATION in new.metadata.annotations:
            return new
        account = _account(engine, call, new, new.spec.service_account_name or service_account.DEFAULT)
        return replace(new, spec=service_account.equipped(new.spec, account))

    def check(self, engine: Engine, call: Call, new: Object | None, old: Object | None) -> None:
        """Refuses what the account does not allow, and mirror pods that want anything of one. Raises ApiError."""
        if not isinstance(new, Pod):
            return
        if call.route.subresource == "ephemeralcontainers":
            problem = self._problem(engine, call, new, service_account.problem_with_ephemeral_secrets)
        elif old is not None or call.route.subresource:
            return
        elif MIRROR_ANNOTATION in new.metadata.annotations:
            problem = _problem_of_mirror(new)
        else:
            problem = self._problem(engine, call, new, service_account.problem_with_secrets)
        if problem:
            raise errors.forbidden(call.route.kind, new.metadata.name, problem)

    def _problem(self, engine: Engine, call: Call, pod: Pod, find: service_account.FindProblem) -> str:
        name = pod.spec.service_account_name
        if not name:
            return f"no service account specified for pod {call.route.namespace}/{pod.metadata.name}"
        account = _account(engine, call, pod, name)
        return find(pod.spec, account) if service_account.limits_secrets(account) else ""


def _account(engine: Engine, call: Call, pod: Pod, name: str) -> ServiceAccount:
    namespace = call.route.namespace
    found = engine.get(SERVICE_ACCOUNTS.resource, namespace, name)
    if isinstance(found, ServiceAccount):
        return found
    why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
    raise errors.forbidden(call.route.kind, pod.metadata.name, why)


def _problem_of_mirror(pod: Pod) -> str:
    if pod.spec.service_account_name:
        return "a mirror pod may not reference service accounts"
    if any(resource == "secrets" for resource, _ in references(pod)):
        return "a mirror pod may not reference secrets"
    for volume in pod.spec.volumes:
        sources = volume.projected.sources if volume.projected is not None else ()
        if any(source.service_account_token is not None for source in sources):
            return "a mirror pod may not use ServiceAccountToken volume projections"
    return ""
