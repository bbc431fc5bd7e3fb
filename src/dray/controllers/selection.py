"""Which controllers to run: the `--controllers` list, as kube-controller-manager reads it (3902-17, 3902-18)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

ALIASES = {
    # 3902-23: all the same thing.
    "taint-manager": "taint-eviction-controller",
    "TaintManager": "taint-eviction-controller",
    "NoExecuteTaintManager": "taint-eviction-controller",
    # What kube-controller-manager called them before.
    "nodelifecycle": "node-lifecycle-controller",
    "garbagecollector": "garbage-collector-controller",
    "namespace": "namespace-controller",
    "podgc": "pod-garbage-collector-controller",
    "resourcequota": "resourcequota-controller",
    "replicaset": "replicaset-controller",
    "deployment": "deployment-controller",
    "daemonset": "daemonset-controller",
    "statefulset": "statefulset-controller",
    "replicationcontroller": "replicationcontroller-controller",
    "job": "job-controller",
    "cronjob": "cronjob-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
    "disruption": "disruption-controller",
    "serviceaccount": "serviceaccount-controller",
    "resource-claim-controller": "resourceclaim-controller",
    "root-ca-cert-publisher": "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation": "clusterrole-aggregation-controller",
    "ephemeral-volume": "ephemeral-volume-controller",
    "persistentvolume-binder": "persistentvolume-binder-controller",
    "pvc-protection": "persistentvolumeclaim-protection-controller",
    "pv-protection": "persistentvolume-protection-controller",
    "endpoint": "endpoints-controller",
    "endpointslice": "endpointslice-controller",
}

ELSEWHERE = frozenset(
    {
        "bootstrap-signer-controller",
        "certificatesigningrequest-approving-controller",
        "certificatesigningrequest-cleaner-controller",
        "certificatesigningrequest-signing-controller",
        "endpointslice-mirroring-controller",
        "horizontal-pod-autoscaler-controller",
        "node-ipam-controller",
        "persistentvolume-expander-controller",
        "service-lb-controller",
        "serviceaccount-token-controller",
        "token-cleaner-controller",
        "ttl-controller",
    }
)
"""Controllers of kube-controller-manager. Switching off one that dray does not run is no mistake."""

OWN = frozenset(
    {"taint-expiry-controller", "managed-cluster-controller", "managed-cluster-set-controller", "placement-controller"}
)
"""Controllers that only dray has."""


class SelectionError(ValueError):
    """A name in the list is no controller's; the message says which there are."""


def select(wanted: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    """Those of the known controllers that a list enables, in their order.

    `*` enables all, a name enables one, `-name` disables one; of several words on one controller the first counts.
    Raises SelectionError.
    """
    everything = False
    words: dict[str, bool] = {}
    for word in wanted:
        if word == "*":
            everything = True
            continue
        enabled = not word.startswith("-")
        name = ALIASES.get(word.removeprefix("-"), word.removeprefix("-"))
        if name not in known and (enabled or name not in ELSEWHERE):
            raise SelectionError(_unknown(word, name, known))
        words.setdefault(name, enabled)
    return tuple(name for name in known if words.get(name, everything))


def _unknown(word: str, name: str, known: Sequence[str]) -> str:
    if name in ELSEWHERE:
        return f"there is no {name} here to enable; there are {', '.join(known)}"
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return f"unknown controller {word!r}{hint}; there are {', '.join(known)}"
