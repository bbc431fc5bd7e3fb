"""Every rule of the kit: a driver that keeps all of them passes, one that breaks a rule fails that rule."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from dray.api.meta import ObjectMeta
from dray.api.resource import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from dray.driver_test import DriverReport, Outcome, Stage, Trial, all_rules, find_rules, run_trial
from dray.driver_test.pools import generation_problems
from dray.driver_test.stage import Places, SliceChange
from local_server import local_server
from patience import PATIENCE
from small_driver import SmallDriver

LOOKS = 40
"""After which a trial gives up, where something never comes: driver and kit have as many turns on a busy machine."""
NEVER = {
    "foreign-health",
    "publishes-nothing",
    "incomplete-pool",
    "same-names",
    "publishes-once",
    "no-split",
    "silent-health",
}


@contextlib.asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """A stage on a server in memory."""
    root = Path(tempfile.mkdtemp(prefix="dray-"))
    try:
        async with local_server(with_roles=False) as server:
            plugins = root / "plugins"
            places = Places("node-1", root / "none", root / "registry", plugins, plugins / "driver", root / "cdi")
            for path in (places.registry, places.plugin, places.cdi):
                path.mkdir(parents=True)
            made = Stage(server.client(), places)
            await made.make_node()
            following = asyncio.create_task(made.run())
            try:
                await made.ready()
                yield made
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
    finally:
        shutil.rmtree(root)


def few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes with the looks that a trial takes, and not by itself; a stream is listened to for a second."""
    moments = itertools.count(step=PATIENCE / LOOKS)
    monkeypatch.setattr("dray.driver_test.trial.time", SimpleNamespace(monotonic=lambda: next(moments)))
    monkeypatch.setattr("dray.driver_test.rules.registration.HEALTH_SECONDS", 1.0)


async def judge(*rules: str, breaks: tuple[str, ...] = (), devices: int = 3) -> DriverReport:
    """The report about a small driver; all rules if none is named."""
    async with stage() as made:
        trial = Trial(made, SmallDriver(made.client, *breaks, devices=devices), timeout=PATIENCE)
        trial.many = {"DEVICES": "130"}
        return await run_trial(trial, find_rules(rules))


async def test_a_driver_that_keeps_all_rules_passes() -> None:
    report = await judge()
    assert report.driver == "small.example.com"
    assert [(it.rule, it.message) for it in report.results if it.outcome is not Outcome.PASSED] == [
        ("health-reports", "no health service is advertised")
    ]
    assert len(report.results) == len(all_rules())
    assert report.passed


BROKEN = [
    ("type", "plugin-info", 'type is "DevicePlugin"'),
    ("name", "plugin-info", 'name is "Not_A_Name"'),
    ("relative-endpoint", "plugin-info", "must be an absolute path"),
    ("no-version", "advertised-versions", r"supported_versions is \[1.0.0\]"),
    ("unserved-version", "advertised-versions", "v1beta1.DRAPlugin is advertised, but .*UNIMPLEMENTED"),
    ("fails-when-empty", "advertised-versions", "a call without claims fails with INVALID_ARGUMENT"),
    ("one-version", "both-versions", "v1beta1.DRAPlugin is not advertised"),
    ("ends-when-refused", "refused-registration", "refused"),
    ("silent-health", "health-reports", "no health report came"),
    ("foreign-health", "health-reports", "nowhere/nothing is reported, which is not published"),
    ("failing-health", "health-reports", "watching fails"),
    ("publishes-nothing", "slices-published", "no complete pool was published within 120 s"),
    ("incomplete-pool", "slices-published", "1 slices of the newest generation, and resourceSliceCount says 2"),
    ("same-names", "slices-published", "has device same twice"),
    ("no-owner", "slices-owned-by-node", "no owner reference"),
    ("always-writes", "slices-left-alone", "although nothing had changed"),
    ("publishes-once", "slices-after-wipe", "the slices did not come back"),
    ("publishes-once", "slices-put-right", "the devices did not come back"),
    ("no-split", "many-devices", "no complete pools with more than 128 devices"),
    ("other-device", "prepare-allocated-devices", "device pool/d-0 was allocated, and the answer has .*other"),
    ("other-request", "prepare-allocated-devices", 'request "request"'),
    ("fresh-ids", "prepare-is-idempotent", "the first answer was"),
    ("beta-differs", "versions-agree", "v1.DRAPlugin answers"),
    ("first-claim-only", "prepare-answers-every-claim", "the answer has 1 entries"),
    ("prepares-anything", "prepare-refuses-other-claims", "a claim that does not exist was prepared"),
    ("no-uid-check", "prepare-refuses-other-claims", "whose uid is not the one"),
    ("sticky-failure", "prepare-after-failure", "still refused after"),
    ("not-reentrant", "prepare-concurrently", "busy"),
    ("ends-on-strange-input", "strange-claims", "UNAVAILABLE|does not answer any more|ended with code 139"),
    ("unprepare-unknown-fails", "unprepare-is-idempotent", "it is not prepared"),
    ("unprepare-unknown-fails", "unprepare-unknown-claim", "it is not prepared"),
    ("unprepare-answers-nothing", "unprepare-unknown-claim", "must have an entry for every claim"),
    ("unprepare-reads-claim", "unprepare-deleted-claim", "no such claim"),
    ("unprepare-unknown-fails", "unprepare-after-failure", "it is not prepared"),
    ("prepares-once", "prepare-again", "used up"),
    ("holds-devices", "reuse-without-unprepare", "the device is in use"),
    ("unqualified-ids", "cdi-ids-are-valid", "is not qualified"),
    ("no-cdi-file", "cdi-ids-are-valid", "is not defined in"),
    ("invalid-spec", "cdi-ids-are-valid", "containerEdits"),
    ("shared-ids", "cdi-devices-are-exclusive", "example.com/small=shared"),
    ("leaves-files", "cdi-devices-are-removed", "stayed behind"),
    ("forgets", "unprepare-after-restart", "stayed behind in the CDI directory"),
    ("fresh-ids", "restart-with-prepared-claims", "before the restart"),
    ("hangs-on-stop", "clean-stop", "had not ended"),
    ("keeps-sockets", "clean-stop", "small-reg.sock stayed behind"),
]


@pytest.mark.parametrize(("broken", "rule", "why"), BROKEN)
async def test_a_driver_that_breaks_a_rule_is_found_out(
    broken: str, rule: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken in NEVER:
        few_looks(monkeypatch)
    report = await judge(rule, breaks=(broken,))
    result = next(one for one in report.results if one.rule == rule)
    advice = {it.name for it in all_rules() if it.level == "should"}
    assert result.outcome is (Outcome.ADVICE if rule in advice else Outcome.FAILED), result
    assert re.search(why, result.message), result.message


SKIPPED, FAILED, PASSED = Outcome.SKIPPED, Outcome.FAILED, Outcome.PASSED
SLICES = ("slices-published", "slices-owned-by-node", "slices-left-alone", "slices-after-wipe", "slices-put-right")


async def test_a_driver_that_publishes_nothing_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    few_looks(monkeypatch)
    report = await judge(*SLICES, "prepare-allocated-devices", "prepare-again", breaks=("publishes-nothing",))
    assert [it.outcome for it in report.results] == [FAILED, *[SKIPPED] * 6]
    assert PATIENCE <= sum(it.seconds for it in report.results) < 2 * PATIENCE, "and waited for once"


async def test_a_driver_that_prepares_nothing_is_told_once() -> None:
    names = ("prepare-allocated-devices", "prepare-is-idempotent", "versions-agree", "prepare-after-failure")
    more = ("unprepare-is-idempotent", "unprepare-unknown-claim", "cdi-devices-are-removed")
    report = await judge(*names, *more, breaks=("prepares-nothing",))
    assert [it.outcome for it in report.results] == [FAILED, SKIPPED, SKIPPED, SKIPPED, SKIPPED, PASSED, SKIPPED]
    assert report.results[0].message == "NodePrepareResources failed for a claim: the card is on fire"


async def test_what_unprepare_does_is_not_told_of_prepare() -> None:
    """Whether it fails, or the driver ends in it."""
    names = ("prepare-allocated-devices", "versions-agree")
    report = await judge(*names, breaks=("ends-in-unprepare",))
    assert [(it.rule, it.outcome) for it in report.results] == [
        ("prepare-allocated-devices", PASSED),
        ("unprepare-after-use", FAILED),
        ("versions-agree", SKIPPED),
    ]
    assert report.cause == report.results[1].message == "the driver ended with code 4: the bolt is stuck"
    report = await judge(*names, breaks=("unprepare-fails", "holds-devices"), devices=1)
    assert [(it.rule, it.outcome) for it in report.results] == [
        ("prepare-allocated-devices", PASSED),
        ("versions-agree", SKIPPED),
        ("unprepare-after-use", FAILED),
    ]


async def test_a_driver_that_ends_has_refused_nothing() -> None:
    report = await judge("prepare-refuses-other-claims", breaks=("ends-on-unknown-claim",))
    assert [it.outcome for it in report.results] == [FAILED]
    assert report.cause == "the driver ended with code 139: it said nothing"


async def test_answers_are_told_in_words() -> None:
    """No names of Python's."""
    for broken, rule in (("fresh-ids", "prepare-is-idempotent"), ("beta-differs", "versions-agree")):
        (result,) = (await judge(rule, breaks=(broken,))).results
        assert re.search(r"pool/d-0 for request as example.com/small=\S+, ", result.message), result.message
        assert "(" not in result.message


GENERATIONS = ("slices-put-right", "pool-generations", "generation-of-every-change")


def published(name: str, *devices: str, generation: int = 1, count: int = 2) -> ResourceSlice:
    pool = ResourcePool(name="pool", generation=generation, resource_slice_count=count)
    spec = ResourceSliceSpec(driver="d", pool=pool, devices=tuple(Device(name=it) for it in devices))
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


@pytest.mark.req("4381-09")
@pytest.mark.parametrize(
    ("writes", "problem"),
    [
        ([published("a", "x"), published("b", "y"), published("a", "x", "z")], ""),
        (
            [published("a", "x"), published("b", "y"), published("a", "y"), published("b", "x")],
            "slices a and b got other devices or counters, but pool pool kept its generation",
        ),
        (
            [published("a", "x"), published("b", "y"), published("a", "y", generation=2), published("b", generation=2)],
            "",
        ),
        (
            [published("a", "x", generation=2), published("b", generation=2), published("b", "y", generation=1)],
            "slice b went back to generation 1 while 2 is in use",
        ),
        (
            [published("a", "x"), published("b", "y"), published("c", "z")],
            "pool pool got 3 slices, and resourceSliceCount says 2",
        ),
    ],
    ids=["one slice", "two slices", "new generation", "older generation", "too many"],
)
def test_the_history_of_a_pool_is_judged(writes: list[ResourceSlice], problem: str) -> None:
    there: dict[str, ResourceSlice] = {}
    changes = []
    for write in writes:
        changes.append(SliceChange(there.get(write.metadata.name), write))
        there[write.metadata.name] = write
    assert generation_problems(changes) == ([problem] if problem else [])


@pytest.mark.req("4381-09")
async def test_one_slice_that_changes_without_a_new_generation_is_advised_against() -> None:
    report = await judge(*GENERATIONS, breaks=("same-generation",))
    assert [it.outcome for it in report.results] == [Outcome.PASSED, Outcome.PASSED, Outcome.ADVICE]
    assert "pool pool kept its generation" in report.results[2].message


async def test_a_driver_that_says_that_it_has_no_health_is_believed() -> None:
    (result,) = (await judge("health-reports", breaks=("unserved-health",))).results
    assert result.outcome is Outcome.SKIPPED
    assert "no health to report" in result.message


def test_every_rule_can_be_broken() -> None:
    tried = {rule for _, rule, _ in BROKEN} | set(GENERATIONS)
    assert {rule.name for rule in all_rules()} - tried == set()


async def test_rules_that_need_more_devices_or_cdi_are_not_tried() -> None:
    report = await judge("prepare-answers-every-claim", "cdi-ids-are-valid", breaks=("no-cdi-ids",), devices=1)
    assert [it.outcome for it in report.results] == [Outcome.SKIPPED, Outcome.SKIPPED]
    assert report.passed


async def test_a_driver_that_never_registers_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Absent(SmallDriver):
        async def start(self, places: Places, extra: object) -> None:
            del places, extra

        async def stop(self, patience: float) -> bool:
            return patience > 0

    few_looks(monkeypatch)
    async with stage() as made:
        report = await run_trial(Trial(made, Absent(made.client), timeout=PATIENCE), all_rules())
    assert [it.outcome for it in report.results] == [Outcome.FAILED, *[Outcome.SKIPPED] * (len(report.results) - 1)]
    assert not report.passed
    assert PATIENCE <= sum(it.seconds for it in report.results) < 2 * PATIENCE
    assert "no registration socket appeared" in report.results[0].message
