"""What of a pod the process runtime does not do, so that it is said and not silently left out. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dray.api.generated.core import Container, Pod, PodSpec
from dray.pod_admission.service_account import ACCESS_VOLUME

MESSAGE_FILE: Final = "/dev/termination-log"
FROM_FILE: Final = "File"
"""What containers have that say nothing of messages."""


def features(pod: Pod, container: Container) -> Iterator[str]:
    """The features of a container that have no effect on a local process."""
    yield from _of_pod(pod.spec)
    mounts = [mount.name for mount in container.volume_mounts if not mount.name.startswith(ACCESS_VOLUME)]
    mounts += [device.name for device in container.volume_devices]
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
    lifecycle = container.lifecycle
    if lifecycle is not None and (lifecycle.post_start or lifecycle.pre_stop):
        yield "lifecycle handlers are not run"
    if lifecycle is not None and lifecycle.stop_signal:
        yield f"stopSignal {lifecycle.stop_signal} is not sent: the container is asked to end with SIGTERM"
    if container.restart_policy_rules:
        yield "restartPolicyRules: whether the container runs again depends on its restartPolicy alone"
    path, policy = container.termination_message_path, container.termination_message_policy
    if path not in ("", MESSAGE_FILE) or policy not in ("", FROM_FILE):
        yield "terminationMessagePath and terminationMessagePolicy: no message is read when the container ends"
    moved = [port.host_port for port in container.ports if port.host_port not in (0, port.container_port)]
    if moved:
        yield f"hostPort: nothing is forwarded from {', '.join(map(str, moved))}"
    limits = {**container.resources.limits, **(pod.spec.resources.limits if pod.spec.resources else {})}
    own = sorted(name for name in limits if "/" not in name)  # those of devices have the name of a driver's domain
    if own:
        yield f"limits are not enforced ({', '.join(own)})"


def _of_pod(spec: PodSpec) -> Iterator[str]:
    if spec.share_process_namespace:
        yield "shareProcessNamespace: processes of the other containers are not seen"
    if spec.host_aliases:
        yield "hostAliases: /etc/hosts is the machine's"
    if spec.dns_config is not None or spec.dns_policy == "None":
        yield "dnsConfig: names are looked up as the machine does"
    if spec.set_hostname_as_fqdn:
        yield "setHostnameAsFQDN: the host name is without a domain"


def debuggers(pod: Pod) -> str:
    """What is said of ephemeral containers, which come while a pod runs; empty if it has none."""
    names = ", ".join(one.name for one in pod.spec.ephemeral_containers)
    told = f"ephemeral containers are not started ({names}): kubectl exec runs commands beside a container"
    return told if names else ""
