"""autoscaling/v1, the older shape of HorizontalPodAutoscaler: one target, the use of processors."""

from __future__ import annotations

from msgspec import field

from dray.api.generated.autoscaling import CrossVersionObjectReference
from dray.api.meta import Object
from dray.api.struct import Struct
from dray.api.times import Time


class HorizontalPodAutoscalerSpec(Struct):
    """What is scaled, and how far."""

    max_replicas: int = field(default_factory=int)
    min_replicas: int | None = None
    scale_target_ref: CrossVersionObjectReference = field(default_factory=CrossVersionObjectReference)
    target_cpu_utilization_percentage: int | None = field(default=None, name="targetCPUUtilizationPercentage")


class HorizontalPodAutoscalerStatus(Struct):
    """How far it is."""

    current_cpu_utilization_percentage: int | None = field(default=None, name="currentCPUUtilizationPercentage")
    current_replicas: int = field(default_factory=int)
    desired_replicas: int = field(default_factory=int)
    last_scale_time: Time | None = None
    observed_generation: int | None = None


class HorizontalPodAutoscaler(Object):
    """A workload whose number of pods follows their load."""

    spec: HorizontalPodAutoscalerSpec = field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = field(default_factory=HorizontalPodAutoscalerStatus)
