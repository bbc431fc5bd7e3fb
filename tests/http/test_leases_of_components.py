"""Who works, of several schedulers or controllers: who lost its lease stands by, and goes on when it has it again."""

from __future__ import annotations

import re
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from dray.api.status import ApiError
from dray.cli import component
from dray.reconcile import VirtualClock, leader
from dray_process import DrayProcess
from live_server import LiveServer
from patience import PATIENCE, eventually

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@pytest.mark.parametrize(
    ("name", "metric"), [("scheduler", "scheduler_pending_pods"), ("controllers", "workqueue_depth")]
)
def test_who_lost_its_lease_goes_on_when_it_has_it_again(
    server: LiveServer, name: str, metric: str, tmp_path: Path
) -> None:
    log, lease = tmp_path / "log", f"of-{name}"
    words = (name, "--lease", lease, "--metrics-port", "0", "--kubeconfig", str(server.kubeconfig))
    with log.open("w") as sink, DrayProcess(*words, stdout=sink, stderr=subprocess.STDOUT) as process:
        try:
            eventually(lambda: "leading as" in log.read_text())
            held = server.request("GET", f"{LEASES}/{lease}").json["spec"]
            assert held["leaseDurationSeconds"] == leader.SHORT_SECONDS
            taken = {"spec": {"holderIdentity": "another"}}
            server.request("PATCH", f"{LEASES}/{lease}", taken, "application/merge-patch+json")
            eventually(lambda: log.read_text().count("leading as") >= 2)
            assert f"standing by: lease {lease} " in log.read_text()
            found = re.search(r"http://\S+/metrics", log.read_text())
            assert found is not None
            with urllib.request.urlopen(found[0], timeout=PATIENCE) as answer:
                assert metric in answer.read().decode()
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0, log.read_text()


class Answering:
    """A server that says of itself, one after the other, what it was given."""

    def __init__(self, *answers: str | Exception) -> None:
        self._answers = list(answers)

    async def server_version(self) -> str:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        ("v1.37.0+dray-0.1.0", leader.SHORT_SECONDS),
        ("v1.37.0", leader.USUAL_SECONDS),
        (ApiError(403, "Forbidden", "no"), leader.USUAL_SECONDS),
    ],
)
async def test_leases_are_short_where_the_server_is_made_for_it(answer: Any, seconds: int) -> None:
    said: list[str] = []
    found = await component._default_lease_seconds(Answering(answer), VirtualClock(), said.append)  # type: ignore[arg-type]
    assert (found, said) == (seconds, [])


async def test_a_server_that_is_away_is_waited_for() -> None:
    class Clock:
        async def sleep(self, _seconds: float) -> None:
            pass

    said: list[str] = []
    server = Answering(OSError("away"), OSError("away"), ApiError(503, "ServiceUnavailable", "soon"), "v1.37.0")
    found = await component._default_lease_seconds(server, Clock(), said.append)  # type: ignore[arg-type]
    assert (found, said) == (leader.USUAL_SECONDS, ["away", "soon"])
