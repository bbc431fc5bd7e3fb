"""A short tour of dray that ends by itself: every command is shown as typed, with its real output.

Run it with `make demo`. It ends with exit code 0 if every command ended as told.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent

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
        selectors:
        - cel:
            expression: device.attribute["gpu.example.com"].model == "H100"
"""


class Step(NamedTuple):
    """One command, what to say before it, and the exit code that it should end with."""

    says: str
    command: str
    exit_code: int = 0
    stdin: str = ""


STEPS = (
    Step(
        "Manifests are checked as an API server would, without one. All examples are fine:",
        "dray validate examples/cluster examples/what-if",
    ),
    Step(
        "This claim has a typing error in its selector. Exit code 1 fails a CI job:",
        "dray validate -",
        exit_code=1,
        stdin=BROKEN,
    ),
    Step(
        "A selector can be tried on published devices:",
        """dray cel 'device.attributes["gpu.example.com"].numa == 0' -f examples/cluster/slices.yaml""",
    ),
    Step(
        "The devices of a node as the scheduler sees them: what the driver published, the admin's patch (rack) and "
        "taint rule merged in:",
        "dray devices examples/cluster --node node-3",
    ),
    Step(
        "Which devices do the pending claims get? One fits, the other does not:",
        "dray allocate examples/cluster",
        exit_code=1,
    ),
    Step(
        "Why not?",
        "dray explain claim ml/train-7 -f examples/cluster",
        exit_code=1,
    ),
    Step(
        "And if the maintenance of rack 3 was over?",
        "dray what-if -f examples/cluster --delete devicetaintrule/rack-3-maintenance",
    ),
    Step(
        "What would taking node-1 out of service do? Exit code 1 says that somebody is hit:",
        "dray what-if -f examples/cluster --apply examples/what-if/retire-node-1.yaml",
        exit_code=1,
    ),
)


def main() -> int:
    """Runs all steps. Returns 0 if every command ended with its exit code."""
    bold, plain = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else ("", "")
    for number, step in enumerate(STEPS, 1):
        print(f"\n{bold}{number}. {step.says}{plain}\n\n$ {step.command}", flush=True)
        if step.stdin:
            print("".join(f"> {line}\n" for line in step.stdin.splitlines()), flush=True)
        code = run(step)
        if code != step.exit_code:
            print(f"\nThe demo stops: exit code {code} instead of {step.exit_code}.", file=sys.stderr)
            return 1
    print(f"\n{bold}That was dray without a cluster.{plain} `dray COMMAND --help` and docs/ say more.")
    return 0


def run(step: Step) -> int:
    """Runs a command as a user would, with the interpreter that runs the demo."""
    arguments = shlex.split(step.command)[1:]
    process = [sys.executable, "-c", "from dray.cli.main import main; main()", *arguments]
    return subprocess.run(process, cwd=ROOT, check=False, input=step.stdin.encode()).returncode


if __name__ == "__main__":
    raise SystemExit(main())
