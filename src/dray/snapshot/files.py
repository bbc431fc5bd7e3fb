"""Manifests from files, directories, standard input or plain dicts: one item per object, with where it came from."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec.structs import replace

from dray.api import manifest

STDIN = "<stdin>"
SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 512 * 1024 * 1024
"""Of a text that is taken in as a whole: it takes ten times as much room."""
MAX_LIST_BYTES = 8 * 1024 * 1024 * 1024
"""Of a list in JSON, whose objects are read one by one."""

Source = str | os.PathLike[str] | Mapping[str, Any]


class InputError(Exception):
    """Input that cannot be read; the message names the file and, where known, the line."""

    def __init__(self, source: str, message: str, line: int | None = None, data: bytes = b"") -> None:
        """`data` is the text that cannot be read as a whole."""
        self.source = source
        self.line = line
        self.message = message
        self.data = data
        super().__init__(f"{source}:{line}: {message}" if line else f"{source}: {message}")


class Item(msgspec.Struct, frozen=True):
    """One object as it was written, and its place."""

    value: Any
    source: str
    document: manifest.Document | None = None
    prefix: str = ""

    def line_of(self, path: str) -> int | None:
        """The line of a field of the object, None if it did not come from a text."""
        if self.document is None:
            return None
        return self.document.line_of(f"{self.prefix}.{path}" if self.prefix else path)


def read(sources: Iterable[Source], *, may_be_blank: bool = False) -> Iterator[Item]:
    """Every object in `sources`, lists (`kind: List` and the like) taken apart. Raises InputError.

    A file or standard input in which nothing is at all is an error, unless it may be: what was to write it has failed,
    and an empty cluster is no answer to that. Below directories empty files are passed over.
    """
    for source in sources:
        if isinstance(source, Mapping):
            yield from _take_apart(dict(source), "<dict>", None)
        elif source == "-":
            yield from _parse_whole(_read_stream(sys.stdin.buffer, STDIN), STDIN, may_be_blank)
        else:
            yield from _read_path(Path(source), may_be_blank)


def files_below(path: Path) -> list[Path]:
    """The files of a directory that may be manifests, links to nowhere too: opening tells. Raises InputError."""
    named = sorted(found for found in path.rglob("*") if found.suffix in SUFFIXES)
    files = [file for file in named if file.is_file() or not file.exists()]
    if not files:
        raise InputError(str(path), f"no manifests here ({', '.join('*' + suffix for suffix in SUFFIXES)})")
    return files


def _read_path(path: Path, may_be_blank: bool) -> Iterator[Item]:
    if path.is_dir():
        for file in files_below(path):
            yield from _read_path(file, may_be_blank=True)
        return
    try:
        data = _read_file(path)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    yield from _parse_whole(data, str(path), may_be_blank)


def _read_file(path: Path) -> bytes:
    with path.open("rb") as stream:
        about = os.fstat(stream.fileno())
        if not stat.S_ISREG(about.st_mode):
            return _read_stream(stream, str(path))
        if about.st_size > MAX_LIST_BYTES:
            raise _too_large(str(path))
        return stream.read()


def _read_stream(stream: BinaryIO, source: str) -> bytes:
    """All that comes. What has no end is given up."""
    parts, size = [], 0
    while part := stream.read(MAX_BYTES):
        parts.append(part)
        size += len(part)
        if size > MAX_LIST_BYTES:
            raise _too_large(source)
    return b"".join(parts)


def _too_large(source: str) -> InputError:
    return InputError(source, f"larger than {MAX_LIST_BYTES // 2**30} GiB: give it in several files")


def _parse_whole(data: bytes, source: str, may_be_blank: bool) -> Iterator[Item]:
    if not may_be_blank and not data.strip():
        raise InputError(source, "is empty")
    yield from _parse(data, source)


def _parse(data: bytes, source: str) -> Iterator[Item]:
    try:
        large = manifest.parse_large_list(data)
        if large is not None and _is_list(large.document.value):
            yield from _take_out(large, source)
            return
        if len(data) > MAX_BYTES:
            how = "give it as a list in JSON (`kubectl get … -o json`), or in several files"
            raise InputError(source, f"larger than {MAX_BYTES // 2**20} MiB: {how}")
        documents = manifest.parse(data)
    except manifest.ManifestError as error:
        raise InputError(source, error.message, error.line, data) from error
    for document in documents:
        yield from _take_apart(document.value, source, document)


def read_around(error: InputError) -> Iterator[Item | InputError]:
    """The objects of a text of which a document cannot be read, and each that cannot."""
    parts = list(manifest.split_documents(error.data))
    if len(parts) == 1:
        yield error
        return
    for above, part in parts:
        try:
            for document in manifest.parse(part):
                yield from _take_apart(document.value, error.source, replace(document, above=above))
        except manifest.ManifestError as broken:
            yield InputError(error.source, broken.message, broken.line and broken.line + above)


def _take_out(large: manifest.LargeList, source: str) -> Iterator[Item]:
    """As `_take_apart`, of a list whose objects are read as they are asked for."""
    head = large.document.value
    for index in range(len(large.entries)):
        yield Item(_entry_of(head, large.entry(index)), source, large.document, f"items[{index}]")


def _take_apart(value: Any, source: str, document: manifest.Document | None) -> Iterator[Item]:
    if not _is_list(value):
        yield Item(value, source, document)
        return
    for index, entry in enumerate(value["items"] or ()):
        yield Item(_entry_of(value, entry), source, document, f"items[{index}]")


def _entry_of(listed: dict[str, Any], entry: Any) -> Any:
    """Typed lists leave out kind and apiVersion of their entries."""
    item_kind = str(listed["kind"]).removesuffix("List")
    if not isinstance(entry, dict) or not item_kind:
        return entry
    return {"apiVersion": listed.get("apiVersion"), "kind": item_kind, **entry}


def _is_list(value: Any) -> bool:
    if not isinstance(value, dict) or not str(value.get("kind", "")).endswith("List"):
        return False
    return value.get("items", 0) is None or isinstance(value.get("items"), list)
