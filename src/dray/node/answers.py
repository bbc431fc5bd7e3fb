"""Whether a driver's answer can be believed. Pure: plain values in, prepared devices or a problem per claim out.

A driver is another program: it may leave claims out, answer for others, name devices that were not allocated, or send
anything else that the protocol can carry. Nothing of a bad answer is used; the claim is tried again (4381-167, 168).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from dray.api.resource.claim import request_parts
from dray.cdi import CdiError, DeviceId, is_vendor_of
from dray.node.claim_record import ClaimRecord, DriverPart, PreparedDevice

LONGEST_ERROR: Final = 512
MOST_CDI_IDS: Final = 256
MOST_DEVICES: Final = 1_000
"""In an answer for one claim, which has 32 at most: each may be named for several requests."""
LONGEST_ANSWER: Final = 64 * 1024
"""Letters in all that a driver says of a claim. It is on record, with all other claims of the node, until the end."""
MOST_OF_DRIVER: Final = 2 * 1024 * 1024
"""Letters in all that a driver says of all claims of the node: the record of them is written with each that comes."""


class ClaimAnswer(msgspec.Struct, frozen=True):
    """What a driver says of one claim. With an error the devices do not count."""

    devices: tuple[PreparedDevice, ...] = ()
    error: str = ""


class PreparedClaims(msgspec.Struct, frozen=True):
    """By claim uid: what can be used, and why the others cannot."""

    accepted: dict[str, tuple[PreparedDevice, ...]]
    problems: dict[str, str]


def judge_prepare(
    driver: str,
    asked: Sequence[ClaimRecord],
    answers: Mapping[str, ClaimAnswer],
    vendors: Collection[str] = (),
    said: int = 0,
) -> PreparedClaims:
    """Which of the claims that a driver was asked to prepare it has prepared.

    It may name CDI devices of vendors that are named after it or it after them, and of `vendors`. `said` is how much it
    has said of all claims of the node that are on record, these among them.
    """
    verdict = _judge("NodePrepareResources", driver, asked, answers)
    for record in asked:
        devices = verdict.accepted.get(record.uid)
        problem = ""
        if devices is not None:
            part = record.drivers[driver]
            problem = _device_problem(part, devices) or _vendor_problem(driver, devices, vendors)
            more = sum(device.length for device in devices) - part.length
            if not problem and more > 0 and said + more > MOST_OF_DRIVER:
                problem = f"more than {MOST_OF_DRIVER} letters about all claims of this node together"
            said += 0 if problem else more
        if problem:
            del verdict.accepted[record.uid]
            verdict.problems[record.uid] = f"driver {driver} answered for ResourceClaim {record.name}: {problem}"
    return verdict


def judge_unprepare(driver: str, asked: Sequence[ClaimRecord], answers: Mapping[str, ClaimAnswer]) -> PreparedClaims:
    """Which of the claims that a driver was asked to unprepare it has unprepared."""
    return _judge("NodeUnprepareResources", driver, asked, answers)


def _judge(
    method: str, driver: str, asked: Sequence[ClaimRecord], answers: Mapping[str, ClaimAnswer]
) -> PreparedClaims:
    known = {record.uid for record in asked}
    stranger = next((uid for uid in answers if uid not in known), None)
    if stranger is not None:
        # Who answers for what was not asked has mixed claims up: none of it can be relied on.
        problem = f"{method} of driver {driver} returned a result for unknown claim UID {stranger[:64]!r}"
        return PreparedClaims({}, {record.uid: problem for record in asked})
    accepted, problems = {}, {}
    for record in asked:
        answer = answers.get(record.uid)
        if answer is None:
            problems[record.uid] = f"{method} of driver {driver} skipped ResourceClaim {record.name}"
        elif answer.error:
            problems[record.uid] = f"{method} failed for ResourceClaim {record.name}: {answer.error[:LONGEST_ERROR]}"
        else:
            accepted[record.uid] = answer.devices
    return PreparedClaims(accepted, problems)


def _vendor_problem(driver: str, devices: Sequence[PreparedDevice], vendors: Collection[str]) -> str:
    for device in devices:
        for cdi_id in device.cdi_ids:
            vendor = DeviceId.parse(cdi_id).vendor
            if vendor not in vendors and not is_vendor_of(vendor, driver):
                return (
                    f"CDI device {cdi_id[:LONGEST_ERROR]} is of vendor {vendor}, not of the driver's own; "
                    f"dray node --cdi-vendor {driver}={vendor} would allow it"
                )
    return ""


def _device_problem(part: DriverPart, devices: Sequence[PreparedDevice]) -> str:
    allocated = set(part.allocated)
    if sum(device.length for device in devices) > LONGEST_ANSWER:
        return f"more than {LONGEST_ANSWER} letters about its devices"
    if sum(len(device.cdi_ids) for device in devices) > MOST_CDI_IDS:
        return f"more than {MOST_CDI_IDS} CDI devices"
    for device in devices:
        if (device.pool, device.device) not in allocated:
            return f"device {device.device[:64]!r} of pool {device.pool[:64]!r} is not allocated to it"
        for request in device.requests:
            if request_parts(request)[0] not in part.requests:
                return f"device {device.device} is for request {request[:64]!r}, for which the driver has no device"
        for cdi_id in device.cdi_ids:
            try:
                DeviceId.parse(cdi_id)
            except CdiError as error:
                return str(error)[:LONGEST_ERROR]
    return ""
