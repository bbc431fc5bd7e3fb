"""Files of a repository as people have them: manifests among templates, values and Kustomizations, some unreadable.

    each file ─▶ skipped (a pattern) │ passed over: no manifest, for a reason │ unreadable │ its objects, one by one

Nothing raises: what is wrong with one file does not hide what is wrong with the others.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dray.snapshot.files import STDIN, InputError, Item, files_below, read, read_around
from dray.snapshot.kustomizations import NAMES, Kustomizations

HELM_CHART = "Chart.yaml"
KUSTOMIZE_GROUP = "kustomize.config.k8s.io/"
_FIELDS = {"apiVersion", "kind", "metadata", "spec"}


class PassedOver(msgspec.Struct, frozen=True):
    """A file that is no manifest, and what it is instead."""

    source: str
    why: str


class Skip:
    """Patterns of files and directories that are skipped, and those of them that nothing matched so far."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """`charts/` is `charts`, and `./a` is `a`."""
        self._patterns = {pattern: str(Path(pattern)) for pattern in patterns}
        self.unmatched = list(self._patterns)

    def takes(self, path: Path) -> bool:
        """Whether a pattern matches the path, the name, or a directory on the way, by its path or its name."""
        ways = {*path.parts, str(path), *map(str, path.parents)}
        matched = [one for one, pattern in self._patterns.items() if any(fnmatch.fnmatch(way, pattern) for way in ways)]
        if matched:
            self.unmatched = [one for one in self.unmatched if one not in matched]
        return bool(matched)


def read_each(sources: Sequence[str], skip: Skip) -> Iterator[Item | InputError | PassedOver]:
    """Everything in files, directories or standard input (`-`), whatever it is."""
    kustomizations = Kustomizations()
    for source in sources:
        if source == "-":
            yield from _read("-")
            continue
        path = Path(source)
        if not path.is_dir():
            if not skip.takes(path):
                yield from _look(path, kustomizations)
            continue
        try:
            found = files_below(path)
        except InputError as error:
            yield error
            continue
        for file in found:
            if not skip.takes(file):
                yield from _look(file, kustomizations)


def _look(path: Path, kustomizations: Kustomizations) -> Iterator[Item | InputError | PassedOver]:
    told = _what_else(path) or kustomizations.what_is(path)
    if told:
        yield PassedOver(str(path), told)
        return
    yield from _read(str(path))


def _what_else(path: Path) -> str:
    """What a file is if its place says that it is no manifest; empty if it may be one."""
    if path.name in NAMES:
        return "a Kustomization; check what `kubectl kustomize` makes of it"
    if path.name == HELM_CHART:
        return "the description of a Helm chart"
    if path.name.startswith("values") and (path.parent / HELM_CHART).exists():
        return "values of a Helm chart"
    for folder in path.parents:
        if folder.name == "templates" and (folder.parent / HELM_CHART).exists():
            return "a template of a Helm chart; check what `helm template` makes of it"
    return ""


def _read(source: str) -> Iterator[Item | InputError | PassedOver]:
    try:
        item = None
        for item in read([source], may_be_blank=source != "-"):
            yield _what_is(item)
        if item is None:
            yield PassedOver(source, "there is no object in it")
    except InputError as error:
        if source != "-" and _is_template(Path(source)):
            yield PassedOver(source, "a template ({{ … }}), not YAML; check what it is rendered to")
            return
        for one in read_around(error):
            yield one if isinstance(one, InputError) else _what_is(one)


def _what_is(item: Item) -> Item | PassedOver:
    """An object, or what it is instead."""
    if isinstance(item.value, dict) and str(item.value.get("apiVersion", "")).startswith(KUSTOMIZE_GROUP):
        return PassedOver(item.source, "a Kustomization; check what `kubectl kustomize` makes of it")
    if _is_values(item):
        return PassedOver(item.source, "values for templates, by its name: it has neither apiVersion nor kind")
    if _is_filled_in_later(item.value):
        return PassedOver(item.source, "a template ({{ … }} in what names it); check what it is rendered to")
    if item.source != STDIN and _is_something_else(item.value):
        return PassedOver(item.source, "no manifest: it has neither apiVersion, kind, metadata nor spec")
    return item


def _is_values(item: Item) -> bool:
    """Whether a file is called as values are, and has nothing of an object; its chart may be elsewhere."""
    is_object = isinstance(item.value, dict) and ("apiVersion" in item.value or "kind" in item.value)
    return Path(item.source).name.startswith("values") and not is_object


def _is_filled_in_later(value: Any) -> bool:
    """Whether a template happens to be YAML: there are braces where no object can have any."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict):
        return False
    labels = metadata.get("labels")
    words = [value.get("apiVersion"), value.get("kind"), *(metadata.get(one) for one in ("name", "namespace"))]
    words += [metadata.get("generateName"), *(labels.values() if isinstance(labels, dict) else ())]
    return any(isinstance(word, str) and "{{" in word for word in words)


def _is_something_else(value: Any) -> bool:
    """Whether a document has nothing of an object, as the settings of other programs. A list has not even fields."""
    if isinstance(value, list):
        return not any(isinstance(one, dict) and _FIELDS & one.keys() for one in value)
    return isinstance(value, dict) and bool(value) and not _FIELDS & value.keys()


def _is_template(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return b"{{" in stream.read(1 << 20)
    except OSError:
        return False
