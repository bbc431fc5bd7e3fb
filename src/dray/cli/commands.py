"""Every command of dray: where it is, and what it does in one sentence, so that only the one asked for is imported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer

from dray.cli.option_groups import spread, spread_all


class Command(NamedTuple):
    """`home` is `module:attribute` below `dray.cli`: a function, or a Typer with commands of its own."""

    home: str
    sentence: str
    """The first one of its help; a test compares."""
    settings: dict[str, Any] | None = None


COMMANDS: Final = {
    "validate": Command("validate:run", "Check manifests as a Kubernetes 1.37 API server would, without a cluster."),
    "lint": Command(
        "lint:run",
        "Say what is valid and yet probably not meant, in manifests and dumps, or without files in the "
        "running cluster.",
    ),
    "cel": Command("cel:run", "Check a device selector and try it on devices."),
    "allocate": Command("allocate:run", "Allocate devices to claims, without a cluster."),
    "devices": Command(
        "devices:run",
        "Show devices with everything that is known of them: attributes with patches merged in, taints and "
        "where they come from, who holds them, why nobody can have them, and pools that cannot be used.",
    ),
    "what-if": Command(
        "what_if:run",
        "Show what a change would do: devices that cannot be used any more, claims that are hit, pods that "
        "have to leave, when, and whether they fit elsewhere; and what was not looked at.",
    ),
    "scale-up": Command("scale_up:run", "Say how many nodes of which group make the pending pods schedulable."),
    "up": Command(
        "up:run",
        "Run a whole cluster: API server, scheduler, controllers and, with --nodes, simulated nodes.",
    ),
    "down": Command(
        "down:run",
        "Stop a cluster that `dray up` or `dray server` runs on this machine, and wait until it has.",
    ),
    "ls": Command("ls:run", "List the clusters of this machine, whether they run, and how to reach them."),
    "server": Command("server:run", "Run the API server."),
    "scheduler": Command("scheduler:run", "Run the scheduler: pods get nodes, and their claims get devices."),
    "controllers": Command(
        "controllers:run",
        "Run controllers: claims from templates, evictions, garbage collection and the rest of --controllers.",
    ),
    "node": Command(
        "node:run",
        "Run a node agent: registers the node, serves DRA drivers, prepares claims, runs pods.",
    ),
    "node-kubeconfig": Command(
        "node_kubeconfig:run",
        "Print a kubeconfig for a node agent: it may do what a node may, and nothing of other nodes.",
    ),
    "driver-test": Command(
        "driver_test:run",
        "Test a DRA driver, in whatever language, against the rules of the kubelet's plugin API.",
    ),
    "get": Command(
        "get:run",
        "Show devices with their taints and holders, claims with their devices, nodes with their devices in "
        "numbers, or the clusters of a hub with their state, taints and placements.",
    ),
    "dashboard": Command(
        "dashboard:run",
        "Serve the dashboard of a cluster, dray's or any other, on this machine, and print a link that logs you in.",
    ),
    "top": Command(
        "top:run",
        "Show a running cluster full screen: the map of devices, devices, pending pods and why, evictions under way.",
    ),
    "record": Command(
        "record:run",
        "Follow a cluster, dray's or any other, and keep what happens to devices, claims and pods in a "
        "compressed file.",
    ),
    "replay": Command(
        "replay:run",
        "Run a recorded history on dray's own scheduler and evictions, on virtual time, and compare what came of it.",
    ),
    "plan": Command(
        "plan:make",
        "Write down what a command would do to the running cluster, or with -f to one in files, without doing it.",
        {"ignore_unknown_options": True, "allow_interspersed_args": True},
    ),
    "apply": Command(
        "plan:apply",
        "Do what was planned, if it still does what was reviewed; else say what is different, and change nothing.",
    ),
    "confirm": Command(
        "confirm:confirm",
        "List what the guard holds, or confirm that some of it is meant: then its pods leave.",
    ),
    "cancel": Command(
        "confirm:cancel",
        "Take back an eviction that the guard holds, or that goes on: NoExecute becomes NoSchedule, and nobody leaves.",
    ),
    "stop-evictions": Command(
        "stop_evictions:run",
        "Stop all evictions of a cluster at once: those of rules, of drivers' taints, of node taints, and drains.",
    ),
    "doctor": Command(
        "doctor:run",
        "Say what a cluster has (version, kinds of devices, gates, leases), what you may do, and what of "
        "dray works there.",
    ),
    "install": Command(
        "install:install",
        "Print what runs dray on a Kubernetes cluster, for `dray install | kubectl apply -f -`.",
    ),
    "uninstall": Command(
        "install:uninstall",
        "Print what `dray install` with the same --set made, for `dray uninstall | kubectl delete -f -`.",
    ),
    "schema": Command(
        "schema:run",
        "Print the JSON Schema of a kind of document that commands print with -o json, or list the kinds.",
    ),
    "backup": Command("backup:run", "Copy everything stored to a file, while the server runs or not."),
    "restore": Command("restore:run", "Restore a backup into a state directory."),
    "explain": Command(
        "explain:app",
        "Why a claim, a pod or a PodGroup is pending, or a placement has the clusters that it has.",
    ),
    "taint": Command("taint:app", "Take devices, nodes or clusters out of service, after a look at who is hit."),
    "untaint": Command("untaint:app", "Put devices, nodes or clusters back into service."),
    "drain": Command("drain:app", "Empty devices or nodes, and wait until they are idle."),
    "nodes": Command("nodes:app", "Stop and start simulated nodes."),
    "report": Command(
        "report:app",
        "Make a report to send around: one HTML file with pictures, or the map of the fleet as SVG or PNG.",
    ),
    "driver": Command("driver:app", "Begin a driver for devices of your own."),
    "placement": Command("placement:app", "The placements of a hub: which clusters they have, and why."),
}
"""In the order of the page of commands."""


class CommandsByName(Mapping[str, Any]):
    """The commands by name, each made when it is first asked for. Names are there without that."""

    def __init__(self, finish: Callable[[Any], None]) -> None:
        """`finish` is called with each command that is made."""
        self._finish = finish
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            made = _make(name, COMMANDS[name])
            self._finish(made)
            self._made[name] = made
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS


def _make(name: str, command: Command) -> Any:
    module, _, attribute = command.home.partition(":")
    found = getattr(import_module(f"dray.cli.{module}"), attribute)
    parent = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    parent.callback()(_nothing)
    if isinstance(found, typer.Typer):
        spread_all(found)
        parent.add_typer(found, name=name)
    else:
        parent.command(name, context_settings=command.settings)(spread(found))
    group: Any = typer.main.get_command(parent)
    return group.commands[name]


def _nothing() -> None:
    """What a parent of commands does by itself."""
