"""The facts of an OpenAPI document, without its prose: what fields there are, of which type, and how lists merge.

Swagger 2 knows every built-in group; the OpenAPI 3 documents add the defaults. The result keeps short names for the
`x-kubernetes-…` extensions; `dray.api.schema` reads it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

Facts = dict[str, Any]

_V2_REF = "#/definitions/"
_V3_REF = "#/components/schemas/"

# OpenAPI's name → ours; whatever is not listed here (descriptions, above all) is left behind.
_PLAIN = {
    "type": "type",
    "format": "format",
    "required": "required",
    "default": "default",
    "x-kubernetes-list-type": "listType",
    "x-kubernetes-list-map-keys": "mapKeys",
    "x-kubernetes-map-type": "mapType",
    "x-kubernetes-patch-merge-key": "mergeKey",
    "x-kubernetes-unions": "unions",
}


def derive(openapi: Path) -> dict[str, dict[str, Facts]]:
    """Facts by package (`io.k8s.api.core.v1`) and type name (`Pod`), from the documents in a folder."""
    definitions: Facts = _load(openapi / "swagger-v2.json")["definitions"]
    facts = {name: _definition(source) for name, source in definitions.items()}
    for document in sorted((openapi / "v3").glob("api*.json")):
        for name, source in _load(document).get("components", {}).get("schemas", {}).items():
            _add_v3(facts[name], source)
    packages: dict[str, dict[str, Facts]] = defaultdict(dict)
    for name, definition in facts.items():
        package, _, short = name.rpartition(".")
        packages[package][short] = definition
    return packages


def render(definitions: dict[str, Facts]) -> str:
    """A package as JSON with one definition per line, so that a change of one type is a change of one line."""
    lines = (
        f"{json.dumps(name)}:{json.dumps(facts, sort_keys=True, separators=(',', ':'))}"
        for name, facts in sorted(definitions.items())
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _load(path: Path) -> Facts:
    loaded: Facts = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def _definition(source: Facts) -> Facts:
    facts = _schema(source)
    kinds = source.get("x-kubernetes-group-version-kind", [])
    if kinds:
        facts["kinds"] = sorted([kind["group"], kind["version"], kind["kind"]] for kind in kinds)
    if "properties" in source:
        facts["properties"] = {name: _schema(prop) for name, prop in source["properties"].items()}
    return facts


def _schema(source: Facts) -> Facts:
    facts = {ours: source[theirs] for theirs, ours in _PLAIN.items() if theirs in source}
    if "enum" in source:
        facts["enum"] = sorted(source["enum"])
    if "x-kubernetes-patch-strategy" in source:
        facts["patchStrategy"] = source["x-kubernetes-patch-strategy"].split(",")
    if "$ref" in source:
        facts["ref"] = source["$ref"].removeprefix(_V2_REF).removeprefix(_V3_REF)
    if "items" in source:
        facts["items"] = _schema(source["items"])
    if "additionalProperties" in source:
        facts["values"] = _schema(source["additionalProperties"])
    return facts


def _add_v3(facts: Facts, source: Facts) -> None:
    """Adds what only OpenAPI 3 tells: defaults of fields, and the types of values that have several."""
    if "oneOf" in source:
        facts["oneOf"] = [choice["type"] for choice in source["oneOf"]]
    for name, prop in source.get("properties", {}).items():
        if "default" in prop:
            facts["properties"][name]["default"] = prop["default"]
