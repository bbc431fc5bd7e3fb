"""Which labels a node may give itself: not those that would draw workloads to it which an admin keeps apart."""

from __future__ import annotations

from collections.abc import Mapping

_OWN_LABELS = frozenset(
    {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    }
)
_OWN_PREFIXES = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED_PREFIX = "node-restriction.kubernetes.io"
_KUBERNETES_PREFIXES = ("kubernetes.io", "k8s.io")


def forbidden_labels(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The labels that differ between old and new although the node may not change them."""
    changed = {key for key in (*old, *new) if old.get(key) != new.get(key)}
    return sorted(key for key in changed if _is_forbidden(key))


def _is_forbidden(key: str) -> bool:
    prefix = key.partition("/")[0] if "/" in key else ""
    if _under(prefix, (_RESTRICTED_PREFIX,)):
        return True
    return _under(prefix, _KUBERNETES_PREFIXES) and key not in _OWN_LABELS and not _under(prefix, _OWN_PREFIXES)


def _under(prefix: str, domains: tuple[str, ...]) -> bool:
    return any(prefix == domain or prefix.endswith(f".{domain}") for domain in domains)
