"""Findings about manifests, and the forms in which people and pipelines read them: text, GitHub, JUnit, SARIF."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from dray.cli import output
from dray.cli.terminal import visible_lines
from dray.prose.wording import count

ERROR: Final = "error"
WARNING: Final = "warning"
NOTE: Final = "note"
LINT: Final = "lint"
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


class FindingFormat(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    JUNIT = "junit"
    SARIF = "sarif"


class Finding(msgspec.Struct, omit_defaults=True):
    """One problem with one object, as `-o json` prints it. Severities: error, warning, note."""

    file: str
    line: int | None
    object: str
    reason: str
    field: str
    message: str
    severity: str = ERROR
    excerpt: str = ""


class Report(msgspec.Struct, frozen=True):
    """All findings of so many objects."""

    findings: Sequence[Finding]
    objects: int
    command: str = "validate"
    unreadable: int = 0
    """Files of which nothing is known."""

    @property
    def errors(self) -> int:
        """How many are errors."""
        return sum(finding.severity == ERROR for finding in self.findings)


def print_report(report: Report, format_: FindingFormat, kind: str) -> None:
    """Prints in whatever form is wanted."""
    if format_ is FindingFormat.JSON:
        value = {"objects": report.objects, "problems": report.errors, "findings": msgspec.to_builtins(report.findings)}
        output.print_json(value, kind)
    elif format_ is FindingFormat.GITHUB:
        print("".join(f"{_github(finding)}\n" for finding in report.findings), end="")
    elif format_ is FindingFormat.JUNIT:
        print(_junit(report))
    elif format_ is FindingFormat.SARIF:
        print(output.to_json(_sarif(report)))
    else:
        _print_text(report)


def _github(finding: Finding) -> str:
    """A workflow command, which GitHub shows at the line of a pull request."""
    level = "notice" if finding.severity == NOTE else finding.severity
    place = ",".join(
        f"{name}={_percent(str(value), ',:')}"
        for name, value in (("file", finding.file), ("line", finding.line), ("title", finding.object))
        if value
    )
    return f"::{level} {place}::{_percent(_message(finding))}"


def _percent(text: str, more: str = "") -> str:
    for letter in ("%", "\r", "\n", *more):
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text


def _junit(report: Report) -> str:
    """A test suite with a case for each file that has findings; errors fail, the rest is told.

    What is of no file, as in a running cluster, is a case by the name of its object. A case has one failure at most:
    readers take one of several, or none.
    """
    from xml.sax.saxutils import escape, quoteattr

    cases: dict[str, list[Finding]] = {}
    for finding in report.findings:
        cases.setdefault(finding.file or finding.object, []).append(finding)
    failed = sum(any(one.severity == ERROR for one in found) for found in cases.values())
    suite = f"dray {report.command}"
    counts = f'tests="{max(len(cases), 1)}" failures="{failed}" errors="0" skipped="0"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuite name="{suite}" {counts}>']
    lines += [] if cases else [f'  <testcase classname="{suite}" name="{report.objects} objects"/>']
    for name, found in cases.items():
        errors = [one for one in found if one.severity == ERROR]
        others = [one for one in found if one.severity != ERROR]
        lines.append(f'  <testcase classname="{suite}" name={quoteattr(visible_lines(name))}>')
        if errors:
            reasons = ", ".join(dict.fromkeys(one.reason for one in errors))
            lines.append(f"    <failure message={quoteattr(reasons)}>{escape(_tell_all(errors))}</failure>")
        if others:
            lines.append(f"    <system-out>{escape(_tell_all(others))}</system-out>")
        lines.append("  </testcase>")
    return "\n".join([*lines, "</testsuite>"])


def _tell_all(findings: Sequence[Finding]) -> str:
    """A line for each. What does not print is written out: XML cannot have all of it."""
    return visible_lines("\n".join(f"{f'line {one.line}: ' if one.line else ''}{_message(one)}" for one in findings))


def _sarif(report: Report) -> dict[str, Any]:
    from dray import __version__

    reasons = sorted({finding.reason for finding in report.findings})
    driver = {"name": f"dray {report.command}", "version": __version__, "rules": [{"id": one} for one in reasons]}
    return {
        "$schema": _SARIF,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(finding) for finding in report.findings]}],
    }


def _result(finding: Finding) -> dict[str, Any]:
    return {
        "ruleId": finding.reason,
        "level": finding.severity,
        "message": {"text": _message(finding)},
        "locations": [_location(finding)] if finding.file or finding.object else [],
    }


def _location(finding: Finding) -> dict[str, Any]:
    """The place in a file, by a URI; of what is of no file, as in a running cluster, the object."""
    from urllib.parse import quote

    if not finding.file:
        return {"logicalLocations": [{"fullyQualifiedName": finding.object, "kind": "object"}]}
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(os.fsencode(finding.file))}}
    if finding.line:
        place["region"] = {"startLine": finding.line}
    return {"physicalLocation": place}


def _message(finding: Finding) -> str:
    place = ": ".join(filter(None, (finding.object, finding.field)))
    return f"{place}: {finding.message}" if place else finding.message


def _print_text(report: Report) -> None:
    styles = {ERROR: "red", WARNING: "yellow", NOTE: "dim"}
    for finding in report.findings:
        place = f"{finding.file}:{finding.line}" if finding.line else finding.file
        _print_line((place, "bold"), *((text, style) for text, style in _about(finding) if text))
        label = "" if finding.severity == ERROR else f"{finding.severity}: "
        for line in (finding.excerpt or finding.message).splitlines():
            _print_line((f"    {label}{line}", styles[finding.severity]))
            label = ""
    what = "file or document" if report.unreadable == 1 else "files or documents"
    rest = f"; {report.unreadable} {what} could not be read" if report.unreadable else ""
    print(f"{_verdict(report)} in {count(report.objects, 'object')}{rest}.")


def _verdict(report: Report) -> str:
    """`no problems`, `2 problems, 1 warning`. Who asked for warnings alone is not told that there are no problems."""
    warnings = sum(finding.severity == WARNING for finding in report.findings)
    told = [count(warnings, "warning")] if warnings else []
    if report.errors or not warnings or report.command != LINT:
        told.insert(0, count(report.errors, "problem") if report.errors else "no problems")
    return ", ".join(told)


def _about(finding: Finding) -> tuple[tuple[str, str], ...]:
    return (finding.object, ""), (finding.field, "cyan")


def _print_line(*parts: tuple[str, str]) -> None:
    """Texts with their styles, on a line. What makes colours is brought in where there are any."""
    if not sys.stdout.isatty():
        print("  ".join(text for text, _ in parts))
        return
    from rich.text import Text

    output.console().print(Text("  ").join(Text(text, style) for text, style in parts))
