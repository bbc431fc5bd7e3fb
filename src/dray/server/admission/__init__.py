"""Admission: what may change or refuse a write after it was decoded and before it is stored.

Each plugin is a class; `Chain` runs them in order, `default_chain` has those of every server. Plugins look at stored
objects through the engine and raise ApiError to refuse.
"""

from dray.server.admission.chain import Chain, Plugin
from dray.server.admission.default_chain import default_chain

__all__ = ["Chain", "Plugin", "default_chain"]
