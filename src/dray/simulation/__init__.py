"""Simulated nodes: machines with devices that exist only in the API, for trying things out and for tests of scale.

    profile (YAML) ─▶ templates ─▶ publication: Node, ResourceSlices ─▶ registration: what the server lacks is written
    Node, Pod, ResourceClaim informers ─▶ Simulator ─▶ pod_lifecycle.plan ─▶ pod status, events, deletion
                                              └─▶ heartbeats: a Lease per node, renewed in turn

Everything goes through the client; plans are pure functions of objects and the time. May import `dray.reconcile` and
below.
"""

from dray.simulation.profile import Profile
from dray.simulation.profile_files import ProfileError, load_profile, shipped_profiles
from dray.simulation.registration import Registration, register
from dray.simulation.simulator import Simulator

__all__ = [
    "Profile",
    "ProfileError",
    "Registration",
    "Simulator",
    "load_profile",
    "register",
    "shipped_profiles",
]
