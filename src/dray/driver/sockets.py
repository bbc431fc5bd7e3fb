"""Where a driver listens: in the registry directory for the node to find it, in its own directory to be called."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from dray.plugins.unix import LONGEST_PATH

REGISTRY_DIR: Final = Path("/var/lib/kubelet/plugins_registry")
PLUGINS_DIR: Final = Path("/var/lib/kubelet/plugins")


def registration_socket(registry_dir: Path, driver: str, instance: str = "") -> Path:
    """The socket that the node looks for. Two instances of a driver (rolling update) have one each.

    A path that is too long for a socket gets a hash instead of the instance, and of the driver's name if need be.
    """
    names = [f"{driver}-{instance}-reg.sock" if instance else f"{driver}-reg.sock"]
    names += [f"{driver}-{_hash(instance)}-reg.sock"] if instance else []
    names.append(f"{_hash(driver + instance)}-reg.sock")
    return next((registry_dir / name for name in names if _fits(registry_dir / name)), registry_dir / names[-1])


def dra_socket(plugin_dir: Path, instance: str = "") -> Path:
    """The socket that the node calls."""
    path = plugin_dir / (f"dra-{instance}.sock" if instance else "dra.sock")
    return path if _fits(path) or not instance else plugin_dir / f"dra-{_hash(instance)}.sock"


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= LONGEST_PATH


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]
