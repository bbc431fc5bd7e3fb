"""What `dray get -w` tells apart: pools of several drivers, and of several nodes, that are called the same."""

from __future__ import annotations

import pytest

import builders
import dray
from builders import Manifest
from dray.cli.file_view import FileView
from dray.cli.get import Wanted, What, _print_gone, items_of
from dray.cli.items import DeviceItem
from snapshot_objects import node


def published(name: str, where: str, driver: str) -> Manifest:
    return builders.resource_slice(
        name, builders.device("gpu-0", {}, memory="80Gi"), pool="rack", driver=driver, nodeName=where
    )


NODES = [node("node-1"), node("node-2")]
SLICES = [
    published("a", "node-1", "gpu.example.com"),
    published("b", "node-2", "gpu.example.com"),
    published("c", "node-1", "nic.acme.io"),
]
DEVICES = Wanted(What.DEVICES)


def view(*slices: Manifest) -> FileView:
    return FileView(dray.load(*NODES, *slices))


def test_devices_of_one_name_are_several() -> None:
    found = items_of(view(*SLICES), DEVICES)
    assert len({one.identity for one in found}) == 3
    assert [one.capacity for one in found if isinstance(one, DeviceItem)] == [{"memory": "80Gi"}] * 3


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        (0, "rack/gpu-0  node-1  gpu.example.com  (gone)"),
        (1, "rack/gpu-0  node-2  gpu.example.com  (gone)"),
        (2, "rack/gpu-0  node-1  nic.acme.io  (gone)"),
    ],
)
def test_which_of_them_is_gone_is_said(gone: int, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    left = [one for number, one in enumerate(SLICES) if number != gone]
    _print_gone(items_of(view(*SLICES), DEVICES), items_of(view(*left), DEVICES))
    assert capsys.readouterr().out == f"{told}\n"
