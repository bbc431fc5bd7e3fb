"""The configuration file of controllers: what it sets, and what it says about what it cannot."""

from __future__ import annotations

import pytest

from dray.controllers.configuration import check_configuration, node_lifecycle_settings, parse_configuration
from dray.controllers.settings import ControllerSettings, NodeLifecycleSettings
from dray.eviction.settings import EvictionSettings, FailurePolicy, Limit, PolicyChoice, SettingsError, Webhook

HEAD = "apiVersion: dray.dev/v1\nkind: ControllersConfiguration\n"


def read(text: str) -> ControllerSettings:
    return parse_configuration((HEAD + text).encode(), "file.yaml")


def test_an_empty_file_changes_nothing() -> None:
    assert read("") == ControllerSettings()


@pytest.mark.req("3902-19")
def test_everything_can_be_set() -> None:
    found = read(
        """
noExecuteTaintManager: {enableNoExecuteTaintManager: false}
nodeLifecycle:
  nodeMonitorPeriod: 2s
  nodeMonitorGracePeriod: 1m
  nodeStartupGracePeriod: 90s
  nodeEvictionRate: 1
  secondaryNodeEvictionRate: 0.5
  largeClusterSizeThreshold: 10
  unhealthyZoneThreshold: 0.3
eviction:
  policy: {name: pdb, options: {deadline: 10m}}
  offered: [{name: checkpoint}]
  webhooks: [{name: w, url: "https://w/decide", caFile: ca.pem, followsUp: true}]
  failurePolicy: delete
  timeout: 3
  maxEvictions: 10%
"""
    )
    assert found == ControllerSettings(
        enable_no_execute_taint_manager=False,
        node_lifecycle=NodeLifecycleSettings(
            monitor_period=2,
            grace_period=60,
            startup_grace_period=90,
            taint_rate=1,
            secondary_taint_rate=0.5,
            large_zone=10,
            unhealthy_share=0.3,
        ),
        eviction=EvictionSettings(
            policy=PolicyChoice("pdb", {"deadline": "10m"}),
            offered=(PolicyChoice("checkpoint"),),
            webhooks=(Webhook(name="w", url="https://w/decide", ca_file="ca.pem", follows_up=True),),
            failure_policy=FailurePolicy.DELETE,
            timeout=3.0,
            max_evictions=Limit(percent=10),
        ),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("eviction: {polcy: {name: pdb}}", r"eviction\.polcy: unknown field"),
        ("eviction: {fallback: shrug}", "fallback: 'shrug' is neither hold nor delete"),
        ("eviction: {failurePolicy: shrug}", "failurePolicy: 'shrug' is neither hold nor delete"),
        ("eviction: {failurePolicy: hold, fallback: hold}", "older name"),
        ("eviction: {maxEvictions: many}", "'many' is no limit"),
        ("eviction: {timeout: soon}", "timeout: 'soon' is no duration"),
        ("eviction: {offered: [{name: a}, {name: a}]}", r"offered\[1\]\.name: given twice"),
        ("eviction: {webhooks: [{url: x}]}", r"webhooks\[0\]\.name: missing"),
        ("nodeLifecycle: {nodeMonitorPeriod: 0s}", "monitor period must be more than 0"),
        ("nodeLifecycle: {nodeMonitorGracePeriod: x}", "grace period: 'x' is no duration"),
        ("nodeLifecycle: {nodeEvictionRate: -1}", "taint rate must be more than 0"),
        ("nodeLifecycle: {unhealthyZoneThreshold: 2}", "share from 0 to 1"),
        ("nodeLifecycle: {largeClusterSizeThreshold: many}", "largeClusterSizeThreshold"),
        ("noExecuteTaintManager: {enableNoExecuteTaintManager: 3}", "enableNoExecuteTaintManager"),
        ("eviction: [", "file.yaml:"),
    ],
)
def test_mistakes_are_named(text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem) as failure:
        read(text)
    assert str(failure.value).startswith("file.yaml")


@pytest.mark.parametrize("text", ["", "[]", "kind: Pod\napiVersion: v1", HEAD + "---\n" + HEAD])
def test_what_is_no_configuration(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^file\.yaml: "):
        parse_configuration(text.encode(), "file.yaml")


def test_rates_of_zero_are_meant() -> None:
    assert node_lifecycle_settings(NodeLifecycleSettings(), taint_rate=0.0).taint_rate == 0
    assert node_lifecycle_settings(NodeLifecycleSettings(grace_period=7)).grace_period == 7


def test_a_document_can_be_checked_without_being_used() -> None:
    head = {"apiVersion": "dray.dev/v1", "kind": "ControllersConfiguration"}
    assert check_configuration(head) == ""
    assert check_configuration({**head, "evictions": {}}) == "evictions: unknown field"
