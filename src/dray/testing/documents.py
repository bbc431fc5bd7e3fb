"""Objects as documents over the API: applied, read, waited for and deleted by references such as `pod/trainer`."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from dray.api import manifest
from dray.api.status import ApiError
from dray.client.http import HttpClient
from dray.client.kubeconfig import find_connection
from dray.client.transport import Transport
from dray.simulation.names import STATE, STOPPED
from dray.testing.clock import MovableClock
from dray.testing.faults import ApiFault, ApiFaults

Document = dict[str, Any]
Manifest = str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]]
Condition = str | Callable[[Document], bool]

MANAGER: Final = "dray-testing"
FAILED_TAINT: Final = "dray.dev/failed"
LOOK_SECONDS: Final = 0.02
WAIT_SECONDS: Final = 30.0


class WaitError(AssertionError):
    """What a test waited for did not come."""


class Resource(msgspec.Struct, frozen=True):
    """Where the objects of a kind are."""

    group_version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Of a collection, an object or a subresource."""
        root = "/api/v1" if self.group_version == "v1" else f"/apis/{self.group_version}"
        parts = ["namespaces", namespace] if self.namespaced and namespace else []
        return "/".join([root, *parts, self.plural, *filter(None, (name, subresource))])


class AsyncCluster:
    """A running cluster, for coroutines. `client` is a typed client of it (`dray.client`), as the admin."""

    def __init__(
        self,
        kubeconfig: Path,
        transport: Transport,
        client: HttpClient,
        *,
        clock: MovableClock | None = None,
        faults: ApiFaults | None = None,
    ) -> None:
        self.kubeconfig = kubeconfig
        self.client = client
        self._transport = transport
        self._clock = clock
        self._faults = faults
        self._resources: dict[str, Resource] = {}

    async def apply(self, *manifests: Manifest, namespace: str = "default") -> list[Document]:
        """Creates or changes objects: YAML or JSON text, paths of files, documents. Raises ApiError."""
        applied = []
        for document in _documents(manifests):
            kind, name = document.get("kind", ""), document.get("metadata", {}).get("name", "")
            if not kind or not name:
                raise ValueError(f"an object needs kind and metadata.name to be applied, not {document!r:.200}")
            group = document.get("apiVersion", "").rpartition("/")[0]
            resource = await self._find(f"{kind}.{group}" if group else kind)
            path = resource.path(document["metadata"].get("namespace") or namespace, name)
            body = json.dumps(document).encode()
            query = {"fieldManager": MANAGER, "force": "true"}
            applied.append(await self._ask("PATCH", path, query, body, "application/apply-patch+yaml"))
        return applied

    async def get(self, reference: str, namespace: str = "default") -> Document:
        """One object, such as `pod/trainer` or `deployment.apps/web`. Raises ApiError (404)."""
        resource, name = await self._refer(reference)
        found: Document = await self._ask("GET", resource.path(namespace, name))
        return found

    async def list(self, resource: str, namespace: str = "", *, labels: str = "") -> list[Document]:
        """All objects of a kind, in one namespace or everywhere."""
        found = await self._find(resource)
        answer = await self._ask("GET", found.path(namespace), {"labelSelector": labels} if labels else {})
        items: list[Document] = answer["items"]
        return items

    async def patch(self, reference: str, patch: Mapping[str, Any], namespace: str = "default") -> Document:
        """Changes an object by a merge patch. Raises ApiError."""
        resource, name = await self._refer(reference)
        body = json.dumps(patch).encode()
        path = resource.path(namespace, name)
        changed: Document = await self._ask("PATCH", path, {}, body, "application/merge-patch+json")
        return changed

    async def delete(self, reference: str, namespace: str = "default") -> None:
        """Deletes an object; `wait` for "deleted" if it has to be gone. Raises ApiError (404)."""
        resource, name = await self._refer(reference)
        await self._ask("DELETE", resource.path(namespace, name))

    async def wait(
        self,
        reference: str,
        condition: Condition | None = None,
        *,
        node: str = "",
        namespace: str = "default",
        timeout: float = WAIT_SECONDS,
    ) -> Document:
        """Waits until an object is as wanted: a condition's name (`Ready`), `deleted`, or a function of the document.

        With `node`, until it is a pod on that node as well; with neither, until it is there. Returns the object as it
        then was. Raises WaitError, which says how it was last.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        last: Document | None = None
        while True:
            try:
                last = await self.get(reference, namespace)
            except ApiError as error:
                if error.code != 404:
                    raise
                if condition == "deleted":
                    return last or {}
                last = None
            if last is not None and condition != "deleted" and _holds(condition, last) and _is_on(node, last):
                return last
            if loop.time() >= end:
                raise WaitError(_disappointment(reference, condition, node, timeout, last))
            await asyncio.sleep(LOOK_SECONDS)

    async def advance(self, seconds: float) -> None:
        """Moves the cluster's time on: what it waits for happens now."""
        if self._clock is None:
            raise RuntimeError("time can be moved on only in a cluster of this process, not with process=True")
        await self._clock.advance(seconds)

    def fail_requests(self, code: int = 500, *, method: str = "", path: str = "", times: int = 1) -> None:
        """The next requests over HTTP with a method, whose path contains a text, fail. Raises ValueError."""
        if not 400 <= code <= 599 or times < 1:
            raise ValueError(f"requests fail with a code from 400 to 599, once or more, not {times} times with {code}")
        self._faults_here().fail(ApiFault(code, method, path, times))

    def break_watches(self) -> None:
        """All open watches break off."""
        self._faults_here().break_watches()

    async def lose_node(self, name: str) -> None:
        """A simulated node falls silent, as if it had lost power."""
        await self.patch(f"node/{name}", {"metadata": {"annotations": {STATE: STOPPED}}})

    async def restore_node(self, name: str) -> None:
        """It is back."""
        await self.patch(f"node/{name}", {"metadata": {"annotations": {STATE: None}}})

    async def fail_device(self, node: str, device: str, *, effect: str = "NoExecute") -> None:
        """A device of a node fails: its driver taints it. Raises ValueError if the node has no such device."""
        taint = {"key": FAILED_TAINT, "effect": effect}
        known: list[str] = []
        for found in await self.list("resourceslices"):
            spec = found["spec"]
            if spec.get("nodeName") != node:
                continue
            for one in spec.get("devices", ()):
                known.append(one["name"])
                if one["name"] == device:
                    others = [other for other in one.get("taints", ()) if other["key"] != FAILED_TAINT]
                    one["taints"] = [*others, taint]
                    await self.patch(f"resourceslice/{found['metadata']['name']}", {"spec": spec})
        if device not in known:
            there = f"; it has {', '.join(known)}" if known else ", nor any other"
            raise ValueError(f"node {node!r} has no device {device!r}{there}")

    async def kubectl(self, *arguments: str, check: bool = True) -> str:
        """What kubectl prints. Raises CalledProcessError if it fails, unless `check` is off."""
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        command = [shutil.which("kubectl") or "kubectl", *arguments]
        # Beside the loop, which may be the one that the server answers on.
        run = functools.partial(subprocess.run, capture_output=True, text=True, env=environment, check=False)
        done = await asyncio.to_thread(run, command)
        if check and done.returncode:
            error = subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
            error.add_note(done.stderr.strip())
            raise error
        return done.stdout

    def _faults_here(self) -> ApiFaults:
        if self._faults is None:
            raise RuntimeError("the API fails on request only in a cluster of this process, not with process=True")
        return self._faults

    async def _refer(self, reference: str) -> tuple[Resource, str]:
        kind, slash, name = reference.partition("/")
        if not slash or not name:
            raise ValueError(f"{reference!r} is not a reference: write KIND/NAME, such as pod/trainer")
        return await self._find(kind), name

    async def _find(self, kind: str) -> Resource:
        """A resource by its plural, singular, kind or short name, with or without `.group`."""
        wanted = kind.lower()
        if wanted not in self._resources:
            self._resources = await self._discover()  # it may be newer than what is known
        try:
            return self._resources[wanted]
        except KeyError:
            raise ValueError(f"the server has no resource {kind!r}") from None

    async def _discover(self) -> dict[str, Resource]:
        found: dict[str, Resource] = {}
        versions = ["v1"]
        for group in (await self._ask("GET", "/apis"))["groups"]:
            versions.append(group["preferredVersion"]["groupVersion"])
            versions += [one["groupVersion"] for one in group["versions"]]
        for version in dict.fromkeys(versions):
            root = "/api/v1" if version == "v1" else f"/apis/{version}"
            for one in (await self._ask("GET", root))["resources"]:
                if "/" in one["name"]:
                    continue
                resource = Resource(version, one["name"], one["namespaced"])
                group = version.rpartition("/")[0]
                for name in (one["name"], one.get("singularName", ""), one["kind"].lower(), *one.get("shortNames", ())):
                    found.setdefault(name, resource)
                    found.setdefault(f"{name}.{group}", resource)
        return found

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Any:
        return json.loads(await self._transport.request(method, path, query, body, content_type))


@asynccontextmanager
async def connected(
    kubeconfig: Path, *, clock: MovableClock | None = None, faults: ApiFaults | None = None
) -> AsyncIterator[AsyncCluster]:
    """A cluster that somebody runs, by its kubeconfig."""
    connection = find_connection(kubeconfig)
    transport = Transport(connection, agent=MANAGER)
    try:
        async with HttpClient(connection) as client:
            yield AsyncCluster(kubeconfig, transport, client, clock=clock, faults=faults)
    finally:
        await transport.close()


def _documents(manifests: Iterable[Manifest]) -> Iterable[Document]:
    for given in manifests:
        if isinstance(given, Mapping):
            yield dict(given)
        elif isinstance(given, str | Path):
            for data in _contents(given):
                yield from (document.value for document in manifest.parse(data) if document.value)
        else:
            yield from map(dict, given)


def _contents(given: str | Path) -> Iterable[bytes]:
    """A text itself, or what is in a file or in the manifests of a directory, by name."""
    if isinstance(given, str) and ("\n" in given or given.lstrip().startswith("{")):
        return [given.encode()]
    path = Path(given)
    if not path.is_dir():
        return [path.read_bytes()]
    files = sorted(file for file in path.iterdir() if file.suffix in {".yaml", ".yml", ".json"})
    if not files:
        raise ValueError(f"{path} has no manifests: no file ends in .yaml, .yml or .json")
    return [file.read_bytes() for file in files]


def _is_on(node: str, document: Document) -> bool:
    return not node or document.get("spec", {}).get("nodeName") == node


def _holds(condition: Condition | None, document: Document) -> bool:
    if condition is None:
        return True
    if not isinstance(condition, str):
        return bool(condition(document))
    conditions = document.get("status", {}).get("conditions") or ()
    return any(one.get("type") == condition and one.get("status") == "True" for one in conditions)


def _disappointment(
    reference: str, condition: Condition | None, node: str, seconds: float, last: Document | None
) -> str:
    called = condition if isinstance(condition, str) else getattr(condition, "__name__", "the condition")
    wanted = (
        " ".join([*([called] if condition is not None else []), *([f"on {node}"] if node else [])]) or "being there"
    )
    if last is None:
        return f"{reference} does not exist after {seconds:g} s; waited for {wanted}"
    status = json.dumps(last.get("status", {}), indent=2)
    place = f"it is on {last.get('spec', {}).get('nodeName') or 'no node'}, " if node else ""
    return f"{reference} is not as wanted ({wanted}) after {seconds:g} s; {place}its status is {status}"
