"""dray: a control plane for devices, behind the Kubernetes API.

The library in five names; each is imported when first used, so that `import dray` is quick:

    snap = dray.load("cluster/", "claims.yaml")     a cluster as a value: allocate, explain, what if
    dray.validate(obj)                              what an API server would say of a manifest
    dray.default(obj), dray.convert(obj, version)   what it would store, and in other versions
    dray.cel.compile(expression)                    device selectors
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dray import cel
    from dray.snapshot import Snapshot, load
    from dray.validation import convert, default, validate

__version__ = "0.1.0"

__all__ = ["Snapshot", "__version__", "cel", "convert", "default", "load", "validate"]

_HOMES = {
    "cel": "dray.cel",
    "convert": "dray.validation",
    "default": "dray.validation",
    "load": "dray.snapshot",
    "Snapshot": "dray.snapshot",
    "validate": "dray.validation",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dray' has no attribute {name!r}")
    module = import_module(home)
    return module if home == f"dray.{name}" else getattr(module, name)
