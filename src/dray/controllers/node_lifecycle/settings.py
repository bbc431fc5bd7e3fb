"""How patient the node lifecycle controller is. Defaults as in Kubernetes."""

from __future__ import annotations

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds, rates in nodes per second."""

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
