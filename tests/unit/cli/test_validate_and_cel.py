"""`dray validate` and `dray cel` as a user runs them: files, what is printed, exit codes."""

import json
from pathlib import Path

import pytest

from commands import run_here

EXAMPLES = Path(__file__).parents[3] / "examples"

BROKEN = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: train, namespace: ml}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu
        bogus: 1
        selectors:
        - cel:
            expression: device.driverr == "x"
"""


@pytest.mark.req("4381-230", "4381-231", "4381-262", "OCM-14", "OCM-34", "OCM-35", "OCM-36", "OCM-37")
def test_every_example_is_valid() -> None:
    folders = [
        str(folder)
        for folder in EXAMPLES.iterdir()
        if folder.is_dir() and folder.name not in ("mistakes", "monitoring")
    ]
    done = run_here("validate", "--strict", *folders)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("no problems in ")


def test_a_finding_names_file_line_object_and_field(tmp_path: Path) -> None:
    file = tmp_path / "claim.yaml"
    file.write_text(BROKEN)
    done = run_here("validate", str(file))
    assert done.returncode == 1
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"{file}:13  ResourceClaim ml/train  ")
    assert first.endswith("spec.devices.requests[0].exactly.selectors[0].cel.expression")
    assert "did you mean 'driver'?" in done.stdout
    caret = [line for line in done.stdout.splitlines() if line.strip("| ") == "^"]
    assert len(caret) == 1
    assert "1 problem, 1 warning in 1 object." in done.stdout


def test_unknown_fields_warn_and_fail_when_strict() -> None:
    valid_but_for_a_field = BROKEN.replace("driverr", "driver")
    lenient = run_here("validate", "-", stdin=valid_but_for_a_field)
    strict = run_here("validate", "--strict", "-", stdin=valid_but_for_a_field)
    assert (lenient.returncode, strict.returncode) == (0, 1)
    assert 'warning: unknown field "spec.devices.requests[0].exactly.bogus"' in lenient.stdout


def test_json_output() -> None:
    done = run_here("validate", "-o", "json", "-", stdin=BROKEN)
    report = json.loads(done.stdout)
    assert report["problems"] == 1
    assert [finding["line"] for finding in report["findings"]] == [13, 10]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "YAML"),
        ("a: 1\na: 2", "<stdin>:2: key"),
        ("[" * 5000, "nested deeper"),
        ("\x00", "control characters"),
    ],
)
def test_unreadable_input_is_exit_code_2_and_no_traceback(text: str, says: str) -> None:
    done = run_here("validate", "-", stdin=text)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.startswith("dray: <stdin>")
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_exit_code_2() -> None:
    done = run_here("validate", "no/such/file.yaml")
    assert (done.returncode, done.stderr) == (2, "dray: no/such/file.yaml: cannot be read: No such file or directory\n")


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("kind: Foo\napiVersion: v1", "unknown kind 'Foo'"),
        ("kind: ResourceClaim\napiVersion: resource.k8s.io/v7", "resource.k8s.io/v1, resource.k8s.io/v1beta2"),
        ("just text", "must be an object"),
        ("{}", "Required value"),
        (
            "kind: ResourceSlice\napiVersion: resource.k8s.io/v1\nspec: {pool: {generation: 99999999999999999999}}",
            "64 bits",
        ),
    ],
)
def test_what_is_no_known_object_is_a_finding(document: str, says: str) -> None:
    done = run_here("validate", "-", stdin=document)
    assert done.returncode == 1
    assert says in done.stdout


@pytest.mark.req("4381-246", "4381-265")
def test_cel_tries_an_expression_on_published_devices() -> None:
    expression = 'device.capacity["gpu.acme.example.com"].memory.isGreaterThan(quantity("2Gi"))'
    done = run_here("cel", expression, "-f", str(EXAMPLES / "devices" / "resource-slice-v1.yaml"))
    assert "reads capacity gpu.acme.example.com/memory" in done.stdout
    assert "worker-1/gpu-0: selected" in done.stdout
    assert "worker-1/gpu-1: not selected" in done.stdout
    assert "worker-1/card-1: error: no such key" in done.stdout
    assert done.returncode == 1


def test_cel_on_a_single_device(tmp_path: Path) -> None:
    file = tmp_path / "device.yaml"
    file.write_text("name: gpu-0\nattributes: {model: {string: H100}}\n")
    arguments = ("--device", str(file), "--driver", "gpu.example.com", "-o", "json")
    done = run_here("cel", 'device.attributes["gpu.example.com"].model == "H100"', *arguments)
    report = json.loads(done.stdout)
    assert report["devices"] == [{"device": "gpu-0", "driver": "gpu.example.com", "selected": True, "cost": 5}]
    assert done.returncode == 0


def test_cel_shows_where_an_expression_is_wrong() -> None:
    done = run_here("cel", "device.driver == 1")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("^")


def test_no_colour_in_a_pipe() -> None:
    assert "\x1b" not in run_here("validate", "-", stdin=BROKEN).stdout


@pytest.mark.parametrize("command", [(), ("validate",), ("cel",)])
def test_help_says_the_exit_codes(command: tuple[str, ...]) -> None:
    done = run_here(*command, "--help")
    assert done.returncode == 0
    assert "0" in done.stdout
    assert "xit code" in done.stdout
