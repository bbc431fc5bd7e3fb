"""`dray driver-test` as people run it, the pytest plugin, and the example drivers under the kit."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from dray.cli.main import app
from dray.driver_test import CommandSubject, all_rules
from dray.driver_test.stage import NAMESPACE, Places
from dray_process import DrayProcess, run_dray
from live_server import LiveServer
from patience import PATIENCE, eventually, eventually_async
from server_process import server_on_thread

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "drivers"
FAKE_GPU = f"{sys.executable} {EXAMPLES / 'fake_gpu.py'}"
SOME = ("plugin-info", "prepare-is-idempotent", "cdi-ids-are-valid", "restart-with-prepared-claims", "clean-stop")


def chosen(*rules: str) -> list[str]:
    """Options for some rules."""
    return [word for rule in rules for word in ("--rule", rule)]


def test_a_command_is_started_restarted_and_judged() -> None:
    done = run_dray("driver-test", "--command", FAKE_GPU, *chosen(*SOME))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^✔ ([a-z-]+)", done.stdout, re.MULTILINE) == list(SOME)
    assert done.stdout.splitlines()[-1] == "gpu.example.com: 5 rules kept, 0 broken, 0 advised, 0 not tried."


def test_json_is_for_programs_and_broken_rules_for_exit_codes(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(
        (EXAMPLES / "fake_gpu.py").read_text().replace("driver.Edits(env=env,", "driver.Edits(env={'': ''},")
    )
    command = f"{sys.executable} {broken}"
    rules = chosen("plugin-info", "prepare-is-idempotent")
    done = run_dray("driver-test", "--command", command, *rules, "-o", "json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert (report["driver"], report["passed"]) == ("gpu.example.com", False)
    assert report["counts"] == {"passed": 1, "failed": 1, "advice": 0, "skipped": 0}
    assert [it["outcome"] for it in report["results"]] == ["passed", "failed"]
    assert "must be NAME=value" in report["results"][1]["message"]


@pytest.fixture
def root() -> Iterator[Path]:
    """A directory with a short name, for sockets."""
    path = Path(tempfile.mkdtemp(prefix="dray-"))
    (path / "registry").mkdir()
    yield path
    shutil.rmtree(path)


def test_a_running_driver_is_judged_through_its_socket(root: Path) -> None:
    with server_on_thread(root / "state") as (server, instance):
        server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        places = ["--node-name", "n", "--kubeconfig", str(instance.kubeconfig), "--cdi-dir", str(root / "cdi")]
        own = ["--plugin-dir", str(root / "plugin"), "--registry-dir", str(root / "registry")]
        process = subprocess.Popen([*FAKE_GPU.split(), *places, *own], stderr=subprocess.DEVNULL)
        try:
            socket = root / "registry" / "gpu.example.com-reg.sock"
            rules = chosen("slices-published", "prepare-is-idempotent", "restart-with-prepared-claims")
            done = run_dray("driver-test", "--socket", socket, *places, *rules)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "2 rules kept, 0 broken, 0 advised, 1 not tried" in done.stdout
            assert "cannot restart a driver that it did not start" in done.stdout
            assert_nothing_is_left(server)
        finally:
            process.terminate()
            process.wait(PATIENCE)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "give either --command, to start a driver, or --socket, for one that runs."),
        (["--command", "x", "--socket", "y"], "give either --command"),
        (["--command", "/no/such/program"], "cannot run /no/such/program: No such file or directory."),
        (["--command", "x {nonsense}"], "braces that stand for nothing; known are node, kubeconfig"),
        (["--command", "'"], "the command cannot be read"),
        (["--command", "true", "--rule", "nonsense"], 'there is no rule "nonsense"; there are plugin-info, '),
        (["--command", "true", "--parameters", "{"], "--parameters is not JSON"),
        (["--command", "true", "--many", "x"], '--many must be NAME=VALUE, not "x".'),
        (["--socket", "/tmp/x"], "the kubeconfig of the cluster"),
        (["--socket", "/tmp/x", "--kubeconfig", "/nowhere"], "/nowhere"),
    ],
)
def test_what_cannot_be_tested_is_said_in_one_line(arguments: list[str], why: str) -> None:
    done = CliRunner().invoke(app, ["driver-test", *arguments])
    assert done.exit_code == 2, done.stdout
    assert done.stderr.startswith("dray: ")
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_driver_that_ends_at_once_is_quoted() -> None:
    code = "print('no hardware'); raise SystemExit(3)"
    done = run_dray("driver-test", "--command", f'{sys.executable} -c "{code}"')
    assert done.returncode == 1
    assert done.stdout.count("the driver ended with code 3: no hardware") == 1
    assert f"0 rules kept, 1 broken, 0 advised, {len(all_rules()) - 1} not tried" in done.stdout


DYING = """
import os, sys
sys.argv = [sys.argv[0]]
exec(open({example!r}).read().split("if __name__")[0])
class Dies(FakeGpu):
    def {method}(self, claim, *rest):
        print("the card fell off the bus", flush=True)
        {act}
driver.run(Dies())
"""


def fake_gpu_that(tmp_path: Path, method: str, act: str) -> str:
    script = tmp_path / "driver.py"
    script.write_text(DYING.format(example=str(EXAMPLES / "fake_gpu.py"), method=method, act=act))
    return f"{sys.executable} {script}"


def test_a_driver_that_dies_is_one_root_cause_and_the_rest_is_not_tried(tmp_path: Path) -> None:
    rules = ("plugin-info", "prepare-allocated-devices", "prepare-is-idempotent", "unprepare-unknown-claim")
    command = fake_gpu_that(tmp_path, "prepare", "os._exit(5)")
    junit = tmp_path / "report.xml"
    done = run_dray("driver-test", "--command", command, *chosen(*rules), "--junit", junit)
    assert done.returncode == 1, done.stdout + done.stderr
    marks = re.findall(r"^([✔✘–!]) ([a-z-]+)", done.stdout, re.MULTILINE)
    assert marks == list(zip("✔✘––", rules, strict=True))
    assert done.stdout.count("the driver ended with code 5") == 2, "at the rule, and as the cause"
    kept, cause, broken = done.stdout.partition("The cause:")
    assert "✔ plugin-info" in kept
    assert "✘" not in kept, "what comes of it is told after the cause"
    assert "  the card fell off the bus\n" in broken.partition("✘")[0]
    assert cause
    assert "1 rule kept, 1 broken, 0 advised, 2 not tried" in done.stdout
    suite = ElementTree.parse(junit).getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["4", "1", "2"]
    assert [[child.tag for child in case] for case in suite.iter("testcase")] == [
        [],
        ["failure"],
        ["skipped"],
        ["skipped"],
    ]
    assert "fell off the bus" in (suite.findtext("system-out") or "")


def test_the_report_for_machines_is_whole_though_people_stop_reading(tmp_path: Path) -> None:
    rules = ("plugin-info", "prepare-allocated-devices")
    junit = tmp_path / "report.xml"
    reader, writer = os.pipe()
    os.close(reader)
    process = DrayProcess("driver-test", "--command", FAKE_GPU, *chosen(*rules), "--junit", junit, stdout=writer)
    os.close(writer)
    process.wait(PATIENCE)
    suite = ElementTree.parse(junit).getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "skipped")] == ["2", "0", "0"]
    assert process.returncode == 0


def test_errors_of_unprepare_are_not_those_of_prepare(tmp_path: Path) -> None:
    command = fake_gpu_that(tmp_path, "unprepare", "raise ValueError('stuck')")
    rules = ("prepare-allocated-devices", "prepare-is-idempotent", "reuse-without-unprepare")
    done = run_dray("driver-test", "--command", command, *chosen(*rules), "-o", "json")
    assert done.returncode == 1, done.stdout + done.stderr
    results = {one["rule"]: one for one in json.loads(done.stdout)["results"]}
    broken = [name for name, one in results.items() if one["outcome"] == "failed"]
    assert broken == ["unprepare-after-use"], results
    assert results["unprepare-after-use"]["message"] == "NodeUnprepareResources failed: ValueError: stuck"


async def test_a_driver_that_leaves_others_behind_has_ended(tmp_path: Path) -> None:
    """They have its standard output, too, which therefore never ends."""
    left = tmp_path / "pid"
    subject = CommandSubject(f"sh -c 'echo oops; sleep 600 & echo $! > {left}; exit 3'")
    places = Places("n", tmp_path, tmp_path, tmp_path, tmp_path, tmp_path)
    await subject.start(places, {})
    await eventually_async(subject.problem)
    assert subject.problem() == "the driver ended with code 3: oops"
    await subject.kill()
    await eventually_async(lambda: not is_alive(int(left.read_text())))


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has asked about its end does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_running_driver_that_dies_is_one_root_cause(root: Path, tmp_path: Path) -> None:
    with server_on_thread(root / "state") as (server, instance):
        server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        places = ["--node-name", "n", "--kubeconfig", str(instance.kubeconfig), "--cdi-dir", str(root / "cdi")]
        command = fake_gpu_that(tmp_path, "prepare", "os._exit(5)").split()
        own = {"NODE_NAME": "n", "KUBECONFIG": str(instance.kubeconfig), "CDI_DIR": str(root / "cdi")}
        own |= {"PLUGIN_DIR": str(root / "plugin"), "REGISTRY_DIR": str(root / "registry")}
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | own)
        try:
            socket = root / "registry" / "gpu.example.com-reg.sock"
            rules = ("plugin-info", "prepare-allocated-devices", "prepare-refuses-other-claims", "pool-generations")
            done = run_dray("driver-test", "--socket", socket, *places, *chosen(*rules))
            assert process.wait(PATIENCE) == 5
        finally:
            process.kill()
            process.wait(PATIENCE)
        assert done.returncode == 1, done.stdout + done.stderr
        marks = re.findall(r"^([✔✘–!]) ([a-z-]+)", done.stdout, re.MULTILINE)
        assert marks == list(zip("✔✘––", rules, strict=True))
        assert f"The cause: nobody listens on {socket} any more; after that no rule can be tried." in done.stdout
        assert_nothing_is_left(server)


def assert_nothing_is_left(server: LiveServer) -> None:
    """Nothing of a trial; a namespace that is on its way out is the namespace controller's to end."""
    assert server.request("GET", "/apis/resource.k8s.io/v1/resourceclaims").json["items"] == []
    found = server.request("GET", f"/api/v1/namespaces/{NAMESPACE}")
    assert found.code == 404 or "deletionTimestamp" in found.json["metadata"]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, None])
def test_a_trial_leaves_nothing_behind_however_it_ends(root: Path, ending: signal.Signals | None) -> None:
    with server_on_thread(root / "state") as (server, instance):
        server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        places = ["--node-name", "n", "--kubeconfig", str(instance.kubeconfig), "--timeout", "600" if ending else "1"]
        kit = DrayProcess("driver-test", "--socket", str(root / "x"), *places, stdout=subprocess.DEVNULL)
        if ending is not None:
            eventually(lambda: server.request("GET", f"/api/v1/namespaces/{NAMESPACE}").code == 200)
            kit.send_signal(ending)
        assert kit.wait(PATIENCE) != 0
        assert_nothing_is_left(server)


def test_a_namespace_that_somebody_else_made_stays(root: Path) -> None:
    with server_on_thread(root / "state") as (server, instance):
        server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        places = ("--node-name", "n", "--kubeconfig", instance.kubeconfig, "--timeout", "1")
        assert run_dray("driver-test", "--socket", root / "x", *places).returncode != 0
        kept = server.request("GET", f"/api/v1/namespaces/{NAMESPACE}").json["metadata"]
        assert "deletionTimestamp" not in kept


def test_a_node_that_is_not_there_is_not_made(root: Path) -> None:
    with server_on_thread(root / "state") as (server, instance):
        done = run_dray("driver-test", "--socket", root / "x", "--kubeconfig", instance.kubeconfig, "--node-name", "n")
        assert done.returncode == 2, done.stdout
        assert done.stderr == "dray: there is no node n; --node-name says where the driver is.\n"
        assert server.request("GET", "/api/v1/nodes").json["items"] == []


def test_nothing_was_tried_is_no_success() -> None:
    done = run_dray("driver-test", "--command", FAKE_GPU, *chosen("many-devices"))
    assert done.returncode == 2, done.stdout
    assert "0 rules kept, 0 broken, 0 advised, 1 not tried" in done.stdout
    assert done.stderr == "dray: none of the rules could be tried.\n"


def test_a_driver_that_breaks_a_rule_is_quoted(tmp_path: Path) -> None:
    command = fake_gpu_that(tmp_path, "prepare", "raise ValueError('stuck')")
    rules = chosen("prepare-allocated-devices", "prepare-is-idempotent", "unprepare-unknown-claim")
    junit = tmp_path / "report.xml"
    done = run_dray("driver-test", "--command", command, *rules, "--junit", junit)
    assert done.returncode == 1, done.stdout
    broken, _, rest = done.stdout.partition("The last that the driver said:\n")
    assert re.findall("^[✔✘–!]", broken, re.MULTILINE) == ["✘"]
    said, _, rest = rest.partition("\n\n")
    assert "  the card fell off the bus" in said.splitlines()
    assert re.findall("^[✔✘–!]", rest, re.MULTILINE) == ["–", "✔"]
    assert "fell off the bus" in (ElementTree.parse(junit).getroot()[0].findtext("system-out") or "")


@pytest.mark.parametrize("command", ["sh -c /no/such/driver", "sh -c 'exec /etc/passwd'"])
def test_a_shell_that_cannot_start_the_driver_is_no_driver(command: str) -> None:
    done = run_dray("driver-test", "--command", command, *chosen("plugin-info"))
    assert done.returncode == 2, done.stdout
    assert done.stderr.startswith("dray: the command cannot be started: ")


def test_the_rules_are_listed() -> None:
    done = CliRunner().invoke(app, ["driver-test", "--list"])
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [rule.name for rule in all_rules()]


def test_stopping_the_kit_stops_the_driver(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = tmp_path / "driver.py"
    script.write_text(f"import os, time\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    kit = DrayProcess("driver-test", "--command", f"{sys.executable} {script}", stdout=subprocess.DEVNULL)
    eventually(lambda: mark.exists() and mark.read_text())
    kit.send_signal(signal.SIGTERM)
    assert kit.wait(PATIENCE) != 0
    assert not Path("/proc", mark.read_text()).exists()


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A driver author's tests."""
    (tmp_path / "test_mine.py").write_text("def test_driver(driver_rule):\n    driver_rule()\n")
    return tmp_path


def run_pytest(suite: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The tests of a driver author, with no other plugin than the kit's."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "dray.pytest_plugin", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
    return subprocess.run(
        [*command, str(suite)], capture_output=True, text=True, timeout=240, check=False, cwd=suite, env=environment
    )


def test_the_pytest_plugin_has_one_test_per_rule(suite: Path) -> None:
    absent = f'{sys.executable} -c "raise SystemExit(3)"'
    (suite / "pytest.ini").write_text(f"[pytest]\ndriver_command = {absent}\n")
    done = run_pytest(suite)
    assert f"1 failed, {len(all_rules()) - 1} skipped" in done.stdout, done.stdout + done.stderr
    assert "the driver ended with code 3" in done.stdout
    assert "test_driver[plugin-info]" in done.stdout
    assert "Traceback" not in done.stdout


def test_python_is_the_one_that_runs_the_tests(suite: Path) -> None:
    """`.venv/bin/pytest` needs no activated environment, as the README of a new driver has it."""
    told = 'python -c "import sys; print(sys.prefix); raise SystemExit(3)"'
    (suite / "pytest.ini").write_text(f"[pytest]\ndriver_command = {told}\n")
    done = run_pytest(suite, PATH="/usr/bin:/bin")
    assert f"the driver ended with code 3: {sys.prefix}\n" in done.stdout, done.stdout + done.stderr


def test_the_pytest_plugin_passes_a_good_driver(suite: Path) -> None:
    (suite / "test_mine.py").write_text(
        "import pytest\n"
        "from dray.driver_test import DriverReport, Outcome, Result, all_rules\n"
        "@pytest.fixture(scope='session')\n"
        "def driver_report():\n"
        "    outcomes = [Outcome.SKIPPED, Outcome.ADVICE, *[Outcome.PASSED] * 100]\n"
        "    return DriverReport('x', tuple(Result(r.name, r.title, o) for r, o in zip(all_rules(), outcomes)))\n"
        "def test_driver(driver_rule):\n    driver_rule()\n"
    )
    done = run_pytest(suite)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(all_rules()) - 1} passed, 1 skipped" in done.stdout


@pytest.mark.soak
@pytest.mark.parametrize(
    ("example", "options"), [("fake_gpu", ["--many", "FAKE_GPU_BOARDS=30"]), ("network_interfaces", [])]
)
def test_the_examples_keep_all_rules(example: str, options: list[str]) -> None:
    command = f"{sys.executable} {EXAMPLES / f'{example}.py'}"
    done = run_dray("driver-test", "--command", command, *options, timeout=300)
    assert done.returncode == 0, done.stdout
    assert " 0 broken, 0 advised" in done.stdout
