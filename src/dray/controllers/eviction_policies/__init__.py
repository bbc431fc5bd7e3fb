"""Asking eviction policies, and doing what they say: for both eviction controllers (3902-21).

    pod that must leave ─▶ Desk ─▶ Decider: built in, a plugin (entry point), or a webhook ─▶ Decision
                             └─▶ delete, evict, force, put off or keep; said in events, a condition and metrics

What a policy is and what it is told is in `dray.eviction.policy`. Who leaves, when and how fast is not decided here.
"""

from dray.controllers.eviction_policies.desk import Desk, Later, Left, Outcome, Stays
from dray.controllers.eviction_policies.sources import ENTRY_POINTS, check_settings, open_desk

__all__ = ["ENTRY_POINTS", "Desk", "Later", "Left", "Outcome", "Stays", "check_settings", "open_desk"]
