"""What dray consists of is said for programs, too, and is what the lock names."""

from __future__ import annotations

from tools import dependencies, sbom

from release_world import locked


def test_every_package_is_there_in_the_version_that_is_locked() -> None:
    found = {one["name"]: one["version"] for one in sbom.document()["components"]}
    versions = locked("requirements-dev.lock")
    assert found == {name: str(versions[name]) for name in found}
    assert set(dependencies.direct()) <= set(found)


def test_the_graph_names_only_what_is_there_and_reaches_all_of_it() -> None:
    document = sbom.document()
    graph = {one["ref"]: one["dependsOn"] for one in document["dependencies"]}
    reached, waiting = set(), [document["metadata"]["component"]["bom-ref"]]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += graph[one]
    assert reached == set(graph)
    assert reached - {document["metadata"]["component"]["bom-ref"]} == {
        one["bom-ref"] for one in document["components"]
    }


def test_the_same_packages_give_the_same_document() -> None:
    assert sbom.document() == sbom.document()
