"""Prints what dray consists of as CycloneDX JSON: packages with versions and licences, and which of them needs which.

    python -m tools.sbom > dray.cdx.json

Made from what is installed here, which is what `requirements-dev.lock` names; the same packages give the same bytes.
"""

from __future__ import annotations

import json
import uuid
from importlib import metadata
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools import dependencies
from tools.licences_page import licence_of

from dray import __version__

SPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://dray.dev/sbom")


def document() -> dict[str, Any]:
    """The whole document."""
    found = dependencies.needed()
    references = {name: _reference(name, one.version) for name, one in found.items()}
    itself = {
        "type": "application",
        "bom-ref": _reference("dray", __version__),
        "name": "dray",
        "version": __version__,
        "purl": _reference("dray", __version__),
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    graph = [{"ref": itself["bom-ref"], "dependsOn": sorted(references[name] for name in dependencies.direct())}]
    graph += [{"ref": references[name], "dependsOn": _wanted(one, references)} for name, one in found.items()]
    components = [_component(references[name], name, one) for name, one in found.items()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(SPACE, json.dumps([components, graph]))}",
        "version": 1,
        "metadata": {"component": itself},
        "components": components,
        "dependencies": graph,
    }


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _component(reference: str, name: str, distribution: metadata.Distribution) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": distribution.version,
        "purl": reference,
        "licenses": [_licence(distribution.metadata)],
    }


def _licence(found: metadata.PackageMetadata) -> dict[str, Any]:
    """An expression, if the package gives one; else the words that it has."""
    if "License-Expression" in found:
        return {"expression": str(found["License-Expression"])}
    return {"license": {"name": licence_of(found)}}


def _wanted(distribution: metadata.Distribution, references: dict[str, str]) -> list[str]:
    requirements = [Requirement(text) for text in distribution.requires or ()]
    names = {canonicalize_name(each.name) for each in requirements if dependencies.applies(each)}
    return sorted(references[name] for name in names)


if __name__ == "__main__":
    print(json.dumps(document(), indent=1))
