"""Tells where the pods of a Service are: in EndpointSlices, and in the older Endpoints, by a controller each.

`targets` works out which pods answer for a Service at which ports, `slices` and `subsets` put that into objects (pure);
`members` follows Services and the pods that they select, and both controllers build on it.
"""

from dray.controllers.endpoints.endpoint_slices import EndpointSliceController
from dray.controllers.endpoints.old_endpoints import EndpointsController

__all__ = ["EndpointSliceController", "EndpointsController"]
