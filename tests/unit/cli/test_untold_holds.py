"""`dray confirm` lists what says that it is held; rules that have no status to say so in are named as well."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import jsonschema_rs
import pytest
from msgspec.structs import replace

from builders import typed
from dray.api.generated.core import Namespace
from dray.api.kinds import NAMESPACES, RULES
from dray.api.meta import Object, ObjectMeta
from dray.api.registry import Kind
from dray.cli.confirm import NO_GUARD, _cancel, _confirm, _each, _list
from dray.cli.output import NO, YES, Format
from dray.cli.shapes import schema
from dray.maintenance.confirmation import confirming, untold, waits
from eviction_objects import rule

CONFIRM = "dray.dev/confirm-evictions"
CONDITION = {
    "type": "EvictionInProgress",
    "status": "True",
    "reason": "r",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def made(manifest: dict[str, Any], confirmed: str = "", *conditions: dict[str, str]) -> Object:
    """An object of generation 3, with an annotation and conditions."""
    about = {**manifest["metadata"], "generation": 3, "annotations": {CONFIRM: confirmed}}
    status = {"status": {"conditions": list(conditions)}} if conditions else {}
    found: Object = typed({**manifest, "metadata": about, **status})
    return found


def test_rules_of_which_no_status_tells_are_named_until_they_are_confirmed() -> None:
    rules = [
        made(rule("silent")),
        made(rule("changed since"), "2"),
        made(rule("confirmed"), "3"),
        made(rule("mild", "NoSchedule")),
        made(rule("told"), "", CONDITION),
    ]
    assert list(untold(rules)) == ["rule/silent", "rule/changed since"]


def test_what_was_confirmed_or_cancelled_waits_no_longer_whatever_its_status_says() -> None:
    taints = [{"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoExecute"}]
    node = made({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": taints}}, "a")
    open_, mild = made(rule("open"), "2", CONDITION), made(rule("mild", "NoSchedule"), "", CONDITION)
    assert [waits(one) for one in (node, open_, mild)] == [True, True, False]
    for one in (node, open_):
        told = confirming(one)["metadata"]["annotations"]
        assert not waits(replace(one, metadata=replace(one.metadata, annotations=told)))


class Listed(NamedTuple):
    items: tuple[Object, ...]


class Server:
    """A cluster with one rule that evicts, of which nobody says a word."""

    def __init__(self, limit: str | None = None) -> None:
        told = {} if limit is None else {"dray.dev/max-evictions": limit}
        place = Namespace(metadata=ObjectMeta(name="kube-system", annotations=told))
        self.there = {NAMESPACES: place, RULES: made(rule("r"))}

    async def get(self, kind: Kind, _namespace: str, _name: str) -> Object:
        return self.there[kind]

    async def list(self, kind: Kind, _namespace: str = "") -> Listed:
        return Listed((self.there[kind],) if kind in self.there else ())

    async def patch(self, _kind: Kind, _namespace: str, _name: str, _patch: Any) -> None:
        """Taken."""


@pytest.mark.parametrize("limit", [None, "none"])
async def test_where_no_guard_is_nothing_is_held_and_that_is_said(
    limit: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server(limit)
    assert await _list(Format.TEXT)(server) == NO
    assert capsys.readouterr() == ("Nothing is held.\n", f"dray: {NO_GUARD}.\n")
    assert await _each(["rule/r"], _confirm)(server) == YES
    assert capsys.readouterr() == ("Confirmed: rule/r.\n", f"dray: {NO_GUARD}.\n")
    assert await _each(["rule/r"], _cancel)(server) == YES
    assert capsys.readouterr() == ("Cancelled: rule/r.\n", "")


@pytest.mark.parametrize(("rule_", "code"), [(rule("r"), YES), (rule("r", "NoSchedule"), NO)])
async def test_programs_get_a_document_of_what_was_confirmed_or_cancelled_too(
    rule_: dict[str, Any], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """They got a line for people, whatever they had asked for."""
    server = Server("50")
    server.there[RULES] = made(rule_)
    assert await _each(["rule/r"], _confirm, Format.JSON)(server) == code
    document = json.loads(capsys.readouterr().out)
    jsonschema_rs.validator_for(schema("ConfirmationList")).validate(document)
    assert [(one["target"], one["confirmed"]) for one in document["items"]] == [("rule/r", code == YES)]
    assert await _each(["rule/r"], _cancel, Format.JSON)(server) == code
    (one,) = json.loads(capsys.readouterr().out)["items"]
    assert (one["target"], one["cancelled"]) == ("rule/r", code == YES)


async def test_where_a_guard_is_rules_without_a_status_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def no_pools(_client: Any) -> list[Any]:
        return []

    monkeypatch.setattr("dray.cli.confirm._unconfirmed_pools", no_pools)
    assert await _list(Format.TEXT)(Server("50")) == NO
    said = capsys.readouterr()
    assert said.out == "No rule or node says that it is held.\n"
    assert said.err.startswith("dray: whether rule/r is held, only events tell: kubectl get events ")
