"""Makes the field numbers of `dray.server.protobuf`: `python -m tools.wire_numbers SOURCES`, in the repository's root.

SOURCES is a source tree of Kubernetes, which is no part of this repository: its `generated.proto` files are where field
numbers are published. Of each only numbers, names and types are taken, for the packages whose definitions are in
`dray/api/schema`; the notation is explained in `dray.server.protobuf.numbers`. With `--check` nothing is written; the
exit code is 1 if a file is out of date, and its name is printed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from tools.generate_api import ROOT, SCHEMA, update

from dray.api import schema

NUMBERS = ROOT / "src" / "dray" / "server" / "protobuf" / "numbers"
LINE_LENGTH = 120

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_SCALARS = {"string": "text", "bool": "bool", "bytes": "bytes", "double": "double"} | dict.fromkeys(
    ("int32", "int64", "uint32", "uint64"), "int"
)
# Messages that JSON writes as a plain value.
_VALUES = {
    f"{_META}.Time": "time",
    f"{_META}.MicroTime": "microtime",
    f"{_META}.FieldsV1": "json",
    f"{_META}.Verbs": "texts",
    "io.k8s.api.authentication.v1.AttestationValue": "texts",
    "io.k8s.api.authentication.v1.ExtraValue": "texts",
    "io.k8s.api.authorization.v1.ExtraValue": "texts",
    "io.k8s.api.certificates.v1.ExtraValue": "texts",
    "io.k8s.api.certificates.v1beta1.ExtraValue": "texts",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "json",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    f"{_EXTENSIONS}.JSON": "json",
}
_FIELD = re.compile(r"\s*(optional|repeated)\s+([\w.]+)\s+(\w+)\s*=\s*(\d+);")
_MAP = re.compile(r"\s*map<string, ([\w.]+)>\s+(\w+)\s*=\s*(\d+);")


class Field(msgspec.Struct, frozen=True):
    """One line of a message: JSON's name, the number, the type (a scalar or a full name) and how many."""

    name: str
    number: int
    type: str
    many: str


Messages = dict[str, list[Field]]
"""By full name."""


def main(arguments: list[str]) -> int:
    """Writes or checks every file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.wire_numbers", description="Makes tables of field numbers.")
    parser.add_argument("sources", type=Path, help="folder with the sources of Kubernetes")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    options = parser.parse_args(arguments)
    stale = update(files(options.sources), NUMBERS, write=not options.check)
    for path in stale:
        print(f"{'out of date' if options.check else 'updated'}: {path.relative_to(ROOT)}")
    return 1 if stale and options.check else 0


def files(sources: Path) -> Iterator[tuple[str, str]]:
    """Path (below NUMBERS) and text of each table."""
    packages = [path.name.removesuffix(".json") for path in sorted((SCHEMA / "definitions").glob("*.json"))]
    found: Messages = {}
    for package in packages:
        found |= _messages(package, sources)
    for package in packages:
        own = {name: fields for name, fields in found.items() if _in(package, name)}
        if own:
            lines = [_line(package, name, _as_json(name, fields, found)) for name, fields in own.items()]
            yield f"{package}.txt", "".join(sorted(lines))


def _in(package: str, name: str) -> bool:
    return name.rpartition(".")[0] == package and name not in _VALUES


def _proto(package: str, sources: Path) -> Path:
    """`io.k8s.api.core.v1` is published in `staging/src/k8s.io/api/core/v1`."""
    return sources.joinpath("staging/src/k8s.io", *package.removeprefix("io.k8s.").split("."), "generated.proto")


def _messages(package: str, sources: Path) -> Messages:
    path = _proto(package, sources)
    if not path.exists():
        return {}
    found: Messages = {}
    current: list[Field] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("message "):
            current = found[f"{package}.{line.split()[1]}"] = []
        elif (field := _field(line, package)) is not None:
            current.append(field)
    return found


def _field(line: str, package: str) -> Field | None:
    if (match := _FIELD.match(line)) is not None:
        count, kind, name, number = match.groups()
        return Field(name, int(number), _type(kind, package), "*" if count == "repeated" else "")
    if (match := _MAP.match(line)) is not None:
        kind, name, number = match.groups()
        return Field(name, int(number), _type(kind, package), "@")
    return None


def _type(written: str, package: str) -> str:
    if written in _SCALARS:
        return _SCALARS[written]
    path, _, name = written.rpartition(".")
    # `.k8s.io.api.core.v1.Pod` is what everybody else calls `io.k8s.api.core.v1.Pod`.
    full = f"{'io.k8s.' + path.lstrip('.').removeprefix('k8s.io.') if path else package}.{name}".replace("_", "-")
    return _VALUES.get(full, full)


def _as_json(message: str, fields: list[Field], all_messages: Messages) -> list[Field]:
    """The fields with the names that JSON has for them."""
    try:
        known = set(schema.definition(message).properties)
    except schema.UnknownDefinitionError:
        return fields
    if not known:
        return fields
    return [named for field in fields if (named := _named(field, known, all_messages)) is not None]


def _named(field: Field, known: set[str], all_messages: Messages) -> Field | None:
    dashed = re.sub("([A-Z])", lambda match: "-" + match[1].lower(), field.name)  # xKubernetesMapType
    by_letters = {name.lower(): name for name in known}  # uID
    for name in (field.name, f"${field.name}", dashed):
        if name.lower() in by_letters:
            return msgspec.structs.replace(field, name=by_letters[name.lower()])
    inner = all_messages.get(field.type)
    if inner is not None and not field.many and any(part.name in known for part in inner):
        return msgspec.structs.replace(field, many="+")
    return None  # what was never written in JSON


def _line(package: str, message: str, fields: list[Field]) -> str:
    words = [f"{message.rpartition('.')[2]}:", *(_word(package, field) for field in fields)]
    lines, line = [], ""
    for word in words:
        if line and len(line) + 1 + len(word) > LINE_LENGTH:
            lines.append(line)
            line = "   "
        line = f"{line} {word}" if line else word
    return "\n".join([*lines, line]) + "\n"


def _word(package: str, field: Field) -> str:
    kind = field.type.removeprefix(f"{package}.") if _is_own(package, field.type) else field.type
    written = f"{field.many}{kind}"
    return f"{field.name}={field.number}" + (f":{written}" if written != "text" else "")


def _is_own(package: str, name: str) -> bool:
    return name.rpartition(".")[0] == package


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
