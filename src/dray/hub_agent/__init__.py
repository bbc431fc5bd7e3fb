"""A cluster as a member of a hub's fleet: it joins, renews its lease there and reports what it has.

    Access (join, own identity) ─▶ Agent ─┬─ lease, every `leaseDurationSeconds`
    Observer (nodes, devices by class) ───┴─ status: capacity, version, claims; when it changed, at most every 2 s

`report` and `device_counts` are pure. Talks to the hub only through its API.
"""

from dray.hub_agent.access import Access, Membership
from dray.hub_agent.agent import Agent
from dray.hub_agent.observer import Observer

__all__ = ["Access", "Agent", "Membership", "Observer"]
