"""What `dray install` prints: valid in every combination, no more rights than needed, the same as a chart."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import dray
from commands import run_here
from dray.install import DEFAULTS, ValuesError, chart_files, manifests, read_values, rights
from dray.install.values import CHOICES, FORMS, MEANINGS
from dray.live.viewer import ASKED_FOR, FOLLOWED


def test_every_combination_is_valid_and_has_no_object_twice() -> None:
    choices = {name: (True, False) for name, value in DEFAULTS.items() if isinstance(value, bool)}
    whole = {name: values for name, values in CHOICES.items() if name != "imagePullPolicy"}
    both: dict[str, tuple[Any, ...]] = {**dict.fromkeys(choices, (True,)), **whole}
    for picked in itertools.product(*both.values()):
        objects = manifests({**DEFAULTS, **dict(zip(both, picked, strict=True))})
        places = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
        assert len(set(places)) == len(places)
        assert "${" not in str(objects)
        for obj in objects:
            assert dray.validate(obj) == [], obj
    nothing = manifests({**DEFAULTS, **dict.fromkeys(choices, False)})
    assert [one["kind"] for one in nothing] == ["Namespace"]


def rules(objects: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    (role,) = [one for one in objects if one["kind"] == "ClusterRole" and one["metadata"]["name"] == name]
    found: list[dict[str, Any]] = role["rules"]
    return found


def test_rights_are_those_of_what_is_installed() -> None:
    beside, instead = manifests(DEFAULTS), manifests({**DEFAULTS, "controllers.evictions": "instead"})
    assert not any("pods" in one["resources"] for one in rules(beside, "dray:controllers"))
    deletes = [
        one for one in rules(instead, "dray:controllers") if "pods" in one["resources"] and "delete" in one["verbs"]
    ]
    assert deletes
    for objects in (beside, instead):
        for role in (one for one in objects if one["kind"] in ("ClusterRole", "Role")):
            for one in role["rules"]:
                assert "*" not in one["verbs"]
                assert "*" not in one.get("apiGroups", ())
                assert "*" not in one.get("resources", ()) or role["metadata"]["name"] == "dray-reader"
                assert "secrets" not in one["resources"]
                assert "serviceaccounts/token" not in one["resources"]


def test_the_dashboard_has_no_rights_and_is_reached_by_nobody_but_who_forwards_a_port() -> None:
    objects = manifests({**DEFAULTS, "scheduler.enabled": False, "controllers.enabled": False, "rbac.reader": False})
    named = [(one["kind"], one["metadata"]["name"]) for one in objects if one["kind"] != "CustomResourceDefinition"]
    page = "dray-dashboard"
    own = [("ServiceAccount", page), ("Deployment", page)]
    assert named == [("Namespace", "dray-system"), *own, ("NetworkPolicy", "dray")]
    (deployment,) = (one for one in objects if one["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["dashboard", "--no-link", "--port", "6480"]
    assert "ports" not in container


def test_accounts_get_only_what_kubernetes_has_no_role_for_as_the_page_says() -> None:
    objects = manifests(read_values(["rbac.accounts=true"]))
    names = {one["metadata"]["name"] for one in objects if one["kind"] == "ClusterRole"}
    prefix = "dray:controller:"
    found = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    page = (Path(__file__).parents[3] / "docs" / "clusters.md").read_text()
    said = page.partition("`rbac.accounts=true`")[2].partition("beyond Kubernetes' role")[0]
    # Kubernetes has a role for device evictions, but that knows no budgets.
    assert found == {*re.findall(r"`([a-z-]+-controller)`", said), "device-taint-eviction-controller"}


def test_what_can_be_set() -> None:
    assert set(MEANINGS) == set(DEFAULTS)
    assert {*CHOICES, *FORMS} == {name for name, value in DEFAULTS.items() if isinstance(value, str)}
    assert read_values(f"{name}={value}" for name, value in DEFAULTS.items() if not isinstance(value, bool)) == DEFAULTS
    found = read_values(["scheduler.replicas=3", "networkPolicy.enabled=false", "scheduler.mode=default"])
    assert (found["scheduler.replicas"], found["networkPolicy.enabled"]) == (3, False)
    for wrong, message in (
        ("scheduler.replica=3", "perhaps scheduler.replicas is meant"),
        ("namespace", "namespace has no value; write namespace=VALUE"),
        ("zzz=1", "there is namespace, image"),
        ("scheduler.replicas=many", "a whole number"),
        ("scheduler.mode=third", "one of second, default"),
        ("networkPolicy.enabled=yes", "true or false"),
        ("scheduler.replicas=0", "from 1 to 65535"),
        ("image=", "the name of an image, not ''"),
        ("namespace=Not_One", "the name of a namespace"),
        ("controllers.maxEvictions=some", "numbers such as 50,10%,node,spare"),
        ("resources.memory=lots", "an amount such as"),
    ):
        with pytest.raises(ValuesError, match=message):
            read_values([wrong])


def rendered(text: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """What Helm makes of a template that has nothing but conditions and values in it."""
    lines: list[str] = []
    shown = [True]
    for line in text.splitlines():
        condition = re.fullmatch(r'\{\{- if (eq )?\.Values\.(\S+)( "(\w+)")? \}\}', line)
        if condition is not None:
            value = values[condition[2]]
            shown.append(shown[-1] and (value == condition[4] if condition[1] else bool(value)))
        elif line == "{{- if ne .Release.Namespace .Values.namespace }}":
            shown.append(True)
        elif line == "{{- end }}":
            shown.pop()
        elif shown[-1]:
            line = re.sub(r"\{\{ \.Values\.(\S+) \| quote \}\}", lambda found: f'"{values[found[1]]}"', line)
            lines.append(re.sub(r"\{\{ \.Values\.(\S+) \}\}", lambda found: str(values[found[1]]), line))
    assert "{{" not in "".join(lines)
    return [one for one in yaml.safe_load_all("\n".join(lines)) if one]


@pytest.mark.parametrize(
    "settings", [{}, {"scheduler.mode": "default", "controllers.evictions": "instead", "metrics.port": 99}]
)
def test_the_chart_makes_the_same_objects(settings: dict[str, Any]) -> None:
    values = {**DEFAULTS, **settings}
    found = [one for path, text in chart_files().items() if "/" in path for one in rendered(text, values)]
    for one in found:
        if one["kind"] == "CustomResourceDefinition":
            assert one["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}

    def place(one: dict[str, Any]) -> str:
        return f"{one['kind']} {one['metadata'].get('namespace')} {one['metadata']['name']}"

    assert sorted(found, key=place) == sorted(manifests(values), key=place)


def test_the_chart_is_written_with_its_values(tmp_path: Path) -> None:
    done = run_here("install", "--chart", tmp_path / "chart")
    assert done.returncode == 0, done.stderr
    values = yaml.safe_load((tmp_path / "chart/values.yaml").read_text())
    for name, value in DEFAULTS.items():
        found = values
        for part in name.split("."):
            found = found[part]
        assert found == value
    assert yaml.safe_load((tmp_path / "chart/Chart.yaml").read_text())["appVersion"] == dray.__version__
    refused = run_here("install", "--set", "nothing=1")
    assert (refused.returncode, refused.stdout) == (2, "")


def test_nothing_asks_for_more_memory_than_it_may_use() -> None:
    for obj in manifests({**DEFAULTS, "resources.memory": "8Gi"}):
        for container in obj["spec"]["template"]["spec"]["containers"] if obj["kind"] == "Deployment" else ():
            asked, allowed = (container["resources"][which]["memory"] for which in ("requests", "limits"))
            assert asked == allowed


def test_readers_see_everything_that_is_on_the_page() -> None:
    rules = rights.reader()["rules"]
    for kind in (*FOLLOWED, *ASKED_FOR):
        granted = [
            one for one in rules if kind.group in one["apiGroups"] and {"*", kind.plural} & set(one["resources"])
        ]
        assert any({"list", "watch"} <= set(one["verbs"]) for one in granted), kind.plural
