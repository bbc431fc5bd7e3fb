"""Records of claims, what a pod may do with claims, and which answers of drivers are believed. Pure rules."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import builders
from dray.api.generated.core import Pod
from dray.api.resource import ResourceClaim
from dray.files import Directory
from dray.node import checkpoint
from dray.node.answers import MOST_DEVICES, MOST_OF_DRIVER, ClaimAnswer, judge_prepare, judge_unprepare
from dray.node.checkpoint import FILE, Found, State
from dray.node.claim_record import PREPARE, UNPREPARE, ClaimBook, ClaimRecord, DriverPart, PreparedDevice, new_record
from dray.node.device_status import resource_statuses
from dray.node.driver_calls import _prepared
from dray.node.health import HealthTable
from dray.node.pod_claims import PodClaim, Refused, cdi_ids, check_claim, pod_claims
from dray.plugins.generated import dra_v1_pb2 as messages
from local_server import typed

names = st.text("abc", min_size=1, max_size=3)
devices = st.builds(
    PreparedDevice,
    names,
    names,
    st.lists(names, max_size=2).map(tuple),
    st.lists(names.map(lambda name: f"example.com/gpu={name}"), max_size=2).map(tuple),
    st.none() | names,
)
parts = st.builds(
    DriverPart,
    st.lists(st.tuples(names, names), min_size=1, max_size=3).map(tuple),
    st.lists(names, max_size=2).map(tuple),
    st.lists(st.sampled_from((PREPARE, UNPREPARE, "*")), max_size=2).map(tuple),
    st.booleans(),
    st.lists(devices, max_size=3).map(tuple),
)
records = st.builds(
    ClaimRecord,
    names,
    names,
    names,
    st.dictionaries(names, parts, max_size=3),
    st.lists(names).map(tuple),
    st.booleans(),
)
states = st.builds(State, names, st.lists(records, max_size=4).map(tuple))


@given(states)
def test_a_checkpoint_reads_as_it_was_written(state: State) -> None:
    assert checkpoint.decode(checkpoint.encode(state)) == state


@given(states, st.data())
def test_any_changed_byte_of_a_checkpoint_is_noticed(state: State, data: st.DataObject) -> None:
    good = checkpoint.encode(state)
    at = data.draw(st.integers(0, len(good) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != good[at]))
    bad = good[:at] + bytes([byte]) + good[at + 1 :]
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / FILE).write_bytes(bad)
        found = checkpoint.load(Path(directory), "boot")
    assert found.state in (state, State("boot"))
    assert found.problem or found.state == state


@given(records, st.dictionaries(names, st.builds(ClaimAnswer, st.lists(devices).map(tuple), st.text(max_size=3))))
def test_only_devices_that_were_allocated_are_accepted(record: ClaimRecord, answers: dict[str, ClaimAnswer]) -> None:
    for driver, part in record.drivers.items():
        verdict = judge_prepare(driver, [record], answers)
        assert verdict.accepted.keys() | verdict.problems.keys() == {record.uid}
        assert not verdict.accepted.keys() & verdict.problems.keys()
        for accepted in verdict.accepted.values():
            assert {(one.pool, one.device) for one in accepted} <= set(part.allocated)


def test_every_claim_needs_an_answer_to_unprepare_too() -> None:
    asked = [ClaimRecord("ns", name, name, {}) for name in ("a", "b", "c")]
    verdict = judge_unprepare("d", asked, {"a": ClaimAnswer(), "b": ClaimAnswer(error="x" * 2000)})
    assert set(verdict.accepted) == {"a"}
    assert verdict.problems["c"].endswith("skipped ResourceClaim c")
    assert len(verdict.problems["b"]) < 600


def claim(*results: dict[str, Any], owner: str = "", reserved: str = "") -> ResourceClaim:
    meta: dict[str, Any] = {"uid": "claim-uid"}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}]
    status: dict[str, Any] = {"allocation": {"devices": {"results": list(results)}}} if results else {}
    if reserved:
        status["reservedFor"] = [{"resource": "pods", "name": "p", "uid": reserved}]
    return builders.typed(builders.claim(meta=meta, status=status), ResourceClaim)


def result(request: str, device: str, driver: str = "d", *, skips: tuple[str, ...] = ()) -> dict[str, Any]:
    names = {"request": request, "driver": driver, "pool": "p", "device": device}
    return {**names, "skipNodeOperations": list(skips)} if skips else names


def test_an_operation_is_skipped_only_if_all_devices_of_the_driver_say_so() -> None:
    made = new_record(
        claim(
            result("a", "1", skips=(PREPARE, UNPREPARE)),
            result("b", "2", skips=(PREPARE,)),
            result("c/x", "3", "other"),
        )
    )
    assert made.drivers["d"].allocated == (("p", "1"), ("p", "2"))
    assert (made.drivers["d"].needs(PREPARE), made.drivers["d"].needs(UNPREPARE)) == (False, True)
    assert made.drivers["other"].requests == ("c",)
    assert not made.prepared
    assert made.with_answer("other", ()).prepared


def pod(*claims: dict[str, Any], statuses: tuple[dict[str, Any], ...] = (), **status: Any) -> Pod:
    told = {"resourceClaimStatuses": list(statuses), **status}
    return builders.typed(builders.pod(meta={"uid": "pod-uid"}, claims=claims, status=told), Pod)


def test_which_claims_a_pod_has() -> None:
    direct = {"name": "direct", "resourceClaimName": "c1"}
    template = {"name": "made", "resourceClaimTemplateName": "t"}
    made = pod(direct, template, statuses=({"name": "made", "resourceClaimName": "p-made-xyz"},))
    assert pod_claims(made) == (PodClaim("direct", "c1"), PodClaim("made", "p-made-xyz", from_template=True))
    assert pod_claims(pod(template, statuses=({"name": "made"},))) == ()
    with pytest.raises(Refused, match="claim made: no ResourceClaim has been made from template t yet"):
        pod_claims(pod(template))
    extended = {"resourceClaimName": "ext", "requestMappings": []}
    assert pod_claims(pod(extendedResourceClaimStatus=extended)) == (PodClaim("", "ext"),)


@pytest.mark.req("4381-157")
@pytest.mark.parametrize(
    ("found", "from_template", "why"),
    [
        (claim(result("a", "1"), owner="pod-uid", reserved="pod-uid"), True, ""),
        (claim(result("a", "1"), reserved="pod-uid"), False, ""),
        (claim(result("a", "1"), owner="another", reserved="pod-uid"), True, "was not created for pod default/p"),
        (claim(result("a", "1"), reserved="another"), False, "is not allowed to use ResourceClaim c"),
        (claim(reserved="pod-uid"), False, "is not allocated"),
    ],
)
def test_which_claims_a_pod_may_use(found: ResourceClaim, from_template: bool, why: str) -> None:
    wanted = PodClaim("x", "c", from_template)
    if not why:
        check_claim(pod(), wanted, found)
        return
    with pytest.raises(Refused, match=why):
        check_claim(pod(), wanted, found)


def test_a_driver_names_devices_of_its_own_vendor_and_of_those_that_the_operator_allows() -> None:
    part = DriverPart((("pool", "gpu-0"),), ("r",))
    record = ClaimRecord("default", "c", "uid", {"gpu.example.com": part})
    answers = {"uid": ClaimAnswer((PreparedDevice("pool", "gpu-0", ("r",), ("other.org/gpu=0",), None),))}
    refused = judge_prepare("gpu.example.com", [record], answers)
    assert refused.accepted == {}
    assert "dray node --cdi-vendor gpu.example.com=other.org would allow it" in refused.problems["uid"]
    assert judge_prepare("gpu.example.com", [record], answers, ("other.org",)).accepted.keys() == {"uid"}


@pytest.mark.parametrize(
    "devices",
    [
        (PreparedDevice("pool", "gpu-0", ("r",), (f"example.com/gpu={'x' * 100_000}",), None),),
        (PreparedDevice("pool", "gpu-0", ("r",), (), "x" * 100_000),),
        (PreparedDevice("pool", "gpu-0", ("r",) * 50_000, (), None),),
        (PreparedDevice("pool", "gpu-0", ("r",), (), None),) * 10_000,
    ],
    ids=["id", "share", "requests", "devices"],
)
def test_an_answer_without_end_is_not_put_on_record(devices: tuple[PreparedDevice, ...]) -> None:
    """The record of all claims of a node would become too large to be read again."""
    part = DriverPart((("pool", "gpu-0"),), ("r",))
    record = ClaimRecord("default", "c", "uid", {"gpu.example.com": part})
    verdict = judge_prepare("gpu.example.com", [record], {"uid": ClaimAnswer(devices)})
    assert verdict.accepted == {}
    assert len(verdict.problems["uid"]) < 1000


def test_what_a_driver_says_of_all_claims_together_is_bounded_and_can_be_read_again(tmp_path: Path) -> None:
    """Each answer may be as long as one may be: of those on record, no agent would find one after a restart."""
    drivers, book = [f"gpu-{number}.example.com" for number in range(8)], ClaimBook()
    refused: dict[str, int] = dict.fromkeys(drivers, 0)
    for number in range(40):
        parts = {driver: DriverPart((("p", "d"),), ("r",)) for driver in drivers}
        book.put(ClaimRecord("default", f"c-{number}", f"uid-{number}", parts))
        for driver in drivers:
            asked = book.get(f"uid-{number}")
            assert asked is not None
            answer = ClaimAnswer((PreparedDevice("p", "d", ("r",), (), "\x01" * 60_000),))
            verdict = judge_prepare(driver, [asked], {asked.uid: answer}, said=book.said(driver))
            refused[driver] += len(verdict.problems)
            for devices in verdict.accepted.values():
                book.put(asked.with_answer(driver, devices))
    assert all(book.said(driver) <= MOST_OF_DRIVER for driver in drivers)
    assert set(refused.values()) == {40 - MOST_OF_DRIVER // 60_010}
    state = State("boot", tuple(book))
    checkpoint._replace(Directory.open(tmp_path), state)
    assert checkpoint.load(tmp_path, "boot") == Found(state)
    for record in book:
        book.drop(record.uid)
    assert not any(book.said(driver) for driver in drivers)


def test_a_driver_that_has_said_too_much_may_say_the_same_again_or_less() -> None:
    part = DriverPart((("p", "d"),), ("r",))
    said = PreparedDevice("p", "d", ("r",), (), "x" * 1000)
    record = ClaimRecord("default", "c", "uid", {"d.example.com": part}).with_answer("d.example.com", (said,))
    for length, is_taken in ((1000, True), (999, True), (1001, False)):
        answer = {"uid": ClaimAnswer((PreparedDevice("p", "d", ("r",), (), "x" * length),))}
        verdict = judge_prepare("d.example.com", [record], answer, said=MOST_OF_DRIVER)
        assert bool(verdict.accepted) == is_taken
    assert "all claims of this node together" in verdict.problems["uid"]


def test_devices_of_extended_resources_are_shown_with_their_claim() -> None:
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "r"}
    amounts = {"example.com/gpu": "1"}
    container = {"name": "main", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
    mine = typed(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "default", "uid": "pod-uid"},
            "spec": {"containers": [container]},
            "status": {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": [mapping]}},
        }
    )
    assert isinstance(mine, Pod)
    book = ClaimBook()
    device = PreparedDevice("p", "1", ("r",), ("d/gpu=1",))
    book.put(new_record(claim(result("r", "1"))).with_answer("d", (device,)))
    assert cdi_ids(mine, mine.spec.containers[0], book) == ("d/gpu=1",)
    [shown] = resource_statuses(mine, book, HealthTable())["main"]
    assert (shown.name, [one.resource_id for one in shown.resources]) == ("claim:c/r", ["d/gpu=1"])


def test_what_a_driver_says_of_a_claim_is_bounded_before_it_is_looked_at() -> None:
    """A million devices are two of the four megabytes that gRPC takes, and four seconds of the agent's loop."""
    many = messages.NodePrepareResourceResponse(devices=[messages.Device()] * (MOST_DEVICES + 1))
    long = messages.NodePrepareResourceResponse(devices=[messages.Device(request_names=[""] * 200_000)])
    for answer in (many, long):
        assert _prepared(answer) == ClaimAnswer(
            error="the driver names more than 1000 devices, or says too much of them"
        )
    one = messages.NodePrepareResourceResponse(devices=[messages.Device(pool_name="p", device_name="d")], error="no")
    assert _prepared(one) == ClaimAnswer((PreparedDevice("p", "d"),), "no")
