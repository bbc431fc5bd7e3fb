"""What of a pod the process runtime does not do, so that it is said and not silently left out. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dray.api.generated.core import Container, Pod
from dray.pod_admission.service_account import ACCESS_VOLUME


def features(pod: Pod, container: Container) -> Iterator[str]:
    """The features of a container that have no effect on a local process."""
    if pod.spec.share_process_namespace:
        yield "shareProcessNamespace: processes of the other containers are not seen"
    mounts = [mount.name for mount in container.volume_mounts if not mount.name.startswith(ACCESS_VOLUME)]
    if mounts:
        yield f"volumes are not mounted ({', '.join(mounts)})"
    probes = [
        name
        for name, probe in (
            ("livenessProbe", container.liveness_probe),
            ("readinessProbe", container.readiness_probe),
            ("startupProbe", container.startup_probe),
        )
        if probe is not None
    ]
    if probes:
        yield f"{', '.join(probes)} not run: the container counts as well while it runs"
    if container.lifecycle is not None and (container.lifecycle.post_start or container.lifecycle.pre_stop):
        yield "lifecycle handlers are not run"
