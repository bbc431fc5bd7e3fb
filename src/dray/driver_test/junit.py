"""A report as JUnit XML, which CI systems show: a test case for each rule."""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree

from dray.driver_test.report import DriverReport, Outcome, Result

_UNPRINTABLE: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML cannot have, and drivers say."""


def to_xml(report: DriverReport) -> bytes:
    """Broken rules are failures; rules that were not tried are skipped; advice is said in the output of its case."""
    cases = report.results
    suite = ElementTree.Element(
        "testsuite",
        name=report.driver or "driver",
        tests=str(len(cases)),
        failures=str(report.count(Outcome.FAILED)),
        errors="0",
        skipped=str(report.count(Outcome.SKIPPED)),
        time=f"{sum(result.seconds for result in cases):.3f}",
    )
    for result in cases:
        suite.append(_case(result))
    if report.output:
        ElementTree.SubElement(suite, "system-out").text = _clean("\n".join(report.output))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _case(result: Result) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname="driver-test", name=result.rule, time=f"{result.seconds:.3f}")
    match result.outcome:
        case Outcome.FAILED:
            ElementTree.SubElement(case, "failure", message=_clean(result.message)).text = result.title
        case Outcome.SKIPPED:
            ElementTree.SubElement(case, "skipped", message=_clean(result.message))
        case Outcome.ADVICE:
            ElementTree.SubElement(case, "system-out").text = _clean(f"{result.title}: {result.message}")
    return case


def _clean(text: str) -> str:
    return _UNPRINTABLE.sub("�", text)
