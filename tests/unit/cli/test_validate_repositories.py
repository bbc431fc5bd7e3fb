"""`dray validate` on a repository as people have them, in the forms that pipelines read; and `dray lint`."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import CliRunner, Result

from dray.api.visible import visible
from dray.cli.findings import LINT, WARNING, Finding, Report, _junit, _result
from dray.cli.main import app

ROOT = Path(__file__).parents[3]
CLAIM = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {}\n"
BAD = CLAIM.replace("spec: {}", "spec: {devices: {requests: [{name: A}]}}")
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: racks.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: racks, singular: rack, kind: Rack, listKind: RackList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, required: [units], properties: {units: {type: integer, maximum: 48}}}}
"""
RACK = "apiVersion: example.com/v1\nkind: Rack\nmetadata: {name: r}\nspec: {units: %s}\n"


def dray(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    files = {
        "chart/Chart.yaml": "name: x\nversion: 1.0.0\n",
        "chart/values.yaml": "replicas: 1\n",
        "chart/values-prod.yaml": "replicas: 3\n",
        "chart/templates/claim.yaml": "metadata: {name: {{ .Values.name }}}\n",
        "overlay/kustomization.yaml": "resources: [../base]\n",
        "loose/template.yaml": "{{- if .x }}\na: b\n{{ end }}\n",
        "base/broken.yaml": "a: [\n",
        "base/claim.yaml": BAD,
        "base/good.yaml": CLAIM,
        "base/rack.yaml": RACK % 50,
        "vendor/copy.yaml": BAD,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    (tmp_path / "crds.yaml").write_text(CRD)
    return tmp_path


def test_what_cannot_be_read_does_not_hide_the_rest(repository: Path) -> None:
    done = dray("validate", str(repository), "-o", "json")
    assert done.exit_code == 2
    assert "base/broken.yaml" in done.stderr
    found = json.loads(done.stdout)["findings"]
    notes = {Path(one["file"]).name: one["message"] for one in found if one.get("severity") == "note"}
    assert notes.keys() == {
        "Chart.yaml",
        "values.yaml",
        "values-prod.yaml",
        "claim.yaml",
        "kustomization.yaml",
        "template.yaml",
    }
    assert "helm template" in notes["claim.yaml"]
    assert "Kustomization" in notes["kustomization.yaml"]
    errors = {
        str(Path(one["file"]).relative_to(repository)) for one in found if one.get("severity", "error") == "error"
    }
    assert errors == {"base/broken.yaml", "base/claim.yaml", "base/rack.yaml", "vendor/copy.yaml"}


def test_what_a_kustomization_names_is_no_manifest_unless_it_is_a_resource(tmp_path: Path) -> None:
    """A patch looks like an object that lacks nearly everything."""
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: 3}\n"
    names = ("patches/small.yaml", "old.yaml", "config.yaml", "named.yaml", "names.yaml", "both.yaml", "whole.yaml")
    (tmp_path / "prod" / "patches").mkdir(parents=True)
    for name in names:
        (tmp_path / "prod" / name).write_text(patch)
    (tmp_path / "prod" / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "prod" / "kustomization.yaml").write_text(
        "resources: [whole.yaml, both.yaml, ../base]\n"
        "patches: [{path: patches/small.yaml}, {patch: 'kind: X'}, {path: both.yaml}, 7]\n"
        "patchesStrategicMerge: [old.yaml, 'kind: Deployment\n']\n"
        "configMapGenerator: [{name: c, files: [config.yaml, key=named.yaml]}]\n"
        "configurations: [names.yaml]\n"
        "images: {}\n"
    )
    done = dray("validate", str(tmp_path), "-o", "json")
    found = json.loads(done.stdout)["findings"]
    notes = {Path(one["file"]).name for one in found if one.get("severity") == "note"}
    assert notes == {"kustomization.yaml", "small.yaml", "old.yaml", "config.yaml", "named.yaml", "names.yaml"}
    errors = {Path(one["file"]).name for one in found if one.get("severity", "error") == "error"}
    assert errors == {"whole.yaml", "both.yaml", "loop.yaml"}
    alone = dray("validate", str(tmp_path / "prod" / "old.yaml"))
    assert (alone.exit_code, "a patch of a Kustomization" in alone.stdout) == (0, True)


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ("github", "::error file={},line=2::not valid YAML"),
        ("junit", '<failure message="Unreadable">line 2: not valid YAML'),
        ("sarif", '"uri": "{}"'),
    ],
)
def test_a_pipeline_is_told_of_a_file_that_cannot_be_read(tmp_path: Path, form: str, says: str) -> None:
    """Also if it is the only one: an empty report would look like a good one."""
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [\n")
    for others in (None, CLAIM):
        if others is not None:
            (tmp_path / "good.yaml").write_text(others)
        done = dray("validate", str(tmp_path), "-o", form)
        assert done.exit_code == 2
        assert says.format(broken) in done.stdout


@pytest.mark.parametrize("bad", ["a: [\n", "metadata: {name: x}\n", "apiVersion: v1\nkind: Pod\nspec: 1\n"])
def test_lint_looks_at_the_rest(tmp_path: Path, bad: str) -> None:
    (tmp_path / "a.yaml").write_text(bad)
    (tmp_path / "b.yaml").write_text(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n---\n"
        + CLAIM.replace("spec: {}", "spec: {devices: {requests: [{name: r, exactly: {deviceClassName: tpu}}]}}")
    )
    done = dray("lint", str(tmp_path))
    assert (done.exit_code, "a.yaml" in done.stderr, "there is no class 'tpu'" in done.stdout) == (2, True, True)
    assert "1 warning in 2 objects; 1 file or document could not be read." in done.stdout
    reasons = {one["reason"] for one in json.loads(dray("lint", str(tmp_path), "-o", "json").stdout)["findings"]}
    assert "Unreadable" in reasons


def test_a_template_that_happens_to_be_yaml_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CLAIM.replace("name: ", "labels: {n: '{{ .Index }}'}, name: "))
    done = dray("validate", str(tmp_path))
    assert "passed over: a template" in done.stdout
    assert done.exit_code == 0
    (tmp_path / "a.yaml").write_text(CLAIM.replace("name: ", "annotations: {n: '{{ .Index }}'}, name: "))
    assert dray("validate", str(tmp_path)).stdout.endswith("no problems in 1 object.\n")


@pytest.mark.parametrize("other", ["groups: []\n", "on: push\njobs: {a: 1}\n", "[{name: a}]\n"])
@pytest.mark.parametrize("command", ["validate", "lint"])
def test_settings_of_other_programs_are_no_manifests(tmp_path: Path, command: str, other: str) -> None:
    (tmp_path / "a.yaml").write_text(other)
    (tmp_path / "b.yaml").write_text(CLAIM)
    assert dray(command, str(tmp_path)).stdout.endswith("no problems in 1 object.\n")
    (tmp_path / "a.yaml").write_text("metadata: {name: x}\n")
    assert dray(command, str(tmp_path)).exit_code > 0


def test_a_link_to_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(CLAIM)
    (tmp_path / "link.yaml").symlink_to(tmp_path / "moved-away.yaml")
    assert dray("validate", str(tmp_path)).stdout == "no problems in 1 object; 1 file or document could not be read.\n"
    for command in ("validate", "lint", "devices"):
        done = dray(command, str(tmp_path))
        assert (done.exit_code, "link.yaml: cannot be read: No such file" in done.stderr) == (2, True), command


def test_files_are_skipped_and_kinds_that_nobody_knows_are_noted(repository: Path) -> None:
    options = ("--skip", "vendor", "--skip", "*/broken.yaml", "--skip", "base/claim.yaml", "--skip", "*claim.yaml")
    (repository / "crds.yaml").unlink()
    unknown = dray("validate", str(repository), *options)
    assert unknown.exit_code == 1
    assert "unknown kind 'Rack'" in unknown.stdout
    lenient = dray("validate", str(repository), *options, "--ignore-missing-schemas")
    assert lenient.exit_code == 0, lenient.stdout
    assert "note: not checked: nobody here knows this kind" in lenient.stdout


@pytest.mark.parametrize(
    ("units", "says"), [("50", "should be less than or equal to 48"), ("x", "must be of type integer")]
)
def test_objects_of_given_definitions_are_checked(repository: Path, units: str, says: str) -> None:
    file = repository / "base" / "rack.yaml"
    file.write_text(RACK % units)
    done = dray("validate", str(file), "--crd", str(repository / "crds.yaml"))
    assert (done.exit_code, says in done.stdout) == (1, True), done.stdout
    file.write_text(RACK % 40)
    assert dray("validate", "-f", str(file), "--crd", str(repository / "crds.yaml")).exit_code == 0


def test_definitions_among_the_files_count_and_unknown_fields_are_told(repository: Path) -> None:
    """In whatever order: the definition may stand after what it defines."""
    rack, crds = repository / "base" / "rack.yaml", str(repository / "crds.yaml")
    rack.write_text((RACK % 40).replace("units: 40", "units: 40, colour: red") + "extra: 1\n")
    for files in ((str(rack), crds), (crds, str(rack))):
        lenient, strict = dray("validate", *files), dray("validate", "--strict", *files)
        assert (lenient.exit_code, strict.exit_code) == (0, 1), strict.stdout
        assert "no problems, 2 warnings in 2 objects." in lenient.stdout
        assert 'unknown field "spec.colour"' in strict.stdout


def test_rules_of_definitions_are_evaluated_and_metadata_is_checked(repository: Path) -> None:
    rule = "units: {type: integer, x-kubernetes-validations: [{rule: self % 2 == 0, message: must be even}]}"
    crds, rack = repository / "crds.yaml", repository / "base" / "rack.yaml"
    crds.write_text(CRD.replace("units: {type: integer, maximum: 48}", rule))
    rack.write_text((RACK % 41).replace("name: r", "name: R"))
    done = dray("validate", str(crds), str(rack))
    assert done.exit_code == 1
    assert "must be even" in done.stdout
    assert "rack.yaml:3  Rack R  metadata.name" in done.stdout


def test_a_definition_that_no_server_takes_is_told_and_defines_nothing(repository: Path) -> None:
    crds, rack = repository / "crds.yaml", repository / "base" / "rack.yaml"
    crds.write_text(CRD.replace("type: integer", "type: intger"))
    done = dray("validate", str(crds), str(rack))
    assert done.exit_code == 1
    assert "properties[units].type" in done.stdout
    assert "unknown kind 'Rack'" in done.stdout
    given = dray("validate", "--crd", str(crds), str(rack))
    assert given.exit_code == 2
    assert "--crd: " in given.stderr


def test_values_whose_chart_is_elsewhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "values-prod.yaml").write_text("replicas: 3\n")
    (tmp_path / "values-claim.yaml").write_text(BAD)
    done = dray("validate", str(tmp_path))
    assert "values for templates" in done.stdout
    assert "2 problems in 1 object." in done.stdout, "an object in a file with such a name is still checked"


def test_the_forms_that_pipelines_read(repository: Path) -> None:
    file = str(repository / "base" / "claim.yaml")
    github = dray("validate", file, "-o", "github").stdout.splitlines()[0]
    assert github.startswith(f"::error file={file},line=4,title=ResourceClaim c::ResourceClaim c: spec.devices")
    suite = ElementTree.fromstring(dray("validate", file, "-o", "junit").stdout)
    assert (suite.get("failures"), suite[0].get("name")) == ("1", file)
    sarif = json.loads(dray("validate", file, "-o", "sarif").stdout)
    (run,) = sarif["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == (file, 4)
    assert {one["ruleId"] for one in run["results"]} == {one["id"] for one in run["tool"]["driver"]["rules"]}
    clean = ElementTree.fromstring(dray("validate", str(repository / "base" / "good.yaml"), "-o", "junit").stdout)
    assert (clean.get("tests"), clean.get("failures")) == ("1", "0")


def test_the_hook_and_the_action_call_what_is_there() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert dray(*hook["entry"].split()[1:], str(ROOT / "examples" / "devices")).exit_code == 0
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    options = action["inputs"]["options"]["default"].split()
    assert dray("validate", "-o", "github", *options, str(ROOT / "examples" / "devices")).exit_code == 0


def test_the_action_gives_dray_the_patterns_of_its_options_as_they_are(tmp_path: Path) -> None:
    """The shell put files in their place: all but the first one were checked instead of skipped."""
    step = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][-1]
    program = tmp_path / "bin" / "dray"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(CLAIM)
    told = {"OPTIONS": "--strict --skip *.yaml", "PATHS": "[ab].yaml ."}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=tmp_path,
        env={"PATH": f"{program.parent}:{os.environ['PATH']}", **told},
        capture_output=True,
        text=True,
        check=True,
    )
    words = ["validate", "-o", "github", "--strict", "--skip", "*.yaml", "a.yaml", "b.yaml", "."]
    assert done.stdout.split() == words


@pytest.mark.parametrize("command", ["validate", "lint"])
def test_patterns_skip_files_and_directories_by_name_or_path(tmp_path: Path, command: str) -> None:
    for name in ("base/charts/a.yaml", "base/good.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(CLAIM)
    for pattern in ("charts", "charts/", "*/charts", str(tmp_path / "base" / "charts"), f"{tmp_path}/base/charts/"):
        done = dray(command, str(tmp_path), "--skip", pattern)
        assert (done.stdout.splitlines()[-1], done.stderr) == ("no problems in 1 object.", ""), pattern


@pytest.mark.parametrize("command", ["validate", "lint"])
def test_a_pattern_that_skips_nothing_is_named(tmp_path: Path, command: str) -> None:
    """It may be misspelt, and what it was to skip is checked, or it is not needed any more."""
    (tmp_path / "good.yaml").write_text(CLAIM)
    done = dray(command, str(tmp_path), "--skip", "chrts/", "--skip", "good.yaml", "--skip", "g*")
    assert done.stderr == "dray: --skip 'chrts/' matches none of the files, so it skips nothing.\n"
    assert done.exit_code == 0


def test_a_namespace_in_which_there_is_nothing_is_not_said_to_be_in_order_without_a_word() -> None:
    cluster = str(ROOT / "examples" / "cluster")
    assert "nothing in namespace mll, so nothing was looked at" in dray("lint", cluster, "-n", "mll").stderr
    assert dray("lint", cluster, "-n", "ml").stderr == ""


ODD_NAMES = ("a b#c%d?.yaml", "a:b.yaml", "é.yaml", "x\x01y.yaml", os.fsdecode(b"x\xff.yaml"))


def test_files_of_any_name_are_told_to_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are not UTF-8 ended in a traceback; XML and URIs had characters that neither can have."""
    monkeypatch.chdir(tmp_path)
    for name in ODD_NAMES:
        Path(name).write_text(BAD)
    forms = {form: dray("validate", ".", "-o", form) for form in ("json", "junit", "sarif")}
    assert {done.exit_code for done in forms.values()} == {1}
    told = {one["file"] for one in json.loads(forms["json"].stdout)["findings"]}
    assert told == set(ODD_NAMES)
    (run,) = json.loads(forms["sarif"].stdout)["runs"]
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]]
    assert {os.fsdecode(unquote_to_bytes(one)) for one in places} == set(ODD_NAMES)
    assert all(re.fullmatch(r"(?:[\w./~-]|%[0-9A-F]{2})+", one, re.ASCII) for one in places)
    suite = ElementTree.fromstring(forms["junit"].stdout)
    assert {case.get("name") for case in suite} == {visible(name) for name in ODD_NAMES}


def test_counts_of_junit_are_those_of_its_cases_and_a_case_fails_once(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(BAD.replace("name: c", "name: C") + "extra: 1\n")
    (tmp_path / "values.yaml").write_text("a: 1\n")
    (tmp_path / "good.yaml").write_text(CLAIM)
    suite = ElementTree.fromstring(dray("validate", str(tmp_path), "-o", "junit").stdout)
    cases = suite.findall("testcase")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (str(len(cases)), "1", "0")
    assert {case.get("classname") for case in cases} == {"dray validate"}
    failing, passed_over = ([child.tag for child in case] for case in cases)
    assert (failing, passed_over) == (["failure", "system-out"], ["system-out"])
    (told,) = suite.iter("failure")
    assert (told.get("message"), len(str(told.text).splitlines())) == ("FieldValueInvalid, FieldValueRequired", 3)


def test_what_is_in_no_file_has_a_place_by_its_object() -> None:
    homeless = Finding("", None, "Pod ml/p", "FitsNowhere", "", "fits no node group", WARNING)
    assert _result(homeless)["locations"] == [
        {"logicalLocations": [{"fullyQualifiedName": "Pod ml/p", "kind": "object"}]}
    ]
    (case,) = ElementTree.fromstring(_junit(Report([homeless], 1, LINT)))
    assert case.get("name") == "Pod ml/p"


ODD = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: tpu}
spec: {selectors: [{cel: {expression: device.driver == "tpu.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: all}
spec: {deviceSelector: {driver: gpu.example.com}, taint: {key: k, effect: None}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: none}
spec: {deviceSelector: {pool: nowhere}, taint: {key: k, effect: None}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: odd, namespace: ml}
spec:
  devices:
    requests:
    - name: a
      exactly:
        deviceClassName: gpu
        tolerations: [{key: other, operator: Exists}]
        selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].rack == "r1"'}}]
    - {name: b, exactly: {deviceClassName: gpus}}
"""


def test_lint_names_what_is_valid_and_not_meant(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(ODD)
    cluster = str(ROOT / "examples" / "cluster")
    assert dray("validate", str(file)).exit_code == 0
    done = dray("lint", cluster, str(file), "-o", "json")
    assert done.exit_code == 1, done.stderr
    document = json.loads(done.stdout)
    found = {(one["object"], one["reason"]): one for one in document["findings"] if one["file"] == str(file)}
    claim = "ResourceClaim ml/odd"
    assert found.keys() == {
        ("DeviceTaintRule all", "SelectsEverything"),
        ("DeviceTaintRule none", "SelectsNothing"),
        ("DeviceClass tpu", "NobodyPublishes"),
        (claim, "UnknownClass"),
        (claim, "MatchesNothing"),
        (claim, "MayFail"),
    }
    assert found[(claim, "MayFail")]["line"] == 27
    assert found[(claim, "MayFail")]["message"].count("orValue()") == 1, "the advice is given once"
    text = dray("lint", cluster, str(file)).stdout.splitlines()[-1]
    assert "warnings in" in text
    assert "no problems" not in text, "it says that there are none, after it named some"
    assert dray("lint", str(ROOT / "examples" / "quota")).exit_code == 0


def test_lint_says_of_devices_only_what_it_can_know(tmp_path: Path) -> None:
    """A selector sees the devices of its class, which must be known, for which the selectors before it hold."""
    file = tmp_path / "claims.yaml"
    rack = """device.attributes["gpu.example.com"].rack == "r1\""""
    requests = []
    for name, before in (("gpu", "false"), ("elsewhere", "true")):
        selectors = ", ".join(f"{{cel: {{expression: '{text}'}}}}" for text in (before, rack))
        requests.append(f"{{name: {name}, exactly: {{deviceClassName: {name}, selectors: [{selectors}]}}}}")
    file.write_text(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c, namespace: ml}\n"
        f"spec: {{devices: {{requests: [{', '.join(requests)}]}}}}\n"
    )
    done = dray("lint", str(ROOT / "examples" / "cluster"), str(file), "-o", "json")
    found = [one["reason"] for one in json.loads(done.stdout)["findings"] if one["file"] == str(file)]
    assert found == ["UnknownClass"]


def test_lint_names_pods_that_fit_no_node_group() -> None:
    folders = [str(ROOT / "examples" / name) for name in ("cluster", "scale-up")]
    done = dray("lint", *folders)
    assert done.exit_code in (0, 1), done.stderr
    assert "problems in" in done.stdout


GROUP = "apiVersion: dray.dev/v1\nkind: NodeGroup\nmetadata: {name: more}\nspec: {fromNode: NODE}\n"
WAITS = """---
apiVersion: v1
kind: Pod
metadata: {name: held-back, namespace: ml}
spec: {schedulingGates: [{name: quota}], containers: [{name: main, image: image}]}
"""
CLASS = """---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: racked}
spec: {selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].rack == "r1"'}}]}
"""


def test_lint_tells_a_class_that_fails_on_devices_and_nothing_of_pods_that_wait_for_other_things(
    tmp_path: Path,
) -> None:
    (tmp_path / "odd.yaml").write_text(GROUP.replace("NODE", "node-1") + WAITS + CLASS)
    done = dray("lint", str(ROOT / "examples" / "cluster"), str(tmp_path), "-o", "json")
    found = {(one["object"], one["reason"]) for one in json.loads(done.stdout)["findings"]}
    assert ("DeviceClass racked", "MayFail") in found
    assert ("Pod ml/held-back", "FitsNowhere") not in found


def test_lint_goes_on_without_a_node_group_that_is_like_no_node(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text(GROUP.replace("NODE", "nowhere") + CLASS)
    done = dray("lint", str(ROOT / "examples" / "cluster"), str(tmp_path))
    assert done.exit_code == 2
    assert "DeviceClass racked" in done.stdout
    assert "there is no node nowhere in the cluster. What fits no node group was not looked at." in done.stderr


@pytest.mark.parametrize("blank", ["", "\n", "# to be written\n", "---\n---\n"])
def test_a_file_in_which_there_is_no_object_is_named(tmp_path: Path, blank: str) -> None:
    (tmp_path / "a.yaml").write_text(blank)
    done = dray("validate", str(tmp_path / "a.yaml"))
    assert "a.yaml" in done.stdout
    assert "passed over: there is no object in it" in done.stdout
    assert done.exit_code == 0


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("broken", ["kind: [", 'a: "', "a: 1\n b: 2", "a: \x01", "a: *x", "a: 1\na: 2"])
def test_a_broken_document_does_not_hide_those_around_it(tmp_path: Path, broken: str, ends: str) -> None:
    def named(name: str, more: str = "") -> str:
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n{more}"

    text = "\n---\n".join(
        [named("a", "data: {k: 1}"), f"# {'x' * 9}\n{broken}", named("b"), named("c", "data: {k: 2}")]
    )
    file = tmp_path / "some.yaml"
    file.write_bytes(text.replace("\n", ends).encode())
    lines = text.replace("\r", "").splitlines()
    for words, stdin in (((str(file),), None), (("-",), file.read_bytes())):
        done = CliRunner().invoke(app, ["validate", *words, "-o", "json"], input=stdin)
        assert done.exit_code == 2
        report = json.loads(done.stdout)
        assert report["objects"] == 3
        told = {finding["object"]: finding["line"] for finding in report["findings"] if finding["object"]}
        assert {lines[line - 1] for line in told.values()} == {"data: {k: 1}", "data: {k: 2}"}
        (unreadable,) = (finding["line"] for finding in report["findings"] if not finding["object"])
        assert lines.index(f"# {'x' * 9}") < unreadable <= lines.index("metadata: {name: b}")
