"""A guided tour of dray on a cluster of its own: every command is shown as typed, with its real output.

Run it with `make demo`. It takes less than a minute, and ends with exit code 0 if every command ended as told.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
PATIENCE = 120.0
PODS = "-o custom-columns=POD:.metadata.name,NODE:.spec.nodeName,PHASE:.status.phase"
PROGRESS = "-o 'custom-columns=EVICTING:.status.conditions[0].status,STATUS:.status.conditions[0].message'"


class Step(NamedTuple):
    """One command, what to say before it, and how it should end.

    With `until`, the command is repeated quietly until it prints that, and then shown; with --watch it is shown as it
    goes on, until then.
    """

    says: str
    command: str
    exit_code: int = 0
    until: str = ""


TOUR = (
    Step(
        "Three simulated nodes with eight GPUs each, behind the Kubernetes API. Stock kubectl works:",
        "kubectl get nodes,resourceslices",
    ),
    Step(
        "Pods get devices. Fourteen trainings want a GPU each; a watchdog tolerates the maintenance that is to come:",
        "kubectl apply -f examples/demo/trainers.yaml",
    ),
    Step("", "kubectl wait --for=condition=Available deployment/trainer --timeout=2m"),
    Step("Who has which GPU is one table, merged from slices, rules and claims:", "dray get nodes"),
    Step(
        "A refusal is explained. Of two pods that want a whole node each, one has to wait:",
        "kubectl apply -f examples/demo/wide.yaml",
    ),
    Step(
        "",
        "kubectl get events --field-selector reason=FailedScheduling,involvedObject.name=wide-2 "
        "-o custom-columns=MESSAGE:.message",
        until="devices match",
    ),
    Step("The whole story, node by node:", "dray explain pod default/wide-2", exit_code=1),
    Step(
        "Capacity is planned. How many nodes of which kind would help? Nothing is changed by asking:",
        "dray scale-up -f examples/demo/node-groups.yaml",
    ),
    Step("We do without them.", "kubectl delete pod -l app=wide"),
    Step(
        "Node-1 needs service. A rule with the effect None only says who would have to leave:",
        "kubectl apply -f examples/demo/maintenance.yaml",
    ),
    Step(
        "",
        f"kubectl get devicetaintrule service-node-1 {PROGRESS}",
        until="would be evicted",
    ),
    Step(
        "Now in earnest, two pods per second. The watchdog tolerates it; a guard would hold more than 20 evictions:",
        "kubectl patch devicetaintrule service-node-1 --type=merge -p "
        """'{"spec":{"taint":{"effect":"NoExecute"}}}'""",
    ),
    Step(
        "",
        "kubectl get events --watch --field-selector reason=DeviceTaintManagerEviction "
        "-o custom-columns=EVICTED:.involvedObject.name,WHY:.message",
        until=r"(?s)(trainer.*\n){7}",
    ),
    Step(
        "The trainings have moved, the watchdog has stayed:",
        f"kubectl get pods {PODS} --field-selector spec.nodeName=node-1",
        until=r"PHASE\nwatchdog +node-1 +Running\n$",
    ),
    Step("", "kubectl wait --for=condition=Available deployment/trainer --timeout=2m"),
    Step("A node loses power. First nobody knows:", "dray nodes stop node-3"),
    Step("The GPUs of node-1 are back from service:", "kubectl delete devicetaintrule service-node-1"),
    Step("", "dray get nodes"),
    Step("Node-3 is missed, and its pods are replaced elsewhere:", "kubectl get nodes", until="node-3 +NotReady"),
    Step(
        "",
        f"kubectl get pods {PODS} -l app=trainer --field-selector spec.nodeName=node-1",
        until=r"(?s)(trainer.*){6}",
    ),
    Step(
        "Nobody has confirmed that the old ones are dead. We know that they are, and say so:",
        "kubectl taint node node-3 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
    ),
    Step("", "dray get nodes", until=r"node-3 +not ready, tainted \S+ +\d+ +\d+ +0 "),
)


def main() -> int:
    """Runs the tour. Returns 0 if every command ended as it should."""
    if shutil.which("kubectl") is None:
        print("The demo needs kubectl: run tools/ensure_kubectl.sh, or make setup.", file=sys.stderr)
        return 2
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dray-demo-") as directory, cluster(Path(directory)) as environment:
        for step in TOUR:
            if not run(step, environment):
                return 1
    say(f"That was dray, in {time.monotonic() - began:.0f} s.", "`make up` keeps such a cluster running for you.")
    return 0


@contextmanager
def cluster(directory: Path) -> Iterator[dict[str, str]]:
    """A cluster that has said that it is ready, as the environment of commands that use it."""
    options = f"--dir {directory}/state --port 0 --node-monitor-grace-period 12s --max-evictions 20"
    command = f"dray up --nodes 3 --profile gpu-8 {options}"
    say("A whole cluster in one process:", f"\n$ {command}")
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            if line.startswith("nodes "):
                break
        else:
            raise SystemExit("The demo stops: the cluster did not start.")
        yield {**environment, "KUBECONFIG": f"{directory}/state/kubeconfig", "HOME": str(directory)}
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def run(step: Step, environment: dict[str, str]) -> bool:
    """Runs a command as a user would. Says why it is not as it should be."""
    if step.says:
        say(step.says)
    print(f"\n$ {step.command}", flush=True)
    code, printed = (follow if "--watch" in step.command else repeat)(step, environment)
    if code == step.exit_code and re.search(step.until, printed):
        return True
    wanted = f"exit code {step.exit_code}" + (f" and {step.until!r}" if step.until else "")
    print(f"\nThe demo stops: exit code {code} instead of {wanted}.", file=sys.stderr)
    return False


def repeat(step: Step, environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and output of a command that ends by itself, repeated until it prints what it should."""
    deadline = time.monotonic() + PATIENCE
    while True:
        done = subprocess.run(
            shlex.split(step.command), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        if re.search(step.until, done.stdout) or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    print(done.stdout + done.stderr, end="", flush=True)
    return done.returncode, done.stdout


def follow(step: Step, environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and output of a command that goes on, shown as it comes, until it has printed what it should."""
    with subprocess.Popen(
        shlex.split(step.command), cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        patience = threading.Timer(PATIENCE, process.kill)
        patience.start()
        printed = ""
        for line in process.stdout:
            print(line, end="", flush=True)
            printed += line
            if re.search(step.until, printed):
                break
        patience.cancel()
        process.terminate()
    return step.exit_code, printed


def say(*texts: str) -> None:
    """Narrates, in bold on a terminal."""
    bold, plain = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else ("", "")
    print(f"\n{bold}{texts[0]}{plain}", *texts[1:], flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
