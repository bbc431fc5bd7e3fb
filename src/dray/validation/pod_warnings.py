"""What is accepted in a pod although it can hardly be meant."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from dray.api.generated.core import (
    Affinity,
    Container,
    ContainerPort,
    EnvVar,
    NodeAffinity,
    Pod,
    PodAffinityTerm,
    PodSpec,
    PodTemplateSpec,
)
from dray.api.meta import ObjectMeta
from dray.api.sharing import remembered
from dray.validation import names
from dray.validation.volume_warnings import fractions, volume_warnings

_HOST_NAME_LENGTH: Final = 63
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
_NO_SYSCTLS: Final = 'non-functional in v1.11+; use the "sysctls" field instead'
_OLD_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": _NO_SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _NO_SYSCTLS,
    "container.apparmor.security.beta.kubernetes.io/": _OLD_APP_ARMOR,
    "seccomp.security.alpha.kubernetes.io/pod": _NO_SECCOMP,
    "container.seccomp.security.alpha.kubernetes.io/": _NO_SECCOMP,
}
"""By how they begin."""
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
_NO_GRACE: Final = "must be >= 0; negative values are invalid and will be treated as 1"


def pod_warnings(pod: Pod) -> list[str]:
    """The texts for `Warning` headers."""
    why = "this is used in the Pod's hostname, which can result in surprising behavior"
    return [*_host_name(pod.metadata.name, why), *_old_annotations(pod.metadata, ""), *_spec_warnings(pod.spec, "")]


def template_warnings(template: PodTemplateSpec, path: str) -> list[str]:
    """The same for the pods that will be made from a template."""
    return [*_old_annotations(template.metadata, f"{path}."), *_spec_warnings(template.spec, f"{path}.")]


def owner_warnings(name: str) -> list[str]:
    """About the name of a workload, which begins those of its pods."""
    return _host_name(name, "this is used in Pod names and hostnames, which can result in surprising behavior")


def _old_annotations(metadata: ObjectMeta, above: str) -> list[str]:
    """Annotations that became fields."""
    return [
        f"{above}metadata.annotations[{key}]: {problem}"
        for key in metadata.annotations
        for start, problem in _OLD_ANNOTATIONS.items()
        if key.startswith(start)
    ]


@remembered
def _spec_warnings(spec: PodSpec, above: str) -> tuple[str, ...]:
    path = f"{above}spec"
    found = [
        f"{path}.nodeSelector[{key}]: {problem}" for key in spec.node_selector if (problem := _old_label_problem(key))
    ]
    if spec.affinity is not None:
        found += _affinity(spec.affinity, f"{path}.affinity")
    for index, constraint in enumerate(spec.topology_spread_constraints):
        where = f"{path}.topologySpreadConstraints[{index}]"
        if problem := _old_label_problem(constraint.topology_key):
            found.append(f"{where}.topologyKey: {constraint.topology_key} is {problem}")
        if constraint.label_selector is None:
            found.append(f"{where}.labelSelector: {_NO_SELECTOR}")
    found += volume_warnings(spec.volumes, f"{path}.volumes")
    found += _names(spec, path)
    containers = [
        (f"{path}.{field}[{index}]", container)
        for field, given in (("initContainers", spec.init_containers), ("containers", spec.containers))
        for index, container in enumerate(given)
    ]
    for where, container in containers:
        found += _container(container, where)
    ports = [
        (f"{where}.ports[{index}]", port)
        for where, container in containers
        for index, port in enumerate(container.ports)
    ]
    found += _ports(ports)
    if spec.overhead:
        found += fractions(spec.overhead, f"{path}.overhead", _IN_BYTES)
    if (spec.termination_grace_period_seconds or 0) < 0:
        found.append(f"{path}.terminationGracePeriodSeconds: {_NO_GRACE}")
    return tuple(found)


def _host_name(name: str, why: str) -> list[str]:
    """A name is a DNS subdomain; as the name of a host it may be too long or have dots."""
    problems = ["must be no more than 63 characters"] if len(name) > _HOST_NAME_LENGTH else []
    if "." in name:
        problems.append("must not contain dots")
    if not problems:
        return []
    return [f"metadata.name: {why}; a DNS label is recommended: [{' '.join(problems)}]"]


def _old_label_problem(key: str) -> str:
    since, instead = _OLD_LABELS.get(key, ("", ""))
    return f'deprecated since {since}; use "{instead}" instead' if since else ""


def _names(spec: PodSpec, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, reference in enumerate(spec.image_pull_secrets):
        if reference.name in seen:
            yield f'{path}.imagePullSecrets[{index}].name: duplicate name "{reference.name}"'
        if not reference.name:
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'
        seen.add(reference.name)
    addresses: set[str] = set()
    for index, alias in enumerate(spec.host_aliases):
        if alias.ip in addresses:
            yield f'{path}.hostAliases[{index}].ip: duplicate ip "{alias.ip}"'
        addresses.add(alias.ip)
        yield from _address(alias.ip, f"{path}.hostAliases[{index}].ip")
    for index, server in enumerate(spec.dns_config.nameservers if spec.dns_config is not None else ()):
        yield from _address(server, f"{path}.dnsConfig.nameservers[{index}]")


def _address(given: str, path: str) -> Iterator[str]:
    """Addresses that are understood although nobody should write them so."""
    parts = given.split(".")
    if len(parts) == 4 and all(part.isdecimal() for part in parts):
        plain = ".".join(str(int(part[:9])) for part in parts)
        if plain != given:
            yield f'{path}: non-standard IP address "{given}" is invalid: use "{plain}"'
        return
    try:
        address = ipaddress.IPv6Address(given)
    except ValueError:
        return
    if address.ipv4_mapped is not None:
        yield f'{path}: non-standard IP address "{given}" is invalid: use "{address.ipv4_mapped}"'
    elif str(address) != given:
        yield f'{path}: IPv6 address "{given}" should be in RFC 5952 canonical format ("{address}")'


def _container(container: Container, path: str) -> Iterator[str]:
    yield from fractions(container.resources.limits, f"{path}.resources.limits", _IN_BYTES)
    yield from fractions(container.resources.requests, f"{path}.resources.requests", _IN_BYTES)
    seen: set[str] = set()
    for index, variable in enumerate(container.env):
        if variable.name in seen and _hides(variable):
            where = f"{path}.env[{index}]"
            yield f'{where}: hides previous definition of "{variable.name}", which may be dropped when using apply'
        seen.add(variable.name)


def _hides(variable: EnvVar) -> bool:
    """Whether nothing is left of the earlier value: one may be made longer."""
    earlier = f"$({variable.name})"
    return variable.value_from is not None or variable.value == earlier or earlier not in variable.value


def _ports(ports: list[tuple[str, ContainerPort]]) -> Iterator[str]:
    """Ports that cannot both be meant; those with different ports on the host can. Each is told of one other."""
    seen: dict[tuple[object, ...], str] = {}
    named: dict[str, str] = {}
    for where, port in ports:
        inside, host, address = (port.container_port, port.protocol), port.host_port or 0, port.host_ip
        if address and not host:
            told = f"{{Name:{port.name} HostPort:0 ContainerPort:{inside[0]} Protocol:{inside[1]} HostIP:{address}}}"
            yield f"{where}: hostIP set without hostPort: {told}"
        ambiguous = (inside, "at", host, "*") if not address else (inside, "at", host, "")
        for problem, key in (
            ("duplicate", (inside, host, address)),
            ("overlapping", (inside, "any") if not host else (inside, "inside")),
            ("dangerously ambiguous", ambiguous),
        ):
            if key in seen:
                yield f"{where}: {problem} port definition with {seen[key]}"
                break
        seen.setdefault((inside, host, address), where)
        seen.setdefault((inside, "any"), where)
        seen.setdefault((inside, "at", host, "*" if address else ""), where)
        if not host:
            seen.setdefault((inside, "inside"), where)
        if port.name in named:
            first = named[port.name]
            told = f"services and probes that select ports by name will use {first}"
            yield f'{where}: duplicate port name "{port.name}" with {first}, {told}'
        elif port.name:
            named[port.name] = where


def _affinity(affinity: Affinity, path: str) -> Iterator[str]:
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
        (f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]", term, False)
        for index, term in enumerate(required.node_selector_terms if required is not None else ())
    ]
    terms += [
        (f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}].preference", weighted.preference, True)
        for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution)
    ]
    for where, term, is_wish in terms:
        for index, expression in enumerate(term.match_expressions):
            for position, value in enumerate(expression.values if is_wish else ()):
                for wrong in names.label_value(value):
                    yield f"{where}.matchExpressions[{index}].values[{position}]: {value} is invalid, {wrong}"
            if problem := _old_label_problem(expression.key):
                yield f"{where}.matchExpressions[{index}].key: {expression.key} is {problem}"
