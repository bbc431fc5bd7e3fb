"""Makes examples/replay/morning.recording: six hours of a small cluster that never was, and the same at any size.

    python -m tools.example_recording [FILE [NODES [HOURS [PODS]]]]

Jobs come as dice fall, a node's devices are tainted for an hour, another node is cordoned. All of it runs on virtual
time, and `dray.recording` follows as it would follow a real cluster.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from dray.api import kinds
from dray.api.generated.core import Node, Pod
from dray.api.meta import Object
from dray.controllers import ControllerSettings
from dray.process import virtual_loop
from dray.process.clock import as_time
from dray.process.tasks import end as end_tasks
from dray.process.virtual_loop import LoopClock
from dray.recording import Header, Recorder, RecordingWriter
from dray.recording.entries import FORMAT, VERSION
from dray.replay.control_plane import ControlPlane, client_of, memory_server
from dray.replay.history import Change, History, Place
from dray.replay.player import Player
from dray.replay.work import Work
from dray.simulation import load_profile, publication
from dray.snapshot.objects import typed

START = 1_750_060_800.0
"""Eight in the morning of a Monday."""
HOUR = 3600.0
SIZES = (1, 1, 1, 2, 2, 4, 8)
NAMESPACE = "ml"
DEFAULT = Path("examples/replay/morning.recording")


def _object(**document: Any) -> Any:
    return typed(document, as_time(START))[1]


def _template(size: int) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": size}}
    found: Object = _object(
        apiVersion="resource.k8s.io/v1",
        kind="ResourceClaimTemplate",
        metadata={"name": f"gpus-{size}", "namespace": NAMESPACE},
        spec={"spec": {"devices": {"requests": [request]}}},
    )
    return found


def _pod(number: int, size: int) -> Pod:
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": f"job-{number}",
        "uid": f"job-{number}",
        "controller": True,
    }
    found: Pod = _object(
        apiVersion="v1",
        kind="Pod",
        metadata={
            "name": f"job-{number}-0",
            "namespace": NAMESPACE,
            "uid": f"pod-{number}",
            "labels": {"app": "training"},
            "ownerReferences": [owner],
        },
        spec={
            "restartPolicy": "Never",
            "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": f"gpus-{size}"}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/train",
                    "env": [{"name": "TOKEN", "value": "not to be recorded"}],
                    "resources": {"claims": [{"name": "gpus"}], "requests": {"cpu": "1", "memory": "1Gi"}},
                }
            ],
        },
    )
    return found


def _changes(nodes: list[Node], seconds: float) -> Iterator[Change]:
    """A rule that comes and goes, and a node that is cordoned for a while."""
    rule = _object(
        apiVersion="resource.k8s.io/v1",
        kind="DeviceTaintRule",
        metadata={"name": "hbm-errors"},
        spec={
            "deviceSelector": {"pool": nodes[0].metadata.name},
            "taint": {"key": "example.com/hbm", "effect": "NoExecute", "timeAdded": str(as_time(START + seconds / 3))},
        },
    )
    yield Change(START + seconds / 3, Place.of(rule), rule)
    yield Change(START + seconds / 2, Place.of(rule), None)
    node = nodes[-1]
    closed = replace(node, spec=replace(node.spec, unschedulable=True))
    yield Change(START + seconds * 0.6, Place.of(node), closed)
    yield Change(START + seconds * 0.7, Place.of(node), node)


def make_history(count: int, hours: float, pods: int) -> History:
    """The morning, before anything has been decided."""
    dice = random.Random(7)
    profile = load_profile("gpu-8")
    nodes = [publication.node(profile, number + 1) for number in range(count)]
    objects = [*profile.typed_objects(), *nodes]
    objects += [one for node in nodes for one in publication.slices(profile, node)]
    seconds = hours * HOUR
    moments = sorted(START + 60 + dice.random() * seconds * 0.9 for _ in range(pods))
    work = [
        Work(
            pod=_pod(number, dice.choice(SIZES)),
            arrives=moment,
            is_first=False,
            starts_in=round(dice.uniform(2, 20), 1),
            runs_for=round(dice.lognormvariate(7.5, 0.8)),
            stops_in=5.0,
        )
        for number, moment in enumerate(moments, 1)
    ]
    return History(
        start=START,
        end=START + seconds,
        first=(*objects, *map(_template, sorted(set(SIZES)))),
        changes=tuple(_changes(nodes, seconds)),
        work=tuple(work),
        seen=(),
        seen_first=0,
        problems=(),
    )


async def record(history: History, file: Path) -> None:
    """Lets a history happen, and follows it."""
    clock = LoopClock(history.start)
    async with memory_server(clock) as server:
        client = client_of(server)
        control = ControlPlane(client, clock, ControllerSettings())
        player = Player(client, clock, history)
        control.informers.of(kinds.PODS, Pod).on_change(player.on_pod)
        await player.set_up()
        await control.follow()
        await control.start()
        recorder = Recorder(client, clock, report=print)
        readable, _ = await recorder.readable()
        header = Header(format=FORMAT, version=VERSION, started=clock.now(), server="v1.37.0+dray")
        writer = RecordingWriter(file, header)
        await recorder.start(readable, writer)
        following = asyncio.create_task(recorder.run())
        await player.run(history.end)
        await end_tasks([following])
        writer.close(clock.now())
        await player.close()
        await control.stop()


def main() -> None:
    """Writes the file anew."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    nodes, hours, pods = [float(one) for one in (*sys.argv[2:5], *("4", "6", "60")[len(sys.argv[2:5]) :])]
    file.unlink(missing_ok=True)
    file.parent.mkdir(exist_ok=True)
    virtual_loop.run(record(make_history(int(nodes), hours, int(pods)), file), most_turns=100_000_000)
    print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
