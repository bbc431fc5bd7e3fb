"""The pod of a DaemonSet for a node, and whether it is made from the current template. Pure."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dray.api.generated.apps import DaemonSet
from dray.api.generated.core import Pod
from dray.controllers.pod_templates import pod_from
from dray.controllers.revision_history import HASH
from dray.scheduling.daemon_nodes import spec_for
from dray.validation.workloads import TEMPLATE_GENERATION

GENERATION: Final = "pod-template-generation"


def pod_for(daemon_set: DaemonSet, node: str, digest: str) -> Pod:
    """The pod for a node, labelled with the template that it is made from."""
    pod = pod_from(daemon_set, daemon_set.spec.template)
    labels = {**pod.metadata.labels, HASH: digest}
    generation = template_generation(daemon_set)
    if generation:
        labels[GENERATION] = generation
    return replace(pod, metadata=replace(pod.metadata, labels=labels), spec=spec_for(daemon_set, node))


def template_generation(daemon_set: DaemonSet) -> str:
    """How often the template was changed, as the server counts it; empty if it does not."""
    return daemon_set.metadata.annotations.get(TEMPLATE_GENERATION, "")


def is_updated(pod: Pod, digest: str, generation: str) -> bool:
    """Whether a pod was made from the current template, which has a short name and, perhaps, a number."""
    labels = pod.metadata.labels
    return labels.get(HASH) == digest or bool(generation and labels.get(GENERATION) == generation)
