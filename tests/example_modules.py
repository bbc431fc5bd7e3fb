"""The examples, as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Final

EXAMPLES: Final = Path(__file__).parents[1] / "examples"


def load(folder: str, name: str) -> ModuleType:
    """An example in a folder of examples."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
