"""Profiles: what kind of machine to simulate. `profile_files` reads them from YAML and checks them."""

from __future__ import annotations

from typing import Any

from msgspec import field

from dray.api.generated.core import Taint
from dray.api.meta import Object
from dray.api.node_selector import NodeSelector
from dray.api.quantity import Quantity
from dray.api.struct import Struct
from dray.validation.documents import read


class NodeTemplate(Struct):
    """What simulated nodes look like, devices aside. `name` has placeholders for what tells nodes apart."""

    name: str = "node-{number}"
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    capacity: dict[str, Quantity] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


class PodBehaviour(Struct):
    """How pods behave on these nodes unless they say otherwise by annotation."""

    start_seconds: float = 0.0
    run_seconds: float | None = None
    stop_seconds: float = 0.0
    exit_code: int = 0


class PoolTemplate(Struct):
    """A pool of devices: of every node, or, with `all_nodes` or `node_selector`, one for the whole cluster.

    The entries of the lists are those of a ResourceSlice with placeholders, and `count` or `each` to repeat them.
    """

    driver: str = field(default_factory=str)
    name: str = ""
    all_nodes: bool = False
    node_selector: NodeSelector | None = None
    shared_counters: tuple[dict[str, Any], ...] = ()
    devices: tuple[dict[str, Any], ...] = ()
    taints: tuple[dict[str, Any], ...] = ()

    @property
    def is_shared(self) -> bool:
        """Whether the devices are reached over the network rather than built into a node."""
        return self.all_nodes or self.node_selector is not None


class Profile(Struct):
    """A kind of simulated machine, and the objects (device classes, mostly) that make its devices usable."""

    name: str = ""
    description: str = ""
    node: NodeTemplate = field(default_factory=NodeTemplate)
    pods: PodBehaviour = field(default_factory=PodBehaviour)
    pools: tuple[PoolTemplate, ...] = ()
    objects: tuple[Any, ...] = ()

    def typed_objects(self) -> tuple[Object, ...]:
        """`objects`, typed, in the version that is stored. Raises InvalidObjectError."""
        return tuple(read(value)[2] for value in self.objects)
