"""What is accepted in a pod although it can hardly be meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dray.api.generated.core import Affinity, Container, NodeAffinity, Pod, PodAffinityTerm, PodSpec
from dray.api.quantity import Quantity
from dray.api.sharing import remembered

_HOST_NAME_LENGTH: Final = 63
_NANOS: Final = 10**9
_IN_BYTES: Final = ("memory", "ephemeral-storage")
_OLD_LABELS: Final = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
}
_OLD_APP_ARMOR: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_NO_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_OLD_ANNOTATIONS: Final = {
    "container.apparmor.security.beta.kubernetes.io/": _OLD_APP_ARMOR,
    "seccomp.security.alpha.kubernetes.io/pod": _NO_SECCOMP,
    "container.seccomp.security.alpha.kubernetes.io/": _NO_SECCOMP,
}
"""By how they begin."""
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"


def pod_warnings(pod: Pod) -> list[str]:
    """The texts for `Warning` headers."""
    return [*_host_name(pod.metadata.name), *_old_annotations(pod), *_spec_warnings(pod.spec)]


def _old_annotations(pod: Pod) -> list[str]:
    """Annotations that became fields."""
    return [
        f"metadata.annotations[{key}]: {problem}"
        for key in pod.metadata.annotations
        for start, problem in _OLD_ANNOTATIONS.items()
        if key.startswith(start)
    ]


@remembered
def _spec_warnings(spec: PodSpec) -> tuple[str, ...]:
    found = [
        f"spec.nodeSelector[{key}]: {problem}" for key in spec.node_selector if (problem := _old_label_problem(key))
    ]
    if spec.affinity is not None:
        found += _affinity(spec.affinity)
    for index, constraint in enumerate(spec.topology_spread_constraints):
        where = f"spec.topologySpreadConstraints[{index}]"
        if problem := _old_label_problem(constraint.topology_key):
            found.append(f"{where}.topologyKey: {constraint.topology_key} is {problem}")
        if constraint.label_selector is None:
            found.append(f"{where}.labelSelector: {_NO_SELECTOR}")
    found += _names(spec)
    for field, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            found += _container(container, f"spec.{field}[{index}]")
    found += _ports(spec.containers)
    if spec.overhead:
        found += _fractions(spec.overhead, "spec.overhead")
    return tuple(found)


def _host_name(name: str) -> list[str]:
    """A name is a DNS subdomain; as the name of a host it may be too long or have dots."""
    problems = ["must be no more than 63 characters"] if len(name) > _HOST_NAME_LENGTH else []
    if "." in name:
        problems.append("must not contain dots")
    if not problems:
        return []
    why = "this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: {why}: [{' '.join(problems)}]"]


def _old_label_problem(key: str) -> str:
    since, instead = _OLD_LABELS.get(key, ("", ""))
    return f'deprecated since {since}; use "{instead}" instead' if since else ""


def _names(spec: PodSpec) -> Iterator[str]:
    seen: set[str] = set()
    for index, reference in enumerate(spec.image_pull_secrets):
        if not reference.name:
            yield f'spec.imagePullSecrets[{index}].name: invalid empty name ""'
        elif reference.name in seen:
            yield f'spec.imagePullSecrets[{index}].name: duplicate name "{reference.name}"'
        seen.add(reference.name)
    addresses: set[str] = set()
    for index, alias in enumerate(spec.host_aliases):
        if alias.ip in addresses:
            yield f'spec.hostAliases[{index}].ip: duplicate ip "{alias.ip}"'
        addresses.add(alias.ip)


def _container(container: Container, path: str) -> Iterator[str]:
    yield from _fractions(container.resources.limits, f"{path}.resources.limits")
    yield from _fractions(container.resources.requests, f"{path}.resources.requests")
    seen: set[str] = set()
    for index, variable in enumerate(container.env):
        if variable.name in seen:
            where = f"{path}.env[{index}]"
            yield f'{where}: hides previous definition of "{variable.name}", which may be dropped when using apply'
        seen.add(variable.name)


def _fractions(amounts: Mapping[str, Quantity], path: str) -> Iterator[str]:
    for name in _IN_BYTES:
        amount = amounts.get(name)
        if amount is not None and amount.nanos % _NANOS:
            yield f'{path}[{name}]: fractional byte value "{amount}" is invalid, must be an integer'


def _ports(containers: tuple[Container, ...]) -> Iterator[str]:
    """Ports that cannot both be meant; those with different ports on the host can."""
    seen: dict[tuple[int, int, str, str], str] = {}
    for at, container in enumerate(containers):
        for index, port in enumerate(container.ports):
            where = f"spec.containers[{at}].ports[{index}]"
            key = (port.container_port, port.host_port or 0, port.host_ip, port.protocol)
            if key in seen:
                yield f"{where}: duplicate port definition with {seen[key]}"
            seen.setdefault(key, where)


def _affinity(affinity: Affinity) -> Iterator[str]:
    path = "spec.affinity"
    if affinity.node_affinity is not None:
        yield from _node_affinity(affinity.node_affinity, f"{path}.nodeAffinity")
    required, preferred = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
    for field, given in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if given is None:
            continue
        for index, term in enumerate(given.required_during_scheduling_ignored_during_execution):
            yield from _pod_term(term, f"{path}.{field}.{required}[{index}]")
        for index, weighted in enumerate(given.preferred_during_scheduling_ignored_during_execution):
            yield from _pod_term(weighted.pod_affinity_term, f"{path}.{field}.{preferred}[{index}].podAffinityTerm")


def _pod_term(term: PodAffinityTerm, path: str) -> Iterator[str]:
    if term.label_selector is None:
        yield f"{path}.labelSelector: {_NO_SELECTOR}"


def _node_affinity(affinity: NodeAffinity, path: str) -> Iterator[str]:
    required = affinity.required_during_scheduling_ignored_during_execution
    terms = [
        (f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]", term)
        for index, term in enumerate(required.node_selector_terms if required is not None else ())
    ]
    terms += [
        (f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}].preference", weighted.preference)
        for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution)
    ]
    for where, term in terms:
        for index, expression in enumerate(term.match_expressions):
            if problem := _old_label_problem(expression.key):
                yield f"{where}.matchExpressions[{index}].key: {expression.key} is {problem}"
