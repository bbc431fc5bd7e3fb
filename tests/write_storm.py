"""Clients that write as fast as they can until their server is killed, and know exactly what it acknowledged.

Every object carries the number of its version, twice: at the start and at the end of its data. The versions of an
object follow each other without a gap, also beyond its deletion, so that a watcher can tell whether it saw them all.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import aiohttp
import msgspec

from patience import PATIENCE

MAPS = "/api/v1/namespaces/default/configmaps"


class Version(msgspec.Struct):
    """What is acknowledged of one object, and the method of a write whose answer has not come."""

    number: int = 0
    present: bool = False
    revision: int = 0
    pending: str = ""

    @property
    def outcomes(self) -> set[int | None]:
        """The versions that may be stored, None for no object."""
        possible: set[int | None] = {self.number if self.present else None}
        if self.pending:
            possible.add(None if self.pending == "DELETE" else self.number + 1)
        return possible


def body(name: str, number: int, revision: int) -> dict[str, Any]:
    """A version of an object; its size varies, so that writes cross pages."""
    data = {"a-number": str(number), "m-filling": "x" * (number * 97 % 3000), "z-number": str(number)}
    return {"metadata": {"name": name, "resourceVersion": str(revision or "")}, "data": data}


def number_of(obj: dict[str, Any]) -> int:
    """The version of a stored object, which must be whole."""
    data = obj["data"]
    number = int(data["a-number"])
    assert data["z-number"] == str(number)
    assert len(data["m-filling"]) == number * 97 % 3000
    return number


class Storm:
    """Writers over several lives of a server, and one watcher."""

    def __init__(self, seed: int, writers: int = 12) -> None:
        self._random = random.Random(seed)
        self._writers = writers
        self._objects = {f"map-{number}": Version() for number in range(writers * 3)}
        self._newest = 0
        self._watched_revision = 1
        self._watched: dict[str, int] = {}
        self.acknowledged = 0

    async def rage(self, url: str, token: str) -> None:
        """Writes and watches until the server is gone."""
        async with _session(url, token) as session:
            names = list(self._objects)
            jobs = [self._write(session, names[number :: self._writers]) for number in range(self._writers)]
            await asyncio.gather(*jobs, self._watch(session))

    async def _write(self, session: aiohttp.ClientSession, names: list[str]) -> None:
        try:
            while True:
                await self._change(session, self._random.choice(names))
        except aiohttp.ClientError:
            return  # the server is gone

    async def _change(self, session: aiohttp.ClientSession, name: str) -> None:
        """Creates, replaces or deletes one object."""
        version = self._objects[name]
        if version.present:
            method, path = "DELETE" if self._random.random() < 0.1 else "PUT", f"{MAPS}/{name}"
        else:
            method, path = "POST", MAPS
        sent = None if method == "DELETE" else body(name, version.number + 1, version.revision * version.present)
        version.pending = method
        async with session.request(method, path, json=sent) as answer:
            made = await answer.json()
        assert answer.status in (200, 201), made
        version.pending = ""
        version.present = method != "DELETE"
        self.acknowledged += 1
        if version.present:
            revision = int(made["metadata"]["resourceVersion"])
            assert revision > version.revision
            version.number, version.revision = version.number + 1, revision
            self._newest = max(self._newest, revision)

    async def _watch(self, session: aiohttp.ClientSession, until: int | None = None) -> None:
        """Follows all objects from where it was, to the end of the stream or to a revision."""
        path = f"{MAPS}?watch=true&resourceVersion={self._watched_revision}"
        try:
            async with session.get(path) as answer:
                while until is None or self._watched_revision < until:
                    line = await answer.content.readline()
                    if not line.endswith(b"\n"):
                        return
                    self._see(json.loads(line))
        except aiohttp.ClientError:
            return

    def _see(self, event: dict[str, Any]) -> None:
        """Checks that nothing was left out or came twice: revisions grow, versions follow each other."""
        obj = event["object"]
        assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), obj
        revision, name = int(obj["metadata"]["resourceVersion"]), obj["metadata"]["name"]
        assert revision > self._watched_revision
        self._watched_revision = revision
        seen, number = self._watched.get(name, 0), number_of(obj)
        expected = seen if event["type"] == "DELETED" else seen + 1
        assert number == expected, f"the watcher saw version {seen} of {name}, then {event['type']} {number}"
        self._watched[name] = number

    async def check(self, url: str, token: str) -> None:
        """Compares what a restarted server has with what was acknowledged, and takes over what was in doubt."""
        async with _session(url, token) as session:
            async with session.get(MAPS) as answer:
                listing = await answer.json()
            assert int(listing["metadata"]["resourceVersion"]) >= self._newest, "revisions went back"
            stored = {obj["metadata"]["name"]: obj for obj in listing["items"]}
            for name, version in self._objects.items():
                self._check_one(name, version, stored.get(name))
            newest = max((version.revision for version in self._objects.values()), default=0)
            await asyncio.wait_for(self._watch(session, until=newest), PATIENCE)
            for name, obj in stored.items():
                assert self._watched[name] == number_of(obj), f"the watcher missed the last version of {name}"

    def _check_one(self, name: str, version: Version, stored: dict[str, Any] | None) -> None:
        found = None if stored is None else number_of(stored)
        assert found in version.outcomes, f"{name} is at version {found}, acknowledged was {version}"
        version.present = stored is not None
        if stored is not None and found is not None:
            revision = int(stored["metadata"]["resourceVersion"])
            same = found == version.number
            assert revision == version.revision if same else revision > version.revision
            version.number, version.revision = found, revision
        version.pending = ""


def _session(url: str, token: str) -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(total=None, sock_read=PATIENCE)
    connector = aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(
        url, headers={"Authorization": f"Bearer {token}"}, timeout=timeout, connector=connector
    )
