"""From a request about a pod to a question for its kubelet: which container, which node, which path. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

import msgspec

from dray.api.field import FieldError, invalid
from dray.api.generated.core import Node, Pod
from dray.api.kinds import PODS
from dray.api.nodes import SERVING_CERTIFICATE, WEBSOCKETS
from dray.api.times import Time
from dray.server import errors

LOG: Final = "log"
EXEC: Final = "exec"
ATTACH: Final = "attach"
PORT_FORWARD: Final = "portforward"
DEFAULT_PORT: Final = 10250
MOST: Final = 2**63 - 1
"""As a number in a query, which has 64 bits with clients."""

_ADDRESSES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
"""By which of its addresses a node is reached, the first one that it has. Names are for those that can be looked up."""
_RENAMED: Final = {"stdin": "input", "stdout": "output", "stderr": "error"}
_LOG_PARAMETERS: Final = (
    "follow",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "timestamps",
    "tailLines",
    "limitBytes",
    "stream",
)
_TRUE: Final = ("1", "true", "True", "TRUE", "t", "T")


class Kubelet(msgspec.Struct, frozen=True):
    """Where a node's kubelet is, how its certificate is known, and whether it speaks WebSockets itself."""

    node: str
    hosts: tuple[str, ...]
    port: int
    fingerprint: str = ""
    websockets: bool = False


class Question(msgspec.Struct, frozen=True):
    """What is asked of a kubelet."""

    path: str
    query: tuple[tuple[str, str], ...] = ()

    @property
    def uri(self) -> str:
        """Path and query as they are sent."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


def question(pod: Pod, subresource: str, uri: str) -> Question:
    """What the kubelet of a pod is asked. Raises ApiError for a request that makes no sense."""
    given = parse_qsl(uri.partition("?")[2], keep_blank_values=True)
    where = "/".join(quote(part, safe="") for part in (pod.metadata.namespace, pod.metadata.name))
    if subresource == PORT_FORWARD:
        return Question(f"/portForward/{where}", tuple(("port", value) for name, value in given if name == "ports"))
    container = container_of(pod, next((value for name, value in given if name == "container"), ""))
    if subresource == LOG:
        asked = tuple((name, value) for name, value in given if name in _LOG_PARAMETERS)
        problems = tuple(_log_problems(dict(asked)))
        if problems:
            raise errors.invalid(msgspec.structs.replace(PODS, kind="PodLogOptions"), pod.metadata.name, problems)
        return Question(f"/containerLogs/{where}/{quote(container, safe='')}", asked)
    asked = tuple(
        (_RENAMED.get(name, name), "1") for name, value in given if name in (*_RENAMED, "tty") and value in _TRUE
    )
    if not any(name in _RENAMED.values() for name, _ in asked):
        raise errors.bad_request("you must specify at least 1 of stdin, stdout, stderr")
    if subresource == EXEC:
        command = tuple((name, value) for name, value in given if name == "command")
        if not command:
            raise errors.bad_request("you must specify at least one command for the container")
        asked = (*command, *asked)
    return Question(f"/{subresource}/{where}/{quote(container, safe='')}", asked)


def container_of(pod: Pod, name: str) -> str:
    """The container that is meant; the only one if none is named. Raises ApiError."""
    main = [one.name for one in pod.spec.containers]
    first = [one.name for one in pod.spec.init_containers]
    others = [one.name for one in pod.spec.ephemeral_containers]
    if name:
        if name not in (*main, *first, *others):
            raise errors.bad_request(f"container {name} is not valid for pod {pod.metadata.name}")
        return name
    if len(main) == 1:
        return main[0]
    choice = f"choose one of: [{' '.join(main)}]"
    if first:
        choice += f" or one of the init containers: [{' '.join(first)}]"
    raise errors.bad_request(f"a container name must be specified for pod {pod.metadata.name}, {choice}")


def kubelet_of(node: Node) -> Kubelet:
    """Where a node's kubelet is. Raises ApiError if it does not say."""
    known = {one.type: one.address for one in reversed(node.status.addresses) if one.address}
    hosts = tuple(known[kind] for kind in _ADDRESSES if kind in known)
    if not hosts:
        raise errors.internal(f"no preferred addresses found for node {node.metadata.name}")
    own_name = node.metadata.name
    # A hostname that is only the node's own name need not be one that anybody can look up: addresses are better.
    ordered = sorted(dict.fromkeys(hosts), key=lambda host: host == own_name)
    return Kubelet(
        own_name,
        tuple(ordered),
        node.status.daemon_endpoints.kubelet_endpoint.port or DEFAULT_PORT,
        node.metadata.annotations.get(SERVING_CERTIFICATE, ""),
        WEBSOCKETS in node.status.declared_features,
    )


def _log_problems(query: dict[str, str]) -> Iterable[FieldError]:
    for name, least in (("tailLines", 0), ("limitBytes", 1), ("sinceSeconds", 1)):
        text = query.get(name, "")
        if text:
            try:
                if not least <= int(text) <= MOST:
                    raise ValueError
            except ValueError:
                yield invalid(name, text, f"must be an integer of {least} to {MOST}")
    if query.get("sinceTime"):
        if query.get("sinceSeconds"):
            yield invalid(
                "sinceTime", query["sinceTime"], "at most one of `sinceTime` or `sinceSeconds` may be specified"
            )
        try:
            Time.parse(query["sinceTime"])
        except ValueError as error:
            yield invalid("sinceTime", query["sinceTime"], str(error))
