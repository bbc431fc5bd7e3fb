"""The page: how soon a large fleet is in sight, how smooth it stays, what it weighs, and what it costs others.

`python -m bench page` prints the figures. The limits that they should reach are in `LIMITS`: at least for frames, at
most for everything else. The browser, the server and the load share this machine: read CPU seconds on a busy one.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop
from bench import cluster
from bench._process import Dray, cpu_seconds
from bench.server import PODS, Connection, connect, head, pod, tls

NODES = 5000
DEVICES = 8
CLAIMS = 1000
CHANGES_PER_SECOND = 500
SECONDS = 10
WRITERS = 64
"""Each waits for its answer before it goes on: with few of them a busy machine is slower than the rate."""
ROUNDS = 3
LAPS = 24
PODS_PER_LAP = 150
"""Many short laps, in turns: what else the machine does changes from one to the next by more than a page costs."""
DRIVER = "gpu.example.com"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIM_LIST = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"

LIMITS = {
    "first_view_seconds": 2,
    "frames_per_second": 30,
    "page_memory_mib": 300,
    "pod_cpu_with_page_percent_more": 5,
}

IN_SIGHT = """
const done = arguments[0];
const look = () => {
  const map = document.querySelector(".map-canvas")?.heatMap;
  const seen = map?.order.reduce((sum, block) => sum + block.positions.length, 0) ?? 0;
  if (seen === %d && map.frames > 0) done(performance.now() / 1000);
  else requestAnimationFrame(look);
};
look();
"""
FRAMES = """
const [seconds, done] = arguments;
const map = document.querySelector(".map-canvas").heatMap;
const began = performance.now();
const painted = map.frames;
let frames = 0, last = began, longest = 0;
const step = (now) => {
  frames++;
  longest = Math.max(longest, now - last);
  last = now;
  if (now - began < seconds * 1000) requestAnimationFrame(step);
  else done([frames * 1000 / (now - began), longest, (map.frames - painted) * 1000 / (now - began)]);
};
requestAnimationFrame(step);
"""


def node(name: str) -> bytes:
    """A node that is ready."""
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return json.dumps({"metadata": {"name": name, "labels": {"rack": name[:6]}}, "status": status}).encode()


def slice_of(name: str) -> bytes:
    """Its devices."""
    devices = [{"name": f"gpu-{number}", "attributes": {"index": {"int": number}}} for number in range(DEVICES)]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return json.dumps({"metadata": {"name": name}, "spec": spec}).encode()


def claim(number: int, *, has_device: bool) -> bytes:
    """A claim that has a device of a node of its own, or none."""
    name, requests = f"claim-{number}", [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]
    made: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": requests}},
    }
    if has_device:
        place = f"node-{number * NODES // CLAIMS}"
        result = {"request": "gpu", "driver": DRIVER, "pool": place, "device": f"gpu-{number % DEVICES}"}
        made["status"] = {"allocation": {"devices": {"results": [result]}}}
    return json.dumps(made).encode()


async def send(connection: Connection, server: Dray, method: str, path: str, body: bytes) -> None:
    """One request that must succeed."""
    code, answer = await connection.call(head(server, method, path, len(body)), body)
    if code not in (200, 201):
        raise RuntimeError(f"{method} {path}: {code} {answer[:300]!r}")


async def publish(server: Dray) -> None:
    """The fleet, and claims that want something of it."""
    clients = await connect(server, 16)
    names = [f"node-{number}" for number in range(NODES)]
    work = [("/api/v1/nodes", node(name)) for name in names] + [(SLICES, slice_of(name)) for name in names]
    work += [(CLAIM_LIST, claim(number, has_device=False)) for number in range(CLAIMS)]
    rest: Iterator[tuple[str, bytes]] = iter(work)

    async def client(connection: Connection) -> None:
        for path, body in rest:
            await send(connection, server, "POST", path, body)

    await asyncio.gather(*map(client, clients))
    for one in clients:
        one.close()


def request(server: Dray, number: int, *, has_device: bool) -> tuple[bytes, bytes]:
    """Gives a device to a claim, or takes it back."""
    body = claim(number, has_device=has_device)
    return head(server, "PUT", f"{CLAIM_LIST}/claim-{number}/status", len(body)), body


async def change(server: Dray, seconds: float) -> float:
    """Gives devices to claims and takes them back, at a rate; how many changes a second it came to."""
    clients = await connect(server, WRITERS)
    laps = [[request(server, number, has_device=one) for number in range(CLAIMS)] for one in (True, False)]
    began, made = time.perf_counter(), 0

    async def client(connection: Connection, own: range) -> None:
        nonlocal made
        for lap in itertools.cycle(laps):
            for number in own:
                code, answer = await connection.call(*lap[number])
                if code != 200:
                    raise RuntimeError(f"claim-{number}: {code} {answer[:300]!r}")
                made += 1
                now = time.perf_counter() - began
                if now > seconds:
                    return
                await asyncio.sleep(max(0.0, made / CHANGES_PER_SECOND - now))

    await asyncio.gather(*(client(one, range(number, CLAIMS, WRITERS)) for number, one in enumerate(clients)))
    for one in clients:
        one.close()
    return made / (time.perf_counter() - began)


def look_at_a_fleet() -> dict[str, float]:
    """First view, frames and memory, in Chromium."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from page_browser import browser

    with tempfile.TemporaryDirectory() as directory, Dray(["server"], Path(directory)) as server, browser() as somebody:
        uvloop.run(publish(server))
        page = somebody.turn_to(f"https://127.0.0.1:{server.port}")
        page.open(f"{page.url}/dashboard/")
        page.type("#token", server.token)
        page.press("Log in")
        in_sight = IN_SIGHT % (NODES * DEVICES)
        page.driver.execute_async_script(in_sight)
        views = []
        for _ in range(ROUNDS):
            page.driver.refresh()
            views.append(float(page.driver.execute_async_script(in_sight)))
        drawing = renderers(page.driver)
        with Beside(server) as load:
            before, served = sum(map(cpu_seconds, drawing)), server.cpu_seconds()
            frames, longest, painted = page.driver.execute_async_script(FRAMES, SECONDS)
            drawn, served = sum(map(cpu_seconds, drawing)) - before, server.cpu_seconds() - served
        return {
            "first_view_seconds": statistics.median(views),
            "changes_per_second": load.rate,
            "server_cpu_percent": 100 * served / SECONDS,
            "page_cpu_percent": 100 * drawn / SECONDS,
            "frames_per_second": frames,
            "pictures_per_second": painted,
            "longest_frame_ms": longest,
            "page_memory_mib": memory(page.driver),
        }


class Beside:
    """The load, in a thread, while something else is measured."""

    def __init__(self, server: Dray) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.rate = 0.0
        self._server = server
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> Beside:
        self._running = self._pool.submit(lambda: uvloop.run(change(self._server, SECONDS + 2)))
        time.sleep(1)
        return self

    def __exit__(self, *_: object) -> None:
        self.rate = self._running.result()
        self._pool.shutdown()


def renderers(driver: Any) -> list[int]:
    """The processes that draw pages."""
    return [one for one in below(int(driver.service.process.pid)) if "--type=renderer" in command_of(one)]


def memory(driver: Any) -> float:
    """What the process that draws the page has for itself, in MiB."""
    return max(map(private, renderers(driver))) / 1024


def below(pid: int) -> list[int]:
    """A process and all that it started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += below(int(child))
    return found


def command_of(pid: int) -> str:
    """How a process was started."""
    return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")


def private(pid: int) -> int:
    """Memory that no other process has, in KiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {name: value.split()[0] for name, _, value in (line.partition(":") for line in lines)}
    return int(sizes["Private_Clean"]) + int(sizes["Private_Dirty"])


@asynccontextmanager
async def open_page(server: Dray) -> AsyncIterator[None]:
    """Somebody looks at the fleet: the stream that the page reads, on another machine as it were."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls(), limit=1 << 24)
    body = json.dumps({"token": server.token}).encode()
    lines = ["POST /dashboard/api/login HTTP/1.1", f"Host: 127.0.0.1:{server.port}", "Content-Type: application/json"]
    writer.write(("\r\n".join([*lines, f"Content-Length: {len(body)}"]) + "\r\n\r\n").encode() + body)
    said = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(said.split("Content-Length: ")[1].split("\r\n")[0])
    key = json.loads(await reader.readexactly(length))["key"]
    cookie = said.split("Set-Cookie: ")[1].split(";")[0]
    lines = [
        "GET /dashboard/api/fleet HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        f"Cookie: {cookie}",
        f"X-Dray-Key: {key}",
    ]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    await reader.readuntil(b'"type":"summary"')

    async def read() -> None:
        while await reader.read(1 << 20):
            pass

    reading = asyncio.get_running_loop().create_task(read())
    try:
        yield
    finally:
        reading.cancel()
        writer.close()
        await log_out(server, cookie, key)


async def log_out(server: Dray, cookie: str, key: str) -> None:
    """Nobody looks any more: what was kept for them is let go of at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=tls())
    lines = ["POST /dashboard/api/logout HTTP/1.1", f"Host: 127.0.0.1:{server.port}", f"Cookie: {cookie}"]
    lines += [f"X-Dray-Key: {key}", "Content-Type: application/json", "Content-Length: 2"]
    writer.write(("\r\n".join(lines) + "\r\n\r\n{}").encode())
    said = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in said.split(b"\r\n")[0]:
        raise RuntimeError(f"log out: {said!r}")
    writer.close()


async def life_of_pods(server: Dray, clients: list[Connection], lap: int) -> float:
    """CPU seconds of the server for pods with a claim each that come, run, and go."""
    before = server.cpu_seconds()
    names = [f"pod-{lap}-{number}" for number in range(PODS_PER_LAP)]

    async def client(connection: Connection, method: str, own: list[str]) -> None:
        for name in own:
            if method == "POST":
                await send(connection, server, method, PODS, pod(name))
            else:
                await send(connection, server, method, f"{PODS}/{name}?gracePeriodSeconds=0", b"")

    async def all_of_them(method: str) -> None:
        await asyncio.gather(*(client(one, method, names[n :: len(clients)]) for n, one in enumerate(clients)))

    async def until_there_is_none(path: str) -> None:
        while True:
            _, listing = await clients[0].call(head(server, "GET", f"{path}limit=1"))
            if b'"items":[]' in listing:
                return
            await asyncio.sleep(0.1)

    await all_of_them("POST")
    await until_there_is_none(f"{PODS}?fieldSelector=status.phase%21%3DRunning&")
    await all_of_them("DELETE")
    await until_there_is_none(f"{PODS}?")
    await until_there_is_none(f"{CLAIM_LIST}?")
    return server.cpu_seconds() - before


async def lives_of_pods(server: Dray) -> dict[bool, list[float]]:
    """The same again and again, in turns with a page open and without."""
    clients = await connect(server, 16)
    await send(clients[0], server, "POST", cluster.TEMPLATES, json.dumps(cluster.TEMPLATE).encode())
    await life_of_pods(server, clients, 0)
    work: dict[bool, list[float]] = {False: [], True: []}
    for lap in range(1, LAPS + 1):
        order = (False, True) if lap % 2 else (True, False)
        for is_open in order:
            if is_open:
                async with open_page(server):
                    work[True].append(await life_of_pods(server, clients, lap))
            else:
                work[False].append(await life_of_pods(server, clients, lap))
    for one in clients:
        one.close()
    return work


def cost_for_others() -> dict[str, float]:
    """What pods cost the server with a page open and without, on one cluster, lap by lap."""
    with tempfile.TemporaryDirectory() as directory:
        server = cluster.up(Path(directory))
        try:
            work = uvloop.run(lives_of_pods(server))
        finally:
            server.stop()
    without, with_page = sum(work[False]), sum(work[True])
    return {
        "pod_cpu_ms": 1000 * without / (LAPS * PODS_PER_LAP),
        "pod_cpu_with_page_ms": 1000 * with_page / (LAPS * PODS_PER_LAP),
        "pod_cpu_with_page_percent_more": 100 * (with_page / without - 1),
    }


def run() -> dict[str, Any]:
    """All measurements; the names carry the units."""
    return {name: round(value, 2) for name, value in {**look_at_a_fleet(), **cost_for_others()}.items()}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
