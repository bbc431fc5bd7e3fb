"""The table of served kinds, from the documents of aggregated discovery (`/api` and `/apis`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Facts = dict[str, Any]


def derive(discovery: Path) -> list[Facts]:
    """One entry per resource, in the order of discovery (clients prefer what comes first)."""
    kinds: list[Facts] = []
    for name in ("api-aggregated-v2.json", "apis-aggregated-v2.json"):
        for group in json.loads((discovery / name).read_text(encoding="utf-8"))["items"]:
            for version in group["versions"]:
                kinds += (
                    _kind(group["metadata"].get("name", ""), version["version"], resource)
                    for resource in version["resources"]
                )
    return kinds


def render(kinds: list[Facts]) -> str:
    """The table as JSON, one kind per line."""
    return "[\n" + ",\n".join(json.dumps(kind, separators=(",", ":")) for kind in kinds) + "\n]\n"


def _kind(group: str, version: str, resource: Facts) -> Facts:
    facts: Facts = {
        "group": group,
        "version": version,
        "kind": resource["responseKind"]["kind"],
        "plural": resource["resource"],
        "singular": resource["singularResource"],
        "namespaced": resource["scope"] == "Namespaced",
        "verbs": resource["verbs"],
    }
    facts |= {key: resource[key] for key in ("shortNames", "categories") if key in resource}
    if "subresources" in resource:
        facts["subresources"] = [_subresource(group, version, sub) for sub in resource["subresources"]]
    return facts


def _subresource(group: str, version: str, source: Facts) -> Facts:
    kind = source["responseKind"]
    # An empty version means: that of the parent.
    own = kind["version"] == ""
    return {
        "name": source["subresource"],
        "group": group if own else kind["group"],
        "version": version if own else kind["version"],
        "kind": kind["kind"],
        "verbs": source["verbs"],
    }
