"""The driver conformance kit (`dray.driver_test`) as tests: one per rule, for a driver's own test suite.

    def test_driver(driver_rule):
        driver_rule()

Run with `pytest --driver-command "python my_driver.py"`, or set `driver_command` in the pytest configuration. The
driver is tried once, when the first of these tests runs; each test then says what came out for its rule.

pytest loads this module at every start, so it imports nothing of dray until a test asks for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dray.driver_test.report import Report

COMMAND = "driver_command"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the command comes from."""
    about = "the DRA driver that tests with the fixture driver_rule try"
    parser.getgroup("dray").addoption("--driver-command", default="", help=about)
    parser.addini(COMMAND, about, default="")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per rule."""
    if "driver_rule" not in metafunc.fixturenames:
        return
    from dray.driver_test.rule import all_rules

    metafunc.parametrize("driver_rule", [rule.name for rule in all_rules()], indirect=True)


@pytest.fixture(scope="session")
def driver_report(request: pytest.FixtureRequest) -> Report:
    """The report of the driver, made once. Override it to test a driver in another way."""
    from dray.driver_test import session
    from dray.driver_test.rule import all_rules

    command = request.config.getoption("--driver-command") or request.config.getini(COMMAND)
    if not command:
        raise pytest.UsageError("give --driver-command, or set driver_command in the pytest configuration")
    return asyncio.run(session.run(session.Options(command=str(command)), all_rules()))


@pytest.fixture
def driver_rule(request: pytest.FixtureRequest, driver_report: Report) -> Callable[[], None]:
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
