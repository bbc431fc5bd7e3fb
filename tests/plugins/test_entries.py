"""Answers are counted before they are read: what a driver may say is bounded in entries as it is in bytes."""

from __future__ import annotations

import asyncio

import pytest
from google.protobuf.message import DecodeError, Message
from hypothesis import example, given
from hypothesis import strategies as st

from dray.plugins import contracts
from dray.plugins.entries import MOST_ENTRIES, TooManyEntries, check_entries
from dray.plugins.generated import dra_v1_pb2 as dra
from dray.plugins.generated import health_v1_pb2 as health
from dray.plugins.generated import registration_pb2 as registration
from loop_turns import LoopTurns

V1 = "v1.DRAPlugin"


def claims(count: int) -> dra.NodePrepareResourcesResponse:
    answer = dra.NodePrepareResourcesResponse()
    for number in range(count):
        answer.claims[f"uid-{number}"].error = "x"
    return answer


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (contracts.PREPARE[V1], claims(MOST_ENTRIES + 1)),
        (contracts.GET_INFO, registration.PluginInfo(supported_versions=["v"] * (MOST_ENTRIES + 1))),
        (
            contracts.WATCH_HEALTH["v1.DRAResourceHealth"],
            health.NodeWatchResourcesResponse(devices=[health.DeviceHealth()] * (MOST_ENTRIES + 1)),
        ),
    ],
    ids=["claims", "versions", "devices"],
)
def test_an_answer_with_entries_without_end_is_not_read(
    method: contracts.Method[Message, Message], answer: Message
) -> None:
    with pytest.raises(TooManyEntries):
        method.read_answer(answer.SerializeToString())


def test_an_answer_with_as_many_as_there_may_be_is_read() -> None:
    answer = claims(MOST_ENTRIES)
    assert contracts.PREPARE[V1].read_answer(answer.SerializeToString()) == answer


@pytest.mark.parametrize("group", [b"\x0b\x0c", b"\x7b\x7c"], ids=["known number", "unknown number"])
def test_nothing_hides_behind_a_group(group: bytes) -> None:
    """Readers skip it, and read what follows."""
    data = group + registration.PluginInfo(supported_versions=["v"] * (MOST_ENTRIES + 1)).SerializeToString()
    assert len(registration.PluginInfo.FromString(data).supported_versions) > MOST_ENTRIES
    with pytest.raises(TooManyEntries):
        contracts.GET_INFO.read_answer(data)


def nested(devices: int = 0, cdi_ids: int = 0) -> dra.NodePrepareResourcesResponse:
    answer = dra.NodePrepareResourcesResponse()
    found = answer.claims["uid"]
    found.devices.extend([dra.Device()] * devices)
    found.devices.add().cdi_device_ids.extend([""] * cdi_ids)
    return answer


@pytest.mark.parametrize("answer", [nested(devices=900_000), nested(cdi_ids=1_900_000)], ids=["devices", "CDI ids"])
async def test_what_is_deep_in_an_answer_is_counted_beside_the_loop_and_not_read(
    answer: dra.NodePrepareResourcesResponse,
) -> None:
    turns = LoopTurns(asyncio.get_running_loop())
    assert await contracts.PREPARE[V1].receive(answer.SerializeToString()) is None
    assert turns.longest < 0.02


async def test_a_report_on_ten_thousand_devices_is_read() -> None:
    known = health.DeviceIdentifier(pool_name="pool-of-node-1", device_name="device-0")
    one = health.DeviceHealth(
        device=known, health=health.HEALTHY, last_updated_time=1, message="x" * 90, health_check_timeout_seconds=30
    )
    answer = health.NodeWatchResourcesResponse(devices=[one] * MOST_ENTRIES)
    method = contracts.WATCH_HEALTH["v1.DRAResourceHealth"]
    assert await method.receive(answer.SerializeToString()) == answer


def test_what_is_no_message_is_for_the_reader_to_refuse() -> None:
    for data in (b"\xff" * 20, b"\x0a\xff", b"\x0a"):
        check_entries(data)
        with pytest.raises(DecodeError):
            contracts.GET_INFO.read_answer(data)


@given(st.binary(max_size=200))
@example(b"\x0b\x0c" + b"\x22\x01v" * 3)
def test_every_field_that_is_read_is_counted(data: bytes) -> None:
    """However it is written: whoever finds a way to have something read and not counted has entries without end."""
    try:
        count = len(registration.PluginInfo.FromString(data).supported_versions)
    except DecodeError:
        return
    if count:
        with pytest.raises(TooManyEntries):
            check_entries(data, count - 1)


@given(st.lists(st.text(max_size=300), min_size=1), st.text())
def test_fields_of_any_length_are_counted_one_by_one(versions: list[str], name: str) -> None:
    data = registration.PluginInfo(name=name, supported_versions=versions).SerializeToString()
    count = len(versions) + bool(name)
    check_entries(data, count)
    with pytest.raises(TooManyEntries):
        check_entries(data, count - 1)
