"""The same pieces as a Helm chart."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml

from dray import __version__
from dray.install.manifests import DEFINITION, fill
from dray.install.pieces import pieces
from dray.install.values import CHOICES, DEFAULTS, FORMS, MEANINGS, NUMBERS, Value

NAME: Final = "dray"
ELSEWHERE: Final = "ne .Release.Namespace .Values.namespace"
"""Whoever releases into the namespace itself (`helm install -n dray-system --create-namespace`) has made it."""
DESCRIPTION: Final = "A control plane for devices: scheduler, eviction controllers and kinds of dray on Kubernetes"


def chart_files() -> dict[str, str]:
    """The files of the chart by their path in its folder.

    Definitions of kinds are templates, not in `crds/`: values choose among them, and an upgrade brings them up to date.
    They are kept when the release is removed, because everything of a kind goes with its definition.
    """
    files: dict[str, list[str]] = {}
    for piece in pieces():
        obj = piece.object
        if obj["kind"] == DEFINITION:
            keep = {"annotations": {"helm.sh/resource-policy": "keep"}}
            obj = {**obj, "metadata": {**obj["metadata"], **keep}}
        text = f"---\n{_with_expressions(obj)}"
        conditions = [_condition(name, value) for name, value in piece.when.items()]
        if obj["kind"] == "Namespace":
            conditions.append(ELSEWHERE)
        for condition in reversed(conditions):
            text = f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"
        files.setdefault(f"templates/{piece.file}.yaml", []).append(text)
    about = {
        "apiVersion": "v2",
        "name": NAME,
        "description": DESCRIPTION,
        "type": "application",
        "version": _three_numbers(__version__),
        "appVersion": __version__,
        "kubeVersion": ">=1.34.0-0",
    }
    return {
        "Chart.yaml": _yaml(about),
        "values.yaml": _values(),
        "values.schema.json": json.dumps(_schema(), indent=2) + "\n",
        **{path: "".join(texts) for path, texts in files.items()},
    }


def _three_numbers(version: str) -> str:
    """Helm wants three numbers, and nothing of what Python may write behind them."""
    found = re.match(r"\d+(?:\.\d+){0,2}", version)
    parts = found[0].split(".") if found is not None else []
    return ".".join((*parts, "0", "0", "0")[:3])


def _condition(name: str, value: Value) -> str:
    if isinstance(value, bool):
        return f".Values.{name}" if value else f"not .Values.{name}"
    return f'eq .Values.{name} "{value}"'


def _with_expressions(document: Any) -> str:
    """YAML in which values are expressions of Helm.

    A value that is a text or part of one is quoted; a number stands alone, and stays a number.
    """
    text = _yaml(fill(document, _Mark))
    for name, value in DEFAULTS.items():
        alone = f"{{{{ .Values.{name}{' | quote' if isinstance(value, str) else ''} }}}}"
        text = text.replace(f"alone-{_Mark(name)}", alone).replace(_Mark(name), f"{{{{ .Values.{name} }}}}")
    return text


class _Mark(str):
    """Where a value goes. In YAML one that is not part of a text is told from one that is."""

    __slots__ = ()

    def __new__(cls, name: str) -> _Mark:
        """The mark for a value."""
        return super().__new__(cls, f"value-of-{name}-here")


def _yaml(document: Any) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=1000)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes everything out: anchors are for programs."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - as yaml calls it
        """Never refers to what was written before."""
        return True


def _write_mark(dumper: yaml.SafeDumper, mark: _Mark) -> yaml.ScalarNode:
    return dumper.represent_str(f"alone-{mark}")


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Texts that a value becomes part of are quoted: nobody knows what is in it."""
    style = "'" if "value-of-" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(_Mark, _write_mark)
_Dumper.add_representer(str, _write_text)


def _values() -> str:
    """The defaults with what they mean, nested by their names."""
    lines: list[str] = []
    group = ""
    for name, value in DEFAULTS.items():
        head, _, leaf = name.rpartition(".")
        if head and head != group:
            lines.append(f"{head}:")
        group = head
        indent = "  " if head else ""
        lines += [f"{indent}# {MEANINGS[name]}", f"{indent}{leaf}: {_scalar(value)}"]
    return "\n".join(lines) + "\n"


def _scalar(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _schema() -> dict[str, Any]:
    """What values can be, as `dray install --set` has it: Helm refuses what is misspelt or cannot be."""
    schema = _section()
    schema["properties"]["global"] = {"type": "object"}  # what a chart that has this one among its parts may hand down
    for name, value in DEFAULTS.items():
        *groups, leaf = name.split(".")
        section = schema
        for group in groups:
            section = section["properties"].setdefault(group, _section())
        section["properties"][leaf] = {**_allowed(name, value), "description": MEANINGS[name]}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema}


def _section() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _allowed(name: str, value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer", "minimum": NUMBERS[0], "maximum": NUMBERS[-1]}
    if name in CHOICES:
        return {"enum": list(CHOICES[name])}
    # `helm --set` makes numbers of digits.
    types = ["string", "integer"] if re.fullmatch(FORMS[name].pattern, "1") else ["string"]
    return {"type": types, "pattern": f"^({FORMS[name].pattern})$"}
