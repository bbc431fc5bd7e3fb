"""Work beside the loop: one of each caller at a time, next whoever has used least, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dray.server.beside import THREADS, Beside
from patience import PATIENCE, eventually_async


@asynccontextmanager
async def working() -> AsyncIterator[Beside]:
    beside = Beside()
    try:
        yield beside
    finally:
        beside.close()


class Gate:
    """Work that goes on until it is let go, and says that it has begun."""

    def __init__(self, order: list[str] | None = None, name: str = "") -> None:
        self.begun = threading.Event()
        self.open = threading.Event()
        self._order = [] if order is None else order
        self._name = name

    def __call__(self) -> str:
        self._order.append(self._name)
        self.begun.set()
        assert self.open.wait(PATIENCE)
        return self._name


def _work(order: list[str], name: str) -> None:
    order.append(name)


async def test_gives_what_the_function_gives_or_raises() -> None:
    async with working() as beside:
        assert await beside.run("ann", divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await beside.run("ann", divmod, 7, 0)
        assert await beside.run("ann", threading.get_ident) != threading.get_ident()


async def test_the_loop_goes_on_while_a_thread_keeps_computing() -> None:
    async with working() as beside:
        is_over = threading.Event()

        def compute() -> int:
            count = 0
            while not is_over.is_set():
                count += 1
            return count

        task = asyncio.create_task(beside.run("ann", compute))
        for _ in range(100):
            await asyncio.sleep(0)
        is_over.set()
        assert await task > 0


async def test_one_caller_has_one_thread_and_others_do_not_wait_for_it() -> None:
    async with working() as beside:
        first, second = Gate(name="first"), Gate(name="second")
        tasks = [asyncio.create_task(beside.run("mallory", gate)) for gate in (first, second)]
        await eventually_async(first.begun.is_set)
        assert await beside.run("ann", str, 5) == "5"
        assert not second.begun.is_set()
        first.open.set()
        await eventually_async(second.begun.is_set)
        second.open.set()
        assert await asyncio.gather(*tasks) == ["first", "second"]


async def test_next_is_who_has_used_least() -> None:
    order: list[str] = []
    async with working() as beside:
        await beside.run("mallory", _burn)
        gates = [Gate() for _ in range(THREADS)]
        busy = [asyncio.create_task(beside.run(f"busy-{number}", gate)) for number, gate in enumerate(gates)]
        await eventually_async(lambda: all(gate.begun.is_set() for gate in gates))
        waiting = [asyncio.create_task(beside.run(name, _work, order, name)) for name in ("mallory", "ann")]
        await asyncio.sleep(0)
        for gate in gates[:1]:
            gate.open.set()
        await asyncio.gather(*waiting)
        assert order == ["ann", "mallory"]
        for gate in gates:
            gate.open.set()
        await asyncio.gather(*busy)


def _burn() -> None:
    until = time.thread_time() + 0.01
    while time.thread_time() < until:
        pass


async def test_who_is_gone_takes_the_work_back() -> None:
    order: list[str] = []
    async with working() as beside:
        gate = Gate(order, "first")
        first = asyncio.create_task(beside.run("ann", gate))
        gone = asyncio.create_task(beside.run("ann", _work, order, "gone"))
        last = asyncio.create_task(beside.run("ann", _work, order, "last"))
        await eventually_async(gate.begun.is_set)
        gone.cancel()
        gate.open.set()
        await asyncio.gather(first, last)
        assert order == ["first", "last"]


async def test_closing_ends_those_that_wait() -> None:
    async with working() as beside:
        gate = Gate()
        running = asyncio.create_task(beside.run("ann", gate))
        waiting = asyncio.create_task(beside.run("ann", str, 1))
        await eventually_async(gate.begun.is_set)
        beside.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.open.set()
        await running


class Large:
    """Says which thread threw it away."""

    def __init__(self, ended: list[str]) -> None:
        self._ended = ended

    def __del__(self) -> None:
        self._ended.append(threading.current_thread().name)


async def test_what_failing_work_made_is_thrown_away_beside_the_loop() -> None:
    ended: list[str] = []

    def work() -> None:
        made = Large(ended)
        raise ValueError(type(made).__name__)

    async with working() as beside:
        with pytest.raises(ValueError, match="Large"):
            await beside.run("ann", work)
    assert [name.startswith("beside") for name in ended] == [True]
