"""Requests that were sent to a real Kubernetes 1.37, sent again to this server: same code, causes and object."""

from __future__ import annotations

import contextlib
import json
import lzma
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live_server import Answer, LiveServer

DATA = Path(__file__).parents[1] / "conformance" / "data" / "validation.jsonl.xz"
CASES = [json.loads(line) for line in lzma.decompress(DATA.read_bytes()).decode().splitlines()]

REFERENCE = re.compile(r"\$\{(\d+)\.([^}]+)\}")
SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "managedFields")
PLACEHOLDERS = {
    "<timestamp>": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
    "<uid>": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "<string>": re.compile(r".+", re.DOTALL),
}


@pytest.mark.req("4381-240")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case: dict[str, Any], server: LiveServer) -> None:
    with cleaned_up(server) as made:
        answers: list[Any] = []
        for number, step in enumerate(case["steps"]):
            answer = play(server, step, answers, made)
            answers.append(parsed(answer))
            judge(f"{number}: {step['method']} {step['path']}", answer, answers[-1], step["expect"])


def play(server: LiveServer, step: dict[str, Any], answers: list[Any], made: list[str]) -> Answer:
    """Sends one step; notes what it creates."""
    time.sleep(step.get("waitMs", 0) / 1000)
    path = resolved(step["path"], answers)
    body = None
    if "rawBody" in step:
        body = resolved(step["rawBody"], answers).encode()
    elif "body" in step:
        body = json.dumps(resolved(step["body"], answers)).encode()
    accept = step.get("accept") or "application/json"
    answer = server.request(step["method"], path, body, step.get("contentType", ""), Accept=accept)
    if answer.code == 201 and step["method"] in ("POST", "PATCH") and "dryRun" not in path:
        name = parsed(answer).get("metadata", {}).get("name")
        base = path.partition("?")[0]
        if name:
            made.append(f"{base}/{name}" if step["method"] == "POST" else base)
    return answer


def resolved(value: Any, answers: list[Any]) -> Any:
    """Puts values of earlier answers where a step refers to them."""
    if isinstance(value, str):
        return REFERENCE.sub(lambda found: str(look_up(answers[int(found[1])], found[2])), value)
    if isinstance(value, dict):
        return {key: resolved(item, answers) for key, item in value.items()}
    return [resolved(item, answers) for item in value] if isinstance(value, list) else value


def look_up(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def parsed(answer: Answer) -> Any:
    try:
        return answer.json
    except ValueError:
        return {}


@contextlib.contextmanager
def cleaned_up(server: LiveServer) -> Iterator[list[str]]:
    """Deletes what a case made, whatever holds it."""
    made: list[str] = []
    yield made
    for path in reversed(made):
        if path.endswith("/status") or server.request("DELETE", f"{path}?gracePeriodSeconds=0").code == 404:
            continue
        if re.fullmatch(r"/api/v1/namespaces/[^/]+", path):
            server.request("PUT", f"{path}/finalize", {"metadata": {"name": path.rpartition("/")[2]}, "spec": {}})
        else:
            server.request("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")


def judge(where: str, answer: Answer, value: Any, expect: dict[str, Any]) -> None:
    assert answer.code == expect["code"], (where, answer.body)
    failed = isinstance(value, dict) and value.get("kind") == "Status" and value.get("status") == "Failure"
    assert (value.get("reason", "") if failed else None) == expect.get("reason"), where
    if failed:
        causes = (value.get("details") or {}).get("causes", ())
        found = {(cause.get("reason"), cause.get("field")) for cause in causes}
        assert found == {(cause.get("reason"), cause.get("field")) for cause in expect.get("causes", ())}, where
    if "object" in expect:
        problem = difference(expect["object"], stripped(value))
        assert problem is None, f"{where}: {problem}"
    assert len(answer.headers.get_all("Warning", ())) == expect.get("warnings", 0), where


def stripped(value: Any) -> Any:
    """An answer without what differs from server to server."""
    value = json.loads(json.dumps(value))
    for found in [value, *value.get("items", ()), *(row.get("object") for row in value.get("rows", ()))]:
        if isinstance(found, dict) and isinstance(found.get("metadata"), dict):
            for name in SERVER_FIELDS:
                found["metadata"].pop(name, None)
    if value.get("kind") == "Status":
        (value.get("details") or {}).pop("uid", None)
    return value


def difference(expected: Any, actual: Any, path: str = "") -> str | None:
    """The first difference, None if there is none."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected.keys() | actual.keys():
            if key not in actual or key not in expected:
                return f"{path}.{key} is {'missing' if key in expected else 'unexpected'}"
            found = difference(expected[key], actual[key], f"{path}.{key}")
            if found:
                return found
        return None
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        found_in = (difference(one, other, f"{path}[{at}]") for at, (one, other) in pairs)
        return next((found for found in found_in if found), None)
    return None if matches(expected, actual) else f"{path}: want {expected!r}, got {actual!r}"


def matches(expected: Any, actual: Any) -> bool:
    if expected == "<int>":
        return isinstance(actual, int)
    if isinstance(expected, str) and expected.startswith("<suffix:"):
        prefix = expected[8:-1]
        return isinstance(actual, str) and actual.startswith(prefix) and actual != prefix
    if isinstance(expected, str) and expected in PLACEHOLDERS:
        return isinstance(actual, str) and PLACEHOLDERS[expected].fullmatch(actual) is not None
    return type(expected) is type(actual) and bool(expected == actual)
