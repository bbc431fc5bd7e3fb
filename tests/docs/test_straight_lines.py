"""The straight lines of docs/architecture.md: every hop is there, and is taken in its turn."""

from __future__ import annotations

import contextlib
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import snapshot_objects as offline
from device_taint_world import device_taint_world
from dray.client.http import HttpClient
from dray.client.kubeconfig import load_kubeconfig
from dray.server.instance import Instance, ServerSettings
from dray.snapshot import load
from eviction_objects import leaving, rule, use_devices
from local_server import typed
from scheduler_world import scheduler_world

ROOT = Path(__file__).resolve().parents[2]
SOURCES = f"{ROOT / 'src' / 'dray'}/"
LINE = re.compile(r"^- \*\*(?P<name>An? \w+)\*\* \((?P<number>\d+) hops\)(?P<rest>.*?)(?=^- |^The others)", re.M | re.S)


def lines() -> dict[str, tuple[int, list[str]]]:
    """The hops of each line, and how many there are said to be."""
    found = {}
    for line in LINE.finditer((ROOT / "docs" / "architecture.md").read_text()):
        route = line["rest"].partition(". ")[0] + "."
        found[line["name"]] = (int(line["number"]), re.findall(r"`([\w.]+)`", route))
    return found


def code_of(name: str) -> Any:
    found = pkgutil.resolve_name(f"dray.{name}")
    return getattr(found, "__wrapped__", found).__code__


class Calls:
    """The functions of dray that were called, in the order of their first calls."""

    def __init__(self) -> None:
        self.first: dict[Any, int] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            self.first.setdefault(frame.f_code, len(self.first))


@contextlib.contextmanager
def following() -> Iterator[Calls]:
    calls, before = Calls(), sys.getprofile()
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def check(name: str, calls: Calls) -> None:
    number, hops = lines()[name]
    assert len(hops) == number
    codes = [code_of(hop) for hop in hops]
    assert [hop for hop, code in zip(hops, codes, strict=True) if code not in calls.first] == []
    moments = [calls.first[code] for code in codes]
    assert moments == sorted(moments), hops


def test_there_are_four_lines() -> None:
    assert set(lines()) == {"A request", "A pod", "A taint", "An explanation"}


async def test_a_request(tmp_path: Path) -> None:
    instance = Instance(ServerSettings(directory=tmp_path / "state", port=0))
    await instance.start()
    try:
        async with HttpClient(load_kubeconfig([instance.kubeconfig])) as client:
            with following() as calls:
                document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
                await client.create(typed(document))
    finally:
        await instance.stop(0.1)
    check("A request", calls)


async def test_a_pod() -> None:
    async with scheduler_world() as world:
        await world.add_class()
        await world.add_node("node-1", "gpu-0")
        await world.add_claim("claim")
        await world.settle()
        with following() as calls:
            await world.add_pod("pod", "claim")
            await world.settle()
        assert (await world.pod("pod")).spec.node_name == "node-1"
    check("A pod", calls)


async def test_a_taint() -> None:
    async with device_taint_world() as world:
        await use_devices(world, "claim", "gpu-0", pods=("user",))
        await world.settle()
        with following() as calls:
            await world.create(rule(selector={"device": "gpu-0"}))
            await world.settle(15)
        assert await leaving(world) == {"user"}
    check("A taint", calls)


def test_an_explanation() -> None:
    with following() as calls:
        there = (
            offline.device_class(),
            offline.node("node-1"),
            offline.resource_slice("node-1", offline.device("gpu-0")),
        )
        snapshot = load(*there, offline.claim("train", count=2))
        assert "gpu-0" in str(snapshot.explain("ml/train"))
    check("An explanation", calls)
