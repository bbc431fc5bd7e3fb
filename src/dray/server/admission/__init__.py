"""Admission: what may change or refuse a write after it was decoded and before it is stored.

Each plugin is a class; `Chain` runs them in order, `default_chain` has those of every server. Plugins look at stored
objects through the engine and raise ApiError to refuse. `dynamic` asks the policies and webhooks that people have
configured; what those mean is in `dray.admission`.
"""

from dray.server.admission.chain import Chain, Plugin
from dray.server.admission.default_chain import default_chain
from dray.server.admission.dynamic import DynamicAdmission

__all__ = ["Chain", "DynamicAdmission", "Plugin", "default_chain"]
