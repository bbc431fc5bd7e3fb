"""For pytest: clusters as fixtures, and the driver conformance kit (`dray.driver_test`) as tests, one per rule.

    @pytest.mark.dray(nodes=4, profile="gpu-8")
    def test_operator(dray_cluster):            # fresh; dray_module_cluster and dray_session_cluster are shared
        dray_cluster.apply("pod.yaml")

    pytestmark = pytest.mark.dray(nodes=4)      # of a module: for dray_module_cluster, too

    @pytest.fixture(scope="session")            # in conftest.py: for dray_session_cluster
    def dray_session_options():
        return {"nodes": 4}

    def test_driver(driver_rule):
        driver_rule()

Run the latter with `pytest --driver-command "python my_driver.py"`, or set `driver_command` in the pytest
configuration. The driver is tried once, when the first of these tests runs; each test then says what came out for its
rule.

pytest loads this module at every start, so it imports nothing of dray until a test asks for it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dray.driver_test.report import DriverReport
    from dray.testing import Cluster

COMMAND = "driver_command"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the command comes from."""
    about = "the DRA driver that tests with the fixture driver_rule try"
    parser.getgroup("dray").addoption("--driver-command", default="", help=about)
    parser.addini(COMMAND, about, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Tells pytest of the marker."""
    config.addinivalue_line("markers", "dray(nodes=1, profile='gpu-8'): what the fixture dray_cluster is to be like")


@pytest.fixture
def dray_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A fresh cluster for one test; the marker `dray` says with how many nodes, and of what profile."""
    yield from _as_marked(request)


@pytest.fixture(scope="module")
def dray_module_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster for all tests of a module; the marker `dray` in its `pytestmark` says what it is like."""
    yield from _as_marked(request)


def _as_marked(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    from dray.testing import cluster

    marker = request.node.get_closest_marker("dray") or pytest.mark.dray().mark
    with cluster(*marker.args, **marker.kwargs) as running:
        yield running


@pytest.fixture(scope="session")
def dray_session_options() -> dict[str, Any]:
    """What `dray_session_cluster` is like: arguments of `dray.testing.cluster`. Override it in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def dray_session_cluster(dray_session_options: dict[str, Any]) -> Iterator[Cluster]:
    """A cluster for all tests of a process: with xdist, one for each worker."""
    from dray.testing import cluster

    with cluster(**dray_session_options) as running:
        yield running


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per rule."""
    if "driver_rule" not in metafunc.fixturenames:
        return
    from dray.driver_test.rule import all_rules

    metafunc.parametrize("driver_rule", [rule.name for rule in all_rules()], indirect=True)


@pytest.fixture(scope="session")
def driver_report(request: pytest.FixtureRequest) -> DriverReport:
    """The report of the driver, made once. Override it to test a driver in another way."""
    from dray.all_in_one.trial_server import serve_trial
    from dray.driver_test import session
    from dray.driver_test.rule import all_rules

    command = request.config.getoption("--driver-command") or request.config.getini(COMMAND)
    if not command:
        raise pytest.UsageError("give --driver-command, or set driver_command in the pytest configuration")
    with pytest.MonkeyPatch.context() as patch:  # `python` is the one that runs the tests, on whatever path it is
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        return asyncio.run(session.run(session.SessionOptions(serve=serve_trial, command=str(command)), all_rules()))


@pytest.fixture
def driver_rule(request: pytest.FixtureRequest, driver_report: DriverReport) -> Callable[[], None]:
    """Call it to check one rule: it fails if the driver breaks the rule, and skips if the rule was not tried."""
    from dray.driver_test.report import Outcome

    name: str = request.param

    def check() -> None:
        result = next(it for it in driver_report.results if it.rule == name)
        if result.outcome is Outcome.SKIPPED:
            pytest.skip(result.message)
        if result.outcome is Outcome.FAILED:
            pytest.fail(f"{result.title}\n{result.message}", pytrace=False)

    return check
