"""Makes the generated part of `dray.api`: `python -m tools.generate_api`, in the root of the repository.

Two steps, both reproducible to the byte:

1. OpenAPI and discovery documents (a folder that is no part of this repository) → the facts in `dray/api/schema`.
   Left out when the folder is absent.
2. The committed facts and `wire_facts.json` → the struct modules in `dray/api/generated`.

With `--check` nothing is written; the exit code is 1 if a file is out of date, and its name is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools import kind_facts, openapi_facts, struct_source

ROOT = Path(__file__).resolve().parent.parent
OPENAPI = ROOT.parent / "shared" / "openapi"
SCHEMA = ROOT / "src" / "dray" / "api" / "schema"
GENERATED = ROOT / "src" / "dray" / "api" / "generated"
WIRE_FACTS = Path(__file__).with_name("wire_facts.json")

# The newest stable version of every group; resource.k8s.io is written by hand. autoscaling/v1 adds Scale.
PACKAGES: dict[str, tuple[str, ...]] = {
    "admissionregistration": ("io.k8s.api.admissionregistration.v1",),
    "apiextensions": ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",),
    "apiregistration": ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",),
    "apps": ("io.k8s.api.apps.v1",),
    "authentication": ("io.k8s.api.authentication.v1",),
    "authorization": ("io.k8s.api.authorization.v1",),
    "autoscaling": ("io.k8s.api.autoscaling.v2", "io.k8s.api.autoscaling.v1"),
    "batch": ("io.k8s.api.batch.v1",),
    "certificates": ("io.k8s.api.certificates.v1",),
    "coordination": ("io.k8s.api.coordination.v1",),
    "core": ("io.k8s.api.core.v1",),
    "discovery": ("io.k8s.api.discovery.v1",),
    "events": ("io.k8s.api.events.v1",),
    "flowcontrol": ("io.k8s.api.flowcontrol.v1",),
    "networking": ("io.k8s.api.networking.v1",),
    "node": ("io.k8s.api.node.v1",),
    "policy": ("io.k8s.api.policy.v1",),
    "rbac": ("io.k8s.api.rbac.v1",),
    "scheduling": ("io.k8s.api.scheduling.v1", "io.k8s.api.scheduling.v1beta1"),
    "storage": ("io.k8s.api.storage.v1",),
    "storagemigration": ("io.k8s.api.storagemigration.v1",),
}


def main(arguments: list[str]) -> int:
    """Writes or checks every file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.generate_api", description="Makes generated API files.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    parser.add_argument("--openapi", type=Path, help="folder with the OpenAPI documents; must exist if given")
    options = parser.parse_args(arguments)
    openapi: Path = options.openapi or OPENAPI
    if options.openapi and not openapi.is_dir():
        parser.error(f"no folder {openapi}")
    stale: list[Path] = []
    if openapi.is_dir():
        stale += update(schema_files(openapi), SCHEMA, write=not options.check)
    stale += update(struct_files(), GENERATED, write=not options.check)
    for path in stale:
        print(f"{'out of date' if options.check else 'updated'}: {path.relative_to(ROOT)}")
    return 1 if stale and options.check else 0


def schema_files(openapi: Path) -> Iterator[tuple[str, str]]:
    """Path (below SCHEMA) and text of each facts file, from the documents."""
    for package, definitions in openapi_facts.derive(openapi).items():
        yield f"definitions/{package}.json", openapi_facts.render(definitions)
    yield "kinds.json", kind_facts.render(kind_facts.derive(openapi / "discovery"))


def struct_files() -> Iterator[tuple[str, str]]:
    """Path (below GENERATED) and text of each struct module, from the committed facts."""
    wire = json.loads(WIRE_FACTS.read_text(encoding="utf-8"))
    for name, source in struct_source.modules(module_contents(), wire):
        yield f"{name}.py", source


def module_contents() -> struct_source.Contents:
    """The definitions that each struct module holds, from the committed facts."""
    facts: dict[str, dict[str, Any]] = {
        path.name.removesuffix(".json"): json.loads(path.read_text(encoding="utf-8"))
        for path in (SCHEMA / "definitions").glob("*.json")
    }
    return struct_source.contents(facts, PACKAGES)


def update(files: Iterator[tuple[str, str]], folder: Path, *, write: bool) -> list[Path]:
    """Brings a folder up to date, or only looks; returns what differs, also files that should not be there."""
    expected = {folder / name: text for name, text in files}
    suffixes = {path.suffix for path in expected}
    present = {path for path in folder.rglob("*") if path.suffix in suffixes and path.name != "__init__.py"}
    stale = {path for path, text in expected.items() if path not in present or path.read_text("utf-8") != text}
    surplus = present - expected.keys()
    if write:
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(expected[path], encoding="utf-8")
        for path in surplus:
            path.unlink()
    return sorted(stale | surplus)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
