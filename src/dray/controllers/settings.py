"""What an admin can set about controllers. Defaults as in Kubernetes; `dray.cli.controller_options` reads them."""

from __future__ import annotations

import msgspec

from dray.eviction.settings import EvictionSettings


class NodeLifecycleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How patient the node lifecycle controller is. Times in seconds, rates in nodes per second."""

    monitor_period: float = 5.0
    """How often everybody's health is looked at."""
    grace_period: float = 50.0
    """A node that is not heard of for longer is unreachable."""
    startup_grace_period: float = 60.0
    """The same for a node that has never told its status."""
    taint_rate: float = 0.1
    """How many nodes of a zone get NoExecute taints."""
    secondary_taint_rate: float = 0.01
    """The same in a large zone where many nodes are unhealthy."""
    large_zone: int = 50
    """A zone with more nodes is large; in a smaller one where many are unhealthy no further node is tainted."""
    unhealthy_share: float = 0.55
    """From this share on many nodes of a zone are unhealthy."""


class ControllerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of all controllers."""

    disabled_gates: frozenset[str] = frozenset()
    """Feature gates that are off, those that need them included."""
    enable_no_execute_taint_manager: bool = True
    """Whether the default taint eviction controller runs, unless `--controllers` says something about it (3902-35)."""
    root_certificate: bytes = b""
    """Of the authority that signed the API server's certificate, PEM; empty if it is not known."""
    node_lifecycle: NodeLifecycleSettings = NodeLifecycleSettings()
    eviction: EvictionSettings = EvictionSettings()

    def switched_off(self) -> tuple[str, ...]:
        """Words for the end of a `--controllers` list, where they count only if no word before is on the same one."""
        off = []
        if not self.enable_no_execute_taint_manager:
            off.append("-taint-eviction-controller")
        if "DynamicResourceAllocation" in self.disabled_gates:
            off += ["-resourceclaim-controller", "-device-taint-eviction-controller"]
        elif "DRADeviceTaints" in self.disabled_gates:
            off.append("-device-taint-eviction-controller")
        return tuple(off)
