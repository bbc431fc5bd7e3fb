"""Container Device Interface: what must change in a container so that it can use a device.

    names      qualified ids: vendor/class=name
    spec       the types, and reading them from JSON or YAML
    rules      what makes a spec valid, and the oldest version that can express it
    cache      all specs in the directories of a node; the edits that a list of ids means
    files      writing and removing spec files, all or nothing

A driver writes specs and answers with ids; a node looks ids up and applies the edits. May import
`dray.files` and `dray.api`; does file I/O.
"""

from dray.cdi.cache import Cache
from dray.cdi.errors import CdiError
from dray.cdi.files import remove_spec, write_spec
from dray.cdi.names import DeviceId, is_vendor_of, qualify
from dray.cdi.rules import minimum_version, validate
from dray.cdi.spec import (
    CdiDevice,
    ContainerEdits,
    DeviceNode,
    Hook,
    IntelRdt,
    Mount,
    NetDevice,
    Spec,
    parse,
)

__all__ = [
    "Cache",
    "CdiDevice",
    "CdiError",
    "ContainerEdits",
    "DeviceId",
    "DeviceNode",
    "Hook",
    "IntelRdt",
    "Mount",
    "NetDevice",
    "Spec",
    "is_vendor_of",
    "minimum_version",
    "parse",
    "qualify",
    "remove_spec",
    "validate",
    "write_spec",
]
