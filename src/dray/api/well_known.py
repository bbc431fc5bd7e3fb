"""Names that everybody knows a thing by, and that belong to no single kind."""

from __future__ import annotations

from typing import Final

SYSTEM_NAMESPACE: Final = "kube-system"
LEASE_NAMESPACE: Final = "kube-node-lease"
"""Where nodes renew their leases."""
DEFAULT_SCHEDULER: Final = "default-scheduler"
DRAY_SCHEDULER: Final = "dray-scheduler"
"""What `dray install` calls its scheduler beside kube-scheduler, unless another name is set."""
"""What pods name that name none."""
FOREGROUND_DELETION: Final = "foregroundDeletion"
"""The finalizer of an object that goes after what it owns."""
CLAIM_FINALIZER: Final = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER: Final = "kubernetes.io/pv-protection"
"""The finalizers of volumes and their claims, which go when nobody uses them."""
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label that every namespace has its name in."""
SERVICE_NAME: Final = "kubernetes.io/service-name"
"""The label of an EndpointSlice that says whose it is."""
HOSTNAME: Final = "kubernetes.io/hostname"
"""The label that every node has its name in."""
NAME_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What made-up ends of names are made of: no vowels, so no words."""
FREE_DEVICES: Final = "free.devices.dray.dev/"
TOTAL_DEVICES: Final = "total.devices.dray.dev/"
"""With a class behind them, the claims by which a cluster tells a hub of its devices."""
