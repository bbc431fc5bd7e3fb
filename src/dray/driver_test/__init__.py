"""The driver conformance kit: plays kubelet and API server against any DRA driver, and says which rules it keeps.

    stage      a cluster for the trial: an API server, a node, claims, and all that happened to slices
    subject    the driver under test: a command that the kit starts and stops, or a driver that runs already
    kubelet    what a node does: finds the socket, registers the driver, calls it
    rules/     one coroutine per rule; it returns, or raises Broken or NotApplicable
    trial      runs rules one after the other and collects a report
    session    a whole run, from options to a report: for `dray driver-test` and for `dray.pytest_plugin`

The driver is a process on the other side of a socket; nothing here depends on how it is written. May import
`dray.driver` and below; the API server is given to it (`stage.Serve`).
"""

from dray import extras

extras.need("driver", "the conformance kit for drivers")

from dray.driver_test.report import DriverReport, Outcome, Result
from dray.driver_test.rule import Level, Rule, all_rules, find_rules
from dray.driver_test.stage import Serve, Served, Stage, StageError, external_stage, own_stage
from dray.driver_test.subject import CommandSubject, RunningSubject, Subject, SubjectError
from dray.driver_test.trial import Trial, run_trial

__all__ = [
    "CommandSubject",
    "DriverReport",
    "Level",
    "Outcome",
    "Result",
    "Rule",
    "RunningSubject",
    "Serve",
    "Served",
    "Stage",
    "StageError",
    "Subject",
    "SubjectError",
    "Trial",
    "all_rules",
    "external_stage",
    "find_rules",
    "own_stage",
    "run_trial",
]
