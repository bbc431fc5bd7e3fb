"""Adds a cluster to the kubeconfig that kubectl uses, under a name of its own; whatever else is in there stays."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any, Final

from dray.files import home

SECTIONS: Final = {"clusters": "cluster", "users": "user", "contexts": "context"}


class MergeError(Exception):
    """The kubeconfig cannot be read or written. The message names it."""


def target() -> Path:
    """Where kubectl would write: the first file of `$KUBECONFIG`, else `~/.kube/config`."""
    named = next(filter(None, os.environ.get("KUBECONFIG", "").split(os.pathsep)), "")
    return Path(named) if named else home.expand("~/.kube/config")


def merge(source: Path, name: str, into: Path) -> None:
    """Puts the one cluster of `source` into another kubeconfig as context, cluster and user `name`.

    The current context is set only where there is none: nobody is moved to another cluster. Raises MergeError.
    """
    added = _read(source)
    there = _read(into) if into.exists() else _empty()
    for section, part in SECTIONS.items():
        content = dict(added[section][0][part])
        if section == "contexts":
            content |= {"cluster": name, "user": name}
        others = [one for one in there.get(section) or () if not (isinstance(one, dict) and one.get("name") == name)]
        there[section] = [*others, {"name": name, part: content}]
    there["current-context"] = there.get("current-context") or name
    _write(into, there)


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise MergeError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except yaml.YAMLError as error:
        raise MergeError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if content is None:
        return _empty()
    if not isinstance(content, dict):
        raise MergeError(f"{path} is not a kubeconfig")
    return content


def _write(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all, and for its owner alone: there are credentials in it."""
    import yaml

    path = path.resolve()  # a link stays a link
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            yaml.safe_dump(document, stream, sort_keys=False, allow_unicode=True)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise MergeError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None


def _empty() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Config"}
