"""What is not installed by default, and how to get it: `pip install 'dray[node]'` and the like.

Packages that need an extra ask for it first thing, so that whoever lacks it is told what to install, and not which
module could not be found.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

MODULES: Final = {"node": "grpc", "driver": "grpc", "etcd": "grpc"}
"""The module that each extra brings."""


class MissingExtra(ImportError):
    """Something needs an extra that is not installed; the message says which, and what to run."""


def need(extra: str, who: str) -> None:
    """Makes sure that an extra is there, for what is to be named in the message; MissingExtra if it is not."""
    module = MODULES[extra]
    if find_spec(module) is None:
        raise MissingExtra(f"{who} needs what is not installed. Run: pip install 'dray[{extra}]'", name=module)
