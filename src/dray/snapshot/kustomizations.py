"""What files are to the Kustomizations above them: patches, settings, and what becomes data of ConfigMaps.

None of these is a manifest, though many look like one: a patch has a kind, a name, and little else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dray.snapshot.files import InputError, read

NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_RENDERED: Final = "; check what `kubectl kustomize` makes of it"
_PATCH: Final = f"a patch of a Kustomization{_RENDERED}"
_SETTINGS: Final = f"settings of a Kustomization{_RENDERED}"
_DATA: Final = "a file that a Kustomization makes a ConfigMap or Secret of"
_VALUES: Final = "values of a Helm chart"
_ROLES: Final = {
    "patches": _PATCH,
    "patchesStrategicMerge": _PATCH,
    "patchesJson6902": _PATCH,
    "replacements": _SETTINGS,
    "configurations": _SETTINGS,
    "transformers": _SETTINGS,
    "generators": _SETTINGS,
    "validators": _SETTINGS,
    "configMapGenerator": _DATA,
    "secretGenerator": _DATA,
    "helmCharts": _VALUES,
}
_FILES: Final = ("path", "env", "envs", "files", "valuesFile", "additionalValuesFiles")
"""Where entries of these lists name files, if they are not names themselves."""


class Kustomizations:
    """Kustomizations of a run, each read once."""

    def __init__(self) -> None:
        self._roles: dict[Path, dict[Path, str]] = {}

    def what_is(self, path: Path) -> str:
        """What a file is to a Kustomization in its folder or one above it; empty if none names it, or as a resource."""
        whole = _whole(path)
        for folder in whole.parents:
            roles = self._roles.get(folder)
            if roles is None:
                roles = self._roles[folder] = dict(_read_roles(folder))
            if whole in roles:
                return roles[whole]
        return ""


def _whole(path: Path) -> Path:
    """Where a file really is; links that lead nowhere stay as they are."""
    return Path(os.path.realpath(path))


def _read_roles(folder: Path) -> Iterator[tuple[Path, str]]:
    for name in NAMES:
        if (folder / name).is_file():
            try:
                documents = [item.value for item in read([str(folder / name)])]
            except InputError:
                return
            for value in documents:
                if isinstance(value, dict):
                    yield from _roles(folder, value)


def _roles(folder: Path, value: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for field, role in _ROLES.items():
        for name in _names(value.get(field)):
            yield _whole(folder / name), role
    for name in _names(value.get("resources")):
        yield _whole(folder / name), ""


def _names(value: Any) -> Iterator[str]:
    """Files that a list names: as words, or in fields of its entries. `key=file` is a file under another name."""
    if isinstance(value, str):
        if value and "\n" not in value and "\0" not in value:
            yield value.rpartition("=")[2]
    elif isinstance(value, list):
        for one in value:
            if isinstance(one, dict):
                for field in _FILES:
                    yield from _names(one.get(field))
            else:
                yield from _names(one)
